"""Python types as constraints: sampled texts parse to a value of the type."""

from __future__ import annotations

import enum
import json
import re
import uuid
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, NamedTuple, Optional, TypeVar

import numpy as np
import pytest
from pydantic import (
    UUID1,
    UUID4,
    AliasPath,
    AnyUrl,
    AwareDatetime,
    Base64Bytes,
    BaseModel,
    ConfigDict,
    Field,
    FutureDate,
    FutureDatetime,
    HttpUrl,
    NaiveDatetime,
    PastDate,
    PastDatetime,
    StringConstraints,
    TypeAdapter,
    UrlConstraints,
    dataclasses as pydantic_dataclasses,
    field_validator,
)
from pydantic.json_schema import SkipJsonSchema
from typing_extensions import TypeAliasType, TypedDict

import guideway as gw
from guideway.constraints import Choice, JsonSchema, PythonType, Regex, of
from guideway.errors import (
    InvalidConstraintError,
    InvalidTextError,
    LimitExceededError,
    UnsatisfiableError,
    UnsupportedError,
)
from guideway.frontends.json_schema.report import draw_examples
from guideway.grammar.recognizer import fits as allows
from tests.helpers.grammar_sampler import Sampler
from tests.helpers.reference_grammar import fits

T = TypeVar("T")


class Mood(enum.Enum):
    GOOD = "good"
    BAD = "bad"


class Address(BaseModel):
    street: str
    number: int = Field(ge=1, le=999)


class Person(BaseModel):
    name: str = Field(min_length=1, max_length=40)
    born: Optional[date]  # noqa: UP045  # both spellings are used by people
    mood: Mood = Mood.GOOD
    addresses: list[Address] = []
    score: int | float = 0


class Tree(BaseModel):
    value: Literal["x", 1, None]
    children: list[Tree] = []


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    tricks: list[str]


@dataclass
class Point:
    x: float
    y: Annotated[float, Field(gt=0, lt=1)]


class Movie(TypedDict, total=False):
    title: str
    year: int


TYPES: list[Any] = [
    *(int, float, bool, str, date, Mood, Address, Person, Tree, Point, Movie, type(None)),
    *(list[int], dict[str, bool], tuple[int, str], tuple[bool, ...], Literal["a", "b"], int | None, float | int),
    *(Cat | Dog, Annotated[Cat | Dog, Field(discriminator="kind")], list[Cat | str], int | str | list[int], Any),
    *(Annotated[str, Field(pattern=r"^\d{3}$")], Annotated[list[int], Field(min_length=2, max_length=3)]),
]


@pytest.mark.parametrize("annotation", TYPES, ids=repr)
def test_samples_parse_into_the_type(annotation: Any) -> None:
    source: PythonType[Any] = PythonType(annotation)
    adapter: TypeAdapter[Any] = TypeAdapter(annotation)
    for seed in range(40):
        text = Sampler(source.grammar(), seed).sample()
        assert text is not None
        value = source.parse(text)
        assert adapter.validate_python(value) == value


def test_a_record_written_by_json_fits() -> None:
    person = Person(name="Ada", born=date(1815, 12, 10), addresses=[Address(street="Ṡt", number=7)], score=1.5)
    text = json.dumps(person.model_dump(mode="json"), ensure_ascii=False)
    source = of(Person)
    assert fits(source.grammar(), text)
    assert source.parse(text) == person
    assert not fits(source.grammar(), text.replace("7", "1000"))
    assert fits(of(Cat | Dog).grammar(), '{"kind": "dog", "tricks": []}')
    assert not fits(of(Cat | Dog).grammar(), '{"kind": "dog", "lives": 1}')


class Wave(BaseModel):
    phases: list[complex]


@dataclass
class Handler:
    call: Callable[[int], int]


def takes_keys(pairs: dict[tuple[int, int], int]) -> None: ...


