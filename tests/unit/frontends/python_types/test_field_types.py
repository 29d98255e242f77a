"""Field types of Pydantic: texts that fit are read by Pydantic, and types without exact texts are refused."""

from __future__ import annotations

import collections
import enum
import ipaddress
import json
import re
import zoneinfo
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Literal

import pytest
from pydantic import (
    MISSING,
    AfterValidator,
    Base64Str,
    Base64UrlStr,
    BaseModel,
    ByteSize,
    ConfigDict,
    DirectoryPath,
    Field,
    FilePath,
    FileUrl,
    ImportString,
    Json,
    NewPath,
    SecretBytes,
    StringConstraints,
    TypeAdapter,
    create_model,
)
from pydantic.experimental.pipeline import validate_as
from pydantic.networks import IPvAnyAddress, IPvAnyInterface, IPvAnyNetwork
from pydantic.types import SocketPath

from guideway.constraints import PythonType
from guideway.errors import UnsupportedError
from guideway.frontends.json_schema.report import draw_examples
from guideway.grammar.recognizer import fits


class Plain(enum.Enum):
    A = "x"
    B = 3


class Base64(BaseModel):
    model_config = ConfigDict(val_json_bytes="base64")
    b: bytes


class Hex(BaseModel):
    model_config = ConfigDict(val_json_bytes="hex")
    b: bytes


class Validated(BaseModel):
    model_config = ConfigDict(validate_default=True)
    a: int = "x"  # type: ignore[assignment]  # an invalid default
    b: int = 3


class One(BaseModel):
    a: int = Field("x", validate_default=True)  # type: ignore[assignment]  # an invalid default
    b: int = "y"  # type: ignore[assignment]  # not validated


class Short(BaseModel):
    model_config = ConfigDict(str_max_length=4)
    a: str
    b: Base64Str


class ShortAddresses(BaseModel):
    model_config = ConfigDict(strict=True, str_max_length=8)
    a: ipaddress.IPv4Address
    b: ipaddress.IPv6Interface


class Missing(BaseModel):
    a: int | MISSING = MISSING  # type: ignore[valid-type]  # a sentinel


class Inner(BaseModel):
    n: int
    s: Literal["x", "y"]


