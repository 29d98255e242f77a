"""Strict types after functions, the configurations of shared types, and numbers with bounds beyond the largest float."""

from __future__ import annotations

import collections
import dataclasses
import enum
import itertools
import json
import sys
from datetime import date
from decimal import Decimal
from fractions import Fraction
from ipaddress import IPv4Address
from typing import Annotated, Any, Literal, NamedTuple

import pytest
from pydantic import (
    AliasChoices,
    AliasGenerator,
    AliasPath,
    Base64Str,
    Base64UrlStr,
    BaseModel,
    BeforeValidator,
    ByteSize,
    ConfigDict,
    Field,
    FiniteFloat,
    Json,
    JsonValue,
    SecretBytes,
    Strict,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    WrapValidator,
    create_model,
)
from pydantic.dataclasses import dataclass as pydantic_dataclass
from pydantic.types import PaymentCardNumber
from typing_extensions import NotRequired, TypeAliasType, TypedDict

from guideway.constraints import PythonType
from guideway.errors import UnsatisfiableError, UnsupportedError
from guideway.frontends.json_schema.report import draw_examples
from guideway.grammar.recognizer import fits


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 20


class Mixed(enum.Enum):
    WORD = "w"
    NUMBER = 3
    FRACTION = 0.5


class StrictDay(BaseModel):
    model_config = ConfigDict(strict=True)
    day: date | None = None


Days = TypeAliasType("Days", "date | list[Days]")
FUNCTIONS = [BeforeValidator(lambda value: value), WrapValidator(lambda value, handler: handler(value))]


def after(function: Any, annotation: Any, *, shared: bool = False, strict: bool = True) -> Any:
    """A model with a field that a function reads first; with `shared`, the type of the field occurs before it."""
    fields: dict[str, Any] = {"first": (annotation, ...)} if shared else {}
    return create_model(
        "Whole", __config__=ConfigDict(strict=strict), **fields, x=(Annotated[annotation, function], ...)
    )


def check_drawn(annotation: Any) -> None:
    source = PythonType(annotation)
    for seed in range(3):
        for text in draw_examples(source.grammar(), 8, seed):
            source.parse(text)


@pytest.mark.parametrize("function", FUNCTIONS, ids=["before", "wrap"])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(
    "annotation",
    [
        *(Fraction, SecretBytes, bytes, date, Decimal, list[SecretBytes], int | Fraction, StrictDay, Days),
        *(collections.deque[int], collections.OrderedDict[str, int], collections.Counter[str]),
        *(dict[int, int], collections.defaultdict[int, int], dict[Level, int], dict[Mixed, int]),
        *(Annotated[dict[int, int], Strict(False)], Annotated[collections.deque[int], Field(max_length=2)]),
    ],
    ids=str,
)
def test_strict_types_after_a_function_are_refused(annotation: Any, shared: bool, function: Any) -> None:
    with pytest.raises(UnsupportedError, match="after a function") as refused:
        PythonType(after(function, annotation, shared=shared))
    assert refused.value.place in ("/x", "/x/day")


@pytest.mark.parametrize("function", FUNCTIONS, ids=["before", "wrap"])
@pytest.mark.parametrize(
    "annotation",
    [
        *(list[int], dict[str, int], dict[Literal[1, "a"], int], Json[tuple[int, int]], Json[dict[str, bool]], Level),
        *(Annotated[Fraction, Strict(False)], Annotated[SecretBytes, Strict(False)], Annotated[date, Strict(False)]),
        *(dict[Annotated[int, Strict(False)], int], collections.defaultdict[str, int]),
    ],
    ids=str,
)
def test_strict_types_after_a_function_that_are_read(annotation: Any, function: Any) -> None:
    check_drawn(after(function, annotation))
    check_drawn(after(function, annotation, shared=True))


def test_types_after_a_function_without_strict_mode() -> None:
    for annotation in (Fraction, SecretBytes, dict[int, int], collections.Counter[str], Days, dict[Level, int]):
        check_drawn(after(FUNCTIONS[0], annotation, strict=False))


