"""Requests of OpenAI's batch files -> `BatchRequest`: chat completions, completions and Responses.

Every field has an effect, has no effect on the text (such as "user"), or is refused with its path.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from guideway.batch.fields import (
    COUNT,
    SAMPLING,
    boolean_field,
    integer_field,
    invalid_field,
    list_field,
    object_field,
    string_field,
    token_ids_field,
)
from guideway.batch.requests import (
    BatchRequest,
    constraint_at,
    custom_id_of,
    own_request,
    shared_constraint,
    unknown_field,
)
from guideway.constraints import ToolCalls
from guideway.errors import InvalidRequestError
from guideway.integrations._common import KINDS, requested
from guideway.jsontext.decoder import loads

__all__ = ["DEFAULTS", "ENDPOINTS", "read_body", "request_of"]

_LINE = ("custom_id", "method", "url", "body")

_NO_EFFECT = (
    *("model", "user", "metadata", "store", "service_tier", "prompt_cache_key", "prompt_cache_retention"),
    *("safety_identifier", "stream_options", "background"),
)
"""Fields without an effect on the text."""


def request_of(entry: object) -> BatchRequest:
    """Return the request of a line: in OpenAI's batch format if it has "url", "method" or "body", else in the own format.

    Raises:
        InvalidRequestError: A field is missing, unknown or malformed; `param` is its path, in the body for errors of the
            body.
    """
    custom_id = custom_id_of(entry)
    line: Any = entry
    if not any(name in line for name in ("url", "method", "body")):
        return own_request(line)
    for name in line:
        if name not in _LINE:
            raise unknown_field(name, name, _LINE)
    if line.get("method") != "POST":
        raise InvalidRequestError(
            f'"method" must be "POST", got {line.get("method")!r:.80}', "method", "invalid_method"
        )
    url = line.get("url")
    read = ENDPOINTS.get(url) if isinstance(url, str) else None
    if read is None:
        raise InvalidRequestError(f'"url" must be one of {", ".join(ENDPOINTS)}, got {url!r:.80}', "url", "invalid_url")
    if not isinstance(line.get("body"), Mapping):
        raise InvalidRequestError('the line needs "body", an object', "body", "missing_parameter")
    return read(custom_id, _Body(line["body"]))


def read_body(url: str, custom_id: str, body: object) -> BatchRequest:
    """Return the request of a body that a server received. Unlike bodies of batch files, it may ask for a stream.

    Args:
        url: A key of `ENDPOINTS`.
        custom_id: The identifier of the request.
        body: The JSON value of the body.

    Raises:
        InvalidRequestError: A field is missing, unknown or malformed; `param` is its path.
    """
    if not isinstance(body, Mapping):
        raise InvalidRequestError(f"the body must be a JSON object, got {type(body).__name__}", "", "invalid_type")
    return ENDPOINTS[url](custom_id, _Body(body, served=True))


class _Body:
    """The fields of a body. Those that no function took are unknown."""

    def __init__(self, fields: Mapping[str, Any], *, served: bool = False) -> None:
        self._fields = {name: value for name, value in fields.items() if value is not None}
        self._known: list[str] = [*_NO_EFFECT, "stream"]
        self.served = served

    def take(self, name: str, check: Callable[[Any, str], Any], default: Any = None) -> Any:
        """Remove a field and return its checked value. null counts as absent."""
        self._known.append(name)
        return check(self._fields.pop(name), name) if name in self._fields else default

    def refuse(self, name: str, why: str, *allowed: Any) -> None:
        """Refuse a field, unless it has one of the allowed values."""
        self._known.append(name)
        if name in self._fields and self._fields.pop(name) not in allowed:
            raise InvalidRequestError(f"{name!r} is not supported: {why}", name, "unsupported_parameter")

    def streaming(self) -> dict[str, Any]:
        """Take the fields of a stream. Only a server has streams."""
        if not self.served:
            return {}
        stream = self.take("stream", boolean_field, False)
        options = self.take("stream_options", object_field)
        if options is not None and not stream:
            raise InvalidRequestError("'stream_options' needs 'stream': true", "stream_options", "invalid_value")
        found = {"stream": stream}
        for name, value in (options or {}).items():
            if name not in ("include_usage", "include_obfuscation"):
                raise unknown_field(name, f"stream_options.{name}", ("include_usage",))
            found[name] = value is not None and boolean_field(value, f"stream_options.{name}")
        return found

    def need(self, name: str) -> None:
        """Raise an error if a field is missing."""
        if name not in self._fields:
            raise InvalidRequestError(f"the body needs {name!r}", name, "missing_parameter")

    def options(self, limit: str, *more: str) -> dict[str, Any]:
        """Take the sampling options and the limit of tokens."""
        found = {name: self.take(name, check) for name, check in SAMPLING.items()}
        for name in (limit, *more):
            found["max_tokens"] = self.take(name, COUNT, found.get("max_tokens"))
        if found["top_k"] == -1:
            found["top_k"] = 0
        return {name: value for name, value in found.items() if value is not None}

    def constraint(self) -> Any:
        """Take `structured_outputs` (of vLLM) or `constraint` (a document of `to_wire`)."""
        given = self.take("structured_outputs", object_field)
        document = self.take("constraint", object_field)
        if given is not None and document is not None:
            raise InvalidRequestError("'constraint' and 'structured_outputs' exclude each other", "constraint")
        if document is not None:
            return constraint_at("constraint", lambda: shared_constraint("constraint", document))
        if given is None:
            return None
        named = [name for name, value in given.items() if value is not None]
        if len(named) != 1 or named[0] not in KINDS:
            raise InvalidRequestError(
                f"'structured_outputs' must have one of {', '.join(KINDS)}, got {', '.join(named) or 'nothing'!r:.80}",
                "structured_outputs",
            )
        kind, spec = named[0], given[named[0]]
        if kind == "json":
            return constraint_at(
                "structured_outputs.json",
                lambda: shared_constraint("schema", loads(spec) if isinstance(spec, str) else spec),
            )
        return constraint_at(f"structured_outputs.{kind}", lambda: requested(kind, spec))

    def finish(self) -> None:
        """Check the fields that are left."""
        for name in _NO_EFFECT:
            self._fields.pop(name, None)
        self.refuse("stream", "a batch has no streams", False)
        for name in self._fields:
            if name.startswith("guided_"):
                raise InvalidRequestError(
                    f"{name!r} is not supported; use 'structured_outputs'", name, "unsupported_parameter"
                )
            raise unknown_field(name, name, self._known)


def _one_of(param: str, *given: Any) -> Any:
    found = [one for one in given if one is not None]
    if len(found) > 1:
        raise InvalidRequestError("a request may have one constraint", param)
    return found[0] if found else None


def _format(given: Mapping[str, Any] | None, param: str, flat: bool) -> Any:
    """Return the constraint of `response_format`, or of `text.format`, whose fields are `flat`."""
    if given is None:
        return None
    kind = given.get("type")
    if kind == "text":
        return None
    if kind == "json_object":
        return shared_constraint("schema", {"type": "object"})
    if kind == "structural_tag":
        text = json.dumps(given)
        return constraint_at(param, lambda: requested("structural_tag", text))
    if kind != "json_schema":
        raise InvalidRequestError(
            f"{param + '.type'!r} must be text, json_object, json_schema or structural_tag, got {kind!r:.80}",
            f"{param}.type",
        )
    path = param if flat else f"{param}.json_schema"
    inner = given if flat else object_field(given.get("json_schema"), path)
    for name in inner:
        if name not in ("type", "name", "description", "strict", "schema"):
            raise unknown_field(name, f"{path}.{name}", ("name", "description", "strict", "schema"))
    schema = inner.get("schema")
    if not isinstance(schema, (dict, bool)):
        raise invalid_field(f"{path}.schema", "a JSON Schema (an object)", schema)
    return constraint_at(f"{path}.schema", lambda: shared_constraint("schema", schema))


def _messages(given: list[Any], param: str) -> list[dict[str, Any]]:
    """Return messages for a chat template: contents as text, arguments of calls as JSON values."""
    if not given:
        raise invalid_field(param, "a list of messages, not empty", given)
    found = []
    for number, one in enumerate(given):
        place = f"{param}[{number}]"
        message = dict(object_field(one, place))
        string_field(message.get("role"), f"{place}.role")
        content = message.get("content")
        if content is not None or not message.get("tool_calls"):
            message["content"] = _content(content, f"{place}.content")
        calls = message.get("tool_calls")
        if calls is not None:
            message["tool_calls"] = [
                _call(call, f"{place}.tool_calls[{at}]")
                for at, call in enumerate(list_field(calls, f"{place}.tool_calls"))
            ]
        found.append(message)
    return found


def _content(content: Any, place: str) -> str:
    if isinstance(content, str):
        return content
    texts = []
    for number, part in enumerate(list_field(content, place)):
        kind = object_field(part, f"{place}[{number}]").get("type")
        if kind not in ("text", "input_text", "output_text"):
            raise InvalidRequestError(
                f"content parts of the type {kind!r:.80} are not supported", f"{place}[{number}].type"
            )
        texts.append(string_field(part.get("text"), f"{place}[{number}].text"))
    return "\n".join(texts)


def _call(given: Any, place: str) -> dict[str, Any]:
    call = dict(object_field(given, place))
    function = dict(object_field(call.get("function"), f"{place}.function"))
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        try:
            function["arguments"] = loads(arguments)
        except ValueError as error:
            raise InvalidRequestError(f"the arguments are not JSON: {error}", f"{place}.function.arguments") from None
    return {**call, "function": function}


def _tools(body: _Body) -> dict[str, Any]:
    """Take the tools of a chat body. Their constraint depends on the family of the model, so it is made later."""
    tools = body.take("tools", list_field)
    choice = body.take("tool_choice", lambda value, _: value)
    parallel = body.take("parallel_tool_calls", boolean_field)
    if not tools:
        if choice not in (None, "none", "auto"):
            raise InvalidRequestError("'tool_choice' needs 'tools'", "tool_choice")
        return {}
    plain = [object_field(tool, f"tools[{number}]") for number, tool in enumerate(tools)]
    given = {"choice": choice or "auto", **({} if parallel is None else {"parallel": parallel})}
    constraint_at("tools", lambda: ToolCalls(plain, family="hermes", **given))  # checks the fields
    return {"tools": plain, "tool_options": given}


def _chat(custom_id: str, body: _Body) -> BatchRequest:
    body.need("messages")
    messages = _messages(body.take("messages", list_field), "messages")
    options = body.options("max_tokens", "max_completion_tokens")
    output = _one_of(
        "response_format",
        _format(body.take("response_format", object_field), "response_format", flat=False),
        body.constraint(),
    )
    details = _tools(body)
    if details and output is not None:
        raise InvalidRequestError("'tools' and a constraint of the answer exclude each other", "tools")
    top = body.take("top_logprobs", integer_field(0, 20))
    if body.take("logprobs", boolean_field, False):
        options["logprobs"] = top or 0
    elif top:
        raise InvalidRequestError("'top_logprobs' needs 'logprobs': true", "top_logprobs")
    n = body.take("n", integer_field(1, 128))
    body.refuse("modalities", "only text is written", ["text"])
    for name in ("audio", "prediction", "web_search_options", "functions", "function_call", "reasoning_effort"):
        body.refuse(name, "it has no effect here")
    details |= body.streaming()
    body.finish()
    return BatchRequest(custom_id, messages, output, options, n, "/v1/chat/completions", details)


def _completion(custom_id: str, body: _Body) -> BatchRequest:
    body.need("prompt")
    prompt = body.take("prompt", lambda value, _: value)
    many = isinstance(prompt, list) and bool(prompt) and not any(type(one) is int for one in prompt)
    for number, one in enumerate(prompt if many else [prompt]):
        if not isinstance(one, str):
            token_ids_field(one, f"prompt[{number}]" if many else "prompt")
    options = body.options("max_tokens")
    output = _one_of(
        "response_format",
        _format(body.take("response_format", object_field), "response_format", flat=False),
        body.constraint(),
    )
    logprobs = body.take("logprobs", integer_field(0, 20))
    if logprobs is not None:
        options["logprobs"] = logprobs
    n = body.take("n", integer_field(1, 128))
    body.refuse("best_of", "the texts are not ranked", 1, n)
    body.refuse("echo", "the prompt is not repeated", False)
    body.refuse("suffix", "there is no text after the completion", "")
    details = {"many": many, **body.streaming()}
    body.finish()
    return BatchRequest(custom_id, prompt, output, options, n, "/v1/completions", details)


def _responses(custom_id: str, body: _Body) -> BatchRequest:
    body.need("input")
    given = body.take("input", lambda value, _: value)
    if isinstance(given, str):
        messages = [{"role": "user", "content": given}]
    else:
        for number, item in enumerate(list_field(given, "input")):
            if object_field(item, f"input[{number}]").get("type", "message") != "message":
                raise InvalidRequestError(
                    f"items of the type {item['type']!r:.80} are not supported", f"input[{number}].type"
                )
        plain = [{name: value for name, value in item.items() if name in ("role", "content")} for item in given]
        messages = _messages(plain, "input")
    instructions = body.take("instructions", string_field)
    if instructions is not None:
        messages.insert(0, {"role": "system", "content": instructions})
    options = body.options("max_output_tokens")
    text = body.take("text", object_field, {})
    for name in text:
        if name not in ("format", "verbosity"):
            raise unknown_field(name, f"text.{name}", ("format",))
    if text.get("verbosity") not in (None, "medium"):
        raise InvalidRequestError("'text.verbosity' is not supported", "text.verbosity", "unsupported_parameter")
    shape = None if text.get("format") is None else object_field(text["format"], "text.format")
    output = _one_of("text.format", _format(shape, "text.format", flat=True), body.constraint())
    for name in ("tools", "include"):
        body.refuse(name, "tools run in chat completions only", [])
    body.refuse("tool_choice", "tools run in chat completions only", "auto", "none")
    body.refuse("parallel_tool_calls", "tools run in chat completions only", True, False)
    body.refuse("truncation", "a prompt is not shortened", "disabled")
    body.refuse("top_logprobs", "use chat completions", 0)
    for name in ("previous_response_id", "conversation", "reasoning", "prompt", "max_tool_calls"):
        body.refuse(name, "a batch keeps no state between requests")
    details = body.streaming()
    body.finish()
    return BatchRequest(custom_id, messages, output, options, None, "/v1/responses", details)


ENDPOINTS: dict[str, Callable[[str, _Body], BatchRequest]] = {
    "/v1/chat/completions": _chat,
    "/v1/completions": _completion,
    "/v1/responses": _responses,
}
"""The URLs of requests."""

DEFAULTS: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"temperature": 1.0},
    "/v1/completions": {"temperature": 1.0, "max_tokens": 16},
    "/v1/responses": {"temperature": 1.0},
    "": {},
}
"""The options of OpenAI's API that differ from those of this library, where neither the body nor the call gives them."""
