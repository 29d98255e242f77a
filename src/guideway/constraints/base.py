"""What a user may ask for: a `Constraint` knows its grammar, and how to read a text that fits it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Generic, TypeVar

from guideway.constraints.structural import content_hash, same, shown
from guideway.errors import InvalidConstraintError, InvalidTextError, LimitExceededError, UnsupportedError
from guideway.grammar.cfg import Rule, terms
from guideway.grammar.nodes import Alternative, Grammar, Leaf, Sequence, renumbered
from guideway.grammar.recognizer import fits
from guideway.grammar.regular import Both, Cat, Either, Literals, Not, Regular

if TYPE_CHECKING:
    from guideway.constraints.captures import Captures, Rules, Shape

__all__ = ["Constraint", "Literal", "check_text", "either_of", "leaf", "one_after_the_other"]

T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")


class Constraint(ABC, Generic[T_co]):
    """A constraint as its user wrote it. Immutable; two of the same content are equal.

    They combine: `a | b` (either), `a + b` (one after the other; the value is the text) and, for regular ones,
    `a & b` (both at once) and `~a` (every other text). A str stands for itself there. `a.repeat(2, 5)`, its short forms
    (`optional`, `exactly`, `at_least`, `at_most`, `between`) and `a.capture("x")` work for every source.
    """

    @abstractmethod
    def grammar(self) -> Grammar:
        """What texts are allowed. The caller must not change it."""

    @abstractmethod
    def parse(self, text: str) -> T_co:
        """The value of a text that fits; `InvalidTextError` for one that does not."""

    def read(self, text: str) -> T_co:
        """The same of a text that is known to fit, since it was made so."""
        return self.parse(text)

    @abstractmethod
    def _content(self) -> object:
        """What makes two sources of this class equal: a hashable value."""

    def conflict(self, place: str | None) -> str | None:
        """What rules out every text, in words, where that can be told: of a source that was found to have none, at the
        place that the error names.
        """
        return None

    def regular(self) -> Regular | None:
        """The language, if it is written as one regular expression."""
        grammar = self.grammar()
        root = grammar.nodes[grammar.root]
        return root.text if isinstance(root, Leaf) else None

    def repeat(self, least: int = 0, most: int | None = None, *, separator: str = "") -> Constraint[str]:
        """This, `least` to `most` times (None: no end), with a separator between. The value is the text."""
        from guideway.constraints.repeated import Repeated  # which is a source itself

        return Repeated(self, least, most, separator)

    def optional(self) -> Constraint[str]:
        """This, or nothing. The value is the text."""
        return self.repeat(0, 1)

    def exactly(self, count: int, *, separator: str = "") -> Constraint[str]:
        """This, so many times. The value is the text."""
        return self.repeat(count, count, separator=separator)

    def at_least(self, count: int, *, separator: str = "") -> Constraint[str]:
        """This, so many times or more. The value is the text."""
        return self.repeat(count, None, separator=separator)

    def at_most(self, count: int, *, separator: str = "") -> Constraint[str]:
        """This, so many times or fewer, or not at all. The value is the text."""
        return self.repeat(0, count, separator=separator)

    def between(self, least: int, most: int, *, separator: str = "") -> Constraint[str]:
        """This, `least` to `most` times. The value is the text."""
        return self.repeat(least, most, separator=separator)

    def capture(self, name: str) -> Constraint[T_co]:
        """This; `captures` then says what it took of a text. Raises `InvalidConstraintError` for a name that is no word."""
        from guideway.constraints.capture import Named  # which is a source itself

        return Named(self, name)

    def captures(self, text: str) -> Captures:
        """What the names in this took of a text: groups of patterns, rules of grammars, `capture`d parts, and of JSON the
        values by JSON Pointer ("" is the whole). Which derivation counts where there are several: see docs/captures.md.
        `InvalidTextError` for a text that does not fit; `LimitExceededError` where it can be read in too many ways.
        """
        from guideway.constraints.captures import captures_of

        if not isinstance(text, str):
            raise TypeError(f"captures are of a str; got {type(text).__name__}")
        if not fits(self.grammar(), text):
            raise InvalidTextError(f"{text!r} does not fit {self!r}")
        return captures_of(self, text)

    def shape(self) -> Shape | None:
        """What of its inside captures are read by; None: the text is one piece."""
        return None

    def _shown(self) -> tuple[object, ...]:
        """How it is written: texts, and sources in it. What has no sources in it has a `__repr__` of its own."""
        return (type(self).__name__,)

    def __repr__(self) -> str:
        return shown(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constraint) and same(self, other)

    def __hash__(self) -> int:
        return content_hash(self)

    def __or__(self, other: Constraint[U] | str) -> Constraint[T_co | U | str]:
        return _Any((self, _source(other)))

    def __ror__(self, other: str) -> Constraint[T_co | str]:
        return _Any((_source(other), self))

    def __add__(self, other: Constraint[object] | str) -> Constraint[str]:
        return _Joined((self, _source(other)))

    def __radd__(self, other: str) -> Constraint[str]:
        return _Joined((_source(other), self))

    def __and__(self, other: Constraint[object] | str) -> Constraint[str]:
        return _All((self, _source(other)))

    def __invert__(self) -> Constraint[str]:
        return _Other(self)


def check_text(text: object, what: str) -> str:
    """The text, if it is a str that UTF-8 can write."""
    if not isinstance(text, str):
        raise InvalidConstraintError(f"{what} is a {type(text).__name__}, not a str")
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise InvalidConstraintError(f"{what} holds a lone surrogate, which no text can")
    return text


def _source(thing: object) -> Constraint[object]:
    if isinstance(thing, Constraint):
        return thing
    if isinstance(thing, str):
        return Literal(thing)
    raise InvalidConstraintError(f"only sources and str combine with a source, not {type(thing).__name__}")


class Literal(Constraint[str]):
    """Exactly one text."""

    def __init__(self, text: str) -> None:
        self.text = check_text(text, "the text")

    def grammar(self) -> Grammar:
        """One leaf."""
        return leaf(Literals((self.text,)))

    def parse(self, text: str) -> str:
        """The text itself."""
        if text != self.text:
            raise InvalidTextError(f"{text!r} is not {self.text!r}")
        return text

    def _content(self) -> object:
        return self.text

    def __repr__(self) -> str:
        return repr(self.text)


class _Combined(Constraint[T_co]):
    """Two sources or more; those of the same kind among them are taken apart."""

    _sign = ""
    _joins: type[Either | Cat] | None = None
    _parts: tuple[Constraint[object], ...]

    def __init__(self, given: tuple[Constraint[object], ...]) -> None:
        self._parts = tuple(part for one in given for part in (one._parts if isinstance(one, type(self)) else (one,)))
        self._language = self._whole([part.regular() for part in self._parts])

    def _whole(self, parts: list[Regular | None]) -> Regular | None:
        """The language, where all parts are regular: made at once, so that none has to be asked deep inside."""
        known = tuple(part for part in parts if part is not None)
        return self._joins(known) if self._joins is not None and len(known) == len(parts) else None

    def regular(self) -> Regular | None:
        """The language, where all parts are regular."""
        return self._language

    def _combined(self, node: type[Alternative | Sequence]) -> Grammar:
        """One leaf where every part is regular, else the parts' grammars side by side under a node."""
        if self._language is not None:
            return leaf(self._language)
        try:
            return self._side_by_side(node)
        except RecursionError:
            raise LimitExceededError("sources are combined with each other too deeply") from None

    def _side_by_side(self, node: type[Alternative | Sequence]) -> Grammar:
        made = Grammar()
        made.root = made.reserve()
        roots = []
        for grammar in (part.grammar() for part in self._parts):
            by = len(made.nodes)
            roots.append(grammar.root + by)
            numbers = range(by, by + len(grammar.nodes))
            made.nodes += [None if one is None else renumbered(one, numbers) for one in grammar.nodes]
            made.places += grammar.places
        made.define(made.root, node(tuple(roots)))
        return made

    def _content(self) -> object:
        return self._parts

    def _shown(self) -> tuple[object, ...]:
        parts = [("(", part, ")") if isinstance(part, _Combined) else (part,) for part in self._parts]
        return (*parts[0], *(one for part in parts[1:] for one in (f" {self._sign} ", *part)))

    def _rules(self, kind: type[terms.Choice | terms.Series]) -> Rules:
        from guideway.constraints.captures import Rules
        from guideway.constraints.embed import term_of

        return Rules((Rule("parts", kind(tuple(term_of(part) for part in self._parts))),), "parts")


