"""`DocumentNodes`: numbers of schemas, and nodes that are made in C++ for the fast path."""

from __future__ import annotations

from typing import Any

import pytest

from guideway._kernel import DocumentNodes
from guideway.frontends.json_schema.shared_nodes import MAX_NODES, SharedNodes
from guideway.frontends.json_schema.style import Profile, make_style
from guideway.grammar.nodes import Array, Leaf, Object, Property
from guideway.grammar.regular import Complement, Literals

PLAIN = frozenset({"type", "title", "description", "minLength", "maxLength"})
ANY = 100


class Path:
    """A fast path that records calls. `target`: the result of `reference`."""

    def __init__(self, profile: Profile = "exact", target: int | None = None) -> None:
        self.common = SharedNodes(make_style(profile, None, None, None, None, "known"))
        self.calls: list[Any] = []
        self.target = target
        self.nodes: list[Any] = []
        self.places: list[Any] = []
        self.todo: list[Any] = []
        self.unusual: list[Any] = []
        self.numbers: dict[int, int] = {}
        self.made = DocumentNodes(
            self.common,
            PLAIN,
            "dialect",
            {"string": "a string", "object": None},
            self.nodes,
            self.places,
            self.numbers,
            self.todo,
            self.unusual,
        )

    def any_number(self) -> int:
        return ANY

    def add_anything(self, place: Any) -> int:
        self.calls.append(place)
        self.nodes.append("anything")
        self.places.append(place)
        return len(self.nodes) - 1

    def reference(self, schema: Any, place: Any) -> int | None:
        self.calls.append((schema, place))
        return self.target

    def checkpoint(self) -> None:
        self.calls.append("checkpoint")

    def define_generally(self, number: int, schema: Any) -> None:
        self.calls.append((number, schema))

    def refuse_nodes(self, place: Any) -> None:
        raise OverflowError(place)

    def open_entries(self, patterns: Any, names: Any, others: int) -> Any:
        return patterns, names, others

    def object(self, schema: dict[Any, Any], patterns: object = None) -> Any:
        return self.made.object(self, schema, "/a", patterns)

    def entry(self, name: str, value: int, required: bool = False) -> Property:
        return Property(self.common.style.new_key(name), value, required)

    def others(self, *names: str, value: int = ANY) -> Property:
        return Property(self.common.quoted(Complement(Literals(names))) if names else self.common.key, value, False)


@pytest.mark.parametrize("profile", ["exact", "generation"])
def test_schemas_of_one_type_share_a_node(profile: Profile) -> None:
    path = Path(profile)
    properties = {
        "a": {"type": "string"},
        "b": {"title": "x"},
        'ü"\n': {"description": "d", "type": "string"},
        "c": {"title": "y"},
    }
    made = path.object({"properties": properties, "required": ["b"], "additionalProperties": False})
    assert path.calls == [("/a", "properties", "b")]
    assert (path.nodes, path.todo, path.unusual) == (["a string", "anything"], [], [])
    entries = [path.entry(name, n % 2, name == "b") for n, name in enumerate(properties)]
    assert made == Object(path.common.braces, tuple(entries), (), path.common.ordered)
    again = path.object({"properties": {"a": {"type": "string"}}})
    assert again.properties[0].key is made.properties[0].key
    objects = {"d": {"type": "object"}, "e": {"type": "object"}}
    assert [one.value for one in path.object({"properties": objects}).properties] == [2, 2]
    assert path.todo == [(2, objects["d"], {"type"})]


def test_schemas_with_keywords_are_reserved() -> None:
    path = Path()
    schema = {"type": "string", "minLength": 2, "title": "x"}
    assert path.made.number_of(path, schema, "/s") == 0
    assert path.made.number_of(path, schema, "/t") == 0
    assert (path.nodes, path.places) == ([None], ["/s"])
    assert path.todo == [(0, schema, frozenset({"type", "minLength"}))]
    assert path.numbers == {id(schema): 0}
    assert path.unusual == path.calls == []
    other = {"minLength": 2, "maxLength": 3, "titel": "x"}
    assert path.object({"properties": {"b": other}}).properties == (path.entry("b", 1),)
    assert path.unusual == [(other, ("/a", "properties", "b"), "dialect")]


