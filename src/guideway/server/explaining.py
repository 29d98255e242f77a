"""`/guideway/explain`: what the constraint of a request enforces, or what is wrong with it, and where."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from guideway import background
from guideway.batch.bodies import read_body
from guideway.constraints import JsonSchema, of
from guideway.constraints.json_schema import explain_schema
from guideway.errors import ConstraintError, InvalidRequestError, UnsatisfiableError, UnsupportedError
from guideway.frontends.json_schema.report import draw_examples
from guideway.jsontext.pointer import shown
from guideway.server.bodies import read_json
from guideway.server.errors import status_and_object
from guideway.server.state import ServerState

__all__ = ["explain"]

_CHAT = "/v1/chat/completions"
_EXAMPLES = 3
_POINTER = re.compile(r"(?<= )/[^\s,]*")
_POSITION = re.compile(r"at (?:line (\d{1,9}), column (\d{1,9})|position (\d{1,9})):\n")


async def explain(state: ServerState, request: Request) -> Response:
    """`POST /guideway/explain`: the status of each keyword and example texts, or the error and its place.

    The body has the fields of a chat completion that set the constraint, such as `response_format`,
    `structured_outputs` or `tools`.
    """
    body = await read_json(request.scope, request.receive, state.settings)
    with state.admitted(state.key_of(request.headers.get("authorization"))):
        status, found = await background.run(_explained, body)
    return JSONResponse(found, status)


def _explained(body: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
    whole = {"messages": [{"role": "user", "content": ""}], **body}
    try:
        request = read_body(_CHAT, "explain", whole)
    except InvalidRequestError as error:
        return _refused(error, body)
    if tools := body.get("tools"):
        return 200, {
            "keywords": _keywords_of_tools(tools),
            "examples": [],
            "summary": f"valid: {_count(tools, 'tool')}",
        }
    if request.output is None:
        return 200, {"keywords": [], "examples": [], "summary": "valid: any text"}
    constraint = of(request.output)
    if isinstance(constraint, JsonSchema):
        found = explain_schema(constraint.schema, examples=_EXAMPLES)
        rows = found.rows()
        if found.refusals:  # only compilation refuses the schema
            place, reason = next(iter(found.refusals.items()))
            return _refused(UnsupportedError(f"not supported at {shown(place)}: {reason}", place), body)
        if found.conflict is not None:
            return _refused(UnsatisfiableError(f"no text can fit: {found.conflict}", found.place), body)
        enforced = sum(one["status"].startswith("enforced") for one in rows)
        return 200, {
            "keywords": rows,
            "examples": found.examples,
            "summary": f"valid: {enforced} of {_count(rows, 'keyword')} enforced, none ignored",
        }
    try:
        examples = draw_examples(constraint.grammar(), _EXAMPLES)
    except ConstraintError as error:
        return _refused(error, body)
    kind = "regular" if constraint.regular() is not None else "context-free"
    return 200, {"keywords": [], "examples": examples, "summary": f"valid: a {kind} language"}


def _refused(error: Exception, body: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
    """Return the HTTP status and the answer for an invalid constraint.

    The error object has three more members: "place" (a JSON Pointer into the schema, or into the list of tools),
    "offset" (of the error in the text of a constraint, see `_offset`) and "explanation" (see `_partial`). "place" and
    "offset" are None if they are not known.
    """
    status, found = status_and_object(error)
    cause = error.__cause__ if isinstance(error.__cause__, ConstraintError) else error
    place = cause.place if isinstance(cause, ConstraintError) else None
    if place is not None and place and not place.startswith("/"):
        place = None
    if not place and isinstance(error, UnsatisfiableError) and (pointers := _POINTER.findall(str(error))):
        place = pointers[0]
    param = getattr(error, "param", None) or ""
    if param.startswith("tools["):
        place = "/" + "/".join(re.findall(r"[^.\[\]]+", param)[1:])
    elif place is not None and isinstance(body.get("tools"), list):
        place = _place_in_tools(body["tools"], place)
    offset = None
    if place is None and (match := _POSITION.search(str(cause))):
        offset = _offset(_text_of(body), *(None if one is None else int(one) for one in match.groups()))
    found |= {"place": place, "offset": offset, "explanation": _partial(body)}
    return status, {"error": found}


def _partial(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the status of the keywords of the schema in `response_format`.

    {} if there is no schema, or if `explain_schema` raises an error for it.
    """
    schema = _schema_of(body)
    if not isinstance(schema, (Mapping, bool)):
        return {}
    try:
        found = explain_schema(schema, examples=0)
    except (ConstraintError, TypeError, ValueError):
        return {}
    return {"keywords": found.rows(), "examples": []}


def _schema_of(body: Mapping[str, Any]) -> Any:
    form = body.get("response_format")
    inner = form.get("json_schema") if isinstance(form, Mapping) else None
    return inner.get("schema") if isinstance(inner, Mapping) else None


def _text_of(body: Mapping[str, Any]) -> str:
    given = body.get("structured_outputs")
    texts = [one for one in given.values() if isinstance(one, str)] if isinstance(given, Mapping) else []
    return texts[0] if texts else ""


def _offset(text: str, line: int | None, column: int | None, position: int | None) -> int:
    """Return the offset in `text` of a line and column or of a position, in UTF-16 code units, as JavaScript counts."""
    if position is None:
        lines = text.split("\n")
        position = sum(len(one) + 1 for one in lines[: (line or 1) - 1]) + (column or 1) - 1
    return len(text[:position].encode("utf-16-le", "surrogatepass")) // 2


def _place_in_tools(tools: list[Any], place: str) -> str | None:
    """Return the JSON Pointer, in the list of tools, of `place` in the parameters of the first invalid tool.

    None if the parameters of all tools are valid.
    """
    for number, tool in enumerate(tools):
        parameters = _parameters_of(tool)
        try:
            if parameters is not None:
                JsonSchema(parameters).grammar()
        except (ConstraintError, TypeError, ValueError):
            return f"/{number}/function/parameters{place}"
    return None


def _keywords_of_tools(tools: list[Any]) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = []
    for number, tool in enumerate(tools):
        parameters = _parameters_of(tool)
        if isinstance(parameters, Mapping):
            rows += explain_schema(parameters, examples=0).rows(f"/{number}/function/parameters")
    return rows


def _parameters_of(tool: Any) -> Any:
    inner = tool.get("function") if isinstance(tool, Mapping) else None
    return inner.get("parameters") if isinstance(inner, Mapping) else None


def _count(things: list[Any], name: str) -> str:
    return f"{len(things)} {name}{'' if len(things) == 1 else 's'}"
