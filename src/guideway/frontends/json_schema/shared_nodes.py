"""Expressions and grammar nodes that are built once per `Style`, and shared by all grammars of the style."""

from __future__ import annotations

from collections.abc import Collection

from guideway._kernel import NodeMaker
from guideway.caching import CacheInfo, cached, local_cache, register
from guideway.frontends.json_schema.assertions import (
    FALSE,
    NULL,
    NUMBER,
    STRING,
    TRUE,
    WHOLE_DIGITS,
    NumberAssertions,
    StringAssertions,
)
from guideway.frontends.json_schema.numbers import any_number, number
from guideway.frontends.json_schema.parse import KEYWORD_NAMES, MAX_COUNT, listed_texts, plain_analyses
from guideway.frontends.json_schema.strings import string
from guideway.frontends.json_schema.style import MAX_INDENTED, QUOTE, Style
from guideway.frontends.json_schema.verbatim import is_verbatim
from guideway.grammar.nodes import Alternative, Array, Grammar, Leaf, Node, Number, Object, Property, Punctuation
from guideway.grammar.program import constant, recently_shared, shared
from guideway.grammar.regular import ANY_TEXT, Complement, Concat, JsonEscaped, Literals, Regular, chars, either, repeat

__all__ = [
    "DIGITS",
    "KEYWORDS_OF_TYPE",
    "MAX_NODES",
    "MOST_TYPES",
    "SPACE",
    "SPACE_LEAF",
    "VALUES",
    "SharedNodes",
    "any_key",
    "any_scalar",
    "anything",
    "joined",
    "plain_scalar",
    "punctuation",
    "shared_nodes_of",
]

SPACE = constant(repeat(chars("  ", "\t\t", "\n\n", "\r\r")))
SPACE_LEAF = Leaf(SPACE)
DIGITS = "digits"  # a kind of value, like the names of types: the integers of draft 4 (no fraction, no exponent)
VALUES = (("null", None, "null"), ("boolean", True, "true"), ("boolean", False, "false"))
_MAX_STYLES = 64
_NUMBER_KEYWORDS = frozenset({"type", "minimum", "maximum", "multipleOf"})
KEYWORDS_OF_TYPE = {
    "object": frozenset(
        {
            *("type", "properties", "required", "additionalProperties"),
            *("patternProperties", "minProperties", "maxProperties"),
        }
    ),
    "array": frozenset({"type", "items", "minItems", "maxItems", "uniqueItems", "additionalItems"}),
    "string": frozenset({"type", "minLength", "maxLength", "pattern", "format"}),
    "number": _NUMBER_KEYWORDS,
    "integer": _NUMBER_KEYWORDS,
}
"""By type, the keywords that fast_path.py handles."""

MOST_TYPES = 7
"""The number of types that assertions distinguish: null, true, false, number, string, array and object."""

MAX_NODES = 200_000
"""The largest node number that `reserve` (fast_path.py) returns. It limits the size of the grammar of a schema."""


@cached(64)
def punctuation(style: Style) -> list[tuple[Punctuation, Punctuation]]:
    """Return the punctuation of arrays and of objects for each nesting level.

    Styles without indentation have one level.
    """
    levels = range(MAX_INDENTED + 1 if style.whitespace == "indented" else 1)
    return [(style.marks("[]", level), style.marks("{}", level)) for level in levels]


@cached(256)
def plain_scalar(types: int, part: NumberAssertions | None, style: Style) -> Leaf | Number | None:
    """Return the node of a scalar type, given by its bits. None for other types.

    `part` must come from a plain analysis (`plain_analyses`): it says whether numbers must be integers. The cache
    compares it by identity.
    """
    if types == STRING:
        return Leaf(string(None, style))
    if types == TRUE | FALSE:
        return Leaf(shared(Literals(("true", "false"))))
    if types == NULL:
        return Leaf(shared(Literals(("null",))))
    if types == NUMBER:
        made = number(part, style)
        return made if isinstance(made, Number) else Leaf(shared(made))
    return None


@cached(256)
def any_scalar(style: Style) -> Leaf:
    """Return the leaf of all scalars: null, booleans, numbers and strings."""
    words = Literals(("null", "true", "false"))
    return Leaf(shared(either((words, any_number(style), string(None, style)))))


@cached(256)
def any_key(style: Style) -> Regular:
    """Return the language of all object keys in a style: every JSON string, with its quotes and the style's escapes."""
    return shared(style.quoted(ANY_TEXT))