def test_a_strict_default_dict_of_dates() -> None:
    """Pydantic reads it from JSON before its function is called."""
    days = collections.defaultdict[str, Annotated[date, Field(default_factory=date.today)]]
    check_drawn(create_model("Whole", __config__=ConfigDict(strict=True), x=(days, ...)))


def test_a_function_with_its_own_input_type() -> None:
    function = BeforeValidator(date.fromisoformat, json_schema_input_type=Literal["2000-01-01", "2000-01-02"])
    check_drawn(after(function, date))


@pytest.mark.parametrize(
    ("annotation", "good", "bad"),
    [
        (dict[Level, int], ['{"1": 2}', '{"1": 2, "20": 3}', "{}"], ['{"2": 3}', '{"LOW": 1}']),
        (dict[Mixed, int], ['{"w": 2}'], ['{"3": 1}', '{"0.5": 1}']),
        (dict[Literal[1, "a"], int], ['{"a": 2}'], ['{"1": 1}', '{"": 1}']),
    ],
)
def test_keys_of_enums_and_literals(annotation: Any, good: list[str], bad: list[str]) -> None:
    source = PythonType(annotation)
    for text in good:
        assert fits(source.grammar(), text), text
        source.parse(text)
    assert [text for text in bad if fits(source.grammar(), text)] == []
    with pytest.raises(UnsupportedError, match="no dict key is read"):
        PythonType(dict[Literal[1, 2], int])


def test_card_numbers_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="check digit"):
        PythonType(PaymentCardNumber)


Numbers = TypeAliasType("Numbers", "int | list[Numbers]")
Words = TypeAliasType("Words", "str | list[Words]")
Spaced = TypeAliasType("Spaced", "Annotated[str, Field(pattern='^ ?a$')] | list[Spaced]")
Sets = TypeAliasType("Sets", "Annotated[set[str], Field(min_length=2)] | list[Sets]")
Encoded = TypeAliasType("Encoded", "Base64Str | list[Encoded]")
Bytes = TypeAliasType("Bytes", "bytes | list[Bytes]")


def holding(annotation: Any, **config: Any) -> Any:
    return create_model("Holder", __config__=ConfigDict(**config), x=(annotation, ...), y=(list[annotation], []))


@pytest.mark.parametrize(
    ("annotation", "config"),
    [
        *((JsonValue, {name: True}) for name in ("str_strip_whitespace", "str_to_lower", "str_to_upper")),
        (JsonValue, {"regex_engine": "python-re"}),
        (JsonValue, {"str_max_length": 3}),  # which Pydantic does not apply to it
        (JsonValue, {"val_json_bytes": "base64"}),
        (JsonValue, {"str_min_length": 0, "str_max_length": None, "str_strip_whitespace": False}),
        (Numbers, {"str_max_length": 3, "str_strip_whitespace": True}),
        (Words, {"str_strip_whitespace": True}),
        (Spaced, {"str_to_lower": True}),
    ],
)
def test_shared_types_that_a_configuration_does_not_narrow(annotation: Any, config: dict[str, Any]) -> None:
    check_drawn(holding(annotation, **config))
    spaced = holding(Words, str_strip_whitespace=True)
    assert PythonType(spaced).parse('{"x": " a"}').x == TypeAdapter(spaced).validate_json('{"x": " a"}').x


@pytest.mark.parametrize(
    ("annotation", "config", "option"),
    [
        (Words, {"str_max_length": 3}, "str_max_length"),
        (Words, {"str_min_length": 1}, "str_min_length"),
        (Spaced, {"str_strip_whitespace": True}, "str_strip_whitespace"),
        (Spaced, {"regex_engine": "python-re"}, "regex_engine"),
        (Sets, {"str_to_lower": True}, "str_to_lower"),
        (Bytes, {"val_json_bytes": "base64"}, "val_json_bytes"),
    ],
)
def test_shared_types_that_a_configuration_narrows(annotation: Any, config: dict[str, Any], option: str) -> None:
    with pytest.raises(UnsupportedError, match=f"a model has {option};"):
        PythonType(holding(annotation, **config))


