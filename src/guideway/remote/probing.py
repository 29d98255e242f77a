"""`probe`: measures what an endpoint enforces, with up to about twenty-five small requests.

The route `json_schema` is measured in detail, other routes with one request each: those of the endpoint's
capabilities and, with a client of openai for another host, also those in `_GENERAL`.

The prompt of each request asks for a text that the constraint forbids. If the answer fits the constraint, the endpoint
enforced the constraint; otherwise it did not, or only in part. In some cases a control request, without the constraint
or without the keyword, shows whether the model writes a fitting text without it. If it does, the verdict is "unclear".
"""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

from guideway.constraints import Choice, Constraint, JsonSchema, Regex, Tag, Tags
from guideway.errors import GuidewayError, InvalidFileError, InvalidTextError, RemoteError
from guideway.frontends.json_schema.schema_copy import copied
from guideway.jsontext.decoder import loads
from guideway.remote.adapters import Request
from guideway.remote.capabilities import Capabilities, Evidence
from guideway.remote.check import StreamCheck, automaton_of
from guideway.remote.dialogue import Dialogue, FailureSettings
from guideway.remote.fragments import GRAMMAR_FORMS, REGEX_FORMS, SCHEMA_FORMS, STRUCTURAL_FORMS, wire_fragment
from guideway.remote.model import RemoteModel
from guideway.remote.streams import run
from guideway.remote.structural_tags import structural_tag_of
from guideway.remote.usage import Usage

__all__ = ["Probe", "Verdict", "probe"]

VerdictName = Literal["enforced", "loosened", "ignored", "refused", "error", "unclear"]


@dataclass(frozen=True)
class Verdict:
    """What the requests for one case showed.

    Attributes:
        route: The form in which the constraint was sent.
        case: The keyword in question; "structure" or "text" for requests that test no single keyword.
        verdict: "enforced": the answer fits. "loosened": the structure fits, the keyword in question does not.
            "ignored": the answer does not fit at all. "refused": the endpoint refused the request with a status of 400
            to 422, except 401 and 403. "error": another failure. "unclear": the answer was truncated, so that it
            does not show what the endpoint enforces; or the model writes a fitting text also without the constraint.
        detail: The answer, or the error.
    """

    route: str
    case: str
    verdict: VerdictName
    detail: str = ""


