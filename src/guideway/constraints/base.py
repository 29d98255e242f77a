"""`Constraint`, the base class of all constraints, and the operators that combine constraints."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from guideway.arguments import short_repr
from guideway.constraints.captures import Captures, Reading, Rules, Shape, captures_of
from guideway.constraints.embed import separated, term_of
from guideway.constraints.known import in_library, shared
from guideway.constraints.mismatch import does_not_fit
from guideway.constraints.structural import Structured
from guideway.errors import InvalidConstraintError, InvalidTextError, LimitExceededError, UnsupportedError
from guideway.grammar.cfg import Repetition, Rule, Text, lower, terms
from guideway.grammar.nodes import Alternative, Grammar, Leaf, Sequence, leaf, renumbered
from guideway.grammar.recognizer import fits
from guideway.grammar.regular import Complement, Concat, Intersection, Literals, Regular, Union, as_text

if TYPE_CHECKING:
    from guideway.constraints.exports import LarkDialect, RegexDialect

__all__ = [
    "Captured",
    "Constraint",
    "Literal",
    "Repeated",
    "check_counts",
    "check_text",
    "either_of",
    "one_after_the_other",
]

MAX_TIMES = 2**31 - 1
"""The largest repetition count that `repeat` accepts."""


T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")


_REDUCERS: list[Callable[[Any], Any]] = []
"""Empty, or only `wire.reduced`, which returns the pickled form.

