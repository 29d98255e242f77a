"""`RemotePlan`: how a constraint is sent to an endpoint, what the endpoint enforces, and what Guideway checks itself.

A plan is made from `Capabilities` without a request.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from guideway.constraints import Choice, Constraint, JsonSchema, PythonType, Regex
from guideway.errors import ConstraintError, InvalidTextError
from guideway.jsontext.decoder import loads
from guideway.jsontext.encoder import write_json
from guideway.jsontext.tokens import is_deeper
from guideway.remote.answer_text import SPACE
from guideway.remote.capabilities import Evidence
from guideway.remote.codecs import Codec
from guideway.remote.repair import repaired_values
from guideway.remote.subset import Note

__all__ = ["MAX_SCORED", "AnswerReader", "RemotePlan", "Require", "any_spelling", "exact_schema", "in_words", "json_of"]

Require = Literal["exact", "checked", "narrowed", "any"]
MAX_ANSWER_DEPTH = 500
"""Maximum nesting of the JSON of an answer. A deeper answer is not decoded."""

MAX_SCORED = 20
"""The number of most probable first tokens that are requested, and the maximum number of options of "scored_choice"."""

_FENCE_START = re.compile(r"```[a-zA-Z]*\n")


@dataclass(frozen=True)
class RemotePlan:
    """How a constraint is sent to an endpoint.

    Attributes:
        dialect: The name of the endpoint's capabilities.
        route: "json_schema", "strict_tool", "custom_tool", "json_object", "scored_choice", "prompt", or a route of one
            server such as "llama_grammar".
        sent: The members of the request that carry the constraint. The adapters of the Responses API and of mistralai
            send some of them by other names.
        parts: What happens to the keywords: `Note` with place, keyword, holder and detail.
        guarantee: "exact": the endpoint allows exactly the values of the constraint; it may allow other spellings of
            JSON. "checked": it allows all of them, and perhaps others; Guideway checks the answer. "narrowed": the
            endpoint excludes values that the constraint allows; `parts` names them.
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
    _reader: AnswerReader = field(default=None, repr=False, compare=False)  # type: ignore[assignment]  # always set by route_plan

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
        return self.shell or self.codec is not None or json_of(self.constraint) is not None

    def bare(self, text: str) -> str:
        """Return the text; if `shell` is true, without the white space and the code fence around it."""
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
        """Return a text for a prompt that tells the model to answer with a text that fits the constraint."""
        return in_words(self.constraint, json_of(self.constraint))

    def repaired(self, original: str) -> tuple[str, tuple[str, ...]]:
        """Repair values in a JSON text that the schema allows to repair in exactly one way.

        Returns the text and descriptions of the repairs. Without a repair, for example because the constraint has no
        JSON Schema, the text is returned unchanged.
        """
        schema = json_of(self.constraint)
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


def json_of(constraint: Constraint[Any]) -> JsonSchema | None:
    """Return the JSON Schema of a constraint, or None if it has none."""
    if isinstance(constraint, PythonType):
        return constraint._json
    return constraint if isinstance(constraint, JsonSchema) else None


def any_spelling(json_schema: JsonSchema) -> Constraint[Any] | None:
    """Return `exact_schema` of the schema of a constraint, with the constraint as `like`."""
    return exact_schema(json_schema._document, json_schema)


def exact_schema(document: Any, like: JsonSchema | None = None) -> Constraint[Any] | None:
    """Return a `JsonSchema` that allows every JSON spelling of the values of a schema.

    None if it raises a `ConstraintError`.

    `like`: a constraint from which `formats`, `dialect`, `resources` and the source text of verbatim strings are taken.
    None: `formats` is "annotate", and there are none of the others.
    """
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


def in_words(constraint: Constraint[Any], json_schema: JsonSchema | None) -> str:
    """Return a constraint in words, for a prompt."""
    if json_schema is not None:
        return "Answer only with a JSON value, without other text, that fits this JSON Schema:\n" + json_schema._text
    if isinstance(constraint, Choice):
        return "Answer only with one of these texts:\n" + "\n".join(constraint.texts[:200])
    return f"Answer only with a text that fits this constraint, without other text:\n{str(constraint)[:4000]}"