@dataclass(frozen=True)
class Probe:
    """What an endpoint enforces, route by route.

    Attributes:
        base_url: The endpoint.
        model: The model.
        date: The day, as in ISO 8601.
        verdicts: The verdicts, one for each measured case of a route.
        usage: The tokens that were spent.
    """

    base_url: str
    model: str
    date: str
    verdicts: tuple[Verdict, ...]
    usage: Usage

    def enforced(self, route: str) -> bool:
        """Return whether all verdicts of a route except "unclear" are "enforced", and there is at least one."""
        found = [one.verdict for one in self.verdicts if one.route == route and one.verdict != "unclear"]
        return bool(found) and all(one == "enforced" for one in found)

    def capabilities(self, given: Capabilities) -> Capabilities:
        """Return `given` without the measured routes that are not enforced, and with this probe as evidence."""
        measured = {one.route for one in self.verdicts}
        routes = tuple(one for one in given.routes if one not in measured or self.enforced(one))
        claim = "; ".join(f"{one.route} {one.case}: {one.verdict}" for one in self.verdicts)
        evidence = Evidence(claim, f"probe of {self.model}", self.date, "probe")
        return given.override(routes=routes or ("prompt",), evidence=(*given.evidence, evidence), updated=self.date)

    def to_json(self) -> dict[str, Any]:
        """Return the probe as JSON values."""
        verdicts = [[one.route, one.case, one.verdict, one.detail] for one in self.verdicts]
        usage = {"requests": self.usage.requests, "input": self.usage.input, "output": self.usage.output}
        return {
            "base_url": self.base_url,
            "model": self.model,
            "date": self.date,
            "verdicts": verdicts,
            "usage": usage,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Probe:
        """Return the probe of JSON values that `to_json` returned.

        Raises:
            InvalidFileError: It is not a probe.
        """
        try:
            verdicts = tuple(Verdict(*one) for one in data["verdicts"])
            numbers = {name: data["usage"][name] for name in ("requests", "input", "output")}
            made = cls(data["base_url"], data["model"], data["date"], verdicts, Usage(**numbers))
        except (KeyError, TypeError) as error:
            raise InvalidFileError(f"this is no stored probe: {error}") from None
        texts = [made.base_url, made.model, made.date, *(text for one in verdicts for text in asdict(one).values())]
        if not all(isinstance(text, str) for text in texts) or not all(type(one) is int for one in numbers.values()):
            raise InvalidFileError("this is no stored probe: a member has a wrong type")
        return made

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the probe to a file that `load` reads. Raises `InvalidFileError` if it cannot be written."""
        text = json.dumps(self.to_json(), ensure_ascii=False, indent=2) + "\n"
        try:
            Path(path).write_text(text, "utf-8")
        except (OSError, ValueError) as error:  # ValueError: the path has a NUL character or a lone surrogate
            raise InvalidFileError.of("write", path, error) from error

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Probe:
        """Return the probe in a file. Raises `InvalidFileError` if the file cannot be read or is no probe."""
        try:
            text = Path(path).read_text("utf-8")
        except (OSError, ValueError) as error:  # ValueError: not UTF-8, or the path has a NUL or a lone surrogate
            raise InvalidFileError.of("read", path, error) from error
        try:
            data = loads(text)
        except ValueError as error:
            raise InvalidFileError(f"{path} is not JSON: {error}") from error
        if not isinstance(data, Mapping):
            raise InvalidFileError(f"{path} is no stored probe")
        return cls.from_json(data)

    def __str__(self) -> str:
        rows = [("route", "case", "verdict", "answer")]
        rows += [(one.route, one.case, one.verdict, one.detail[:60]) for one in self.verdicts]
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, [*widths, 0], strict=True)).rstrip() for row in rows
        ]
        spent = f"{self.usage.requests} requests, {self.usage.input} input tokens, {self.usage.output} output tokens"
        return "\n".join([f"{self.base_url} {self.model}, {self.date}", *lines, spent])


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    required = list(properties)
    return {"type": "object", "properties": dict(properties), "required": required, "additionalProperties": False}


_PROSE = "Answer in one short English sentence, without JSON: what is the capital of France?"
_SCHEMA_CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("structure", _PROSE, _object({"city": {"type": "string"}})),
    (
        "enum",
        'Write only this JSON: {"colour": "purple"}',
        _object({"colour": {"type": "string", "enum": ["red", "green"]}}),
    ),
    (
        "required",
        'Write only this JSON: {"name": "Ada"}',
        _object({"name": {"type": "string"}, "born": {"type": "integer"}}),
    ),
    (
        "additionalProperties",
        'Write only this JSON: {"a": 1, "b": 2, "c": 3}',
        _object({"a": {"type": "integer"}, "b": {"type": "integer"}}),
    ),
    (
        "pattern",
        'Write only this JSON: {"code": "hello"}',
        _object({"code": {"type": "string", "pattern": "^[0-9]{3}$"}}),
    ),
    ("maximum", 'Write only this JSON: {"n": 70}', _object({"n": {"type": "integer", "minimum": 0, "maximum": 9}})),
    ("maxLength", 'Write only this JSON: {"s": "abcdefgh"}', _object({"s": {"type": "string", "maxLength": 2}})),
    (
        "minItems",
        'Write only this JSON: {"l": []}',
        _object({"l": {"type": "array", "items": {"type": "integer"}, "minItems": 4}}),
    ),
    (
        "maxItems",
        'Write only this JSON: {"l": [1, 2, 3, 4]}',
        _object({"l": {"type": "array", "items": {"type": "integer"}, "maxItems": 2}}),
    ),
]
_LOOSE = {"pattern", "maximum", "maxLength", "minItems", "maxItems", "minimum"}

_DIGITS = Regex("[0-9]{3}")
_CHOICE = Choice(["alpha", "beta"])
_NO_DIGITS = "Answer with the word hello and nothing else."


_TAG = Tags([Tag("<n>", _DIGITS, "</n>")], separator=",", least=1, most=1)
_GENERAL = ("vllm_grammar", "vllm_regex", "vllm_choice", "sglang_regex", "sglang_ebnf", "llama_grammar")
"""Routes that are measured at every endpoint with OpenAI's API, except OpenAI itself."""


def _schema_form(library: str, route: str, extra: Mapping[str, Any]) -> Callable[[dict[str, Any]], Mapping[str, Any]]:
    """Return the function that makes the fragment of a request from a JSON Schema, for a route in `SCHEMA_FORMS`.

    `library`: the name of the SDK's module. `extra`: as in `Capabilities`.
    """
    name = {"anthropic": "anthropic", "google.genai": "google"}.get(library, "unknown")
    return partial(SCHEMA_FORMS[route], Capabilities(name, extra=extra))


def _text_form(route: str) -> tuple[Mapping[str, Any], Constraint[Any]] | None:
    """Return the members of a test request by a route for constraints on plain text, and the constraint.

    None if the route takes no constraints on plain text.
    """
    if route == "vllm_choice":
        return {"extra_body": {"structured_outputs": {"choice": list(_CHOICE.texts)}}}, _CHOICE
    if route in STRUCTURAL_FORMS:
        form = structural_tag_of(_TAG, lambda content: content.to_gbnf())
        return None if form is None else (STRUCTURAL_FORMS[route](form), _TAG)
    if route in REGEX_FORMS:
        return REGEX_FORMS[route][1](_DIGITS.pattern), _DIGITS
    if route in GRAMMAR_FORMS:
        kind, make = GRAMMAR_FORMS[route]
        return make(_DIGITS.to_lark() if kind == "lark" else _DIGITS.to_gbnf()), _DIGITS
    return (wire_fragment(_DIGITS), _DIGITS) if route == "wire" else None


class _Asked(NamedTuple):
    """An answer to a request of a probe.

    Attributes:
        text: The whole text. It is judged, but not stored, because it may contain the key.
        finish: The finish reason.
        shown: The beginning of the text, without keys.
    """

    text: str
    finish: str
    shown: str


def probe(model: RemoteModel, *, max_tokens: int = 60) -> Probe:
    """Measure what an endpoint enforces, with tiny requests through the model's client.

    Args:
        model: The model, from `guideway.remote`.
        max_tokens: The maximum number of tokens of each answer.

    Returns:
        The verdicts. `Probe.capabilities` turns them into capabilities for `guideway.remote(dialect=...)`.

    Raises:
        RemoteError: The first request failed: for example, the endpoint cannot be reached, or refuses the key.
    """
    adapter = model._adapter
    found: list[Verdict] = []
    total = Usage()

    def ask(prompt: str, fragment: Mapping[str, Any]) -> _Asked:
        """Send one request, without further attempts, and add its usage to `total`.

        `fragment` has the members of the request that carry a constraint.
        """
        nonlocal total
        request = Request(({"role": "user", "content": prompt},), fragment=fragment, max_tokens=max_tokens)
        dialogue = Dialogue(
            request,
            None,
            None,
            FailureSettings(attempts=1),
            provider=model.capabilities.name,
            scrubbed=adapter.scrubbed,
        )
        for _ in run(adapter, dialogue, model.rate_limit, model.capabilities.name):
            pass
        total += dialogue.usage
        result = dialogue.outcome()
        shown = adapter.scrubbed(result.text)[:200]  # an answer may repeat the key, and a probe is stored
        return _Asked(result.text, result.finish_reason, shown)

    plain = ask(_PROSE, {}).text  # raises an error for a wrong key, model or URL
    for route in (one for one in SCHEMA_FORMS if one == "json_schema" or one in model.capabilities.routes):
        form = _schema_form(adapter.library, route, model.capabilities.extra)
        for name, prompt, schema in _SCHEMA_CASES if route == "json_schema" else _SCHEMA_CASES[:1]:
            constraint = JsonSchema(schema, profile="exact")
            loose = JsonSchema(copied(schema, _remove_keywords), profile="exact") if name in _LOOSE else None
            found.append(_judged(route, name, partial(ask, prompt, form(schema)), constraint, loose))
            if loose is not None and found[-1].verdict == "enforced":
                control = _judged(
                    route, name, partial(ask, prompt, form(copied(schema, _remove_keywords))), constraint, None
                )
                if control.verdict == "enforced":
                    found[-1] = Verdict(route, name, "unclear", "the model writes this without the keyword")
            if name == "structure" and _fits(constraint, plain):
                found[-1] = Verdict(route, name, "unclear", "the model writes this without a constraint")
            if name == "structure" and found[-1].verdict in ("refused", "ignored", "error"):
                break
    is_other = adapter.library == "openai" and "api.openai.com" not in adapter.base_url
    for route in dict.fromkeys([*(_GENERAL if is_other else ()), *model.capabilities.routes]):
        if (given := _text_form(route)) is not None:
            found.append(_judged(route, "text", partial(ask, _NO_DIGITS, given[0]), given[1], None))
    return Probe(adapter.shown_url, model.name, datetime.date.today().isoformat(), tuple(found), total)


def _remove_keywords(schema: dict[str, Any]) -> None:
    for name in _LOOSE & schema.keys():
        del schema[name]


def _fits(constraint: Constraint[Any], text: str) -> bool:
    try:
        constraint.parse(text)
    except InvalidTextError:
        return False
    return True


def _judged(
    route: str, case: str, ask: Callable[[], _Asked], constraint: Constraint[Any], loose: Constraint[Any] | None
) -> Verdict:
    try:
        text, finish, beginning = ask()
    except RemoteError as problem:
        refused = problem.status is not None and 400 <= problem.status <= 422 and problem.status not in (401, 403)
        return Verdict(route, case, "refused" if refused else "error", " ".join(str(problem)[:200].split()))
    except GuidewayError as problem:
        return Verdict(route, case, "error", str(problem)[:200])
    shown = json.dumps(beginning, ensure_ascii=False)
    if _fits(constraint, text.strip() if isinstance(constraint, JsonSchema) else text):
        return Verdict(route, case, "enforced", shown)
    if finish == "length":
        check = StreamCheck(automaton_of(constraint))
        data = (text.lstrip() if isinstance(constraint, JsonSchema) else text).encode()
        cut = check.feed(data) == len(data)  # the beginning of a text that fits
        return Verdict(route, case, "unclear" if cut or loose is not None else "ignored", f"cut: {shown}")
    if loose is not None and _fits(loose, text.strip()):
        return Verdict(route, case, "loosened", shown)
    return Verdict(route, case, "ignored", shown)