@pytest.mark.parametrize(
    ("annotation", "place", "instead"),
    [
        (dict[str, Wave], "/phases", "tuple[float, float]"),
        (Handler, "/call", "the function itself"),
        (takes_keys, "/pairs", "a list of pairs"),
        (complex, None, "tuple[float, float]"),
        (Annotated[timedelta, Field(gt=timedelta(1))], None, "in a validator"),
    ],
)
def test_a_refusal_says_where_and_what_to_take_instead(annotation: Any, place: str | None, instead: str) -> None:
    with pytest.raises(UnsupportedError, match=re.escape(instead)) as refused:
        PythonType(annotation)
    assert refused.value.place == place


@pytest.mark.parametrize("annotation", [dict[float, str], Callable[[], int], complex])
def test_unsupported_annotations_are_refused(annotation: Any) -> None:
    with pytest.raises((UnsupportedError, InvalidConstraintError)):
        PythonType(annotation)


def greet(name: str, times: Annotated[int, Field(ge=1, le=9)] = 1, *, loud: bool) -> str:
    raise AssertionError(name)  # a signature is read, the function never called


class Circle(BaseModel):
    kind: Literal["circle"] = "circle"
    radius: float = 1


class Square(BaseModel):
    kind: Literal["square"] = "square"
    radius: float = 1


def allowed(source: PythonType[Any], text: str) -> bool:
    return allows(source.grammar(), text)


DRAWN: list[Any] = [
    *(Decimal, bytes, datetime, time, timedelta, uuid.UUID, dict[int, str], dict[date, bool], dict[Mood, int]),
    *(Annotated[Circle | Square, Field(discriminator="kind")], Circle | Square, list[Circle | Square | None]),
    *(Annotated[dict[str, int], Field(min_length=1, max_length=3)], dict[Annotated[str, Field(min_length=2)], int]),
]


@pytest.mark.parametrize("annotation", DRAWN, ids=repr)
def test_drawn_texts_parse_into_the_type(annotation: Any) -> None:
    source = of(annotation)
    adapter: TypeAdapter[Any] = TypeAdapter(annotation)
    for seed in range(6):
        for text in draw_examples(source.grammar(), 5, seed):
            value = source.parse(text)
            assert adapter.validate_python(value) == value


def test_a_tag_must_be_there_even_with_a_default() -> None:
    shapes = of(Annotated[Circle | Square, Field(discriminator="kind")])
    assert allowed(shapes, '{"kind": "square"}')
    assert not allowed(shapes, "{}")


def test_the_arguments_of_a_function() -> None:
    source = of(greet)
    assert source.parse('{"name": "Ada", "loud": true}') == {"name": "Ada", "times": 1, "loud": True}
    assert allowed(source, '{"name": "Ada", "times": 9, "loud": false}')
    assert not allowed(source, '{"name": "Ada", "times": 10, "loud": false}')
    assert not allowed(source, '{"name": "Ada"}')
    with pytest.raises(UnsupportedError):
        of(lambda *arguments: None)


class Key(NamedTuple):
    id: int
    name: str = ""


class Owner(BaseModel, Generic[T]):
    model_config = ConfigDict(extra="forbid")
    things: dict[uuid.UUID, T] = Field(alias="Things", max_length=2)
    next: Optional[Owner[T]] = None  # noqa: UP045  # as people write it


class Code(enum.IntEnum):
    A = 1
    B = 2


def url(scheme: str) -> Any:
    return Annotated[AnyUrl, UrlConstraints(allowed_schemes=[scheme], max_length=40, host_required=True)]


TOLD: list[Any] = [
    *(Key, Owner[int], Code, set[Key], frozenset[Literal["a", "b"]], set, Literal[1, "1", True, b"x"], dict[Code, int]),
    *(AnyUrl, HttpUrl, url("postgresql+asyncpg"), UUID1, UUID4, IPv4Address, IPv6Address, Path, Base64Bytes),
    *(PastDate, FutureDate, PastDatetime, FutureDatetime, NaiveDatetime, AwareDatetime),
    *(Annotated[date, Field(gt=date(2019, 12, 30), le=date(2020, 3, 1))], Annotated[date, Field(lt=date(1999, 1, 1))]),
    *(Annotated[str, StringConstraints(strip_whitespace=True, min_length=2)], Annotated[float, Field(lt=100, gt=99)]),
    *(Annotated[str, Field(pattern=r"^\D\b\S[^\d\s]\W$")], Annotated[float, Field(gt=1e6, lt=1_000_000.001)]),
    *(Annotated[Decimal, Field(max_digits=3)], Annotated[Decimal, Field(max_digits=3, decimal_places=2, ge=0)]),
]


