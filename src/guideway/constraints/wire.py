"""The serialised form of constraints: `to_wire` and `from_wire`, and pickles.

A document is a JSON object:

    {"guideway": 1, "kind": "regex", "spec": "a+", "options": {...}, "parts": [...], "digest": "..."}

`kind`, `spec` and `options` describe the constraint. `parts` lists the constraints inside it, each with `kind`, `spec`
and `options`. Constraints refer to parts by their index, and a part refers only to earlier parts. So nesting needs no
recursion, and a constraint that is used twice is written once. The digest is the SHA-256 of the canonical JSON text of
the other members. A schema is written as JSON text, so that the order of keys and the exact numbers are preserved in
every transport.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from guideway.arguments import short_repr
from guideway.constraints.base import _REDUCERS, Captured, Constraint, Literal, Repeated, _All, _Any, _Joined, _Other
from guideway.constraints.choice import Choice
from guideway.constraints.ebnf import Ebnf
from guideway.constraints.format import Format
from guideway.constraints.gbnf import Gbnf
from guideway.constraints.json_schema import JsonSchema
from guideway.constraints.lark import Lark
from guideway.constraints.python_types import PythonType
from guideway.constraints.regex import Regex
from guideway.constraints.special_token import SpecialToken
from guideway.constraints.substring import Substring
from guideway.constraints.tags import Reasoning, Tag, Tags
from guideway.constraints.tools import Tool, ToolCalls
from guideway.constraints.tools.families import FAMILIES, Family
from guideway.constraints.type_paths import Consent, described, may_import, rebuilt
from guideway.errors import ConstraintError, InvalidConstraintError, LimitExceededError, UnsupportedError
from guideway.jsontext.decoder import read_json
from guideway.jsontext.encoder import write_json

__all__ = ["VERSION", "from_wire", "to_wire", "wire_digest"]

VERSION = 1
"""The version of the documents that this library writes, and the only one that it reads."""

MAX_BYTES = 64 * 1024 * 1024
"""The maximum length of a document that is given as JSON text: bytes, or characters of a str."""

MAX_PARTS = 100_000
"""The maximum number of nested constraints of a document. A constraint that is used twice counts twice."""

Node = dict[str, Any]


def to_wire(constraint: object) -> dict[str, Any]:
    """Return a constraint as a JSON object, for transport to another process.

    Args:
        constraint: A constraint, or a value that `guideway.constraints.of` accepts.

    Returns:
        A dict of plain JSON values, with a digest. It contains the arguments of constructors, no compiled automata.

    Raises:
        UnsupportedError: The constraint, or one inside it, is of a class without a serialised form; or as for `of`.
        InvalidConstraintError: As for `of`.
        LimitExceededError: As for `of`.
    """
    from guideway.constraints.coerce import of

    *parts, root = _nodes(of(constraint), _type_spec)
    document = {"guideway": VERSION, **root}
    if parts:
        document["parts"] = parts
    document["digest"] = wire_digest(document)
    return document


def from_wire(document: Mapping[str, Any] | str | bytes, *, types: Consent = ()) -> Constraint[Any]:
    """Return the constraint of a document that `to_wire` has returned. Its digest is checked, if it has one.

    Args:
        document: The document, as a mapping or as JSON text.
        types: The types that the document may name: a mapping from "module:name" to the type, or a collection of types
            and of names of modules that may be imported. Other types of users are not imported: they become a
            `JsonSchema` that allows the same texts, and whose values are JSON values.

    Raises:
        InvalidConstraintError: The document is malformed, its digest is wrong, a constraint is invalid, or the schema
            of a type is not the one in the document.
        UnsupportedError: The document has an unknown version. A constraint has an unknown kind, or is not supported.
        LimitExceededError: The document or a constraint is too large.
    """
    if isinstance(document, (str, bytes)):
        document = _decoded(document)
    if not isinstance(document, Mapping):
        raise InvalidConstraintError(f"a wire document must be a JSON object, got {type(document).__name__}")
    version = document.get("guideway")
    if type(version) is not int or version != VERSION:
        raise UnsupportedError(
            f"expected a wire document of version {VERSION} ('guideway': {VERSION}), got {short_repr(version)}"
        )
    unknown = sorted(str(key) for key in document.keys() - {"guideway", "kind", "spec", "options", "parts", "digest"})
    if unknown:
        raise InvalidConstraintError(f"a wire document has no member {short_repr(unknown[0])}")
    if "digest" in document and document["digest"] != wire_digest(document):
        raise InvalidConstraintError("the digest of the wire document does not match its content")
    parts = document.get("parts", [])
    if not isinstance(parts, list):
        raise InvalidConstraintError(f"'parts' of a wire document must be a list, got {type(parts).__name__}")
    if len(parts) > MAX_PARTS:
        raise LimitExceededError(f"a wire document may have {MAX_PARTS:,} parts, got {len(parts):,}")
    root = {key: document[key] for key in ("kind", "spec", "options") if key in document}
    return _built([*parts, root], lambda spec: _type_of(spec, types))


def wire_digest(document: Mapping[str, Any]) -> str:
    """Return the digest of a document: SHA-256 of its canonical JSON text without the member "digest".

    Raises `InvalidConstraintError` if the document has values that JSON does not have.
    """
    plain = {key: document[key] for key in document if key != "digest"}
    try:
        text = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as problem:
        raise InvalidConstraintError(f"the wire document is not plain JSON: {problem}") from None
    return hashlib.sha256(text.encode()).hexdigest()


def _decoded(text: str | bytes) -> Any:
    if len(text) > MAX_BYTES:
        raise LimitExceededError(f"a wire document may have {MAX_BYTES:,} bytes, got {len(text):,}")
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8")
        except UnicodeDecodeError as problem:
            raise InvalidConstraintError(f"the wire document is not UTF-8: {problem}") from None
    return read_json(text)


# -- from a constraint to JSON objects


def _nodes(root: Constraint[Any], type_spec: Callable[[PythonType[Any]], Any]) -> list[Node]:
    """Return a constraint and the constraints inside it as JSON objects. Inner constraints precede outer ones.

    `type_spec` returns the member "spec" of a `PythonType`.
    """
    numbers = _PartNumbers()
    made: list[Node] = []
    todo: list[Constraint[Any]] = [root]
    while todo:
        one = todo[-1]
        if one in numbers:
            todo.pop()
            continue
        waiting = [inner for inner in _inside(one) if inner not in numbers]
        if waiting:
            todo += waiting
            continue
        todo.pop()
        kind, spec, options = _written(one, numbers, type_spec)
        numbers[one] = len(made)
        made.append({"kind": kind, "spec": spec} | ({"options": options} if options else {}))
    return made


class _PartNumbers:
    """The indices of constraints by identity. Equal constraints that are different objects have different indices."""

    def __init__(self) -> None:
        self._of: dict[int, int] = {}

    def __contains__(self, one: Constraint[Any]) -> bool:
        return id(one) in self._of

    def __getitem__(self, one: Constraint[Any]) -> int:
        return self._of[id(one)]

    def __setitem__(self, one: Constraint[Any], number: int) -> None:
        self._of[id(one)] = number


def _inside(one: Constraint[Any]) -> Iterator[Constraint[Any]]:
    match one:
        case _Any() | _Joined() | _All():
            yield from one._parts
        case _Other():
            yield one._part
        case Repeated() | Captured():
            yield one.part
        case Gbnf() | Lark() | Ebnf():
            yield from one.parts.values()
        case Tags():
            yield from (tag.content for tag in one.tags)
        case Reasoning():
            yield one.answer
        case ToolCalls():
            yield from (tool.parameters for tool in one.tools)


def _written(
    one: Constraint[Any], numbers: _PartNumbers, type_spec: Callable[[PythonType[Any]], Any]
) -> tuple[str, Any, dict[str, Any]]:
    """Return kind, spec and options of a constraint. The constraints inside it must be in `numbers`."""
    if type(one).__module__.partition(".")[0] != "guideway":
        raise _no_form(one)
    match one:
        case Literal():
            return "literal", one.text, {}
        case Regex():
            return "regex", one.pattern, {"flags": one.flags, "dialect": one.dialect}
        case Choice():
            return "choice", list(one.texts), {}
        case Format():
            return "format", one.name, {}
        case Substring():
            return (
                "substring",
                one.text,
                {
                    "least": one.least,
                    "most": one.most,
                    "word_boundaries": one.word_boundaries,
                    "ignore_case": one.ignore_case,
                    "normalize_whitespace": one.normalize_whitespace,
                },
            )
        case SpecialToken():
            return "special", one.name, {}
        case JsonSchema():
            return "json", one._text, {**one._options(), **_source(one)}
        case PythonType():
            return "type", type_spec(one), {}
        case Gbnf() | Lark() | Ebnf():
            options: dict[str, Any] = {"parts": {name: numbers[part] for name, part in one.parts.items()}}
            if isinstance(one, Gbnf):
                return "gbnf", one.text, options
            if isinstance(one, Lark):
                return "lark", one.text, {**options, "start": one.first, "lexer": one.lexer}
            return "ebnf", one.text, {**options, "start": one.start, "form": one.form}
        case _Any() | _Joined() | _All():
            kind = {_Any: "any", _Joined: "joined", _All: "all"}[type(one)]
            return kind, [numbers[part] for part in one._parts], {}
        case _Other():
            return "not", numbers[one._part], {}
        case Repeated():
            return "repeat", numbers[one.part], {"least": one.least, "most": one.most, "separator": one.separator}
        case Captured():
            return "capture", numbers[one.part], {"name": one.name}
        case Tags():
            tags = [[tag.begin, numbers[tag.content], tag.end] for tag in one.tags]
            options = {"triggers": list(one.triggers), "least": one.least, "most": one.most}
            return "tags", tags, {**options, "separator": one.separator, "special": list(one.special)}
        case Reasoning():
            options = {"begin": one.begin, "end": one.end, "optional": one.skips, "special": list(one.special)}
            return "reasoning", numbers[one.answer], options
        case ToolCalls():
            tools = [
                [tool.name, numbers[tool.parameters], tool.description, tool.schema is not None] for tool in one.tools
            ]
            options = {"choice": one.choice, "parallel": one.parallel}
            if not one.has_default_family:  # else the family of the tokenizer in the process that reads the document
                named = [name for name, family in FAMILIES.items() if family == one.family]
                options["family"] = named[0] if named else asdict(one.family)
            return "tools", tools, options
    raise _no_form(one)


def _no_form(one: Constraint[Any]) -> UnsupportedError:
    return UnsupportedError(
        f"a constraint of the class {type(one).__name__} has no serialised form; only classes of this library have one"
    )


def _type_spec(one: PythonType[Any]) -> dict[str, Any]:
    return {"schema": one._json._text, "type": described(one._annotation), **_type_style(one)}


def _type_style(one: PythonType[Any]) -> dict[str, Any]:
    options = one._json._options()
    style = {name: options[name] for name in ("key_order", "whitespace", "escapes")}
    return {**style, **({} if one._format is None else {"verbatim": one._format}), **_source(one)}


def _source(one: JsonSchema | PythonType[Any]) -> dict[str, str]:
    """Return the source text of verbatim strings as an option; empty: there is none."""
    return {} if one.quoted is None else {"source": one.quoted}


# -- from JSON objects to a constraint


def _built(nodes: list[Any], type_of: Callable[[Any], Constraint[Any]]) -> Constraint[Any]:
    made = _Parts()
    for number, node in enumerate(nodes):
        where = "the wire document" if number == len(nodes) - 1 else f"part {number} of the wire document"
        if not isinstance(node, Mapping) or not isinstance(node.get("kind"), str) or "spec" not in node:
            raise InvalidConstraintError(f"{where} must be an object with 'kind' and 'spec'")
        if unknown := sorted(str(key) for key in node.keys() - {"kind", "spec", "options"}):
            raise InvalidConstraintError(f"{where} has the unknown member {short_repr(unknown[0])}")
        options = node.get("options", {})
        if not isinstance(options, Mapping) or not all(isinstance(name, str) for name in options):
            raise InvalidConstraintError(f"'options' of {where} must be an object")
        reader = _READERS.get(node["kind"])
        if node["kind"] != "type" and reader is None:
            raise UnsupportedError(
                f"{where} has the unknown kind {short_repr(node['kind'])}; known are {', '.join(_READERS)}, type"
            )
        try:
            one = type_of(node["spec"]) if reader is None else reader(made, node["spec"], dict(options))
        except ConstraintError:
            raise
        except (TypeError, ValueError, KeyError, AttributeError, OverflowError, RecursionError) as problem:
            raise InvalidConstraintError(
                f"{where} (kind {short_repr(node['kind'])}) is malformed: {problem}"
            ) from problem
        made.append(one)
    return made.last


class _Parts:
    """The constraints that were built so far, by index.

    If parts are used repeatedly, the size of the described constraint can be exponential in the size of the document.
    So the sizes are counted, and access to a part raises `LimitExceededError` if the new constraint becomes too large.
    """

    def __init__(self) -> None:
        self._made: list[Constraint[Any]] = []
        self._sizes: list[int] = []
        self._size = 1  # the size of the constraint that is being built

    @property
    def last(self) -> Constraint[Any]:
        """The constraint that was built last."""
        return self._made[-1]

    def append(self, one: Constraint[Any]) -> None:
        """Add a constraint that was built from the parts accessed since the last call."""
        self._made.append(one)
        self._sizes.append(self._size)
        self._size = 1

    def __getitem__(self, number: object) -> Constraint[Any]:
        if type(number) is not int or not 0 <= number < len(self._made):
            raise InvalidConstraintError(
                f"a reference to a part must be a number below {len(self._made)} here, got {short_repr(number)}"
            )
        self._size += self._sizes[number]
        if self._size > MAX_PARTS:
            raise LimitExceededError(
                f"a wire document may describe {MAX_PARTS:,} constraints, and one that is used twice counts twice"
            )
        return self._made[number]


def _texts(given: Any) -> list[str]:
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        raise InvalidConstraintError(f"expected a list of strings, got {short_repr(given)}")
    return given


def _known(options: dict[str, Any], **kinds: Any) -> dict[str, Any]:
    """Return the options. Raises `InvalidConstraintError` if a name is not in `kinds` or a value has another type."""
    for name, value in options.items():
        if name not in kinds:
            raise InvalidConstraintError(f"unknown option {short_repr(name)}; known are {', '.join(kinds) or 'none'}")
        kind = kinds[name]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind not in (bool, _FLAG)):
            raise InvalidConstraintError(f"the option {name!r} has the wrong type: {short_repr(value)}")
    return options


_FLAG = (bool, type(None))
_COUNT = (int, type(None))
_NAME = (str, type(None))


def _combined(kind: type[Any]) -> Callable[[_Parts, Any, dict[str, Any]], Constraint[Any]]:
    def build(parts: _Parts, spec: Any, options: dict[str, Any]) -> Constraint[Any]:
        _known(options)
        if not isinstance(spec, list) or not spec:
            raise InvalidConstraintError(f"expected a list of numbers of parts, got {short_repr(spec)}")
        made: Constraint[Any] = kind(tuple(parts[one] for one in spec))
        return made

    return build


def _grammar(kind: Any, **kinds: Any) -> Callable[[_Parts, Any, dict[str, Any]], Constraint[Any]]:
    def build(parts: _Parts, spec: Any, options: dict[str, Any]) -> Constraint[Any]:
        _known(options, parts=dict, **kinds)
        inner = {name: parts[number] for name, number in options.pop("parts", {}).items()}
        made: Constraint[Any] = kind(spec, parts=inner, **options)
        return made

    return build


def _json(_: _Parts, spec: Any, options: dict[str, Any]) -> JsonSchema:
    names = ("profile", "key_order", "whitespace", "escapes", "numbers", "formats")
    digits = {"max_integer_digits": int, "max_fraction_digits": int}
    _known(options, **dict.fromkeys(names, str), dialect=_NAME, resources=dict, source=str, **digits)
    source = options.pop("source", None)
    resources = {uri: read_json(text) for uri, text in options.pop("resources", {}).items()}
    if not isinstance(spec, (str, Mapping, bool)):
        raise InvalidConstraintError(f"a schema must be JSON text or an object, got {type(spec).__name__}", "")
    made = JsonSchema(spec, **options, resources=resources, unknown_keywords="ignore")  # the sender was warned
    return made if source is None else made.quoting(source)


def _tags(parts: _Parts, spec: Any, options: dict[str, Any]) -> Tags:
    _known(options, triggers=list, least=int, most=_COUNT, separator=_NAME, special=list)
    tags = [Tag(begin, parts[number], end) for begin, number, end in spec]
    triggers = options.pop("triggers", None)
    return Tags(
        tags,
        triggers=None if triggers is None else _texts(triggers),
        special=_texts(options.pop("special", [])),
        **options,
    )


def _reasoning(parts: _Parts, spec: Any, options: dict[str, Any]) -> Reasoning[Any]:
    _known(options, begin=str, end=str, optional=bool, special=(list, type(None)))
    special = options.pop("special", None)
    return Reasoning(parts[spec], special=None if special is None else _texts(special), **options)


def _tools(parts: _Parts, spec: Any, options: dict[str, Any]) -> ToolCalls:
    _known(options, family=(str, dict), choice=str, parallel=_FLAG)
    tools = []
    for name, number, description, plain in spec:
        parameters: Any = parts[number]
        tools.append(Tool(name, parameters.schema if plain is True else parameters, description))
    family = options.pop("family", None)
    if isinstance(family, dict):
        fields: dict[str, Any] = {name: tuple(one) if isinstance(one, list) else one for name, one in family.items()}
        family = Family(**fields)
    return ToolCalls(tools, family=family, **options)


def _whole(kind: Any, **kinds: Any) -> Callable[[_Parts, Any, dict[str, Any]], Constraint[Any]]:
    """Return a function that builds a constraint by calling its constructor `kind` with the spec and the options.

    `kinds` has the types of the options.
    """

    def build(_: _Parts, spec: Any, options: dict[str, Any]) -> Constraint[Any]:
        made: Constraint[Any] = kind(spec, **_known(options, **kinds))
        return made

    return build


def _one(
    build: Callable[..., Constraint[Any]], **kinds: Any
) -> Callable[[_Parts, Any, dict[str, Any]], Constraint[Any]]:
    """Return a function that builds a constraint with one inner constraint from its document."""
    return lambda parts, spec, options: build(parts[spec], **_known(options, **kinds))


def _repeat(part: Constraint[Any], least: int = 0, most: int | None = None, separator: str = "") -> Constraint[str]:
    return Repeated(part, least, most, separator)


_READERS: dict[str, Callable[[_Parts, Any, dict[str, Any]], Constraint[Any]]] = {
    "json": _json,
    "regex": _whole(Regex, flags=str, dialect=str),
    "choice": lambda _, spec, options: Choice(_texts(spec), **_known(options)),
    "format": _whole(Format),
    "substring": _whole(
        Substring, least=int, most=_COUNT, word_boundaries=bool, ignore_case=bool, normalize_whitespace=bool
    ),
    "special": _whole(SpecialToken),
    "literal": _whole(Literal),
    "gbnf": _grammar(Gbnf),
    "lark": _grammar(Lark, start=str, lexer=str),
    "ebnf": _grammar(Ebnf, start=_NAME, form=_NAME),
    "any": _combined(_Any),
    "joined": _combined(_Joined),
    "all": _combined(_All),
    "not": _one(_Other),
    "repeat": _one(_repeat, least=int, most=_COUNT, separator=str),
    "capture": _one(Captured, name=str),
    "tags": _tags,
    "reasoning": _reasoning,
    "tools": _tools,
}


_STYLE = ("key_order", "whitespace", "escapes")


def _type_of(spec: Any, consent: Consent) -> Constraint[Any]:
    needed = {"schema", "type", *_STYLE}
    if not isinstance(spec, Mapping) or not needed <= spec.keys() <= needed | {"verbatim", "source"}:
        raise InvalidConstraintError(
            "a type must be an object with schema, type, key_order, whitespace and escapes, and perhaps verbatim and source"
        )
    if not all(isinstance(spec[name], str) for name in ("schema", "verbatim", "source") if name in spec):
        raise InvalidConstraintError("the schema of a type must be JSON text, and verbatim and source a str", "")
    style = {name: spec[name] for name in _STYLE}
    plain = JsonSchema(spec["schema"], formats="strict", **style, unknown_keywords="ignore")
    if spec["type"] is None or not may_import(spec["type"], consent):
        return plain.quoting(spec["source"]) if "source" in spec else plain
    made = _typed(
        rebuilt(spec["type"], consent), {name: one for name, one in spec.items() if name in (*_STYLE, "verbatim")}
    )
    if made._json != plain:
        raise InvalidConstraintError(
            f"{short_repr(made)} has another schema here than in the document; the type has changed"
        )
    return made.quoting(spec["source"]) if "source" in spec else made


def _typed(annotation: Any, options: Mapping[str, str]) -> PythonType[Any]:
    """Return the constraint of a type with options as `_type_style` returns them."""
    made: PythonType[Any] = PythonType(annotation, **{name: options[name] for name in _STYLE})  # type: ignore[arg-type]  # the constructor checks them
    if "verbatim" in options:
        made = made.verbatim(options["verbatim"])
    return made.quoting(options["source"]) if "source" in options else made


# -- pickles


def reduced(constraint: Constraint[Any]) -> tuple[Callable[[str, list[Any]], Constraint[Any]], tuple[str, list[Any]]]:
    """Return what `__reduce__` must return for a constraint.

    `pickle` stores the constraints as JSON text, and the Python types by reference, as it does for any class.
    """
    kinds: list[Any] = []

    def spec(one: PythonType[Any]) -> Any:
        kinds.append((one._annotation, _type_style(one)))
        return len(kinds) - 1

    return unpickled, (write_json(_nodes(constraint, spec)), kinds)


_REDUCERS.append(reduced)


def unpickled(nodes: str, kinds: list[Any]) -> Constraint[Any]:
    """Return a constraint from the arguments that `reduced` returns."""

    def type_of(spec: Any) -> Constraint[Any]:
        return _typed(*kinds[spec])

    given: Any = json.loads(nodes)
    return _built(given, type_of)
