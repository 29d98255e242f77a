"""The fast path: lowers simple schemas directly to grammar nodes.

It handles the entries of objects, the items of arrays, the bounds of scalars, listed values, simple references, and
`anyOf` and `oneOf` whose branches have different types (in `anyOf`, several may be arrays or objects). The general path
(parse.py, dnf.py, lower.py) lowers all other schemas, and those that may be invalid. It is not constructed if no schema
needs it. Both paths make the same nodes for the schemas that the fast path handles. A function that makes a node
returns None if the general path must lower the schema.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from decimal import Decimal
from typing import Any, NoReturn, Protocol

from guideway._kernel import DocumentNodes
from guideway.background import checkpoint
from guideway.errors import ConstraintError, LimitExceededError
from guideway.frontends.json_schema.assertions import NumberAssertions
from guideway.frontends.json_schema.keywords import KEYWORDS, SCHEMA_MAPS, Dialect
from guideway.frontends.json_schema.numbers import number
from guideway.frontends.json_schema.parse import KEYWORD_NAMES, MAX_COUNT, TYPE_BITS
from guideway.frontends.json_schema.shared_nodes import (
    DIGITS,
    KEYWORDS_OF_TYPE,
    MAX_NODES,
    SPACE_LEAF,
    VALUES,
    joined,
    shared_nodes_of,
)
from guideway.frontends.json_schema.strings import classes, finite_texts, matches, pattern_language
from guideway.frontends.json_schema.style import Style
from guideway.grammar.nodes import (
    Alternative,
    Array,
    Grammar,
    Leaf,
    Node,
    Number,
    Object,
    Origin,
    Property,
    Sequence,
    Value,
    pointer_of,
)
from guideway.grammar.regular import ANY_TEXT, NEVER, Complement, Literals, Regular, both, either
from guideway.jsontext.pointer import shown

__all__ = ["MAX_NODES", "FastPath", "GeneralPath", "open_entries", "reserve"]

_LISTED = (frozenset({"type", "enum"}), frozenset({"type", "const"}))
_SCHEMA_TYPES = frozenset({dict, bool})
_NUMBERS = frozenset({int, Decimal, type(None)})
_STR, _INT = frozenset({str}), frozenset({int})
_NO_PROPERTIES: dict[str, Any] = {}
_NO_NAMES: list[str] = []
_ENUM_TYPES = frozenset({str, bool, type(None), int, Decimal})
_ENUM = frozenset({"enum"})
_TYPED = frozenset({"type", "enum", "$ref"})
_FRAMES = ("array", "object")
_NUMBER_KINDS = frozenset({"number", "integer", DIGITS})
_NULL = Leaf(Literals(("null",)))
_MAX_BRANCHES = 64
_REFERENCES = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})
_REF, _TYPE = frozenset({"$ref"}), frozenset({"type"})
_LENGTHS, _BOUNDS = KEYWORDS_OF_TYPE["string"] - _TYPE, KEYWORDS_OF_TYPE["number"] - _TYPE
_KNOWN = frozenset().union(*KEYWORDS_OF_TYPE.values())
_ALL_KINDS = list(TYPE_BITS)
_TYPE_NAMES = frozenset(TYPE_BITS)
_NO_ESCAPES = re.compile(r"[^%~]*").fullmatch
_keywords_of = KEYWORD_NAMES.intersection
_NEVER = -1  # instead of a node number: the schema is `false`, or refers to `false` or to an unknown target


def open_entries(
    found: Iterable[tuple[Value, Regular]], names: Collection[str], quoted: Callable[[Regular], Regular]
) -> tuple[Property, ...]:
    """Return `Object.open` for classes of keys. Classes with equal values become one `Property`.

    Args:
        found: The value and the language of each key class. A class with the value -1 is left out: it allows no value.
        names: The keys of `Object.properties`, in their order. They are removed from the languages.
        quoted: Returns the language of the JSON strings whose decoded text is in a language.
    """
    by_value: dict[Value, list[Regular]] = {}
    for value, language in found:
        if value != _NEVER:
            by_value.setdefault(value, []).append(language)
    made = []
    for value, languages in by_value.items():
        keys = either(languages)
        if names:
            others = Complement(Literals(tuple(names)))
            keys = others if keys is ANY_TEXT else both(keys, others)
        made.append(Property(quoted(keys), value, False))
    return tuple(made)


def reserve(grammar: Grammar, place: Origin) -> int:
    """Reserve a node number. Raises `LimitExceededError` if it is greater than `MAX_NODES`."""
    found = grammar.reserve(place)
    if found > MAX_NODES:
        refuse_nodes(place)
    return found


def refuse_nodes(place: Origin) -> NoReturn:
    """Raise `LimitExceededError`: there are too many nodes at a place."""
    where = pointer_of(place)
    raise LimitExceededError(
        f"at {shown(where or '')}: the schema has more than {MAX_NODES:,} grammar nodes; use a smaller schema", where
    )


class GeneralPath(Protocol):
    """The general path (`Lowering`), as the fast path uses it."""

    def define(self, number: int, conjunction: Any, level: int) -> None:
        """Define a node with arguments that the general path has added to the worklist `FastPath.todo`.

        The number of the node is reserved.
        """

    def define_schema(self, number: int, schema: dict[str, Any]) -> None:
        """Define the node with this number, which is reserved, as the node of a schema of the document."""

    def reference(self, schema: dict[str, Any], place: Origin) -> int | None:
        """Return the number of the node to which the `$ref` of a schema refers, if no other keyword applies.

        Returns:
            The number. -1 if the target is `false`, or in a document that is not available (`finish` then raises). None
            if other keywords apply too, or if the value of `$ref` is not a string. In drafts 4 to 7, no keyword applies
            next to `$ref`.

        Raises:
            InvalidConstraintError: The reference has no schema as its target, or leads back to itself.
        """

    def finish(self) -> None:
        """Raise `UnsupportedError` if schemas cannot be enforced, or `LimitExceededError` for nested alternatives."""


class FastPath:
    """Lowers one document in a style without indentation.

    No subschema of the document may have an identifier (`$id`) or an anchor.

    Args:
        document: The document.
        style: How JSON is written.
        dialect: The dialect of the document.
        general_path: Constructs the general path for this instance.

    Attributes:
        grammar: The grammar, to which both paths add nodes.
        numbers: Node numbers by the identity of schemas, which the document keeps alive.
        todo: The worklist of both paths. An entry is a node number with a schema and its keywords, or the three
            arguments of `GeneralPath.define`.
        style: How JSON is written.
        unusual: The schemas that keyword_warnings.py checks.
    """

    def __init__(
        self, document: dict[str, Any], style: Style, dialect: Dialect, general_path: Callable[[FastPath], GeneralPath]
    ) -> None:
        self._document = document
        self.grammar = Grammar()
        self.numbers: dict[int, int] = {}
        self.todo: list[tuple[int, Any, Any]] = []
        self._any = _NEVER
        self._dialect = dialect
        self._plain_names = dialect.plain
        self.unusual: list[tuple[dict[str, Any], Origin, Dialect]] = []
        self._make_general_path = general_path
        self._general_path: GeneralPath | None = None
        self.style = style
        self._common = shared_nodes_of(style)
        grammar = self.grammar
        self._nodes = DocumentNodes(
            self._common,
            dialect.plain,
            dialect,
            self._common.scalars[dialect.digits_only],
            grammar.nodes,
            grammar.places,
            self.numbers,
            self.todo,
            self.unusual,
        )

    def run(self) -> Grammar:
        """Build the grammar of the document. Raises the errors of `Lowering.run`."""
        grammar = self.grammar
        root = self._nodes.number_of(self, self._document, "")
        if root == _NEVER:
            root = grammar.add(Leaf(NEVER), "")
        while (entry := self._nodes.complete(self)) is not None:
            checkpoint()
            number, what, names = entry
            if type(what) is not dict:
                self.general_path.define(number, what, names)
            elif (node := self._node(grammar.places[number], what, names)) is not None:
                grammar.nodes[number] = node
            else:
                self.define_generally(number, what)
        if self._general_path is not None:
            self._general_path.finish()
            self._general_path = None  # breaks a cycle of references, so that both are freed without garbage collection
        if self._common.spaced:
            space = len(grammar.nodes)
            grammar.nodes += (SPACE_LEAF, Sequence((space, root, space)))
            grammar.places += (None, None)
            root = space + 1
        grammar.root = root
        return grammar

    @property
    def general_path(self) -> GeneralPath:
        """The general path, constructed on first use."""
        if self._general_path is None:
            self._general_path = self._make_general_path(self)
        return self._general_path

    def define_generally(self, number: int, schema: dict[str, Any]) -> None:
        """Define the node with this number, which is reserved, by `GeneralPath.define_schema`."""
        self.general_path.define_schema(number, schema)

    checkpoint = staticmethod(checkpoint)
    refuse_nodes = staticmethod(refuse_nodes)

    def any_number(self) -> int:
        """Return the number of the node of any JSON value."""
        if self._any == _NEVER:
            self._any = self.add_anything(None)
        return self._any

    def add_anything(self, place: Origin) -> int:
        """Add the nodes of any JSON value. Returns the number of the first."""
        grammar, common = self.grammar, self._common
        number = len(grammar.nodes)
        grammar.first = common.first
        grammar.nodes += common.anything(number)
        grammar.places += (place, None, None, None)
        return number

    def number_of(self, schema: dict[str, Any], place: Origin) -> int:
        """Return the number of the node of a schema. -1 if its `$ref` has the result -1 in `GeneralPath.reference`."""
        return self._nodes.number_of(self, schema, place)

    def own_number(self, schema: dict[str, Any], place: Origin) -> int:
        """Return the number of the node of a schema that is not in `numbers`, and that is not only a reference.

        Schemas with the same plain analysis share a node. A node that is not complete yet is added to the worklist.
        """
        return self._nodes.own_number(self, schema, place)

    def reference(self, schema: dict[str, Any], place: Origin) -> int | None:
        """Return what `GeneralPath.reference` returns. Simple references do not need the general path."""
        found = self._target(schema)
        if len(schema) > 1:
            self.unusual.append((schema, place, self._dialect))
        if found is not None:
            return self.number_of(found, schema["$ref"][1:])
        return self.general_path.reference(schema, place)

    def _target(self, schema: dict[str, Any]) -> dict[str, Any] | None:
        """Return the target of the `$ref` of a schema, if it is a JSON Pointer in this document ("#/…").

        None if other keywords apply too, if the JSON Pointer has escapes or leads through a list, and if the target is
        not a dict or has a `$ref` itself. The general path resolves these references.
        """
        reference = schema["$ref"]
        alone = len(schema) == 1 or self._dialect.ref_alone or KEYWORD_NAMES.isdisjoint(schema.keys() - _REF)
        if not alone or type(reference) is not str or not reference.startswith("#/") or not _NO_ESCAPES(reference):
            return None
        found: Any = self._document
        for name in reference[2:].split("/"):
            found = found.get(name) if type(found) is dict else None
        return found if type(found) is dict and "$ref" not in found else None

    def _node(self, place: Origin, schema: dict[str, Any], names: frozenset[str]) -> Node | None:
        """Return the node of a schema with the keywords `names`. None if the general path must lower the schema."""
        kind = schema.get("type")
        keywords = KEYWORDS_OF_TYPE.get(kind) if type(kind) is str else None
        if keywords is None or not names <= keywords:
            return self._other_node(place, schema, names)
        if kind == "object":
            return self._object(place, schema)
        if kind == "array":
            return self._array(place, schema)
        if kind == "string":
            return self._string(schema)
        return self._number(schema, kind == "integer")

    def _other_node(self, place: Origin, schema: dict[str, Any], names: frozenset[str]) -> Node | None:
        """Return the node of a schema whose type or keywords do not fit `KEYWORDS_OF_TYPE`. None as in `_node`."""
        names = names - self._dialect.unknown
        kind = schema.get("type", _ALL_KINDS)
        if names <= _KNOWN:
            kinds = kind if type(kind) is list else [kind]
            return self._several(place, schema, kinds, names) if "type" in names or names else None
        if "enum" in names:
            return self._enum(place, schema["enum"], kind) if names <= _LISTED[0] else None
        if "const" in names:
            return self._enum(place, [schema["const"]], kind) if names <= _LISTED[1] else None
        if len(names) == 1 and ("anyOf" in names or "oneOf" in names):
            return self._either(place, schema, *names)
        return None

    def _several(self, place: Origin, schema: dict[str, Any], kinds: list[Any], names: frozenset[str]) -> Node | None:
        """Return the node of a schema with the types `kinds`. Keywords that apply to none of them have no effect."""
        if not kinds or not _are_types(kinds):
            return None
        for name in names.difference(*[KEYWORDS_OF_TYPE.get(kind, _TYPE) for kind in kinds], _TYPE):
            if not _has_no_error(name, schema[name]):
                return None  # the general path raises the error
        whole = "number" not in kinds
        numeric = not whole or "integer" in kinds
        if self._dialect.digits_only:
            kinds = [DIGITS if kind == "integer" else kind for kind in kinds]
        nodes: list[Any]
        if names.isdisjoint(_LENGTHS) and names.isdisjoint(_BOUNDS):
            nodes = [*self._common.several(tuple(kinds))]
        else:
            nodes = [self._number(schema, whole)] if numeric else []
            nodes += [self._string(schema)] if "string" in kinds else []
            if None in nodes:
                return None
            nodes = [*joined(set(kinds), nodes)]
        if "array" in kinds:
            nodes.append(self._array(place, schema))
        if "object" in kinds:
            nodes.append(self._object(place, schema))
        return None if None in nodes else self._any_of(place, nodes)

    def _any_of(self, place: Origin, nodes: list[Any]) -> Node:
        return nodes[0] if len(nodes) == 1 else Alternative(tuple([self.grammar.add(node, place) for node in nodes]))

    def _either(self, place: Origin, schema: dict[str, Any], name: str) -> Node | None:
        """Return the node of `anyOf` or `oneOf` (`name`) with branches of one type each. None for other schemas.

        The types must differ; "integer" counts as "number". Exception: several branches of `anyOf` may be arrays, or
        objects, if each of them has other keywords than `type`.
        """
        branches = schema[name]
        if type(branches) is not list or not 0 < len(branches) <= _MAX_BRANCHES:
            return None
        if not all(type(one) is dict and not _TYPED.isdisjoint(one) for one in branches):
            return None  # checked before any branch is lowered, so that no unused nodes are made
        found: dict[str, list[Node]] = {}
        unrestricted: set[str] = set()
        seen: set[int] = set()
        for i, one in enumerate(branches):
            at: Origin = (place, name, i)
            if type(one) is dict and "$ref" in one and (target := self._target(one)) is not None:
                at, one = one["$ref"][1:], target
            if id(one) in seen and name == "anyOf":
                continue
            seen.add(id(one))
            if not self._plain_names.issuperset(one):
                self.unusual.append((one, at, self._dialect))
            names = _keywords_of(one) if type(one) is dict else None
            kind = one.get("type", "string" if names == _ENUM and _are_texts(one["enum"]) else None) if names else None
            node = self._branch(at, one, kind, names) if names and type(kind) is str else None
            if node is None or type(kind) is not str:
                return None
            kind = "number" if kind == "integer" else kind
            if len(names or ()) == 1:
                unrestricted.add(kind)
            if kind in found and (name == "oneOf" or kind not in _FRAMES or kind in unrestricted):
                return None
            found.setdefault(kind, []).append(node)
        scalars: list[Any] = [node for kind in ("number", "string") for node in found.get(kind, ())]
        frames = [node for kind in _FRAMES for node in found.get(kind, ())]
        return self._any_of(place, [*joined(found.keys(), scalars), *frames])

    def _branch(self, place: Origin, schema: dict[str, Any], kind: str, names: frozenset[str]) -> Node | None:
        if kind in ("null", "boolean"):
            return _NULL if len(names) == 1 else None  # the caller ignores this node: `joined` adds the texts
        return self._node(place, schema, names)

    def _object(self, place: Origin, schema: dict[str, Any]) -> Object | None:
        patterns = None
        if "patternProperties" in schema:
            patterns = self._patterns(place, schema)
            if patterns is None:
                return None
        made: Object | None = self._nodes.object(self, schema, place, patterns)
        return made

    def open_entries(
        self, patterns: tuple[int, list[tuple[bool, Regular]]], names: tuple[str, ...], others: int
    ) -> tuple[Property, ...]:
        """Return `Object.open` of an object with `patternProperties`, for the keys that are not in `names`.

        Key classes with equal values become one `Property`.

        Args:
            patterns: The result of `_patterns`.
            names: The keys of `Object.properties`.
            others: The number of the node for the values of keys that do not match the pattern; -1: these keys are not
                allowed.
        """
        values = {True: patterns[0], False: others}
        return open_entries([(values[held], keys) for held, keys in patterns[1]], names, self._common.quoted)

    def _patterns(self, place: Origin, schema: dict[str, Any]) -> tuple[int, list[tuple[bool, Regular]]] | None:
        """Lower a `patternProperties` with one pattern that matches none of the keys that the schema names.

        Returns:
            The number of the node of the pattern's value (-1: there is none, see `number_of`), and the key classes.
            Each class is given by whether its keys match the pattern, and by its language. None if there is not exactly
            one pattern, or if it is invalid, is not supported, is too large, matches a key that the schema names, or
            matches only the keys of a short list. None also if the keywords have the wrong shape.
        """
        patterns, named = schema["patternProperties"], schema.get("properties", _NO_PROPERTIES)
        required = schema.get("required", _NO_NAMES)
        if type(patterns) is not dict or len(patterns) != 1:
            return None
        if type(named) is not dict or type(required) is not list or not _STR.issuperset(map(type, required)):
            return None
        ((pattern, inner),) = patterns.items()
        if type(inner) not in _SCHEMA_TYPES:
            return None
        at: Origin = (place, "patternProperties", pattern)
        try:
            test = pattern, pattern_language(pattern, "")
            if finite_texts(test[1]) is not None or any(matches(test, name) for name in (*named, *required)):
                return None
            found = classes([test], "")
        except ConstraintError:  # the general path raises it again, with the JSON Pointer
            return None
        value = _NEVER
        if inner is not False:
            value = self.any_number() if inner is True else self.number_of(inner, at)
        return value, [(passed[0], keys) for passed, keys in found]

    def _array(self, place: Origin, schema: dict[str, Any]) -> Array | None:
        made: Array | None = self._nodes.array(self, schema, place)
        return made

    def _enum(self, place: Origin, values: Any, kinds: Any) -> Node | None:
        if type(values) is not list:
            return None
        if values and (kinds == "string" or kinds is _ALL_KINDS) and _STR.issuperset(map(type, values)):
            return Leaf(self._common.style.strings(dict.fromkeys(values)))
        kinds = kinds if type(kinds) is list else [kinds]
        if not _are_types(kinds):
            return None
        if not _ENUM_TYPES.issuperset(map(type, values)):
            return None
        texts: list[Regular] = []
        words = tuple(word for kind, value, word in VALUES if kind in kinds and any(value is one for one in values))
        if words:
            texts.append(Literals(words))
        nodes: list[Node] = []
        numbers = [one for one in values if type(one) is int or type(one) is Decimal]
        if numbers and not _NUMBER_KINDS.isdisjoint(kinds):
            if "number" not in kinds and (self._dialect.digits_only or not _INT.issuperset(map(type, numbers))):
                return None
            made = number(NumberAssertions(enum=frozenset(numbers)), self._common.style)
            if isinstance(made, Number):
                nodes.append(made)
            else:
                texts.append(made)
        strings = dict.fromkeys([one for one in values if type(one) is str]) if "string" in kinds else None
        if strings:
            texts.append(self._common.style.strings(strings))
        if texts:
            nodes.insert(0, Leaf(either(texts)))
        return self._any_of(place, nodes) if nodes else None

    def _string(self, schema: dict[str, Any]) -> Leaf | None:
        made: Leaf | None = self._nodes.string(schema)
        return made

    def _number(self, schema: dict[str, Any], whole: bool) -> Leaf | Number | None:
        low, high = schema.get("minimum"), schema.get("maximum")
        if type(low) not in _NUMBERS or type(high) not in _NUMBERS or (low is None and "minimum" in schema):
            return None
        if (high is None and "maximum" in schema) or (low is not None and high is not None and low > high):
            return None
        divisor = schema.get("multipleOf", 1)
        if type(divisor) not in (int, Decimal) or divisor <= 0:
            return None
        multiple = (1,) if whole else ()
        multiple = (*multiple, divisor) if "multipleOf" in schema else multiple
        part = NumberAssertions(low, high, multiple=multiple)
        part.digits_only = True if whole and self._dialect.digits_only else None
        made = number(part, self._common.style)
        return made if isinstance(made, Number) else Leaf(made)


def _has_no_error(name: str, value: Any) -> bool:
    """Return True if the general path would find no error in the value of a keyword that has no effect.

    False means that it might: the value has the wrong shape or is too large, is a map of schemas, or has a reference.
    """
    if type(value) is dict and (name in SCHEMA_MAPS or not _REFERENCES.isdisjoint(value)):
        return False
    return KEYWORDS[name].fits(value) and not (type(value) is int and value > MAX_COUNT)


def _are_texts(values: Any) -> bool:
    return type(values) is list and _STR.issuperset(map(type, values))


def _are_types(kinds: list[Any]) -> bool:
    return _STR.issuperset(map(type, kinds)) and _TYPE_NAMES.issuperset(kinds)