def test_the_configuration_of_a_model_without_the_shared_type() -> None:
    short = create_model("Short", __config__=ConfigDict(str_max_length=3), name=(str, ...))
    check_drawn(create_model("Whole", short=(short, ...), x=(Words, ...), y=(Words, ...)))
    with pytest.raises(UnsupportedError, match="str_max_length"):
        PythonType(create_model("Whole", __config__=ConfigDict(str_max_length=3), z=(holding(Words), ...)))


KINDS = ["alias", "NamedTuple", "TypedDict", "dataclass"]
Pair = Annotated[set[str], Field(min_length=2)]


def shared_type(kind: str, annotation: Any) -> Any:
    """A type of a kind that has the configuration of the model around it."""
    if kind == "alias":
        return TypeAliasType("Shared", annotation)
    if kind == "NamedTuple":
        return NamedTuple("Shared", [("s", annotation)])  # type: ignore[misc]  # the fields are made here
    if kind == "TypedDict":
        return TypedDict("Shared", {"s": annotation})  # type: ignore[misc]  # the fields are made here
    return dataclasses.make_dataclass("Shared", [("s", annotation)])


def value_of(kind: str, value: Any) -> Any:
    return value if kind == "alias" else [value] if kind == "NamedTuple" else {"s": value}


def model(name: str, fields: dict[str, Any], **config: Any) -> Any:
    given: dict[str, Any] = {field: (annotation, ...) for field, annotation in fields.items()}
    return create_model(name, __config__=ConfigDict(**config), **given)


def is_read(annotation: Any, text: str) -> bool:
    try:
        TypeAdapter(annotation).validate_json(text)
    except ValidationError:
        return False
    return True


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fields", ["xyi", "xi", "ix", "ixy"])
@pytest.mark.parametrize("inner", ["q", "qr"])
@pytest.mark.parametrize(
    ("annotation", "config", "value"),
    [
        (str, {"str_max_length": 2}, "aaaa"),
        (str, {"str_min_length": 2}, "a"),
        (Annotated[str, Field(min_length=2)], {"str_strip_whitespace": True}, " a"),
        (Pair, {"str_to_lower": True}, ["a", "A"]),
        (Pair, {"str_to_upper": True}, ["a", "A"]),
        (Base64Str, {"str_to_lower": True}, "QQ=="),
        (bytes, {"val_json_bytes": "base64"}, "a!"),
        (Annotated[str, Field(pattern=r"^\w$")], {"regex_engine": "python-re"}, "\u0301"),
    ],
    ids=str,
)
def test_copies_in_models_with_different_configurations(
    annotation: Any, config: dict[str, Any], value: Any, inner: str, fields: str, kind: str
) -> None:
    """Pydantic puts copies of the type into the finished model `In`."""
    shared = shared_type(kind, annotation)
    inside = model("In", dict.fromkeys(inner, shared), **config)
    outside = model("Out", {name: inside if name == "i" else shared for name in fields})
    given = value_of(kind, value)
    text = json.dumps({name: dict.fromkeys(inner, given) if name == "i" else given for name in fields})
    assert not is_read(outside, text)
    assert is_read(inside, json.dumps(dict.fromkeys(inner, given))) != is_read(shared, json.dumps(given))
    with pytest.raises(UnsupportedError, match=f"a model has {next(iter(config))};|str_to_lower or str_to_upper"):
        PythonType(outside)


@pytest.mark.parametrize(
    "annotation",
    [Base64Str, ByteSize, Annotated[collections.deque[int], Field(max_length=2)], Annotated[IPv4Address, Strict()]],
    ids=str,
)
def test_aliases_of_types_that_occur_several_times(annotation: Any) -> None:
    """A JSON Schema that is not Pydantic's own is also a definition."""
    alias = shared_type("alias", annotation)
    check_drawn(model("Whole", {"x": alias, "y": alias, "z": list[alias]}))
    check_drawn(model("Whole", {"x": alias, "y": model("In", {"x": alias})}))
    if annotation is Base64Str:
        check_drawn(model("Whole", {"x": Annotated[alias, Field(max_length=8)]}))