class _Any(_Combined[T_co]):
    _sign = "|"
    _joins = Either

    def shape(self) -> Rules:
        """A choice, the first option first."""
        return self._rules(terms.Choice)

    def grammar(self) -> Grammar:
        return self._combined(Alternative)

    def parse(self, text: str) -> T_co:
        problems = []
        for part in self._parts:
            try:
                return part.parse(text)  # type: ignore[return-value]  # T_co is the union of the parts' types
            except InvalidTextError as problem:
                problems.append(str(problem))
        raise InvalidTextError("; ".join(problems))


class _Joined(_Combined[str]):
    _sign = "+"
    _joins = Cat

    def shape(self) -> Rules:
        """A series."""
        return self._rules(terms.Series)

    def grammar(self) -> Grammar:
        return self._combined(Sequence)

    def parse(self, text: str) -> str:
        """The text itself, if it can be cut so that each part takes its piece."""
        if not fits(self.grammar(), text):
            raise InvalidTextError(f"{text!r} does not fit {self!r}")
        return text


class _All(_Combined[str]):
    _sign = "&"

    def __init__(self, given: tuple[Constraint[object], ...]) -> None:
        super().__init__(given)
        both = self._language = Both(tuple(_regular(part, "&") for part in self._parts))
        self._grammar = leaf(both)

    def grammar(self) -> Grammar:
        return self._grammar

    def shape(self) -> Shape | None:
        """Each part reads the same text."""
        from guideway.constraints.captures import Reading

        parts = [part for part in self._parts if part.shape() is not None]
        return Reading(lambda text: [one for part in parts for one in part.captures(text).spans]) if parts else None

    def parse(self, text: str) -> str:
        for part in self._parts:
            part.parse(text)
        return text


