"""Random Python types: the field types of Pydantic's documentation, with their constraints, nested."""

from __future__ import annotations

import collections
import dataclasses
import enum
import ipaddress
import pathlib
import random
import re
import uuid
import warnings
import zoneinfo
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Literal, NamedTuple, Optional

import pydantic
from pydantic import (
    AwareDatetime,
    Base64Bytes,
    Base64Str,
    Base64UrlBytes,
    Base64UrlStr,
    ByteSize,
    ConfigDict,
    DirectoryPath,
    Field,
    FilePath,
    FiniteFloat,
    FutureDate,
    FutureDatetime,
    ImportString,
    Json,
    NaiveDatetime,
    NewPath,
    PastDate,
    PastDatetime,
    Secret,
    SecretBytes,
    SecretStr,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    StringConstraints,
    create_model,
    networks,
    types,
)
from pydantic.experimental.pipeline import validate_as
from typing_extensions import TypedDict

__all__ = ["made", "make_type"]


class Plain(enum.Enum):
    """An enum whose members are not str or int."""

    ONE = "one"
    TWO = 2
    PAIR = (1, 2)


class Words(str, enum.Enum):
    YES = "yes"
    NO = "no"


class Numbers(enum.IntEnum):
    A = 1
    B = 7


class Flags(enum.IntFlag):
    R = 4
    W = 2


class Point(NamedTuple):
    x: int
    y: float = 0.5


class Named(TypedDict):
    """A type that occurs several times in one model."""

    name: str


@dataclasses.dataclass
class Titled:
    title: str


SCALARS: list[Any] = [
    *(Named, Named, Titled),
    *(bool, int, float, str, bytes, type(None), Decimal, Fraction, Any),
    *(date, datetime, time, timedelta, uuid.UUID, pathlib.Path, pathlib.PurePosixPath, zoneinfo.ZoneInfo),
    *(re.Pattern[str], re.Pattern, Plain, Words, Numbers, Flags, Point),
    *(ipaddress.IPv4Address, ipaddress.IPv6Address, ipaddress.IPv4Network, ipaddress.IPv6Network),
    *(ipaddress.IPv4Interface, ipaddress.IPv6Interface, networks.IPvAnyAddress, networks.IPvAnyNetwork),
    *(networks.IPvAnyInterface, networks.AnyUrl, networks.AnyHttpUrl, networks.HttpUrl, networks.FileUrl),
    *(networks.FtpUrl, networks.WebsocketUrl, networks.AnyWebsocketUrl, networks.PostgresDsn, networks.RedisDsn),
    *(networks.MongoDsn, networks.AmqpDsn, networks.KafkaDsn, networks.NatsDsn, networks.MySQLDsn, networks.MariaDBDsn),
    *(networks.CockroachDsn, networks.ClickHouseDsn, networks.SnowflakeDsn),
    *(AwareDatetime, NaiveDatetime, PastDate, FutureDate, PastDatetime, FutureDatetime),
    *(StrictBool, StrictInt, StrictFloat, StrictStr, FiniteFloat, SecretStr, SecretBytes, Secret[int], Secret[str]),
    *(types.PositiveInt, types.NegativeInt, types.NonNegativeInt, types.NonPositiveInt, types.PositiveFloat),
    *(types.NegativeFloat, types.NonNegativeFloat, types.NonPositiveFloat, types.UUID1, types.UUID3, types.UUID4),
    *(types.UUID5, types.UUID6, types.UUID7, types.UUID8, types.StrictBytes),
    *(ByteSize, Base64Bytes, Base64Str, Base64UrlBytes, Base64UrlStr, Json),
    *(Literal["a", "b"], Literal[1, "x", None, True], Literal[Plain.ONE, "q"], Literal[Words.YES]),
    *(Literal[Numbers.B, 3], Literal[b"a", "c"]),
    Annotated[int, validate_as(int).gt(3)],
    Annotated[int, validate_as(int).ge(0) & validate_as(int).lt(50)],
]
UNSUITABLE: list[Any] = [
    *(complex, object, re.Pattern[bytes], types.SocketPath, FilePath, DirectoryPath, NewPath, ImportString),
    *(Callable[[], int], type, type[int], Literal[Plain.ONE], Annotated[int, validate_as(str).validate_as(int)]),
    *(Annotated[SecretBytes, Field(max_length=3)], Annotated[bytes, Field(max_length=3)]),
    *(Annotated[timedelta, Field(gt=timedelta(1))], Annotated[datetime, Field(lt=datetime(2030, 1, 1))]),
]
"""Types without a known set of texts; the library refuses them."""

