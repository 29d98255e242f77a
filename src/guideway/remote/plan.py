"""`RemotePlan`: how a constraint is sent to an endpoint, what the endpoint enforces, and what Guideway checks itself.

A plan is made from `Capabilities` without a request.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from guideway import constraints
from guideway.constraints import Choice, Constraint, JsonSchema, PythonType, Regex
from guideway.errors import ConstraintError, InvalidTextError, LimitExceededError, UnsupportedError
from guideway.jsontext.decoder import loads
from guideway.jsontext.encoder import write_json
from guideway.jsontext.tokens import is_deeper
from guideway.remote.answer_text import SPACE
from guideway.remote.capabilities import Capabilities, Evidence
from guideway.remote.codecs import Codec
from guideway.remote.fragments import GRAMMAR_FORMS, REGEX_FORMS, SCHEMA_FORMS, STRUCTURAL_FORMS, wire_fragment
from guideway.remote.lowering import SentSchema, lower
from guideway.remote.repair import repaired_values
from guideway.remote.structural_tags import structural_tag_of
from guideway.remote.subset import Note

__all__ = ["RemotePlan", "Require", "make_plan", "without_route"]

Require = Literal["exact", "checked", "narrowed", "any"]
_RANK = {"exact": 3, "checked": 2, "narrowed": 1, "unproven": 0}
_NEEDED = {"exact": 3, "checked": 2, "narrowed": 1, "any": 0}

MAX_ANSWER_DEPTH = 500
"""Maximum nesting of the JSON of an answer. A deeper answer is not decoded."""

MAX_SCORED = 20
"""Maximum number of first tokens whose log-probabilities an endpoint returns."""

_FENCE_START = re.compile(r"```[a-zA-Z]*\n")


@dataclass(frozen=True)
class RemotePlan:
    """How a constraint is sent to an endpoint.

    Attributes:
        dialect: The name of the endpoint's capabilities.
        route: "json_schema", "strict_tool", "custom_tool", "json_object", "scored_choice", "prompt", or a route of one
            server such as "llama_grammar".
        sent: The members of the request that carry the constraint, exactly as they are sent.
        parts: What happens to each keyword: `Note` with place, keyword, holder and detail.
        guarantee: "exact": the endpoint allows exactly the texts of the constraint. "checked": it allows all of them,
            and perhaps others; Guideway checks the answer. "narrowed": the endpoint excludes values that the constraint
            allows; `parts` names them.
        inverse: How the answer is decoded, in words; "" if it is used without change.
        limits: For each published limit: the measured size and the limit.
        evidence: The sources of the capabilities.
        on_failure: The steps after an answer that does not fit, in words.
        instructions: Text that is added to the prompt; "" if there is none.
    """

    dialect: str
    route: str
    sent: Mapping[str, Any]
    parts: tuple[Note, ...]
    guarantee: str
    inverse: str
    limits: Mapping[str, tuple[int, int]]
    evidence: tuple[Evidence, ...]
    on_failure: tuple[str, ...] = ()
    instructions: str = ""
    _reader: AnswerReader = field(default=None, repr=False, compare=False)  # type: ignore[assignment]  # always set by make_plan

    def to_json(self) -> dict[str, Any]:
        """Return the plan as JSON values."""
        return {
            "dialect": self.dialect,
            "route": self.route,
            "guarantee": self.guarantee,
            "sent": dict(self.sent),
            "parts": [[one.place, one.keyword, one.holder, one.detail] for one in self.parts],
            "inverse": self.inverse,
            "limits": {name: list(sizes) for name, sizes in self.limits.items()},
            "evidence": [[one.claim, one.source, one.date, one.kind] for one in self.evidence],
            "on_failure": list(self.on_failure),
            "instructions": self.instructions,
        }

    def __str__(self) -> str:
        rows = [("place", "keyword", "held by", "detail")]
        rows += [(one.place or "(root)", one.keyword or "-", one.holder, one.detail) for one in self.parts]
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        lines = [f"{self.dialect}: route {self.route}, guarantee {self.guarantee}"]
        lines += [
            "  ".join(cell.ljust(width) for cell, width in zip(row, [*widths, 0], strict=True)).rstrip() for row in rows
        ]
        lines += [f"limit {name}: {size} of {most}" for name, (size, most) in self.limits.items()]
        if self.inverse:
            lines.append(f"answer: {self.inverse}")
        lines += [f"evidence: {one.claim} ({one.source}, {one.date})" for one in self.evidence]
        return "\n".join(lines)


class AnswerReader:
    """Checks and reads the answers of a plan.

    Attributes:
        streamed: The constraint that the text of the answer must fit, byte by byte; None if only the whole text can be
            checked.
        shell: Whether the text may have white space or a code fence around it.
        options: For the route "scored_choice": the options. The result is the most probable one by the
            log-probabilities of the first tokens; the text of the answer is not read. Empty for other routes.
    """

    def __init__(
        self,
        constraint: Constraint[Any],
        codec: Codec | None,
        streamed: Constraint[Any] | None,
        shell: bool,
        options: tuple[str, ...] = (),
    ) -> None:
        self.constraint, self.codec, self.shell, self.options = constraint, codec, shell, options
        self.streamed = _with_shell(streamed) if shell and streamed is not None else streamed

    @property
    def is_whole(self) -> bool:
        """Whether a stream can show only the whole result, because the text of the answer is encoded or not read."""
        return self.codec is not None or bool(self.options)

    @property
    def allows_space(self) -> bool:
        """Whether white space after the answer has no meaning."""
        return self.shell or self.codec is not None or _json_of(self.constraint) is not None

    def bare(self, text: str) -> str:
        """Return the text without white space and code fence around it."""
        if not self.shell:
            return text
        text = text.strip(SPACE)
        start = _FENCE_START.match(text)
        if start is None or not text.endswith("```") or len(text) < start.end() + 3:
            return text
        return text[start.end() : -3].strip(SPACE)

    def original(self, text: str) -> str:
        """Return the decoded answer, as a text for `constraint.parse`.

        Raises `InvalidTextError` if it cannot be decoded.
        """
        text = self.bare(text)
        if self.codec is None:
            return text
        if is_deeper(text, MAX_ANSWER_DEPTH):
            raise InvalidTextError(f"the answer is nested deeper than {MAX_ANSWER_DEPTH} levels", text=text)
        try:
            value = loads(text)
        except ValueError as problem:
            raise InvalidTextError(f"the answer is not JSON: {problem}", text=text) from None
        decoded = self.codec.decode(value)
        if isinstance(self.constraint, (JsonSchema, PythonType)):
            return write_json(decoded)
        if not isinstance(decoded, str):
            raise InvalidTextError("the answer should have a string", text=text)
        return decoded

    def in_words(self) -> str:
        """Return the constraint in words, for a prompt."""
        return _in_words(self.constraint, _json_of(self.constraint))

    def repaired(self, original: str) -> tuple[str, tuple[str, ...]]:
        """Repair values in a JSON text that the schema allows to repair in exactly one way.

        Returns the text and descriptions of the repairs. Without a repair, and for a constraint that is not a JSON
        Schema, the text is returned unchanged.
        """
        schema = _json_of(self.constraint)
        if schema is None or is_deeper(original, MAX_ANSWER_DEPTH):
            return original, ()

        def problem_of(value: Any) -> InvalidTextError | None:
            try:
                schema.parse(write_json(value))
            except InvalidTextError as problem:
                return problem
            return None

        try:
            value, repairs = repaired_values(loads(original), problem_of, schema._document)
        except ValueError:
            return original, ()
        return (write_json(value), repairs) if repairs else (original, ())

    def value(self, text: str) -> Any:
        """Return the value of an answer. Raises `InvalidTextError` if it does not fit the constraint."""
        original = self.original(text)
        try:
            return self.constraint.parse(original)
        except InvalidTextError as problem:
            if problem.text is None:
                problem.text = original
            raise


_SPACE = Regex(r"[ \t\r\n]*")


def _with_shell(constraint: Constraint[Any]) -> Constraint[Any]:
    fenced = Regex(r"[ \t\r\n]*```[a-zA-Z]*\n[ \t\r\n]*") + constraint + Regex(r"[ \t\r\n]*```[ \t\r\n]*")
    return (_SPACE + constraint + _SPACE) | fenced


def _json_of(constraint: Constraint[Any]) -> JsonSchema | None:
    if isinstance(constraint, PythonType):
        return constraint._json
    return constraint if isinstance(constraint, JsonSchema) else None


def _any_spelling(json_schema: JsonSchema) -> Constraint[Any] | None:
    """Return a constraint with the same schema that allows every JSON spelling; None if that is not supported."""
    return _exact(json_schema._document, json_schema)


def _exact(document: Any, like: JsonSchema | None = None) -> Constraint[Any] | None:
    options = {} if like is None else like._options()
    try:
        resources = None if like is None else like._supplied
        made = JsonSchema(
            document,
            profile="exact",
            formats=options.get("formats", "annotate"),
            dialect=options.get("dialect"),
            resources=resources,
            unknown_keywords="ignore",
        )
        return made if like is None or like.quoted is None else made.quoting(like.quoted)
    except ConstraintError:
        return None


def make_plan(
    given: Capabilities,
    output: object,
    *,
    require: Require = "checked",
    excluded: frozenset[str] = frozenset(),
    on_failure: tuple[str, ...] = (),
) -> RemotePlan:
    """Return the plan of a constraint for an endpoint.

    Args:
        given: The capabilities of the endpoint.
        output: The constraint, or a value that `guideway.constraints.of` accepts.
        require: The least guarantee.
        excluded: Routes that are not used.
        on_failure: The steps after an answer that does not fit, in words, for `RemotePlan.on_failure`.

    Raises:
        UnsupportedError: No route has the guarantee. The message names the places in the schema that prevent it.
        LimitExceededError: No route has the guarantee, and at least one route is excluded by a published limit. The
            message names the largest parts of the schema.
    """
    if require not in _NEEDED:
        raise ValueError(f"require must be 'exact', 'checked', 'narrowed' or 'any', got {require!r}")
    constraint = constraints.of(output)
    json_schema = _json_of(constraint)
    best: RemotePlan | None = None
    too_large: LimitExceededError | None = None
    for route in given.routes:
        if route in excluded:
            continue
        try:
            plan = _routed(given, route, constraint, json_schema, on_failure)
        except LimitExceededError as problem:
            too_large = too_large or problem
            continue
        except UnsupportedError:
            continue
        if plan is not None and (best is None or _RANK[plan.guarantee] > _RANK[best.guarantee]):
            best = plan
            if plan.guarantee in ("exact", "checked") and require != "exact":
                break
    if best is None or _RANK[best.guarantee] < _NEEDED[require]:
        if too_large is not None:
            raise too_large
        raise _refused(given, best, require)
    return best


def without_route(
    given: Capabilities, output: object, plan: RemotePlan, require: Require, on_failure: tuple[str, ...]
) -> RemotePlan | None:
    """Return a plan by a route that comes after that of `plan` in `given.routes`; None if no such route is possible."""
    at = given.routes.index(plan.route) if plan.route in given.routes else -1
    try:
        return make_plan(
            given, output, require=require, excluded=frozenset(given.routes[: at + 1]), on_failure=on_failure
        )
    except ConstraintError:
        return None


def _refused(given: Capabilities, plan: RemotePlan | None, require: str) -> UnsupportedError:
    if plan is None:
        return UnsupportedError(f"{given.title or given.name} takes no form of this constraint")
    found = [one for one in plan.parts if one.holder != "provider"]
    shown = "; ".join(f"{one.place or '(root)'} {one.keyword}: {one.holder}".strip() for one in found[:8])
    return UnsupportedError(
        f"{given.title or given.name} gives the guarantee {plan.guarantee!r} by the route {plan.route!r}, and require is"
        f" {require!r}: {shown}",
        found[0].place if found else None,
    )


def _routed(
    given: Capabilities, route: str, constraint: Constraint[Any], json_schema: JsonSchema | None, steps: tuple[str, ...]
) -> RemotePlan | None:
    """Return the plan of one route; None if the route does not take this kind of constraint.

    Raises:
        UnsupportedError: The constraint cannot be written in the form of the route.
        LimitExceededError: The constraint in this form exceeds a published limit.
    """

    def plan(
        sent: Mapping[str, Any],
        parts: tuple[Note, ...],
        guarantee: str,
        reader: AnswerReader,
        *,
        inverse: str = "",
        limits: Mapping[str, tuple[int, int]] | None = None,
        instructions: str = "",
    ) -> RemotePlan:
        if not given.enforces and guarantee == "exact":
            guarantee = "checked"
        return RemotePlan(
            given.name,
            route,
            sent,
            parts,
            guarantee,
            inverse,
            limits or {},
            given.evidence,
            steps,
            instructions,
            reader,
        )

    def whole(holder: str, detail: str = "") -> tuple[Note, ...]:
        return (Note("", "", holder, detail),)

    own = constraint if json_schema is None else _any_spelling(json_schema)
    if route == "prompt":
        words = _in_words(constraint, json_schema)
        reader = AnswerReader(constraint, None, own, json_schema is not None)
        return plan({}, whole("prompt_only", "checked here"), "checked", reader, instructions=words)
    if route == "scored_choice":
        if not isinstance(constraint, Choice) or len(constraint.texts) > MAX_SCORED or given.logprobs != "top":
            return None
        reader = AnswerReader(constraint, None, None, False, tuple(constraint.texts))
        words = _in_words(constraint, json_schema)
        return plan(
            {"logprobs": True, "top_logprobs": MAX_SCORED},
            whole("provider", "the most probable option, by the first token"),
            "exact",
            reader,
            instructions=words,
        )
    if route == "json_object":
        if json_schema is None:
            return None
        reader = AnswerReader(constraint, None, own, True)
        words = _in_words(constraint, json_schema)
        if not _allows_only_objects(json_schema):
            return None
        sent: Mapping[str, Any] = {"response_format": {"type": "json_object"}}
        if given.name == "google":
            sent = {"response_mime_type": "application/json"}
        return plan(sent, whole("provider_superset", "any JSON object"), "checked", reader, instructions=words)
    if route == "wire":
        reader = AnswerReader(constraint, None, own, False)
        return plan(wire_fragment(constraint), whole("provider"), "exact", reader)
    if route in GRAMMAR_FORMS:
        text, loosened = _exported(constraint, GRAMMAR_FORMS[route][0])
        sizes = (
            {"grammar_bytes": (len(text.encode()), given.limits["grammar_bytes"])}
            if "grammar_bytes" in given.limits
            else {}
        )
        _check_limits(given, sizes, "the exported grammar")
        note = whole("provider_superset", "a key may occur twice") if loosened else whole("provider")
        sent = GRAMMAR_FORMS[route][1](text)
        guarantee = "checked" if loosened else "exact"
        return plan(sent, note, guarantee, AnswerReader(constraint, None, own, False), limits=sizes)
    if route in REGEX_FORMS:
        if json_schema is not None and (route == "tgi_regex" or "$ref" in json_schema._text):
            return None  # TGI converts a schema to a regular expression itself
        text = constraint.to_regex(REGEX_FORMS[route][0])
        sent = REGEX_FORMS[route][1](text)
        return plan(sent, whole("provider"), "exact", AnswerReader(constraint, None, own, False))
    if route in STRUCTURAL_FORMS:
        loosened = False

        def exported(content: Constraint[Any]) -> str:
            nonlocal loosened
            text, more = _exported(content, "gbnf_characters")
            loosened = loosened or more
            return text

        form = structural_tag_of(constraint, exported)
        if form is None:
            return None
        note = whole("provider_superset", "a key may occur twice") if loosened else whole("provider")
        reader = AnswerReader(constraint, None, own, False)
        return plan(STRUCTURAL_FORMS[route](form), note, "checked" if loosened else "exact", reader)
    if route == "vllm_choice":
        if not isinstance(constraint, Choice):
            return None
        sent = {"extra_body": {"structured_outputs": {"choice": list(constraint.texts)}}}
        return plan(sent, whole("provider"), "exact", AnswerReader(constraint, None, own, False))
    if route not in SCHEMA_FORMS:
        raise UnsupportedError(f"unknown route {route!r}")
    document = _document(constraint, json_schema)
    if document is None:
        return None
    lowered = _lowered(document, given)
    sizes = _measured(given, lowered)
    _check_limits(given, sizes, "the schema", lowered)
    plain = lowered.codec.plain and json_schema is not None
    streamed = own if plain else _exact(lowered.schema)
    reader = AnswerReader(constraint, None if plain else lowered.codec, streamed, not given.enforces)
    holders = {one.holder for one in lowered.notes}
    guarantee = "narrowed" if "provider_subset" in holders else "exact" if holders <= {"provider"} else "checked"
    inverse = "" if plain else "; ".join(dict.fromkeys(one.detail for one in lowered.notes if one.detail)) or "decoded"
    return plan(
        SCHEMA_FORMS[route](given, lowered.schema), lowered.notes, guarantee, reader, inverse=inverse, limits=sizes
    )


def _allows_only_objects(json_schema: JsonSchema) -> bool:
    document = json_schema._document
    return isinstance(document, dict) and (document.get("type") == "object")


def _document(constraint: Constraint[Any], json_schema: JsonSchema | None) -> Any:
    """Return a JSON Schema for a constraint; None if there is none.

    For a constraint on plain text it is the schema of a string with one of the allowed texts.
    """
    if json_schema is not None:
        return json_schema._document
    if isinstance(constraint, Choice):
        return {"enum": list(constraint.texts)}
    try:
        pattern = constraint.to_regex("ecma") if constraint.regular() is not None else None
    except ConstraintError:
        pattern = None
    return None if pattern is None or len(pattern) > 5000 else {"type": "string", "pattern": f"^(?:{pattern})$"}


def _exported(constraint: Constraint[Any], form: str) -> tuple[str, bool]:
    """Return the constraint as a grammar, and whether the grammar allows more: that a key occurs twice.

    `form` is "lark", "gbnf", or "gbnf_characters" (GBNF with single characters).
    """

    def export(duplicate_keys: bool) -> str:
        if form != "lark":
            return constraint.to_gbnf(duplicate_keys=duplicate_keys, single_characters=form == "gbnf_characters")
        return constraint.to_lark(duplicate_keys=duplicate_keys)

    try:
        return export(False), False
    except UnsupportedError as problem:
        if "occurs twice" not in str(problem):
            raise
    return export(True), True


def _in_words(constraint: Constraint[Any], json_schema: JsonSchema | None) -> str:
    if json_schema is not None:
        return "Answer only with a JSON value, without other text, that fits this JSON Schema:\n" + json_schema._text
    if isinstance(constraint, Choice):
        return "Answer only with one of these texts:\n" + "\n".join(constraint.texts[:200])
    return f"Answer only with a text that fits this constraint, without other text:\n{str(constraint)[:4000]}"


# -- sizes


def _lowered(document: Any, given: Capabilities) -> SentSchema:
    """Return the schema that is sent. If it has more enumerated values or characters than the endpoint takes, large
    enumerations are sent as their types, the largest first.
    """
    lowered = lower(document, given.subset)
    limits = {name: given.limits[name] for name in ("enum_values", "characters") if name in given.limits}
    sizes = sorted(_enum_sizes(lowered.schema)) if limits else []
    while sizes and any(_sizes(lowered.schema)[name] > most for name, most in limits.items()):
        before = len(sizes)
        while sizes and sum(sizes) > limits.get("enum_values", 0):
            sizes.pop()
        if len(sizes) == before:  # the characters are too many
            del sizes[before // 2 :]
        lowered = lower(document, replace(given.subset, enum_values=sizes[-1] if sizes else 0))
    return lowered


def _enum_sizes(schema: Any) -> list[int]:
    """Return the number of values of each enumeration in a schema that is sent."""
    found, todo = [], [schema]
    while todo:
        one = todo.pop()
        if isinstance(one, dict):
            if isinstance(one.get("enum"), list):
                found.append(len(one["enum"]))
            todo += one.values()
        elif isinstance(one, list):
            todo += one
    return found


def _measured(given: Capabilities, lowered: SentSchema) -> dict[str, tuple[int, int]]:
    found = _sizes(lowered.schema)
    return {name: (found[name], most) for name, most in given.limits.items() if name in found}


def _sizes(schema: Any) -> dict[str, int]:
    sizes = dict.fromkeys(("properties", "depth", "characters", "enum_values", "unions", "optional"), 0)
    todo: list[tuple[Any, int]] = [(schema, 1)]
    while todo:
        one, depth = todo.pop()
        if not isinstance(one, dict):
            continue
        inner = one.get("properties", {})
        if one.get("type") == "object" or one.get("type") == "array":
            sizes["depth"] = max(sizes["depth"], depth)
        sizes["properties"] += len(inner)
        sizes["optional"] += len(set(inner) - set(one.get("required", ())))
        sizes["characters"] += sum(map(len, inner))
        if isinstance(one.get("enum"), list):
            sizes["enum_values"] += len(one["enum"])
            sizes["characters"] += sum(len(str(value)) for value in one["enum"])
        options = one.get("anyOf", ())
        sizes["unions"] += bool(options)
        todo += [(value, depth + 1) for value in inner.values()]
        todo += [(value, depth) for value in (*options, *one.get("$defs", {}).values())]
        todo += [(one[name], depth + 1) for name in ("items", "additionalProperties") if name in one]
        todo += [(value, depth + 1) for value in one.get("prefixItems", ())]
    return sizes


def _check_limits(
    given: Capabilities, sizes: Mapping[str, tuple[int, int]], what: str, lowered: SentSchema | None = None
) -> None:
    over = {name: pair for name, pair in sizes.items() if pair[0] > pair[1]}
    if over:
        shown = ", ".join(f"{name} {size:,} (limit {most:,})" for name, (size, most) in over.items())
        raise LimitExceededError(
            f"{what} is too large for {given.title or given.name}: {shown}{heaviest(lowered.schema if lowered else None)}"
        )


def heaviest(schema: Any) -> str:
    """Name the three largest members of `properties` and `$defs`, as the end of an error message.

    "" if the schema is None or has no such members.
    """
    if not isinstance(schema, dict):
        return ""
    parts = [(f"/properties/{key}", value) for key, value in schema.get("properties", {}).items()]
    parts += [(f"/$defs/{key}", value) for key, value in schema.get("$defs", {}).items()]
    sized = sorted(((len(json.dumps(value)), place) for place, value in parts), reverse=True)[:3]
    return (
        "; the heaviest parts are " + ", ".join(f"{place} ({size:,} bytes)" for size, place in sized) if sized else ""
    )