def test_copies_of_which_only_some_strip_a_string() -> None:
    shared = shared_type("alias", str)
    stripped = model("Stripped", {"q": shared}, str_min_length=2, str_strip_whitespace=True)
    whole = model("Whole", {"i": model("Plain", {"q": shared}, str_min_length=2), "j": stripped})
    assert not is_read(whole, '{"i": {"q": " a"}, "j": {"q": " a"}}')
    with pytest.raises(UnsupportedError, match="a model has str_strip_whitespace;"):
        PythonType(whole)


@pytest.mark.parametrize(
    ("kind", "inner"), [*((kind, "q") for kind in KINDS), ("TypedDict", "qr"), ("dataclass", "qr")]
)
def test_copies_in_models_with_equal_configurations(inner: str, kind: str) -> None:
    shared = shared_type(kind, str)
    parts = {name: model(name, dict.fromkeys(inner, shared), str_max_length=2) for name in ("First", "Second")}
    whole = model("Whole", parts)
    check_drawn(whole)
    short, long = (
        json.dumps({name: dict.fromkeys(inner, value_of(kind, value)) for name in parts}) for value in ("aa", "aaa")
    )
    assert [fits(PythonType(whole).grammar(), text) for text in (short, long)] == [True, False]
    assert [is_read(whole, text) for text in (short, long)] == [True, False]


@pytest.mark.parametrize("kind", KINDS)
def test_copies_that_the_different_configurations_do_not_change(kind: str) -> None:
    shared = shared_type(kind, int)
    inside = model("In", {"q": shared}, str_max_length=2, str_to_lower=True, val_json_bytes="hex")
    check_drawn(model("Out", {"x": shared, "i": inside}))
    check_drawn(model("Out", {"i": inside, "x": shared, "y": shared}))


@pytest.mark.parametrize("kind", ["TypedDict", "dataclass"])
@pytest.mark.parametrize("inner", ["q", "qr"])
@pytest.mark.parametrize(
    ("config", "option"), [({"extra": "allow"}, "extra"), ({"alias_generator": str.upper}, "alias_generator")]
)
def test_classes_that_take_other_options_from_the_model(
    config: dict[str, Any], option: str, inner: str, kind: str
) -> None:
    shared = shared_type(kind, str)
    inside = model("In", dict.fromkeys(inner, shared), **config)
    check_drawn(inside)
    other = model("Other", dict.fromkeys(inner, shared), extra="forbid")
    for fields in ({"x": other, "i": inside}, {"i": inside, "x": other}):
        with pytest.raises(UnsupportedError, match=f"a model has {option};"):
            PythonType(model("Out", fields))


@pytest.mark.parametrize("kind", ["TypedDict", "dataclass"])
@pytest.mark.parametrize(
    ("inner", "config"),
    [
        *itertools.product(("q", "qr"), ({"extra": "forbid"}, {"extra": "allow"})),
        ("q", {"alias_generator": str.lower}),
    ],
)
def test_classes_whose_texts_the_options_of_the_model_do_not_change(
    inner: str, config: dict[str, Any], kind: str
) -> None:
    shared = shared_type(kind, str)
    inside, other = model("In", dict.fromkeys(inner, shared), **config), model("Other", dict.fromkeys(inner, shared))
    check_drawn(model("Out", {"x": other, "i": inside}))
    check_drawn(model("Out", {"i": inside, "x": other}))


def upper(name: str) -> str:
    return name.upper()


def lower_later(name: str) -> str:
    return name if name == name.lower() else name.upper()


@pytest.mark.parametrize("kind", ["TypedDict", "dataclass"])
@pytest.mark.parametrize("inner", ["q", "qr"])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        (str.upper, upper),
        (upper, AliasGenerator(validation_alias=str.upper)),
        (AliasGenerator(alias=upper), AliasGenerator(alias=str.upper)),
        (str.lower, None),
        (lower_later, None),
    ],
    ids=["functions", "validation_alias", "objects", "names", "some names"],
)
def test_functions_that_make_equal_aliases(first: Any, second: Any, inner: str, kind: str) -> None:
    shared = shared_type(kind, str)
    parts = [
        model(name, dict.fromkeys(inner, shared), alias_generator=one) for name, one in (("A", first), ("B", second))
    ]
    for fields in ("ab", "ba"):
        whole = model("Out", dict(zip(fields, parts, strict=True)))
        check_drawn(whole)