HASHED: list[Any] = [int, str, bool, date, uuid.UUID, Decimal, Words, Literal["p", "q"], int | None, Fraction]
HASHED += [int | bool, float, datetime, Annotated[str, StringConstraints(to_lower=True)], tuple[int, str]]
KEYS: list[Any] = [str, int, date, uuid.UUID, Words, Literal["k1", "k2"], Annotated[str, Field(max_length=3)], float]
KEYS += [Annotated[str, Field(pattern="^[a-c]+$")], datetime]


def make_type(rng: random.Random, depth: int = 3) -> Any:
    """Return a random type."""
    if rng.random() < 0.01:
        return rng.choice(UNSUITABLE)
    if depth == 0 or rng.random() < 0.35:
        return rng.choice(SCALARS) if rng.random() < 0.6 else _constrained(rng)
    return rng.choice(_NESTED)(rng, depth - 1)


def _constrained(rng: random.Random) -> Any:
    low, high = sorted(rng.sample(range(-50, 120), 2))
    size = rng.randint(0, 4)
    places = rng.randint(0, 4)
    options: list[Any] = [
        Annotated[int, Field(ge=low, le=high)],
        Annotated[int, Field(gt=low, multiple_of=rng.choice([2, 3, 7]))],
        Annotated[float, Field(gt=low / 4, lt=high)],
        Annotated[float, Field(multiple_of=rng.choice([0.5, 0.01, 3, 0.3]), allow_inf_nan=False)],
        Annotated[Decimal, Field(max_digits=max(1, places + rng.randint(-3, 3)), decimal_places=places)],
        Annotated[Decimal, Field(ge=low, le=high, decimal_places=2)],
        Annotated[Decimal, Field(max_digits=rng.randint(1, 5))],
        Annotated[str, Field(min_length=size, max_length=size + 3)],
        Annotated[str, Field(pattern=rng.choice([r"^[a-c]+$", r"\d{2}", r"^\w*\S$", "x|yy"]))],
        Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)],
        Annotated[str, StringConstraints(to_lower=True, max_length=5)],
        Annotated[str, StringConstraints(to_upper=True, pattern="^[A-Z]*$")],
        Annotated[date, Field(ge=date(1990, 2, low % 28 + 1), lt=date(2030, 1, 1))],
        Annotated[SecretStr, Field(min_length=1, max_length=4)],
        Annotated[int, Field(strict=True, ge=0)],
        Annotated[Decimal, Field(strict=True)],
        Annotated[networks.HttpUrl, networks.UrlConstraints(max_length=60)],
        Annotated[networks.AnyUrl, networks.UrlConstraints(allowed_schemes=["file", "ssh"])],
    ]
    if "ascii_only" in StringConstraints.__dataclass_fields__:
        options.append(Annotated[str, StringConstraints(ascii_only=True, max_length=6)])
    return rng.choice(options)


def _sequence(rng: random.Random, depth: int) -> Any:
    kind = rng.choice([list, tuple, collections.deque, collections.abc.Sequence, collections.abc.Iterable])
    inner = make_type(rng, depth)
    made = tuple[inner, ...] if kind is tuple else kind[inner]
    size = rng.randint(0, 2)
    if kind is collections.abc.Iterable or rng.random() < 0.5:
        return made
    return Annotated[made, Field(min_length=size, max_length=size + rng.randint(0, 3))]


def _tuple(rng: random.Random, depth: int) -> Any:
    return tuple[tuple(make_type(rng, depth) for _ in range(rng.randint(1, 3)))]  # type: ignore[misc]  # types of the draw


def _set(rng: random.Random, depth: int) -> Any:
    kind = rng.choice([set, frozenset, collections.abc.Set])
    made = kind[rng.choice(HASHED)]
    return made if rng.random() < 0.6 else Annotated[made, Field(min_length=rng.choice([1, 2]), max_length=3)]


