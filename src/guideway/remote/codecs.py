"""Codecs: encode values in a form that the JSON Schema subset of a provider can describe, and decode answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

from guideway.arguments import short_repr
from guideway.errors import InvalidTextError
from guideway.jsontext.decoder import loads
from guideway.jsontext.encoder import write_json

__all__ = [
    "ABSENT",
    "Codec",
    "IdentityCodec",
    "JsonTextCodec",
    "LaterCodec",
    "ListCodec",
    "MapCodec",
    "ObjectCodec",
    "OptionalCodec",
    "TaggedCodec",
    "TupleCodec",
    "UnionCodec",
    "WrappedCodec",
    "short",
]

ABSENT: Any = object()
"""The value of a property that an object does not have."""


class Codec(ABC):
    """Encodes instances of the original schema as instances of the schema that is sent, and decodes answers."""

    plain = False
    """Whether it is known that encoding and decoding change nothing."""

    @abstractmethod
    def encode(self, value: Any) -> Any:
        """Return the encoded value. Raises `InvalidTextError` if the value has no encoded form."""

    @abstractmethod
    def decode(self, value: Any) -> Any:
        """Return the original value. Raises `InvalidTextError` if the value cannot be decoded."""


class IdentityCodec(Codec):
    """Changes nothing."""

    plain = True

    def encode(self, value: Any) -> Any:
        return value

    def decode(self, value: Any) -> Any:
        return value


class JsonTextCodec(Codec):
    """Writes a value as a string that contains its JSON text."""

    def encode(self, value: Any) -> Any:
        return write_json(value)

    def decode(self, value: Any) -> Any:
        if not isinstance(value, str):
            raise InvalidTextError(f"expected JSON text in a string, got {type(value).__name__}")
        try:
            return loads(value)
        except ValueError as problem:
            raise InvalidTextError(f"a string should contain JSON text: {problem}", text=value) from None


@dataclass
class WrappedCodec(Codec):
    """Writes a value as an object with one key: `{"value": x}`."""

    inner: Codec
    key: str = "value"

    def encode(self, value: Any) -> Any:
        return {self.key: self.inner.encode(value)}

    def decode(self, value: Any) -> Any:
        if not isinstance(value, dict) or self.key not in value:
            raise InvalidTextError(f"expected an object with the key {self.key!r}, got {short(value)}")
        return self.inner.decode(value[self.key])


@dataclass
class OptionalCodec(Codec):
    """Writes an absent property as null, and reads null as an absent property."""

    inner: Codec

    def encode(self, value: Any) -> Any:
        if value is ABSENT:
            return None
        made = self.inner.encode(value)
        if made is None:  # `decode` would read it as absent
            raise InvalidTextError("null is not allowed")
        return made

    def decode(self, value: Any) -> Any:
        return ABSENT if value is None else self.inner.decode(value)


@dataclass
class ObjectCodec(Codec):
    """Encodes each property of an object. Additional properties become a list of `{"key": ..., "value": ...}`."""

    properties: dict[str, Codec]
    others: tuple[str, Codec] | None = None  # the key of that list, and the codec of its values; None: no others

    @property
    def plain(self) -> bool:  # type: ignore[override]  # computed, since codecs of recursive schemas are completed later
        return self.others is None and all(inner.plain for inner in self.properties.values() if inner is not self)

    def encode(self, value: Any) -> Any:
        if not isinstance(value, dict):
            raise InvalidTextError(f"expected an object, got {short(value)}")
        made = {}
        for key, codec in self.properties.items():
            if key in value or isinstance(codec, OptionalCodec):
                made[key] = codec.encode(value.get(key, ABSENT))
        extra = {key: one for key, one in value.items() if key not in self.properties}
        if self.others is not None:
            name, codec = self.others
            made[name] = [{"key": key, "value": codec.encode(one)} for key, one in extra.items()]
        elif extra:
            raise InvalidTextError(f"the key {short_repr(next(iter(extra)))} is not allowed")
        return made

    def decode(self, value: Any) -> Any:
        if not isinstance(value, dict):
            raise InvalidTextError(f"expected an object, got {short(value)}")
        made = {}
        for key, codec in self.properties.items():
            if key in value:
                one = codec.decode(value[key])
                if one is not ABSENT:
                    made[key] = one
        if self.others is not None:
            name, codec = self.others
            for pair in value.get(name) or ():
                if not isinstance(pair, dict) or not isinstance(pair.get("key"), str) or "value" not in pair:
                    raise InvalidTextError(f'expected an object with "key" and "value", got {short(pair)}')
                if pair["key"] in made:
                    raise InvalidTextError(f"the key {short_repr(pair['key'])} occurs twice")
                made[pair["key"]] = codec.decode(pair["value"])
        return made


@dataclass
class MapCodec(Codec):
    """Encodes each property of an object. Additional properties stay properties, encoded by `inner`."""

    properties: dict[str, Codec]
    inner: Codec

    @property
    def plain(self) -> bool:  # type: ignore[override]  # computed
        return self.inner.plain and all(one.plain for one in self.properties.values())

    def _each(self, value: Any, name: str) -> Any:
        if not isinstance(value, dict):
            raise InvalidTextError(f"expected an object, got {short(value)}")
        made = {key: getattr(self.properties.get(key, self.inner), name)(one) for key, one in value.items()}
        return {key: one for key, one in made.items() if one is not ABSENT}

    def encode(self, value: Any) -> Any:
        return self._each(value, "encode")

    def decode(self, value: Any) -> Any:
        return self._each(value, "decode")


@dataclass
class ListCodec(Codec):
    """Encodes each item of an array: the first ones by `prefix`, others by `rest`. `rest` None: there are no others."""

    prefix: list[Codec]
    rest: Codec | None

    @property
    def plain(self) -> bool:  # type: ignore[override]  # computed
        return (self.rest is None or self.rest.plain) and all(one.plain for one in self.prefix)

    def _each(self, value: Any, name: str) -> Any:
        if not isinstance(value, list):
            raise InvalidTextError(f"expected an array, got {short(value)}")
        codecs = [self.prefix[at] if at < len(self.prefix) else self.rest for at in range(len(value))]
        if None in codecs:
            raise InvalidTextError(f"expected at most {len(self.prefix)} items, got {len(value)}")
        return [getattr(codec, name)(one) for codec, one in zip(codecs, value, strict=True)]

    def encode(self, value: Any) -> Any:
        return self._each(value, "encode")

    def decode(self, value: Any) -> Any:
        return self._each(value, "decode")


@dataclass
class TupleCodec(Codec):
    """Writes an array as an object with the keys item_1, item_2, ... and the key "rest" with a list of other items."""

    prefix: list[Codec]
    rest: Codec | None

    def encode(self, value: Any) -> Any:
        if not isinstance(value, list) or (self.rest is None and len(value) > len(self.prefix)):
            raise InvalidTextError(f"expected an array of at most {len(self.prefix)} items, got {short(value)}")
        made = {
            f"item_{at + 1}": OptionalCodec(codec).encode(value[at] if at < len(value) else ABSENT)
            for at, codec in enumerate(self.prefix)
        }
        if self.rest is not None:
            made["rest"] = [self.rest.encode(one) for one in value[len(self.prefix) :]]
        return made

    def decode(self, value: Any) -> Any:
        if not isinstance(value, dict):
            raise InvalidTextError(f"expected an object for an array, got {short(value)}")
        made = []
        for at, codec in enumerate(self.prefix):
            one = OptionalCodec(codec).decode(value.get(f"item_{at + 1}"))
            if one is ABSENT:
                break
            made.append(one)
        later = [value.get(f"item_{at + 1}") for at in range(len(made), len(self.prefix))]
        rest = value.get("rest") or []
        if any(one is not None for one in later) or (later and rest):
            raise InvalidTextError("an item of an array is missing before another one")
        return made + [self.rest.decode(one) for one in rest] if self.rest is not None else made


@dataclass
class UnionCodec(Codec):
    """A union for which an encoded value shows which option it belongs to.

    Attributes:
        options: For each option a quick test of encoded values, and its codec. Decoding uses the codec of the first
            option whose test succeeds.
        checks: For each option a function that returns whether an encoded value is an instance of it, for encoding.
    """

    options: list[tuple[Any, Codec]]
    checks: list[Any]

    @property
    def plain(self) -> bool:  # type: ignore[override]  # computed
        return all(codec.plain for _, codec in self.options)

    def encode(self, value: Any) -> Any:
        problem: InvalidTextError | None = None
        for check, (_, codec) in zip(self.checks, self.options, strict=True):
            try:
                made = codec.encode(value)
            except InvalidTextError as error:
                problem = error
                continue
            if check(made):
                return made
        raise problem or InvalidTextError(f"no option of a union has the value {short(value)}")

    def decode(self, value: Any) -> Any:
        for test, codec in self.options:
            if test(value):
                return codec.decode(value)
        raise InvalidTextError(f"no option of a union has the value {short(value)}")


@dataclass
class TaggedCodec(Codec):
    """A union whose options cannot be distinguished: a value of the first option becomes `{"option_1": x}`.

    The attributes are those of `UnionCodec`; the tests in `options` are not used.
    """

    options: list[tuple[Any, Codec]]
    checks: list[Any]

    def encode(self, value: Any) -> Any:
        for number, (check, (_, codec)) in enumerate(zip(self.checks, self.options, strict=True)):
            try:
                made = codec.encode(value)
            except InvalidTextError:
                continue
            if check(made):
                return {f"option_{number + 1}": made}
        raise InvalidTextError(f"no option of a union has the value {short(value)}")

    def decode(self, value: Any) -> Any:
        if isinstance(value, dict) and len(value) == 1:
            (key, inner) = next(iter(value.items()))
            for number, (_, codec) in enumerate(self.options):
                if key == f"option_{number + 1}":
                    return codec.decode(inner)
        raise InvalidTextError(f"expected an object with one key option_1 to option_{len(self.options)}")


@dataclass
class LaterCodec(Codec):
    """The codec of a definition.

    `of` is set when the definition has been rewritten. Until then, other codecs can contain this object, but it cannot
    encode or decode.
    """

    of: Codec | None = None
    visiting: bool = field(default=False, repr=False)

    @property
    def plain(self) -> bool:  # type: ignore[override]  # computed; a recursive reference counts as plain
        if self.of is None:
            return False  # not complete yet
        if self.visiting:
            return True
        self.visiting = True
        try:
            return self.of.plain
        finally:
            self.visiting = False

    def encode(self, value: Any) -> Any:
        return self._complete().encode(value)

    def decode(self, value: Any) -> Any:
        return self._complete().decode(value)

    def _complete(self) -> Codec:
        if self.of is None:
            raise RuntimeError("the definition is not complete")
        return self.of


def short(value: Any) -> str:
    """Return the JSON text of a value for a message, truncated after 80 characters."""
    text = write_json(value) if not isinstance(value, (bytes, set)) else repr(value)
    return text if len(text) <= 80 else text[:80] + "…"