@pytest.mark.parametrize("kind", ["TypedDict", "dataclass"])
@pytest.mark.parametrize("generator", [str.upper, AliasGenerator(alias=str.upper)], ids=["function", "object"])
def test_aliases_that_are_not_made_by_a_function(generator: Any, kind: str) -> None:
    shared = shared_type(kind, Annotated[str, Field(alias="key")])
    parts = {"a": model("A", {"q": shared, "r": shared}, alias_generator=generator)}
    check_drawn(model("Out", {**parts, "b": model("B", {"q": shared, "r": shared})}))


@pytest.mark.parametrize("kind", ["TypedDict", "dataclass"])
def test_different_aliases_around_a_class(kind: str) -> None:
    shared = shared_type(kind, str)
    upper_dataclass = pydantic_dataclass(config=ConfigDict(alias_generator=upper))(
        dataclasses.make_dataclass("A", [("q", shared), ("r", shared)])
    )
    upper_model = model("A", {"q": shared, "r": shared}, alias_generator=upper)
    other = model("B", {"q": shared, "r": shared})
    for whole in (model("Out", {"a": upper_dataclass, "b": other}), tuple[upper_model, shared, shared]):  # type: ignore[valid-type]  # made here
        with pytest.raises(UnsupportedError, match="a model has alias_generator;"):
            PythonType(whole)


@pytest.mark.parametrize("kind", ["TypedDict", "dataclass"])
@pytest.mark.parametrize("config", [{"alias_generator": str.upper}, {"str_max_length": 2}, {"extra": "allow"}], ids=str)
def test_different_configurations_around_a_class_that_contains_another(config: dict[str, Any], kind: str) -> None:
    inner = shared_type(kind, str)
    outer = TypedDict("Outer", {"T": inner, "S": inner}) if kind == "TypedDict" else None
    outer = outer or dataclasses.make_dataclass("Outer", [("T", inner), ("S", inner)])
    configured = model("A", {"Q": outer, "R": outer}, **config)
    other = model("B", {"Q": outer, "R": outer}, extra="forbid")
    for fields in ({"a": configured, "b": other}, {"b": other, "a": configured}):
        with pytest.raises(UnsupportedError, match=f"a model has {next(iter(config))};"):
            PythonType(model("Out", fields))
    check_drawn(model("Out", {"a": configured, "b": model("C", {"Q": outer, "R": outer}, **config)}))


@pytest.mark.parametrize("kind", ["TypedDict", "dataclass"])
@pytest.mark.parametrize("alias", ["key", None])
def test_a_class_that_models_read_by_alias_and_by_name(alias: str | None, kind: str) -> None:
    shared = shared_type(kind, Annotated[str, Field(alias=alias)])
    by_name = model("A", {"q": shared}, validate_by_alias=False, validate_by_name=True)
    whole = model("Out", {"a": by_name, "b": shared})
    check_drawn(by_name)
    if alias is None:
        check_drawn(whole)
    else:
        with pytest.raises(UnsupportedError, match="a model has validate_by_alias;"):
            PythonType(whole)


def object_type(kind: str, fields: dict[str, Any], **config: Any) -> Any:
    """A type of a kind with optional fields."""
    if kind == "model":
        return create_model("M", __config__=ConfigDict(**config), **{name: (one, {}) for name, one in fields.items()})
    if kind == "dataclass":
        given = [(name, one, dataclasses.field(default_factory=dict)) for name, one in fields.items()]
        return pydantic_dataclass(config=ConfigDict(**config))(dataclasses.make_dataclass("M", given))
    made = TypedDict("M", fields, total=False)  # type: ignore[misc]  # the fields are made here
    made.__pydantic_config__ = ConfigDict(**config)  # type: ignore[attr-defined]  # Pydantic reads this attribute
    return made