def _mapping(rng: random.Random, depth: int) -> Any:
    kinds = [dict, collections.abc.Mapping, collections.OrderedDict, collections.defaultdict]
    if rng.random() < 0.15:
        return collections.Counter[rng.choice([str, int, Words])]  # type: ignore[misc]  # types of the draw
    made = rng.choice(kinds)[rng.choice(KEYS), make_type(rng, min(depth, 1))]
    return made if rng.random() < 0.7 else Annotated[made, Field(min_length=rng.choice([1, 2]), max_length=2)]


def _union(rng: random.Random, depth: int) -> Any:
    parts = [make_type(rng, depth) for _ in range(rng.randint(2, 3))]
    made: Any = Optional[parts[0]]  # noqa: UP045 - the part is a value
    for one in parts[1:]:
        made = made | one if rng.random() < 0.7 else one | made if hasattr(one, "__or__") else made
    return made


def _default(rng: random.Random) -> Any:
    return rng.choice([..., ..., None, 3, "x", [], {}, 0.5])


def _model(rng: random.Random, depth: int) -> Any:
    config = ConfigDict(
        extra=rng.choice(["ignore", "forbid", "allow"]),
        validate_default=rng.random() < 0.4,
        val_json_bytes=rng.choice(["utf8", "base64", "hex"]),
        str_strip_whitespace=rng.random() < 0.15,
        str_max_length=rng.choice([None, None, None, 8]),
        strict=rng.random() < 0.1,
        use_enum_values=rng.random() < 0.2,
        populate_by_name=rng.random() < 0.3,
        coerce_numbers_to_str=rng.random() < 0.1,
        allow_inf_nan=rng.random() < 0.8,
    )
    fields: dict[str, Any] = {}
    for name in rng.sample(["a", "b_c", "name", "é", "x1"], rng.randint(0, 4)):
        alias = rng.choice([None, None, None, f"{name}-alias"])
        fields[name] = (make_type(rng, depth), Field(_default(rng), alias=alias))
    return create_model(f"Model{rng.randrange(10**6)}", __config__=config, **fields)


def _dataclass(rng: random.Random, depth: int) -> Any:
    names = [f"f{number}" for number in range(rng.randint(0, 3))]
    return dataclasses.make_dataclass("Record", [(name, make_type(rng, depth)) for name in names])


def _typed_dict(rng: random.Random, depth: int) -> Any:
    fields = {f"k{number}": make_type(rng, depth) for number in range(rng.randint(0, 3))}
    return TypedDict("Entry", fields, total=rng.random() < 0.5)  # type: ignore[operator]  # the functional form


def _tagged(rng: random.Random, depth: int) -> Any:
    one = create_model("One", kind=(Literal["one"], ...), value=(make_type(rng, depth), ...))
    two = create_model("Two", kind=(Literal["two"], "two"), other=(make_type(rng, depth), None))
    return Annotated[one | two, Field(discriminator="kind")]  # type: ignore[operator]  # models


def _json(rng: random.Random, depth: int) -> Any:
    return Json[make_type(rng, min(depth, 1))]


def _recursive(rng: random.Random, depth: int) -> Any:
    inner = make_type(rng, depth)
    children: Any = list["Tree"]  # type: ignore[name-defined]  # noqa: F821 - resolved by model_rebuild
    made = create_model("Tree", value=(inner, ...), children=(children, []))
    made.model_rebuild(_types_namespace={"Tree": made})
    return made


_NESTED: list[Callable[[random.Random, int], Any]] = [
    *(_sequence, _tuple, _set, _mapping, _union, _model, _model, _dataclass, _typed_dict, _tagged, _json, _recursive)
]


def made(seed: int) -> tuple[Any, pydantic.TypeAdapter[Any] | None]:
    """Return a type and Pydantic's own adapter; None if Pydantic refuses the type."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            annotation = make_type(random.Random(seed))
            return annotation, pydantic.TypeAdapter(annotation)
        except Exception:  # Pydantic's own errors for unsuitable types
            return None, None