@pytest.mark.parametrize("schema", [{"type": ["string"]}, {"type": "strnig"}, {"minLength": 2}])
def test_other_schemas_with_one_keyword(schema: dict[str, Any]) -> None:
    path = Path()
    assert path.made.number_of(path, schema, None) == 0
    assert path.todo == [(0, schema, frozenset(schema))]


def test_only_schemas_of_one_type_share_its_node() -> None:
    path = Path()
    misspelt = {"type": "string", "titel": "x"}
    properties = {
        "a": {"type": "string"},
        "b": {"type": "string", "minLength": 2},
        "c": {"type": ["string"]},
        "d": misspelt,
        "e": {},
    }
    assert [one.value for one in path.object({"properties": properties}).properties] == [0, 1, 2, 0, ANY]
    assert [number for number, *_ in path.todo] == [1, 2]
    assert path.unusual == [(misspelt, ("/a", "properties", "d"), "dialect")]


def test_references_and_empty_schemas() -> None:
    path = Path(target=7)
    schema = {"$ref": "#/a", "minLength": 3}
    assert path.made.number_of(path, schema, "/r") == 7
    assert path.calls == [(schema, "/r")]
    assert Path().made.number_of(Path(), {}, "/r") == ANY
    path = Path(target=None)
    assert path.made.number_of(path, schema, "/r") == 0  # the reference is not all of it
    assert path.todo[0][2] == {"$ref", "minLength"}


def test_additional_and_missing_properties() -> None:
    path = Path()
    assert path.object({}) == Object(path.common.braces, (), (path.others(),), False)
    made = path.object({"properties": {"a": True, "b": False}, "required": ["c", "a", "c"]})
    assert made.properties == (path.entry("a", ANY, True), path.entry("c", ANY, True))
    assert made.open == (path.others("a", "b", "c"),)
    assert path.object({"required": ["c"], "additionalProperties": False}) is None
    inner = {"minLength": 1, "maxLength": 2}
    made = path.object({"properties": {"a": True}, "additionalProperties": inner})
    assert made.open == (path.others("a", value=0),)
    assert path.places == [("/a", "additionalProperties")]
    closed = Path("generation")
    assert closed.object({"properties": {"a": True}}).open == ()
    assert closed.object({"properties": {"a": True}, "required": ["b"]}).properties[1] == closed.entry("b", ANY, True)
    assert closed.object({}).open == (closed.others(),)


def test_patterns_and_bounds() -> None:
    path = Path()
    assert path.object({"properties": {"a": True}}, "given").open == ("given", ("a",), ANY)
    assert Path("generation").object({"properties": {"a": True}}, "given").open == ("given", ("a",), -1)
    made = path.object({"minProperties": 1, "maxProperties": 3})
    assert (made.minimum, made.maximum) == (1, 3)
    made = path.object({"minProperties": 1})
    assert (made.minimum, made.maximum) == (1, None)


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": []},
        {"properties": {"a": 3}},
        {"properties": {"a": False}, "required": ["a"]},
        {"required": {}},
        {"required": [1]},
        {"additionalProperties": None},
        {"minProperties": -1},
        {"minProperties": True},
        {"maxProperties": 2**80},
        {"maxProperties": 2**31},
        {"minProperties": 2, "maxProperties": 1},
        {"maxProperties": 1, "required": ["a", "b"]},
    ],
)
def test_the_general_path_lowers_other_objects(schema: dict[str, Any]) -> None:
    assert Path().object(schema) is None


