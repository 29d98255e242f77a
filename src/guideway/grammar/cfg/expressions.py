"""Properties of expressions: nullability (whether the empty text matches), removal of the empty text, equality."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

from guideway.grammar.regular import (
    ANY_CHAR,
    EMPTY,
    NEVER,
    Chars,
    Complement,
    Concat,
    Dfa,
    Intersection,
    JsonEscaped,
    Literals,
    Regular,
    Repeat,
    Special,
    Substrings,
    Union,
    distinct,
    outer_parts_of,
    parts_of,
)

__all__ = ["Expressions", "is_never"]

_MAX_JOINED = 4_000  # maximum length of adjacent texts that are joined, because rules can double a text many times

_SOME = Repeat(ANY_CHAR, 1, None)


def is_never(symbol: object) -> bool:
    """Return whether a symbol is a `Union` without parts or a `Literals` without texts.

    These derive no text, not even the empty one. Only the form is tested: the result is False for other symbols that
    derive no text.
    """
    return isinstance(symbol, (Union, Literals)) and not (symbol.parts if isinstance(symbol, Union) else symbol.texts)


class Expressions:
    """Computes properties of expressions without recursion, and caches them by the identity of the expression."""

    def __init__(self) -> None:
        self._nullable: dict[int, int] = {}
        self._numbers: dict[int, int] = {}
        self._by_content: dict[object, int] = {}
        self._kept: list[Regular] = []  # keeps the expressions alive, so that their identities stay valid

    def nullable(self, expression: Regular) -> bool:
        """Return whether an expression matches the empty text."""
        found = self._nullable
        if id(expression) not in found:
            self._walk(expression, found, lambda at, parts: _nullable(at, [bool(found[id(part)]) for part in parts]))
        return bool(found[id(expression)])

    def number(self, expression: Regular) -> int:
        """Return a number that is equal for structurally equal expressions."""
        numbers, by_content = self._numbers, self._by_content

        def numbered(at: Regular, parts: tuple[Regular, ...]) -> int:
            inner = tuple(numbers[id(part)] for part in parts)
            return by_content.setdefault((type(at), _own(at), inner), len(by_content))

        if id(expression) not in numbers:
            self._walk(expression, numbers, numbered)
        return numbers[id(expression)]

    def key(self, symbols: Iterable[object]) -> tuple[Hashable, ...]:
        """Return a key that is equal for structurally equal symbols. Hashing expressions would need recursion."""
        return tuple(
            (self.number(one),) if isinstance(one, Regular) else one if isinstance(one, int) else id(one) << 64
            for one in symbols
        )

    def _walk(
        self, root: Regular, found: dict[int, int], answer: Callable[[Regular, tuple[Regular, ...]], int]
    ) -> None:
        for at in distinct(root, known=found):
            found[id(at)] = answer(at, parts_of(at))
            self._kept.append(at)

    def some(self, expression: Regular) -> Regular:
        """Return the expression without the empty text."""
        if not self.nullable(expression):
            return expression
        if isinstance(expression, Union):
            return self.either([self._some(part) if self.nullable(part) else part for part in expression.parts])
        return self._some(expression)

    def _some(self, expression: Regular) -> Regular:
        match expression:
            case Concat(()):
                return NEVER
            case Literals(texts):
                return Literals(tuple(text for text in texts if text))
            case Repeat(_, _, 0):
                return NEVER
            case Repeat(part, _, most) if not self.nullable(part):
                return Repeat(part, 1, most)
        if any(isinstance(one, Special) for one in distinct(expression)):
            return self._some_with_tokens(expression)
        return Intersection((expression, _SOME))

    def _some_with_tokens(self, expression: Regular) -> Regular:
        """Return the expression without the empty text, if it contains special tokens, which `_SOME` does not match."""
        made: dict[int, Regular] = {}
        for one in distinct(expression, outer_parts_of):
            some = one
            if self.nullable(one):
                match one:
                    case Concat(parts):  # one alternative for each part that can be the first with a text or token
                        options: list[Regular] = []
                        rest: Regular = EMPTY  # shared by the alternatives, so that their size is linear
                        for part in reversed(parts):
                            options.append(Concat((made[id(part)], rest)))
                            rest = Concat((part, rest))
                        some = self.either(options)
                    case Union(parts):
                        some = self.either([made[id(part)] for part in parts])
                    case Repeat(part, _, most):
                        left = None if most is None else max(most - 1, 0)
                        some = NEVER if most == 0 else Concat((made[id(part)], Repeat(part, 0, left)))
                    case Intersection(parts):
                        some = Intersection((made[id(parts[0])], *parts[1:]))
                    case _:
                        some = Intersection((one, _SOME))
            made[id(one)] = some
        return made[id(expression)]

    def either(self, parts: list[Regular]) -> Regular:
        """Return the alternation of expressions, without duplicates. All fixed texts become one `Literals`."""
        texts = dict.fromkeys(text for part in parts if isinstance(part, Literals) for text in part.texts)
        others = {self.number(part): part for part in parts if not isinstance(part, Literals)}
        made = ([Literals(tuple(texts))] if texts else []) + [part for part in others.values() if not is_never(part)]
        return made[0] if len(made) == 1 else Union(tuple(made)) if made else NEVER

    def cat(self, parts: list[Regular]) -> Regular:
        """Return the concatenation of expressions. Adjacent fixed texts are joined, up to a length."""
        made: list[Regular] = []
        for part in parts:
            if isinstance(part, Concat) and not part.parts:
                continue
            before = made[-1] if made else None
            if (
                isinstance(part, Literals)
                and isinstance(before, Literals)
                and len(part.texts) == len(before.texts) == 1
                and len(part.texts[0]) + len(before.texts[0]) <= _MAX_JOINED
            ):
                made[-1] = Literals((before.texts[0] + part.texts[0],))
            else:
                made.append(part)
        return made[0] if len(made) == 1 else Concat(tuple(made)) if made else EMPTY


def _own(at: Regular) -> object:
    match at:
        case Chars(ranges):
            return ranges
        case Literals(texts):
            return texts
        case Repeat(_, least, most):
            return least, most
        case JsonEscaped(_, spelling):
            return spelling
        case Dfa(states):
            return states
        case Special(name):
            return type(name), name
        case Substrings():
            return at
    return None


def _nullable(at: Regular, parts: list[bool]) -> bool:
    match at:
        case Chars() | Special():
            return False
        case Literals(texts):
            return "" in texts
        case Concat() | Intersection():
            return all(parts)
        case Union():
            return any(parts)
        case Complement():
            return not parts[0]
        case Repeat(_, least, _):
            return least == 0 or parts[0]
        case Dfa(states):
            return bool(states) and states[0][0]
        case Substrings():
            return at.empty
    return parts[0]
