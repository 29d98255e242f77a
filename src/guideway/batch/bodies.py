"""Converts request bodies in OpenAI's format (chat completions, completions, Responses) to `BatchRequest`.

Each field of a body either has its effect, or has no effect on the text (such as "user"), or is refused with its path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from guideway.arguments import short_repr
from guideway.batch.fields import (
    SAMPLING,
    boolean_field,
    check_repeated,
    integer_field,
    invalid_field,
    list_field,
    object_field,
    string_field,
    strings_field,
    token_ids_field,
)
from guideway.batch.message_fields import messages_of, messages_of_items
from guideway.batch.requests import (
    BatchRequest,
    constraint_at,
    custom_id_of,
    own_request,
    shared_constraint,
    unknown_field,
)
from guideway.batch.tool_fields import read_tools
from guideway.errors import InvalidRequestError
from guideway.integrations._common import KINDS, requested
from guideway.jsontext.decoder import loads
from guideway.jsontext.encoder import exact_json
from guideway.jsontext.numbers import written_float

__all__ = ["DEFAULTS", "ENDPOINTS", "read_body", "request_of"]

MAX_TEXTS = 2048
"""The maximum number of texts of a request: prompts x n."""

_LINE = ("custom_id", "method", "url", "body")

_NO_EFFECT = (
    *("model", "user", "metadata", "store", "service_tier", "prompt_cache_key", "prompt_cache_retention"),
    *("safety_identifier", "stream_options", "prompt_cache_options"),
)
"""Fields that are accepted and have no effect on the text."""


_REPEATED = ("metadata", "prompt_cache_key", "safety_identifier", "text", "tool_choice", "tools", "user")
"""Fields of the Responses API that can have nested values and that `response_object` repeats."""


def request_of(entry: object) -> BatchRequest:
    """Return the request of a line of a batch file.

    A line with "url", "method" or "body" has OpenAI's format; other lines have the format of this library.

    Raises:
        InvalidRequestError: A field is missing, unknown or malformed. `param` is the path of the field, in the line or
            in its body.
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
            f'"method" must be "POST", got {short_repr(line.get("method"))}', "method", "invalid_method"
        )
    url = line.get("url")
    read = ENDPOINTS.get(url) if isinstance(url, str) else None
    if read is None:
        raise InvalidRequestError(
            f'"url" must be one of {", ".join(ENDPOINTS)}, got {short_repr(url)}', "url", "invalid_url"
        )
    if not isinstance(line.get("body"), Mapping):
        raise InvalidRequestError('the line needs "body", an object', "body", "missing_parameter")
    return read(custom_id, _Body(line["body"]))