ALIASES: list[tuple[Any, Any]] = [
    ("x", None),
    ("x", "a"),
    (AliasChoices("x", "y"), None),
    (AliasChoices("x", "b"), None),
    (AliasChoices("x", AliasPath("y", "k")), None),
    (AliasChoices("x", AliasPath("b", "k")), None),
    (AliasChoices(AliasPath("y", "k"), "x"), None),
    (AliasChoices("x", AliasPath("x", "k")), None),
]


@pytest.mark.parametrize("kind", ["model", "dataclass", "TypedDict"])
@pytest.mark.parametrize(
    "config", [{}, {"populate_by_name": True}, {"validate_by_name": True, "validate_by_alias": False}], ids=str
)
@pytest.mark.parametrize("extra", ["allow", "forbid"])
@pytest.mark.parametrize(("first", "second"), ALIASES, ids=range(len(ALIASES)))
def test_other_keys_from_which_a_field_is_read(
    first: Any, second: Any, extra: str, config: dict[str, Any], kind: str
) -> None:
    value = dict[str, int]
    fields = {
        "a": Annotated[value, Field(validation_alias=first)],
        "b": Annotated[value, Field(validation_alias=second)],
    }
    source = PythonType(object_type(kind, fields, extra=extra, **config))
    for values in itertools.product([None, {}, 1, {"k": 1}, {"k": {}}], repeat=4):
        given = {name: one for name, one in zip("xyab", values, strict=True) if one is not None}
        text = json.dumps(given)
        if fits(source.grammar(), text):
            source.parse(text)
    key = "a" if config.get("validate_by_alias") is False else "x"
    assert fits(source.grammar(), f'{{"{key}": {{}}}}')
    assert fits(source.grammar(), "{}")


@pytest.mark.parametrize("kind", ["TypedDict", "dataclass"])
@pytest.mark.parametrize(
    "config", [{}, {"validate_by_name": True}, {"validate_by_name": True, "validate_by_alias": False}], ids=str
)
def test_other_keys_of_a_class_that_occurs_twice(config: dict[str, Any], kind: str) -> None:
    inner: Any = TypedDict("Inner", {"x": NotRequired[Annotated[int, Field(validation_alias=AliasChoices("a", "b"))]]})
    if kind == "dataclass":
        field = Annotated[int, Field(validation_alias=AliasChoices("a", "b"))]
        inner = dataclasses.make_dataclass("Inner", [("x", field, dataclasses.field(default=1))])
    source = PythonType(model("M", {"P": inner, "Q": inner}, extra="allow", **config))
    key = "x" if config.get("validate_by_alias") is False else "a"
    for values in itertools.product([None, 1, "s"], repeat=4):
        given = {name: one for name, one in zip("xabc", values, strict=True) if one is not None}
        text = json.dumps({"P": {key: 1}, "Q": given})
        if fits(source.grammar(), text):
            source.parse(text)
    assert fits(source.grammar(), json.dumps({"P": {key: 1}, "Q": {}}))


@pytest.mark.parametrize("extra", ["allow", "ignore"])
def test_a_field_that_is_read_from_a_path_in_another_field(extra: str) -> None:
    whole = create_model(
        "M",
        __config__=ConfigDict(extra=extra),  # type: ignore[typeddict-item]  # one of its values
        a=(int, Field(validation_alias=AliasChoices(AliasPath("b", 0), "x"))),
        b=(list[str], ...),
    )
    with pytest.raises(UnsupportedError, match="not supported if another key of the object is 'b'"):
        PythonType(whole)


@pytest.mark.parametrize("kind", ["TypedDict", "dataclass"])
def test_a_class_that_a_function_and_a_model_take(kind: str) -> None:
    item = shared_type(kind, int)

    def tool(a: Any, b: Any) -> None: ...

    tool.__annotations__.update(a=item, b=model("Holder", {"x": item}))
    one = value_of(kind, 1)
    assert fits(PythonType(tool).grammar(), json.dumps({"a": one, "b": {"x": one}}))


class Configured(TypedDict):
    __pydantic_config__ = ConfigDict(str_max_length=3)  # type: ignore[misc]  # Pydantic reads this attribute
    s: str