def text_of(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


@pytest.mark.parametrize(
    ("annotation", "good", "bad"),
    [
        (Literal[Plain.A, "q"], ['"q"'], ['"x"']),
        (Base64, ['{"b": "_-8="}', '{"b": ""}'], ['{"b": "a"}', '{"b": "é"}']),
        (Hex, ['{"b": "00ff"}'], ['{"b": "0"}', '{"b": "zz"}']),
        (FileUrl, ['"file:///data/a.txt"', '"file:///"'], ['"http://a"', '"file://a:b@c/"', '"file:"']),
        (Validated, ['{"a": 1}', '{"a": 1, "b": 2}'], ["{}", '{"b": 2}']),
        (One, ['{"a": 1}'], ["{}"]),
        (Annotated[str, StringConstraints(ascii_only=True)], ['"az"'], ['"é"']),
        (Annotated[Decimal, Field(max_digits=2, decimal_places=2)], ["0.5", "-0.25"], ["0", "1", "0.125"]),
        (Annotated[Decimal, Field(max_digits=2, decimal_places=1)], ["0", "1.5", "9"], ["10", "0.25"]),
        (Annotated[Decimal, Field(max_digits=2, decimal_places=3)], ["0.5", "-0.25"], ["0", "1", "0.125", "0.001"]),
        (Annotated[Decimal, Field(max_digits=1, decimal_places=4, ge=0)], ["0.5"], ["0", "1", "0.25", "0.0001"]),
        (collections.Counter[int], ['{"1": 2, "-3": 4}'], ['{"a": 1}', '{"1": "x"}']),
        (collections.OrderedDict[int, str], ['{"1": "a"}'], ['{"a": "a"}']),
        (Annotated[collections.defaultdict[str, int], Field(min_length=1, max_length=2)], ['{"a": 1}'], ["{}"]),
        (Fraction, ['"1/3"', '"-2"', '"10/7"'], ['"1/0"', '"x"']),
        (ipaddress.IPv4Network, ['"10.0.0.0/8"', '"192.168.1.128/25"', '"1.2.3.4"'], ['"10.0.0.1/8"', '"1.2.3.4/33"']),
        (ipaddress.IPv6Network, ['"2001:db8::/32"', '"::/0"'], ['"2001:db8::/16"', '"2001:db8::1/32"']),
        (ipaddress.IPv4Interface, ['"10.0.0.1/8"', '"10.0.0.1"'], ['"10.0.0.1/33"', '"10.0.0"']),
        (ipaddress.IPv6Interface, ['"2001:db8::1/32"', '"::1"'], ['"2001:db8::1/129"', '":::"']),
        (IPvAnyAddress, ['"1.2.3.4"', '"::1"'], ['"1.2.3"']),
        (IPvAnyNetwork, ['"10.0.0.0/8"', '"2001:db8::/32"'], ['"10.0.0.1/8"']),
        (IPvAnyInterface, ['"10.0.0.1/8"', '"::1/64"'], ['"10.0.0.1/99"']),
        (zoneinfo.ZoneInfo, ['"Europe/Berlin"', '"UTC"'], ['"Europe/Nowhere"', '"localtime"']),
        (Json[list[int]], [text_of("[1,2]"), text_of("[]")], [text_of("[1,"), "[1]", text_of('["a"]')]),
        (Json[Inner], [text_of('{"n":1,"s":"x"}')], [text_of('{"n":1,"s":"z"}'), text_of('{"n":1}')]),
        (Json[dict[str, bool] | None], [text_of("null"), text_of("{}"), text_of('{"a":true}')], [text_of("1")]),
        (Json, [text_of("true"), text_of('"a"')], [text_of("x")]),
        (timedelta, ['"PT1.5S"', '"-P1DT2H"', '"P3D"', '"-PT0.000001S"'], ['"P"', '"PT"', '"1.5"']),
        (ByteSize, ["3", '"1KB"', '"1.5 MiB"'], ['"9xy"', "-1"]),
        (Base64Str, ['"YWJj"', '"YQ=="', '""'], ['"gYGB"', '"a"']),
        (Base64UrlStr, ['"YWJj"', '"fn5-"'], ['"fn5+"', '"__-_"']),
        (Short, ['{"a": "abcd", "b": "YQ=="}'], ['{"a": "abcde", "b": ""}', '{"a": "", "b": "YWJjYWJj"}']),
        (
            ShortAddresses,
            ['{"a": "1.2.3.44", "b": "1::9:4/9"}', '{"a": "1.2.3.4", "b": "::"}'],
            ['{"a": "11.2.3.44", "b": "::"}', '{"a": "1.2.3.4", "b": "1::9:4/99"}'],
        ),
        (re.Pattern[str], ['"[a-c]+x|y"', '"(?:a){2}"'], ['"[]a"', '"("', r'"\\p{L}"']),
        (Missing, ['{"a": 1}', "{}"], ['{"a": null}']),
        (Annotated[int, validate_as(int).gt(3)], ["4"], ["3"]),
    ],
)
def test_texts(annotation: Any, good: list[str], bad: list[str]) -> None:
    source = PythonType(annotation)
    adapter = TypeAdapter(annotation)
    for text in good:
        assert fits(source.grammar(), text), text
        adapter.validate_json(text)
    for text in bad:
        assert not fits(source.grammar(), text), text
    for text in draw_examples(source.grammar(), 20, 1):
        adapter.validate_json(text)


@pytest.mark.parametrize(
    ("annotation", "says"),
    [
        (Literal[Plain.A], "no JSON text is read as Literal"),
        (re.Pattern[bytes], "patterns of bytes"),
        (SocketPath, "depends on the files of the machine"),
        (NewPath, "depends on the files of the machine"),
        (FilePath, "depends on the files of the machine"),
        (DirectoryPath, "depends on the files of the machine"),
        (ImportString, "imports the text"),
        (Annotated[SecretBytes, Field(max_length=3)], "length bounds on bytes"),
        (Annotated[int, validate_as(str).validate_as(int)], "several types in a row"),
        (MISSING, "MISSING has no JSON text"),
        (list[MISSING], "MISSING has no JSON text"),  # type: ignore[valid-type]  # a sentinel
        (Annotated[Fraction, Field(gt=1)], "Fraction with bounds"),
        (Annotated[timedelta, Field(multiple_of=timedelta(seconds=5))], "a timedelta with bounds"),
        (Annotated[date, Field(multiple_of=3)], "multiple_of is not supported for this type; .* a validator"),
        (Annotated[datetime, Field(multiple_of=3)], "multiple_of is not supported"),
        (Annotated[str, Field(multiple_of=3)], "multiple_of is not supported"),
        (Annotated[bytes, Field(multiple_of=3)], "multiple_of is not supported"),
        (Annotated[bool, Field(multiple_of=3)], "multiple_of is not supported"),
        (Annotated[str, Field(gt=3)], "gt is not supported"),
        (Annotated[list[int], Field(le=3)], "le is not supported"),
        (Annotated[int | float, Field(gt=3)], "gt is not supported .* in a union, write it on each type"),
        (collections.Counter[float], "dict keys of type 'float'"),
        (Json[Annotated[str, Field(pattern="^a$")]], "it has pattern"),
        (Json[Any | None], "any type|pattern"),
    ],
)
def test_refusals(annotation: Any, says: str) -> None:
    with pytest.raises(UnsupportedError, match=says):
        PythonType(annotation)
    with pytest.raises(UnsupportedError, match=f"^/inner/x: .*{says}") as found:
        PythonType(_within(annotation))
    assert found.value.place == "/inner/x"


def _within(annotation: Any) -> Any:
    inner = create_model("Part", x=(annotation, ...))
    return create_model("Whole", inner=(inner, ...))


def test_bounds_after_a_validator_of_the_user_are_left_to_it() -> None:
    assert PythonType(Annotated[str, AfterValidator(len), Field(gt=3)]).parse('"abcd"') == 4
