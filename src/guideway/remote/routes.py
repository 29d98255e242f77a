"""`route_plan`: the plan of a constraint by one route: the members that carry it, and how the answer is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from guideway.constraints import Choice, Constraint, JsonSchema
from guideway.errors import ConstraintError, UnsupportedError
from guideway.remote.capabilities import Capabilities
from guideway.remote.fragments import GRAMMAR_FORMS, REGEX_FORMS, SCHEMA_FORMS, STRUCTURAL_FORMS, wire_fragment
from guideway.remote.plan import MAX_SCORED, AnswerReader, RemotePlan, any_spelling, exact_schema, in_words, json_of
from guideway.remote.sizes import check_limits, lowered_within, measured
from guideway.remote.structural_tags import structural_tag_of
from guideway.remote.subset import Note

__all__ = ["route_plan"]


def route_plan(
    given: Capabilities, route: str, constraint: Constraint[Any], steps: tuple[str, ...]
) -> RemotePlan | None:
    """Return the plan of a constraint by one route; None if the route cannot carry this constraint.

    Args:
        given: The capabilities of the endpoint.
        route: The name of the route.
        constraint: The constraint.
        steps: The steps after an answer that does not fit, in words, for `RemotePlan.on_failure`.

    Raises:
        UnsupportedError: The constraint cannot be written in the form of the route, or the route is unknown.
        LimitExceededError: The constraint in this form exceeds a published limit of the endpoint or of the conversion.
    """
    planner = _RoutePlanner(given, route, constraint, steps)
    for routes, plan in _PLANNERS:
        if route in routes:
            return plan(planner)
    raise UnsupportedError(f"unknown route {route!r}")


class _RoutePlanner:
    def __init__(self, given: Capabilities, route: str, constraint: Constraint[Any], steps: tuple[str, ...]) -> None:
        self.given, self.route, self.constraint, self.steps = given, route, constraint, steps
        self.json_schema = json_of(constraint)

    def own(self) -> Constraint[Any] | None:
        """Return the constraint that the text of an answer must fit, if the answer is not encoded.

        For a JSON Schema, the result allows every JSON spelling; it is None if `JsonSchema` refuses this schema, and
        then only the whole text can be checked.
        """
        return self.constraint if self.json_schema is None else any_spelling(self.json_schema)

    def plan(
        self,
        sent: Mapping[str, Any],
        parts: tuple[Note, ...],
        guarantee: str,
        reader: AnswerReader | None = None,
        *,
        inverse: str = "",
        limits: Mapping[str, tuple[int, int]] | None = None,
        instructions: str = "",
    ) -> RemotePlan:
        if not self.given.enforces and guarantee == "exact":
            guarantee = "checked"
        if reader is None:
            reader = AnswerReader(self.constraint, None, self.own(), False)
        evidence = self.given.evidence
        return RemotePlan(
            self.given.name,
            self.route,
            sent,
            parts,
            guarantee,
            inverse,
            limits or {},
            evidence,
            self.steps,
            instructions,
            reader,
        )

    def words(self) -> str:
        return in_words(self.constraint, self.json_schema)

    # -- one method for each kind of route

    def prompt(self) -> RemotePlan:
        reader = AnswerReader(self.constraint, None, self.own(), self.json_schema is not None)
        return self.plan({}, _whole("prompt_only", "checked here"), "checked", reader, instructions=self.words())

    def scored_choice(self) -> RemotePlan | None:
        constraint = self.constraint
        if not isinstance(constraint, Choice) or len(constraint.texts) > MAX_SCORED or self.given.logprobs != "top":
            return None
        reader = AnswerReader(constraint, None, None, False, tuple(constraint.texts))
        sent = {"logprobs": True, "top_logprobs": MAX_SCORED}
        parts = _whole("provider", "the most probable option, by the first token")
        return self.plan(sent, parts, "exact", reader, instructions=self.words())

    def json_object(self) -> RemotePlan | None:
        document = None if self.json_schema is None else self.json_schema._document
        if not isinstance(document, dict) or document.get("type") != "object":
            return None
        reader = AnswerReader(self.constraint, None, self.own(), True)
        sent: Mapping[str, Any] = {"response_format": {"type": "json_object"}}
        if self.given.name == "google":
            sent = {"response_mime_type": "application/json"}
        parts = _whole("provider_superset", "any JSON object")
        return self.plan(sent, parts, "checked", reader, instructions=self.words())

    def wire(self) -> RemotePlan:
        return self.plan(wire_fragment(self.constraint), _whole("provider"), "exact")

    def grammar(self) -> RemotePlan:
        form, fragment = GRAMMAR_FORMS[self.route]
        text, loosened = _exported(self.constraint, form)
        limits = self.given.limits
        sizes = {"grammar_bytes": (len(text.encode()), limits["grammar_bytes"])} if "grammar_bytes" in limits else {}
        check_limits(self.given, sizes, "the exported grammar")
        return self._loosened(fragment(text), loosened, limits=sizes)

    def _loosened(self, sent: Mapping[str, Any], loosened: bool, **more: Any) -> RemotePlan:
        parts = _whole("provider_superset", "a key may occur twice") if loosened else _whole("provider")
        return self.plan(sent, parts, "checked" if loosened else "exact", **more)

    def regex(self) -> RemotePlan | None:
        json_schema = self.json_schema
        if json_schema is not None and (self.route == "tgi_regex" or "$ref" in json_schema._text):
            return None  # TGI converts a schema itself; a reference may be recursive
        dialect, fragment = REGEX_FORMS[self.route]
        return self.plan(fragment(self.constraint.to_regex(dialect)), _whole("provider"), "exact")

    def structural_tag(self) -> RemotePlan | None:
        loosened = False

        def exported(content: Constraint[Any]) -> str:
            nonlocal loosened
            text, more = _exported(content, "gbnf_characters")
            loosened = loosened or more
            return text

        form = structural_tag_of(self.constraint, exported)
        return None if form is None else self._loosened(STRUCTURAL_FORMS[self.route](form), loosened)

    def choice(self) -> RemotePlan | None:
        if not isinstance(self.constraint, Choice):
            return None
        sent = {"extra_body": {"structured_outputs": {"choice": list(self.constraint.texts)}}}
        return self.plan(sent, _whole("provider"), "exact")

    def schema(self) -> RemotePlan | None:
        given = self.given
        document = _document(self.constraint, self.json_schema)
        if document is None:
            return None
        lowered = lowered_within(document, given)
        sizes = measured(given, lowered)
        check_limits(given, sizes, "the schema", lowered)
        plain = lowered.codec.plain and self.json_schema is not None
        streamed = self.own() if plain else exact_schema(lowered.schema)
        reader = AnswerReader(self.constraint, None if plain else lowered.codec, streamed, not given.enforces)
        holders = {one.holder for one in lowered.notes}
        guarantee = "narrowed" if "provider_subset" in holders else "exact" if holders <= {"provider"} else "checked"
        details = "; ".join(dict.fromkeys(one.detail for one in lowered.notes if one.detail)) or "decoded"
        sent = SCHEMA_FORMS[self.route](given, lowered.schema)
        return self.plan(sent, lowered.notes, guarantee, reader, inverse="" if plain else details, limits=sizes)


_PLANNERS: list[tuple[Any, Callable[[_RoutePlanner], RemotePlan | None]]] = [
    (("prompt",), _RoutePlanner.prompt),
    (("scored_choice",), _RoutePlanner.scored_choice),
    (("json_object",), _RoutePlanner.json_object),
    (("wire",), _RoutePlanner.wire),
    (GRAMMAR_FORMS, _RoutePlanner.grammar),
    (REGEX_FORMS, _RoutePlanner.regex),
    (STRUCTURAL_FORMS, _RoutePlanner.structural_tag),
    (("vllm_choice",), _RoutePlanner.choice),
    (SCHEMA_FORMS, _RoutePlanner.schema),
]
"""Pairs of the names of routes and the method that makes their plan."""


def _whole(holder: str, detail: str = "") -> tuple[Note, ...]:
    return (Note("", "", holder, detail),)


def _document(constraint: Constraint[Any], json_schema: JsonSchema | None) -> Any:
    """Return a JSON Schema for a constraint.

    For a constraint on plain text, it is a schema for strings that allows the same texts; None if the constraint has no
    regular expression, or one of more than 5,000 characters.
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
    """Return the constraint as a grammar, and whether the grammar also allows a key to occur twice in an object.

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