class Inheriting(Configured):
    t: str


@pytest.mark.parametrize("annotation", [Configured, Inheriting])
def test_a_typed_dict_with_its_own_configuration(annotation: Any) -> None:
    whole = model("Out", {"x": annotation, "i": model("In", {"q": annotation, "r": annotation}, str_max_length=2)})
    check_drawn(whole)
    given = {"s": "aaa", "t": "aaa"} if annotation is Inheriting else {"s": "aaa"}
    text = json.dumps({"x": given, "i": {"q": given, "r": given}})
    assert fits(PythonType(whole).grammar(), text)
    assert is_read(whole, text)


def test_encoded_text_whose_case_a_configuration_changes() -> None:
    for option in ("str_to_lower", "str_to_upper"):
        with pytest.raises(UnsupportedError, match=r"^/x: encoded text is not supported with str_to_lower"):
            PythonType(create_model("M", __config__=ConfigDict(**{option: True}), x=(Base64Str, ...)))
        with pytest.raises(UnsupportedError, match=option):
            PythonType(holding(Encoded, **{option: True}))
    check_drawn(create_model("M", __config__=ConfigDict(str_strip_whitespace=True), x=(Base64UrlStr, ...)))


def test_items_that_stripping_makes_equal() -> None:
    items = Annotated[set[Words], Field(min_length=2)]
    with pytest.raises(UnsupportedError, match="min_length above 1"):
        PythonType(holding(items, str_strip_whitespace=True))
    check_drawn(Annotated[set[Annotated[str, StringConstraints(strip_whitespace=True)]], Field(min_length=2)])


LARGE = 10**400


@pytest.mark.parametrize(
    "annotation",
    [
        *(Annotated[Decimal, Field(**{name: LARGE})] for name in ("ge", "gt", "le", "lt")),
        *(Annotated[Decimal, Field(**{name: -LARGE})] for name in ("ge", "gt", "le", "lt")),
        *(Annotated[Decimal, Field(ge=Decimal(LARGE))], Annotated[Decimal, Field(ge=-LARGE, le=LARGE)]),
        *(Annotated[Decimal, Field(ge=10**308)], Annotated[Decimal, Field(max_digits=400)]),
        *(Annotated[Decimal, Field(max_digits=40, multiple_of=7)], Annotated[Decimal, Field(le=LARGE, multiple_of=3)]),
        *(Annotated[FiniteFloat, Field(ge=1e308)], Annotated[FiniteFloat, Field(le=-1e308)]),
    ],
    ids=str,
)
def test_bounds_of_numbers_beyond_the_largest_float(annotation: Any) -> None:
    check_drawn(annotation)


def test_texts_of_large_decimals() -> None:
    source = PythonType(Annotated[Decimal, Field(ge=LARGE)])
    assert fits(source.grammar(), str(LARGE))
    assert source.parse(str(LARGE)) == LARGE
    assert not fits(source.grammar(), f"{LARGE}.5")  # Pydantic reads it as an infinite float
    below = PythonType(Annotated[Decimal, Field(le=LARGE)])
    assert fits(below.grammar(), str(10**308))
    assert not fits(below.grammar(), f"{int(sys.float_info.max) * 2}.5")


@pytest.mark.parametrize("bound", [{"ge": float("inf")}, {"gt": float("inf")}, {"le": float("-inf")}])
def test_infinite_bounds_of_floats(bound: dict[str, float]) -> None:
    with pytest.raises(UnsatisfiableError):
        draw_examples(PythonType(Annotated[float, Field(**bound)]).grammar(), 1)
    check_drawn(Annotated[float, Field(ge=float("-inf"), le=float("inf"))])


def test_large_multiples_of_decimals_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="not exact"):
        PythonType(Annotated[Decimal, Field(ge=LARGE, multiple_of=10)])
    assert PythonType(Annotated[Decimal, Field(ge=10**24, multiple_of=7)]).parse("7" * 27) == int("7" * 27)
    with pytest.raises(UnsupportedError, match=r"e\+427 is not supported"):
        PythonType(Annotated[Decimal, Field(ge=10**430, multiple_of=LARGE)])
