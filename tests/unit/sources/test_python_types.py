"""Python types as constraints: what is sampled parses into a value of the type."""

from __future__ import annotations

import enum
import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal, Optional

import pytest
from pydantic import BaseModel, Field, TypeAdapter, field_validator
from typing_extensions import TypedDict

from guideway.errors import InvalidConstraint, InvalidText, Unsupported
from guideway.sources import Choice, JsonSchema, PythonType, Regex, of
from guideway.sources.fits import fits as allows
from guideway.sources.json_schema.explain import draw_examples

from .sampler import Sampler
from .twin import fits


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


@pytest.mark.parametrize("annotation", [dict[float, str], Callable[[], int], complex])
def test_refused_until_later(annotation: Any) -> None:
    with pytest.raises((Unsupported, InvalidConstraint)):
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
    with pytest.raises(Unsupported):
        of(lambda *arguments: None)


def test_validators_have_the_last_word() -> None:
    class Even(BaseModel):
        number: int

        @field_validator("number")
        @classmethod
        def _even(cls, value: int) -> int:
            if value % 2:
                raise ValueError("must be even")
            return value

    assert of(Even).parse('{"number": 2}') == Even(number=2)
    with pytest.raises(InvalidText, match="must be even"):
        of(Even).parse('{"number": 3}')


def test_of() -> None:
    pattern = Regex("a")
    assert of(pattern) is pattern
    assert of({"type": "null"}) == JsonSchema({"type": "null"})
    assert of(Person) == PythonType(Person) != PythonType(Address)
    assert len({of(int), of(int), of(TypeAdapter(str))}) == 2
    assert (of(int) | Choice(["none"])).parse("none") == "none"
    assert of(Person).schema["title"] == "Person"  # type: ignore[attr-defined]  # only some sources have a schema
    for wrong in ("text", ["a"], 3, None, len, object()):
        with pytest.raises(InvalidConstraint):
            of(wrong)