wire.py adds it: wire.py imports this module, so this module cannot import wire.py.
"""


class Constraint(Structured, ABC, Generic[T_co]):
    """A set of texts, and how a text of this set is converted to a value. Immutable and hashable.

    Two constraints of one class with equal content are equal. Constraints combine with operators. A str operand is a
    literal text:

    - `a | b`: alternation. The value is that of the first operand whose `parse` accepts the text.
    - `a + b`: concatenation. The value is the text.
    - `a & b`: intersection, for regular constraints only. The value is the text.
    - `~a`: complement, for regular constraints without tokens given by ids only. The value is the text.

    `repeat` and its short forms (`optional`, `exactly`, `at_least`, `at_most`, `between`) and `capture` work for every
    constraint.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls) and in_library(cls):
            cls.__init__ = shared(cls.__init__)  # type: ignore[method-assign]  # the same signature

    @classmethod
    def _named_arguments(cls, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments from which the key of a constructor call in `known.states` is computed.

        Subclasses replace arguments that are not plain data, but can be described by plain data.
        """
        return args, kwargs

    def _lowered_part(self) -> Constraint[Any]:
        """Return the constraint that provides the grammar of this one: itself, or an inner one with the same texts."""
        return self

    @abstractmethod
    def grammar(self) -> Grammar:
        """Return the grammar of the allowed texts. The caller must not modify it."""

    @abstractmethod
    def parse(self, text: str) -> T_co:
        """Return the value of a text.

        Args:
            text: The complete text.

        Returns:
            The value. Its type depends on the constraint.

        Raises:
            InvalidTextError: The text does not match the constraint.
        """

    def read(self, text: str) -> T_co:
        """Return the value of a text that is known to match. Subclasses may skip the check that `parse` does."""
        return self.parse(text)

    def conflict(self, place: str | None) -> str | None:
        """Explain why no text matches. Call it only if the grammar derives no text.

        Args:
            place: The location that the error names, such as a JSON Pointer; None: it names none.

        Returns:
            A phrase that names the parts that contradict each other; None: they are not known.
        """
        return None

    def regular(self) -> Regular | None:
        """Return the language as a regular expression. None if the root of the grammar is not a leaf."""
        grammar = self.grammar()
        root = grammar.nodes[grammar.root]
        return root.text if isinstance(root, Leaf) else None

    def repeat(self, least: int = 0, most: int | None = None, *, separator: str = "") -> Constraint[str]:
        """Return a constraint that allows repetitions of this one. The value is the text.

        Args:
            least: The minimum number of repetitions.
            most: The maximum number of repetitions; None: no maximum.
            separator: The text between two repetitions.

        Raises:
            InvalidConstraintError: `least` is negative or greater than `most`.
            LimitExceededError: A number is greater than 2**31 - 1, or the repetition is too large.
            TypeError: A number is not an int, or `separator` is not a str.
        """
        return Repeated(self, least, most, separator)

    def optional(self) -> Constraint[str]:
        """Return a constraint that allows the texts of this one and the empty text. The value is the text."""
        return self.repeat(0, 1)

    def exactly(self, count: int, *, separator: str = "") -> Constraint[str]:
        """Return a constraint that allows `count` repetitions of this one. The value is the text."""
        return self.repeat(count, count, separator=separator)

    def at_least(self, count: int, *, separator: str = "") -> Constraint[str]:
        """Return a constraint that allows `count` or more repetitions of this one. The value is the text."""
        return self.repeat(count, None, separator=separator)

    def at_most(self, count: int, *, separator: str = "") -> Constraint[str]:
        """Return a constraint that allows 0 to `count` repetitions of this one. The value is the text."""
        return self.repeat(0, count, separator=separator)

    def between(self, least: int, most: int, *, separator: str = "") -> Constraint[str]:
        """Return a constraint that allows `least` to `most` repetitions of this one. The value is the text."""
        return self.repeat(least, most, separator=separator)

    def capture(self, name: str) -> Constraint[T_co]:
        """Return this constraint with a name, under which `captures` reports the text that it matched.

        Args:
            name: Letters, digits, "_", "-" and ".", not beginning with a digit.

        Raises:
            InvalidConstraintError: `name` is not such a name.
            TypeError: `name` is not a str.
        """
        return Captured(self, name)

    def captures(self, text: str) -> Captures:
        """Return the text that each named part of this constraint matched; of several matches, the last.

        `Captures.all` returns all matches. Named parts are named groups of patterns, rules of grammars and constraints
        with `capture`. The name of a JSON value is its JSON Pointer, "" for the whole value. If a text has several
        derivations, docs/captures.md says which one counts.

        Args:
            text: The complete text.

        Raises:
            InvalidTextError: The text does not match.
            LimitExceededError: The text has too many derivations, or the constraint is too large.
            TypeError: `text` is not a str.
        """
        if not isinstance(text, str):
            raise TypeError(f"text must be a str, got {type(text).__name__}")
        if not fits(self.grammar(), text):
            raise does_not_fit(self.grammar(), text, f"does not match {self!r}")
        return captures_of(self, text)

    def to_gbnf(self, *, duplicate_keys: bool = False, single_characters: bool = False) -> str:
        """Return this constraint in GBNF, the notation of llama.cpp. The root is `root`.

        Without `duplicate_keys`, the grammar derives exactly the texts of this constraint. So a server enforces it even
        if the server's converter of schemas does not support it.

        Args:
            duplicate_keys: Whether an object may have a key twice if it allows keys that the schema does not name. A
                context-free grammar cannot exclude this. Without it, such objects raise an error.
            single_characters: Whether to write each character as a separate literal. llguidance (the backend "guidance"
                of vLLM) needs this: it takes the longest literal that matches, and does not backtrack.

        Raises:
            UnsupportedError: A context-free grammar cannot express the constraint, or it has special tokens. `place` is
                the location.
            LimitExceededError: The grammar would be too large.
            UnsatisfiableError: No text fits.
        """
        from guideway.constraints.exports import gbnf_of

        return gbnf_of(self.grammar(), duplicate_keys, single_characters)

    def to_lark(self, dialect: LarkDialect = "llguidance", *, duplicate_keys: bool = False) -> str:
        """Return this constraint as a Lark grammar. The root is `start`.

        Args:
            dialect: Must be "llguidance".
            duplicate_keys: As for `to_gbnf`.

        Raises:
            UnsupportedError: As for `to_gbnf`, or `dialect` has another value.
            LimitExceededError: The grammar would be too large.
            UnsatisfiableError: No text fits.
        """
        from guideway.constraints.exports import lark_of

        if dialect != "llguidance":
            raise UnsupportedError(f"dialect must be 'llguidance', got {short_repr(dialect)}")
        return lark_of(self.grammar(), duplicate_keys)

    def to_regex(self, dialect: RegexDialect = "rust") -> str:
        """Return this constraint as a regular expression for whole texts, without anchors and lookaround.

        Args:
            dialect: "rust" (the crate `regex`), "python" (`re`) or "ecma" (with the flag `u`).

        Raises:
            UnsupportedError: The constraint is recursive, not regular, or has special tokens; or `dialect` is unknown.
            LimitExceededError: The expression would be too long.
            UnsatisfiableError: No text fits.
        """
        from guideway.constraints.exports import regex_of

        return regex_of(self.grammar(), dialect)

    def shape(self) -> Shape | None:
        """Return the structure from which `captures` computes the captures; None: the constraint has no named parts."""
        return None

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Return what `pickle` stores: the serialised form. For classes without one, the default of Python."""
        try:
            return _REDUCERS[-1](self)
        except (IndexError, UnsupportedError):
            return super().__reduce_ex__(protocol)

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
    """Return `text` if it is a str that UTF-8 can encode.

    Otherwise raises `InvalidConstraintError`. `what` names the text in the message.
    """
    if not isinstance(text, str):
        raise InvalidConstraintError(f"{what} must be a str, got {type(text).__name__}")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidConstraintError(f"{what} contains a lone surrogate, which UTF-8 cannot encode") from None
    return text


def _source(thing: object) -> Constraint[object]:
    if isinstance(thing, Constraint):
        return thing
    if isinstance(thing, str):
        return Literal(thing)
    raise InvalidConstraintError(
        f"a constraint combines with a constraint or a str, got {type(thing).__name__}; convert it with guideway.constraints.of()"
    )


class Literal(Constraint[str]):
    """A single text. The value is the text."""

    def __init__(self, text: str) -> None:
        self.text = check_text(text, "the text")

    def grammar(self) -> Grammar:
        """Return a grammar of one leaf."""
        return leaf(Literals((self.text,)))

    def parse(self, text: str) -> str:
        """Return the text if it is the text of this constraint."""
        if text != self.text:
            raise does_not_fit(self.grammar(), text, f"is not {self.text!r}")
        return text

    def _content(self) -> object:
        return self.text

    def __repr__(self) -> str:
        return repr(self.text)


class _Combined(Constraint[T_co]):
    """One or more constraints, combined by an operator. Nested combinations of the same kind are flattened."""

    _sign = ""
    _joins: type[Union | Concat] | None = None
    _parts: tuple[Constraint[object], ...]

    def __init__(self, given: tuple[Constraint[object], ...]) -> None:
        self._parts = tuple(part for one in given for part in (one._parts if isinstance(one, type(self)) else (one,)))
        self._language = self._whole([part.regular() for part in self._parts])

    def _whole(self, parts: list[Regular | None]) -> Regular | None:
        """Return the language of the combination from those of the operands. None: an operand is not regular.

        The constructor calls this, so that nested combinations need no recursion. For `_All`, the result is not used.
        """
        known = tuple(part for part in parts if part is not None)
        return self._joins(known) if self._joins is not None and len(known) == len(parts) else None

    def regular(self) -> Regular | None:
        """Return the language of the combination; None: an operand is not regular."""
        return self._language

    def _combined(self, node: type[Alternative | Sequence]) -> Grammar:
        """Return the grammar: one leaf if all operands are regular, otherwise a node that refers to their grammars."""
        if self._language is not None:
            return leaf(self._language)
        try:
            return self._side_by_side(node)
        except RecursionError:
            raise LimitExceededError("constraints are nested too deeply; use fewer nested operators") from None

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

    def conflict(self, place: str | None) -> str | None:
        """Return the repr of the combination; None if the error names a location (`place`)."""
        return repr(self) if place is None else None

    def _shown(self) -> tuple[object, ...]:
        parts = [("(", part, ")") if isinstance(part, _Combined) else (part,) for part in self._parts]
        return (*parts[0], *(one for part in parts[1:] for one in (f" {self._sign} ", *part)))

    def _rules(self, kind: type[terms.Alternation | terms.Concatenation]) -> Rules:
        return Rules((Rule("parts", kind(tuple(term_of(part) for part in self._parts))),), "parts")


class _Any(_Combined[T_co]):
    _sign = "|"
    _joins = Union

    def shape(self) -> Rules:
        """Return one rule: the alternation of the operands, in order of priority."""
        return self._rules(terms.Alternation)

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
    _joins = Concat

    def shape(self) -> Rules:
        """Return one rule: the concatenation of the operands."""
        return self._rules(terms.Concatenation)

    def grammar(self) -> Grammar:
        return self._combined(Sequence)

    def parse(self, text: str) -> str:
        """Return the text if it is a concatenation of texts of the parts."""
        if not fits(self.grammar(), text):
            raise does_not_fit(self.grammar(), text, f"does not match {self!r}")
        return text


class _All(_Combined[str]):
    _sign = "&"

    def __init__(self, given: tuple[Constraint[object], ...]) -> None:
        super().__init__(given)
        both = self._language = Intersection(tuple(_regular(part, "&") for part in self._parts))
        self._grammar = leaf(both)

    def grammar(self) -> Grammar:
        return self._grammar

    def shape(self) -> Shape | None:
        """Return a function that returns the captures of all operands, each of which matches the whole text.

        None: no operand has named parts.
        """
        parts = [part for part in self._parts if part.shape() is not None]
        return Reading(lambda text: [one for part in parts for one in part.captures(text).spans]) if parts else None

    def parse(self, text: str) -> str:
        for part in self._parts:
            part.parse(text)
        return text


class _Other(Constraint[str]):
    def __init__(self, part: Constraint[object]) -> None:
        self._part = part
        # `parse` reads the name of a special token as text, so this text is excluded, too
        self._language = Complement(as_text(_regular(part, "~")))

    def regular(self) -> Regular:
        return self._language

    def grammar(self) -> Grammar:
        return leaf(self._language)

    def parse(self, text: str) -> str:
        try:
            self._part.parse(text)
        except InvalidTextError:
            return text
        raise InvalidTextError(f"{short_repr(text)} matches {short_repr(self._part)}, which is excluded")

    def _content(self) -> object:
        return self._part

    def _shown(self) -> tuple[object, ...]:
        return "~(", self._part, ")"


def _regular(source: Constraint[object], sign: str) -> Regular:
    language = source.regular()
    if language is None:
        raise UnsupportedError(
            f"{sign} needs regular constraints (Regex, Choice, str and combinations of them), got {short_repr(source)}"
        )
    return language


def check_counts(least: object, most: object, what: str) -> None:
    """Check the minimum and maximum number of repetitions; a maximum of None is valid.

    `what` is a word for messages.

    Raises:
        InvalidConstraintError: `least` is negative or greater than `most`.
        LimitExceededError: A number is greater than `MAX_TIMES`.
        TypeError: A number is not an int.
    """
    if type(least) is not int or not (most is None or type(most) is int):
        raise TypeError(f"{what} counts must be ints, got {short_repr(least)} and {short_repr(most)}")
    if max(least, most or 0) > MAX_TIMES:
        raise LimitExceededError(
            f"{what} counts must be at most {MAX_TIMES:,}, got {short_repr(max(least, most or 0))}"
        )
    if least < 0 or (most is not None and most < least):
        raise InvalidConstraintError(
            f"{what} counts need 0 <= least <= most, got least={short_repr(least)} and most={short_repr(most)}"
        )


class Repeated(Constraint[str]):
    """A constraint repeated `least` to `most` times (None: unbounded). The value is the text.

    `separator` is the text between two repetitions.
    """

    def __init__(self, part: Constraint[object], least: int, most: int | None, separator: str) -> None:
        check_counts(least, most, "repetition")
        if not isinstance(separator, str):
            raise TypeError(f"separator must be a str, got {type(separator).__name__}")
        self.part, self.least, self.most, self.separator = part, least, most, separator
        one = term_of(part)
        between = Text(Literals((separator,)))
        term = separated(one, least, most, between) if separator else Repetition(one, least, most)
        self._shape = Rules((Rule("repeated", term),), "repeated")
        self._grammar = lower(list(self._shape.rules), "repeated").grammar

    def grammar(self) -> Grammar:
        """Return the grammar."""
        return self._grammar

    def shape(self) -> Rules:
        """Return one rule: the greedy repetition."""
        return self._shape

    def parse(self, text: str) -> str:
        """Return the text if it is a repetition of texts of the part."""
        if not fits(self._grammar, text):
            raise does_not_fit(self._grammar, text, f"does not match {self!r}")
        return text

    def _content(self) -> object:
        return self.part, self.least, self.most, self.separator

    def _shown(self) -> tuple[object, ...]:
        between = f", separator={self.separator!r}" if self.separator else ""
        return "(", self.part, f").repeat({self.least}, {self.most}{between})"


class Captured(Constraint[T_co]):
    """A constraint whose text is captured under a name. Its language and values are those of the inner constraint."""

    def __init__(self, part: Constraint[T_co], name: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"name must be a str, got {type(name).__name__}")
        if not name.replace("-", "_").replace(".", "_").isidentifier():
            raise InvalidConstraintError(
                f"capture name may have letters, digits, '_', '-' and '.' and no leading digit, got {short_repr(name)}"
            )
        self.part, self.name = part, name
        # the part without the `Captured` objects directly around it
        self._plain: Constraint[T_co] = part._plain if isinstance(part, Captured) else part

    def grammar(self) -> Grammar:
        """Return the grammar of the inner constraint."""
        return self._plain.grammar()

    def _lowered_part(self) -> Constraint[Any]:
        return self._plain._lowered_part()

    def regular(self) -> Regular | None:
        """Return the result of `regular` of the inner constraint."""
        return self._plain.regular()

    def shape(self) -> Rules:
        """Return one rule, whose text is captured under the name."""
        return Rules((Rule(self.name, term_of(self.part)),), self.name, {self.name: self.name})

    def parse(self, text: str) -> T_co:
        """Return the value of the inner constraint."""
        return self._plain.parse(text)

    def conflict(self, place: str | None) -> str | None:
        """Return the explanation of the inner constraint."""
        return self._plain.conflict(place)

    def _content(self) -> object:
        return self.part, self.name

    def _shown(self) -> tuple[object, ...]:
        return "(", self.part, f").capture({self.name!r})"


def one_after_the_other(parts: tuple[Constraint[object], ...]) -> Constraint[str]:
    """Return the concatenation of one or more constraints."""
    return _Joined(parts)


def either_of(options: tuple[Constraint[object], ...]) -> Constraint[object]:
    """Return the alternation of several constraints; of one constraint, this constraint itself."""
    return options[0] if len(options) == 1 else _Any(options)