class _Other(Constraint[str]):
    def __init__(self, part: Constraint[object]) -> None:
        self._part = part
        self._language = Not(_regular(part, "~"))

    def regular(self) -> Regular:
        return self._language

    def grammar(self) -> Grammar:
        return leaf(self._language)

    def parse(self, text: str) -> str:
        try:
            self._part.parse(text)
        except InvalidTextError:
            return text
        raise InvalidTextError(f"{text!r} fits {self._part!r}, and must not")

    def _content(self) -> object:
        return self._part

    def _shown(self) -> tuple[object, ...]:
        return "~(", self._part, ")"


def _regular(source: Constraint[object], sign: str) -> Regular:
    language = source.regular()
    if language is None:
        raise UnsupportedError(
            f"{sign} works on regular sources (Regex, Choice and what is made of them), not on {source!r}"
        )
    return language


def one_after_the_other(parts: tuple[Constraint[object], ...]) -> Constraint[str]:
    """Some sources in their order; at least one."""
    return _Joined(parts)


def either_of(options: tuple[Constraint[object], ...]) -> Constraint[object]:
    """Any of some sources; at least one."""
    return options[0] if len(options) == 1 else _Any(options)


def leaf(text: Regular) -> Grammar:
    """A grammar of one leaf."""
    grammar = Grammar()
    grammar.root = grammar.add(Leaf(text))
    return grammar