def read_body(url: str, custom_id: str, body: object) -> BatchRequest:
    """Return the request of a body that a server received. Unlike the body of a batch line, it may request a stream.

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


_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


class _Body:
    """Reads the fields of a body.

    `take` and `refuse` remove a field; `finish` refuses the fields that are left as unknown.

    Args:
        fields: The body. Fields with the value null count as absent.
        served: Whether a server received the body, so that fields for servers are allowed.
    """

    def __init__(self, fields: Mapping[str, Any], *, served: bool = False) -> None:
        self._fields = {name: value for name, value in fields.items() if value is not None}
        self._known: list[str] = [*_NO_EFFECT, "stream"]
        self.given = {name: value for name, value in self._fields.items() if name != "input"}
        """All fields as they were given, except "input"."""
        self.served = served
        self.limit = "max_tokens"

    def take(self, name: str, check: Callable[[Any, str], Any], default: Any = None) -> Any:
        """Remove a field, and return the result of `check` for its value; `default` if it is absent."""
        self._known.append(name)
        return check(self._fields.pop(name), name) if name in self._fields else default

    def refuse(self, name: str, why: str, *allowed: Any) -> None:
        """Remove a field. Raises `InvalidRequestError` if it has another value than the allowed ones.

        `why`: the reason for the message.
        """
        self._known.append(name)
        if name in self._fields and self._fields.pop(name) not in allowed:
            raise InvalidRequestError(f"{name!r} is not supported: {why}", name, "unsupported_parameter")

    def shared(self) -> dict[str, Any]:
        """Take the fields that all endpoints of a server have, and return their values by name; {} for a batch.

        The value of the field "guideway" is returned as "report".
        """
        if not self.served:
            return {}
        return {"report": self.take("guideway", boolean_field, False), **self._streaming()}

    def _streaming(self) -> dict[str, Any]:
        """Take the fields "stream" and "stream_options"."""
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
        """Raise `InvalidRequestError` if a field is missing. The field is not taken."""
        if name not in self._fields:
            raise InvalidRequestError(f"the body needs {name!r}", name, "missing_parameter")

    def options(self, *limits: str, least: int = 1) -> dict[str, Any]:
        """Take the sampling options and the maximum number of tokens, which must be at least `least`.

        `limits` has the names of the fields for this number.
        """
        found = {name: self.take(name, check) for name, check in SAMPLING.items()}
        for name in limits:
            limit = self.take(name, integer_field(least))
            if limit is not None:
                found["max_tokens"], self.limit = limit, name
        if found["top_k"] == -1:
            found["top_k"] = 0
        return {name: value for name, value in found.items() if value is not None}

    def constraint(self, *ways: tuple[str, Any]) -> dict[str, Any]:
        """Take the constraint of the answer. Returns it as "output", and the path of its field as "constraint_param".

        Args:
            *ways: Pairs of a path and the constraint of a field that was taken before; None: the field has none.

        Raises:
            InvalidRequestError: There is more than one constraint.
        """
        found = [(path, made) for path, made in (*ways, *self._extensions()) if made is not None]
        if len(found) > 1:
            first, second = (path.partition(".")[0] for path, _ in found[:2])
            raise InvalidRequestError(
                f"{first!r} and {second!r} exclude each other: a request may have one constraint", second
            )
        return {"output": found[0][1], "constraint_param": found[0][0]} if found else {"output": None}

    def _extensions(self) -> Iterator[tuple[str, Any]]:
        """Take the constraints in fields of vLLM, SGLang and llama.cpp and in `to_wire` documents, with their paths."""
        yield self._structured_outputs()
        document = self.take("constraint", object_field)
        if document is not None:
            yield "constraint", constraint_at("constraint", lambda: shared_constraint("constraint", document))
        for name, kind, check in (
            ("regex", "regex", string_field),
            ("ebnf", "grammar", string_field),
            ("grammar", "grammar", string_field),
            ("json_schema", "json", _schema),
        ):
            spec = self.take(name, check)
            if spec is not None:
                yield name, _requested(name, kind, spec)

    def _structured_outputs(self) -> tuple[str, Any]:
        given = self.take("structured_outputs", object_field)
        if given is None:
            return "", None
        named = [name for name, value in given.items() if value is not None]
        if len(named) != 1 or named[0] not in KINDS:
            raise InvalidRequestError(
                f"'structured_outputs' must have one of {', '.join(KINDS)}, got {short_repr(', '.join(named) or 'nothing')}",
                "structured_outputs",
            )
        path = f"structured_outputs.{named[0]}"
        return path, _requested(path, named[0], given[named[0]])

    def finish(self) -> None:
        """Raise `InvalidRequestError` if a field is left that nothing has taken and that is not in `_NO_EFFECT`."""
        for name in _NO_EFFECT:
            self._fields.pop(name, None)
        self.refuse("stream", "a batch has no streams", False)
        for name in self._fields:
            if name.startswith("guided_"):
                raise InvalidRequestError(
                    f"{name!r} is not supported; use 'structured_outputs'", name, "unsupported_parameter"
                )
            raise unknown_field(name, name, self._known)


def _schema(value: Any, param: str) -> Any:
    """Check that a field is a JSON Schema or its text, and return it."""
    if not isinstance(value, (str, dict, bool)):
        raise invalid_field(param, "a JSON Schema (an object, or its text)", value)
    return value


def _requested(param: str, kind: str, spec: Any) -> Any:
    """Return the constraint of `spec`, of a kind in `KINDS`. `param`: the path of its field, for errors."""
    if kind != "json":
        return constraint_at(param, lambda: requested(kind, spec))

    def read() -> Any:
        return shared_constraint("schema", loads(spec, parse_float=written_float) if isinstance(spec, str) else spec)

    return constraint_at(param, read)


def _format(given: Mapping[str, Any] | None, param: str, flat: bool) -> Any:
    """Return the constraint of a response format; None: free text.

    Args:
        given: The value of `response_format`, or of `text.format` in the Responses API; None: absent.
        param: The path of the field.
        flat: Whether the schema is a member of `given` itself, as in the Responses API, not of `given["json_schema"]`.
    """
    if given is None:
        return None
    kind = given.get("type")
    if kind == "text":
        return None
    if kind == "json_object":
        return shared_constraint("schema", {"type": "object"})
    if kind == "structural_tag":
        text = exact_json(given)
        return constraint_at(param, lambda: requested("structural_tag", text))
    if kind != "json_schema":
        raise InvalidRequestError(
            f"{param + '.type'!r} must be text, json_object, json_schema or structural_tag, got {short_repr(kind)}",
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


def _tools(body: _Body, *, flat: bool = False) -> dict[str, Any]:
    """Take the tools of a body.

    Their constraint is made later, because it depends on the model's notation of replies.
    """
    tools = body.take("tools", list_field)
    choice = body.take("tool_choice", lambda value, _: value)
    parallel = body.take("parallel_tool_calls", boolean_field)
    found = read_tools(tools, choice, parallel, flat=flat)
    return {} if found is None else {"tools": found}


def _reasoning(value: Any, param: str) -> str:
    if value not in _EFFORTS:
        raise invalid_field(param, f"one of {', '.join(_EFFORTS)}", value)
    return str(value)


def _chat(custom_id: str, body: _Body) -> BatchRequest:
    body.need("messages")
    messages = messages_of(body.take("messages", list_field), "messages")
    options = body.options("max_tokens", "max_completion_tokens")
    form = _format(body.take("response_format", object_field), "response_format", flat=False)
    answer = body.constraint(("response_format", form))
    details = _tools(body)
    details["effort"] = body.take("reasoning_effort", _reasoning)
    top = body.take("top_logprobs", integer_field(0, 20))
    if body.take("logprobs", boolean_field, False):
        options["logprobs"] = top or 0
    elif top:
        raise InvalidRequestError("'top_logprobs' needs 'logprobs': true", "top_logprobs")
    n = body.take("n", integer_field(1, 128))
    body.refuse("modalities", "only text is written", ["text"])
    for name in ("audio", "prediction", "web_search_options", "functions", "function_call"):
        body.refuse(name, "it has no effect here")
    details |= {"prompt_param": "messages", "limit_param": body.limit, **body.shared(), **answer}
    body.finish()
    output = details.pop("output")
    return BatchRequest(custom_id, messages, output, options, n, "/v1/chat/completions", details)


def _completion(custom_id: str, body: _Body) -> BatchRequest:
    body.need("prompt")
    prompt = body.take("prompt", lambda value, _: value)
    many = isinstance(prompt, list) and bool(prompt) and not any(type(one) is int for one in prompt)
    for number, one in enumerate(prompt if many else [prompt]):
        if not isinstance(one, str):
            token_ids_field(one, f"prompt[{number}]" if many else "prompt")
    echo = body.take("echo", boolean_field, False)
    options = body.options("max_tokens", least=0 if echo else 1)
    form = _format(body.take("response_format", object_field), "response_format", flat=False)
    answer = body.constraint(("response_format", form))
    logprobs = body.take("logprobs", integer_field(0, 20))
    if logprobs is not None:
        options["logprobs"] = logprobs
    n = body.take("n", integer_field(1, 128))
    if many and len(prompt) * (n or 1) > MAX_TEXTS:
        count = len(prompt) * (n or 1)
        raise InvalidRequestError(f"a request may have {MAX_TEXTS:,} texts (prompts x n), got {count:,}", "prompt")
    body.refuse("best_of", "the texts are not ranked", 1, n)
    if echo and not body.served:
        raise InvalidRequestError(
            "'echo' is not supported: a batch does not repeat prompts", "echo", "unsupported_parameter"
        )
    body.refuse("suffix", "there is no text after the completion", "")
    details = {"many": many, "echo": echo, "prompt_param": "prompt", **body.shared(), **answer}
    body.finish()
    output = details.pop("output")
    return BatchRequest(custom_id, prompt, output, options, n, "/v1/completions", details)


def _responses(custom_id: str, body: _Body) -> BatchRequest:
    body.need("input")
    if not body.served:  # a server limits the nesting of whole bodies
        for name in _REPEATED:
            check_repeated(body.given.get(name), name)
    given = body.take("input", lambda value, _: value)
    if isinstance(given, str):
        messages = [{"role": "user", "content": given}]
    else:
        messages = messages_of_items(list_field(given, "input"), "input")
    instructions = body.take("instructions", string_field)
    options = body.options("max_output_tokens")
    text = body.take("text", object_field, {})
    for name in text:
        if name not in ("format", "verbosity"):
            raise unknown_field(name, f"text.{name}", ("format",))
    if text.get("verbosity") not in (None, "medium"):
        raise InvalidRequestError("'text.verbosity' is not supported", "text.verbosity", "unsupported_parameter")
    shape = None if text.get("format") is None else object_field(text["format"], "text.format")
    answer = body.constraint(("text.format", _format(shape, "text.format", flat=True)))
    details = _tools(body, flat=True)
    details["effort"] = _effort(body.take("reasoning", object_field, {}))
    top = body.take("top_logprobs", integer_field(0, 20))
    include = body.take("include", strings_field, [])
    for number, one in enumerate(include):
        if one not in ("message.output_text.logprobs", "reasoning.encrypted_content"):
            raise InvalidRequestError(
                f"'include' has {short_repr(one)}, which this server does not have", f"include[{number}]"
            )
    if top or "message.output_text.logprobs" in include:
        options["logprobs"] = top or 0
    body.refuse("truncation", "a prompt is not shortened", "disabled")
    previous = body.take("previous_response_id", string_field)
    if previous is not None and not body.served:
        raise InvalidRequestError(
            "'previous_response_id' is not supported: a batch keeps no state between requests",
            "previous_response_id",
            "unsupported_parameter",
        )
    for name in ("conversation", "prompt", "max_tool_calls", "context_management"):
        body.refuse(name, "this server does not have it")
    store = body.take("store", boolean_field, body.served)
    details |= {
        "prompt_param": "input",
        "limit_param": "max_output_tokens",
        "instructions": instructions,
        "previous": previous,
        "store": store,
        "given": body.given,
        "items": _input_items(given, custom_id),
        **_background(body, store),
        **body.shared(),
        **answer,
    }
    body.finish()
    output = details.pop("output")
    return BatchRequest(custom_id, messages, output, options, None, "/v1/responses", details)


def _background(body: _Body, store: bool) -> dict[str, Any]:
    """Take the field "background"; {} for a batch, which always runs in the background."""
    if not body.served:
        body.refuse("background", "all requests of a batch run in the background", False)
        return {}
    background = body.take("background", boolean_field, False)
    if background and not store:
        raise InvalidRequestError("'background' needs 'store': true", "store", "invalid_value")
    if background and body.given.get("stream"):
        raise InvalidRequestError(
            "a response in the background has no stream; retrieve it until it is complete",
            "stream",
            "unsupported_parameter",
        )
    return {"background": background}


def _input_items(given: Any, custom_id: str) -> list[dict[str, Any]]:
    """Return the input of the Responses API as a list of items, each with an id. A text becomes one message."""
    if isinstance(given, str):
        given = [{"role": "user", "content": given}]
    items = []
    for number, item in enumerate(given):
        item = {"type": "message", "id": f"item_{custom_id[:24]}_{number}", **item}  # a copy
        if item["type"] == "message":
            item.setdefault("status", "completed")
            if isinstance(item.get("content"), str):
                kind = "output_text" if item.get("role") == "assistant" else "input_text"
                item["content"] = [{"type": kind, "text": item["content"]}]
        items.append(item)
    return items


def _effort(given: dict[str, Any]) -> str | None:
    for name, value in given.items():
        if name not in ("effort", "summary", "generate_summary"):
            raise unknown_field(name, f"reasoning.{name}", ("effort", "summary"))
        if name != "effort" and value not in (None, "auto", "concise", "detailed"):
            raise invalid_field(f"reasoning.{name}", "auto, concise or detailed", value)
    effort = given.get("effort")
    return None if effort is None else _reasoning(effort, "reasoning.effort")


ENDPOINTS: dict[str, Callable[[str, _Body], BatchRequest]] = {
    "/v1/chat/completions": _chat,
    "/v1/completions": _completion,
    "/v1/responses": _responses,
}
"""By URL of a request: the function that reads its body."""

DEFAULTS: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"temperature": 1.0},
    "/v1/completions": {"temperature": 1.0, "max_tokens": 16},
    "/v1/responses": {"temperature": 1.0},
    "": {},
}
"""By URL: the values of options that neither the body nor the call sets.

They are OpenAI's defaults, where these differ from those of this library. "": the format of this library.
"""