@pytest.mark.parametrize("annotation", TOLD, ids=repr)
def test_sampled_texts_parse_with_pydantic(annotation: Any) -> None:
    source = of(annotation)
    for seed in range(12):
        for text in draw_examples(source.grammar(), 5, seed):
            source.parse(text)


@pytest.mark.parametrize(
    ("annotation", "fitting", "missing"),
    [
        (
            HttpUrl,
            ["http://a.b/c?d#e", "https://localhost:80"],
            ["ftp://a", "http://1.2.3.999", "http://xn--a.b"],
        ),
        (AnyUrl, ["mailto:me@x.org", "ftp://a/b", "urn:a:b"], ["http:a", "ftp://h:99999", "nothing"]),
        (UUID4, ["0f0e0d0c-0b0a-4908-8706-050403020100"], ["0f0e0d0c-0b0a-1908-8706-050403020100"]),
        (Annotated[date, Field(ge=date(2020, 2, 28))], ["2020-02-29", "2021-01-01"], ["2020-02-27", "2019-12-31"]),
        (
            NaiveDatetime,
            ["2000-02-29T01:02:03", "1999-12-31T23:59:59.5"],
            ["1900-02-29T01:02:03", "2000-01-01T00:00:00Z"],
        ),
        (Annotated[str, Field(pattern=r"^\D\S$")], ["ab"], ["\u0665b", "a\u2003", "5a"]),
        (Annotated[str, Field(pattern=r"^[^\w.]\bx$")], ["-x"], ["\u00e9x", ".x"]),
        (Annotated[str, Field(pattern="(?m)^b$")], ["b", "a\nb"], ["a\rb", "a\u2028b"]),
        (Annotated[str, Field(pattern=re.compile(r"^(?!\d)\S$"))], ["a"], ["\u0663", "\x1c"]),
        (Annotated[str, Field(pattern=re.compile(r"^(?!.*x)a{,2}"))], ["a", ""], ["\rx", "ax"]),
        (Base64Bytes, ["", "QQ==", "QUI=", "QUJD"], ["Q", "QR=="]),
    ],
)
def test_texts_of_types(annotation: Any, fitting: list[str], missing: list[str]) -> None:
    source = of(annotation)
    for text in fitting:
        assert allowed(source, json.dumps(text, ensure_ascii=False)), text
        source.parse(json.dumps(text))
    for text in missing:
        assert not allowed(source, json.dumps(text, ensure_ascii=False)), text


def test_floats_next_to_an_open_bound_are_not_rounded_to_it() -> None:
    below = of(Annotated[float, Field(lt=100)])
    assert float("99.9999999999999999") == 100
    assert not allowed(below, "99.9999999999999999")
    assert allowed(below, "99.99999999999998")
    assert allowed(of(Annotated[float, Field(gt=0)]), "0.0000000000000001")
    with pytest.raises(UnsatisfiableError):
        draw_examples(of(Annotated[float, Field(gt=0, lt=5e-324)]).grammar(), 1)


@dataclass
class Plain:
    first: int


@dataclass(frozen=True)
class Frozen:
    first: int


class FromPath(BaseModel):
    first: int = Field(validation_alias=AliasPath("all", 0))


Lower = Annotated[str, StringConstraints(to_lower=True)]


class Unseen(BaseModel):
    first: SkipJsonSchema[int]


class Twice(BaseModel):
    first: int = Field(alias="a")
    second: str = Field(alias="a")


class Named(TypedDict):
    name: str


class Short(BaseModel):
    """The configuration applies to both fields, whose type has none."""

    model_config = ConfigDict(str_max_length=2)
    first: Named
    second: Named


class Strings(NamedTuple):
    first: str


class ShortStrings(BaseModel):
    model_config = ConfigDict(str_max_length=2)
    first: Strings
    second: Strings