def test_arrays() -> None:
    path = Path()
    brackets, inner = path.common.brackets, {"minLength": 1, "maxLength": 2}
    assert path.made.array(path, {}, "/a") == Array(brackets, (), ANY)
    made = path.made.array(path, {"items": inner, "minItems": 1, "maxItems": 9, "uniqueItems": True}, "/a")
    assert made == Array(brackets, (), 0, 1, 9, True)
    assert path.places == [("/a", "items")]
    made = path.made.array(path, {"items": True, "maxItems": 2, "uniqueItems": False, "additionalItems": {}}, "/a")
    assert made == Array(brackets, (), ANY, 0, 2)


@pytest.mark.parametrize(
    "schema",
    [
        {"items": False},
        {"items": [{}]},
        {"items": {"$ref": "#/never"}},
        {"minItems": -1},
        {"minItems": True},
        {"minItems": 3, "maxItems": 2},
        {"maxItems": 0},
        {"maxItems": 2**31},
        {"uniqueItems": 1},
        {"uniqueItems": True, "maxItems": 7},
        {"additionalItems": None},
    ],
)
def test_the_general_path_lowers_other_arrays(schema: dict[str, Any]) -> None:
    path = Path(target=-1)
    assert path.made.array(path, schema, "/a") is None


def test_strings() -> None:
    path = Path()
    string = path.common.string
    assert path.made.string({"minLength": 1}) == string(1, None, ())
    tests = (("format", "date"), ("pattern", "^2"))
    assert path.made.string({"format": "date", "maxLength": 9, "pattern": "^2"}) == string(0, 9, tests)
    others: list[dict[str, Any]] = [
        {"minLength": 2, "maxLength": 1},
        {"maxLength": 1.0},
        {"format": 3},
        {"pattern": "("},
    ]
    assert [path.made.string(schema) for schema in others] == [None] * 4


def test_the_worklist_is_completed_up_to_an_entry_for_python() -> None:
    path = Path()
    texts = {"type": "string", "enum": ["a", "b", "a"]}
    mixed = {"type": "string", "enum": ["a", 1]}
    invalid = {"type": "array", "minItems": -1}
    patterns = {"type": "object", "patternProperties": {}}
    schemas: list[dict[str, Any]] = [mixed, patterns, texts, invalid, {"type": "string", "maxLength": 3}]
    for schema in schemas:
        path.made.own_number(path, schema, None)
    assert path.made.complete(path) == (1, patterns, {"type", "patternProperties"})
    assert path.nodes[2:] == [Leaf(path.common.strings(("a", "b"))), None, path.common.string(0, 3, ())]
    assert path.calls == [(3, invalid)]
    assert path.made.complete(path) == (0, mixed, {"type", "enum"})
    path.todo.append((0, "of the general path", 1))
    assert path.made.complete(path) == (0, "of the general path", 1)
    assert path.made.complete(path) is None
    nested: dict[str, Any] = {"type": "array", "maxItems": 9}
    for _ in range(200):
        nested = {"type": "array", "items": nested, "maxItems": 9}
    path = Path()
    path.made.own_number(path, nested, None)
    assert path.made.complete(path) is None
    assert (len(path.nodes), path.nodes[0]) == (201, Array(path.common.brackets, (), 1, 0, 9))
    assert path.calls == ["checkpoint"] * 3


def test_errors_are_raised() -> None:
    path = Path(target="x")  # type: ignore[arg-type]  # a wrong result of `reference`
    with pytest.raises(TypeError):
        path.object({"properties": {"a": {"$ref": "#"}}})
    path = Path()
    path.nodes += [None] * (MAX_NODES + 1)
    with pytest.raises(OverflowError):
        path.made.own_number(path, {"minLength": 1, "maxLength": 2}, "/a")
    with pytest.raises(AttributeError):
        path.made.number_of(object(), {}, "/a")
    path = Path()
    path.todo.append((5, {"type": "array"}, frozenset({"type"})))
    with pytest.raises(IndexError):
        path.made.complete(path)