class SharedNodes:
    """The shared expressions and nodes of one style.

    Attributes:
        style: The style.
        brackets: The punctuation of arrays; in an indented style, of those at nesting level 0.
        braces: The same for objects.
        key: The language of all object keys.
        maker: Makes nodes in C++.
        spelling: How characters are written in strings.
        ordered: Whether keys are written in the order of the schema.
        spaced: Whether any white space is allowed between JSON tokens.
        first: The value of `Grammar.first`.
        strings: The method `Style.strings` of the style.
        string: The method `_string` with a cache.
        several: The method `_several` with a cache.
        anything: The method `_anything` with a cache.
        scalars: `scalars[digits_only][type]` is the node of the values of a JSON type, where `digits_only` is
            `Dialect.digits_only`; None: the type is "array" or "object".
    """

    def __init__(self, style: Style) -> None:
        self.style = style
        self.brackets, self.braces = punctuation(style)[0]
        self.key, self.spelling = any_key(style), style.spelling
        self.ordered = style.key_order == "schema"
        self.maker = NodeMaker(
            (Object, Property, Concat, JsonEscaped, Complement, Literals, Array, Leaf),
            KEYWORD_NAMES,
            KEYWORDS_OF_TYPE,
            QUOTE,
            self.spelling,
            style.new_key if self.spelling == "json" else None,
            self.brackets,
            self.braces,
            self.key,
            self.ordered,
            style.closed,
            MAX_NODES,
            MAX_COUNT,
            MOST_TYPES,
        )
        self.spaced = style.whitespace == "any"
        self.first: tuple[Regular, ...] = (any_scalar(style).text, self.key, *((SPACE,) if self.spaced else ()))
        self.strings = style.strings
        self.string = local_cache(1024, self._string)
        self.several = local_cache(256, self._several)
        self.anything = local_cache(256, self._anything)
        self.scalars = {
            digits: {
                name: plain_scalar(one.own.types, one.own.number, style) for name, one in plain_analyses(digits).items()
            }
            for digits in (False, True)
        }

    def quoted(self, language: Regular) -> Regular:
        """Return the same as `Style.quoted`. It is faster, because the spelling of the style is stored."""
        return Concat((QUOTE, JsonEscaped(language, self.spelling), QUOTE))

    def _anything(self, number: int) -> tuple[Node, ...]:
        """Return the nodes of any JSON value. They must be added in this order; `number` is the number of the first."""
        return Alternative((number + 1, number + 2, number + 3)), *_any_value(self.style, number)

    def _string(self, minimum: int, maximum: int | None, tests: tuple[tuple[str, str], ...]) -> Leaf:
        """Return the leaf of the strings with these length limits that pass tests.

        A test is ("pattern", pattern) or ("format", name). Raises the errors of `strings.text`, with the JSON Pointer
        "".
        """
        if not (minimum or tests) and maximum is None:
            return Leaf(string(None, self.style))
        part, left = StringAssertions(minimum, maximum), tests
        if not minimum and maximum is None:
            for test in tests:
                listed = listed_texts(test[1]) if test[0] == "pattern" else None
                if listed is not None:
                    part.enum, left = listed, tuple(one for one in tests if one is not test)
        part.tests = tuple((True, kind, text, "") for kind, text in left)
        made = string(part, self.style)
        return Leaf(
            made if any(kind == "pattern" or is_verbatim(text) for kind, text in tests) else recently_shared(made)
        )

    def _several(self, kinds: tuple[str, ...]) -> tuple[Leaf | Number, ...]:
        """Return the nodes of the scalars of these kinds. A kind is the name of a type, or `DIGITS`.

        Kinds that are not scalars are ignored.
        """
        scalars = []
        if "number" in kinds or "integer" in kinds or DIGITS in kinds:
            part = None if "number" in kinds else WHOLE_DIGITS if DIGITS in kinds else NumberAssertions(multiple=(1,))
            made = number(part, self.style)
            scalars.append(made if isinstance(made, Number) else Leaf(made))
        if "string" in kinds:
            scalars.append(Leaf(string(None, self.style)))
        return joined(set(kinds), scalars)


def joined(kinds: Collection[str], scalars: list[Leaf | Number]) -> tuple[Leaf | Number, ...]:
    """Return nodes for null and booleans, if they are among `kinds`, and for `scalars`.

    All of them except `Number` nodes are combined into one leaf, the first of the nodes.
    """
    words = tuple(word for kind, _, word in VALUES if kind in kinds)
    texts: list[Regular] = [Literals(words)] if words else []
    texts += [one.text for one in scalars if type(one) is Leaf]
    return (*((Leaf(either(texts)),) if texts else ()), *[one for one in scalars if type(one) is Number])


# by the identity of the style, because hashing the content of a style is slower; `SharedNodes` keeps the style alive
_SHARED_NODES: dict[int, SharedNodes] = {}


register(f"{__name__}.shared_nodes_of", _SHARED_NODES.clear, lambda: CacheInfo(len(_SHARED_NODES), _MAX_STYLES))


def shared_nodes_of(style: Style) -> SharedNodes:
    """Return the shared expressions and nodes of a style. They are cached."""
    found = _SHARED_NODES.get(id(style))
    if found is None or found.style is not style:
        if len(_SHARED_NODES) >= _MAX_STYLES:
            _SHARED_NODES.clear()
        found = _SHARED_NODES[id(style)] = SharedNodes(style)
    return found


def anything(grammar: Grammar, style: Style, inside: int, level: int = 0) -> tuple[Leaf, Array, Object]:
    """Return the nodes of any JSON value: a scalar, an array and an object.

    Also sets `grammar.first`.

    Args:
        grammar: The grammar.
        style: The style.
        inside: The number of the node of the items of the array and of the values of the object's entries.
        level: The nesting level, which selects the punctuation of an indented style.
    """
    grammar.first = shared_nodes_of(style).first
    return _any_value(style, inside, level)


def _any_value(style: Style, inside: int, level: int = 0) -> tuple[Leaf, Array, Object]:
    brackets, braces = punctuation(style)[level]
    entry = Property(any_key(style), inside, False)
    return any_scalar(style), Array(brackets, (), inside), Object(braces, (), (entry,), style.key_order == "schema")