class StrictAfterFunction(BaseModel):
    """The function is given a str, and Pydantic then reads no date from it."""

    model_config = ConfigDict(strict=True)
    day: date

    @field_validator("day", mode="before")
    @classmethod
    def same(cls, value: object) -> object:
        return value


@pydantic_dataclasses.dataclass(config=ConfigDict(extra="forbid"))
class Computed:
    first: int = Field(init=False, default=1)
    second: int = 2


@pytest.mark.parametrize(
    "annotation",
    [
        *(FromPath, type[int], Hashable, set[list[int]], set[Circle], Literal[b"x"]),
        *(set[Plain], frozenset[tuple[list[int], int]], set[tuple[Circle, ...]], set[list[int] | int]),
        *(Annotated[time, Field(lt=time(3))], Annotated[datetime, Field(gt=datetime(2000, 1, 1))]),
        *(Annotated[str, Field(pattern=r"[a-z&&[^b]]")], Annotated[str, Field(pattern=re.compile("a", re.I))]),
        *(Annotated[str, Field(pattern=pattern)] for pattern in (r"\<a", r"(?i)\P{Lu}", "(?x) a", "(?m:^a)")),
        *(
            Unseen,
            SkipJsonSchema[int],
            Twice,
            ShortStrings,
            StrictAfterFunction,
            Annotated[float, Field(multiple_of=0.1, gt=1e7)],
        ),
        *(Annotated[kind, Field(min_length=2)] for kind in (set[float], frozenset[int | bool], dict[uuid.UUID, int])),
        *(
            Annotated[kind, Field(min_length=2)]
            for kind in (set[datetime], set[Annotated[str, StringConstraints(to_lower=True)]], set[Any])
        ),
    ],
    ids=repr,
)
def test_unsupported_types_are_refused(annotation: Any) -> None:
    with pytest.raises(UnsupportedError):
        of(annotation)


@pytest.mark.parametrize(
    ("annotation", "fitting", "missing"),
    [
        (dict[Annotated[str, Field(pattern="^a+$")], int], ['{"a": 1}', "{}"], ['{"": 1}', '{"b": "c"}']),
        (Annotated[float, Field(multiple_of=0.1)], ["1.1", "4194303.9"], ["11111111.1", "4194304.1"]),
        (Annotated[float, Field(multiple_of=3)], ["9007199254740990"], ["9007199254740993"]),
        (Annotated[float, Field(multiple_of=0.5)], ["9007199254740993.5"], ["0.25"]),
        (Annotated[float, Field(gt=0.1, lt=0.10000000000000003)], ["0.10000000000000002"], ["0.10000000000000001"]),
        (Annotated[float, Field(gt=-0.5, lt=0.25)], ["0.2499999999999"], ["0.249999999999999999"]),
        (Annotated[Decimal, Field(lt=2)], ["1.9999999999999998", "1.99"], ["1.9999999999999999"]),
        (Annotated[Decimal, Field(ge=Decimal("0.123456789012345675"))], ["0.13"], ["0.123456789012345675"]),
        (Annotated[Decimal, Field(multiple_of=Decimal("0.05"))], ["0.15", "1000.05"], ["271117343227017.15"]),
        (Annotated[Decimal, Field(max_digits=17, decimal_places=1)], ["99.9"], ["9999999999999999.9"]),
        (Annotated[set[int], Field(min_length=2)], ["[1, 2]"], ["[1]", "[1, 1]"]),
        (Annotated[dict[date, int], Field(min_length=2)], [], ['{"2000-01-01": 1}']),
        (
            Short,
            ['{"first": {"name": "ab"}, "second": {"name": ""}}'],
            ['{"first": {"name": "abc"}, "second": {"name": ""}}'],
        ),
        (Computed, ['{"second": 3}'], ['{"first": 3, "second": 3}']),
    ],
)
def test_json_that_pydantic_reads(annotation: Any, fitting: list[str], missing: list[str]) -> None:
    source = of(annotation)
    for text in fitting:
        assert allowed(source, text), text
        source.parse(text)
    assert [text for text in missing if allowed(source, text)] == []


def test_sets_of_types_with_a_hash() -> None:
    assert of(set[Frozen]).parse('[{"first": 1}]') == {Frozen(1)}
    assert of(set[tuple[int, str | None]]).parse('[[1, "a"], [1, null]]') == {(1, "a"), (1, None)}


def test_non_constraints_are_refused_with_a_suggestion() -> None:
    assert of(re.compile("a+", re.I)) == Regex("a+", flags="i")
    for wrong, hint in (
        (["a", "b"], "pass Choice(['a', 'b'])"),
        ("abc", "pass Choice(['abc']); for a pattern, pass Regex('abc')"),
        (' {"type": "null"}', "pass JsonSchema(text)"),
        (object(), "is not a type that Pydantic can read from JSON"),
        ({"name": "string"}, "has no JSON Schema keyword"),
        (BaseModel, "BaseModel has no fields"),
    ):
        with pytest.raises(InvalidConstraintError, match=re.escape(hint)) as caught:
            of(wrong)
        assert "arbitrary_types_allowed" not in str(caught.value)


def test_validator_errors_are_invalid_text_errors() -> None:
    class Even(BaseModel):
        number: int

        @field_validator("number")
        @classmethod
        def _even(cls, value: int) -> int:
            if value % 2:
                raise ValueError("must be even")
            return value

    assert of(Even).parse('{"number": 2}') == Even(number=2)
    with pytest.raises(InvalidTextError, match="must be even") as caught:
        of(Even).parse('{"number": 3}')
    assert caught.value.text == '{"number": 3}'
    assert '{"number": 3}' in str(caught.value)


def test_constraint_of_python_values() -> None:
    pattern = Regex("a")
    assert of(pattern) is pattern
    assert of({"type": "null"}) == JsonSchema({"type": "null"})
    assert of(Person) == PythonType(Person) != PythonType(Address)
    assert len({of(int), of(int), of(TypeAdapter(str))}) == 2
    assert (of(int) | Choice(["none"])).parse("none") == "none"
    assert of(Person).schema["title"] == "Person"  # type: ignore[attr-defined]  # only some sources have a schema
    for wrong in ("text", ["a"], 3, None, len, object()):
        with pytest.raises(InvalidConstraintError):
            of(wrong)


def test_days_beyond_the_calendar() -> None:
    for bound in (Field(lt=date.min), Field(gt=date.max)):
        with pytest.raises(gw.errors.UnsatisfiableError):
            gw.compile(Annotated[date, bound], gw.load("tiny").tokenizer)


def doubled(made: Any, count: int) -> Any:
    """A type that has 2**count types in it and is small in memory."""
    for _ in range(count):
        made = tuple[made, made]
    return made


@dataclass
class WithDoubled:
    name: str
    pairs: doubled(int, 60)  # type: ignore[valid-type]  # made at run time


@pytest.mark.parametrize(
    "annotation",
    [
        doubled(int, 60),
        list[doubled(int, 60)],  # type: ignore[misc]  # made at run time
        dict[str, doubled(Person, 60)],  # type: ignore[misc]  # made at run time
        WithDoubled,
    ],
)
def test_types_that_double_are_refused(annotation: Any) -> None:
    with pytest.raises(LimitExceededError, match="each occurrence counts"):
        gw.constraints.of(annotation)


def test_types_that_occur_often_are_allowed() -> None:
    text = "1"
    for _ in range(7):
        text = f"[{text}, {text}]"
    assert json.dumps(of(doubled(Literal[1], 7)).parse(text)) == text


Nested = TypeAliasType("Nested", "int | tuple[Nested, ...]")


def test_sets_of_a_type_that_contains_itself() -> None:
    source = of(Annotated[set[Nested], Field(min_length=2)])  # type: ignore[valid-type]  # mypy does not read the text
    assert source.parse("[1, [2]]") == {1, (2,)}


def test_bounds_that_are_scalars_of_numpy() -> None:
    source = of(Annotated[float, Field(gt=np.float64(0.5), multiple_of=np.float64(0.25))])
    assert source.parse("0.75") == 0.75
    with pytest.raises(InvalidTextError):
        source.parse("0.5")
