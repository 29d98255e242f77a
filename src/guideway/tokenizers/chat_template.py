"""Chat templates: Jinja templates, rendered in a sandbox to the same text as in transformers.

The text of a template comes with a downloaded tokenizer, so it is untrusted code. `template_sandbox.py` limits what it
can do. A template gets copies of messages, tools and other values; the copies consist of JSON values only.
"""

from __future__ import annotations

import dataclasses
import datetime
import importlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from guideway.arguments import short_repr
from guideway.caching import cached
from guideway.errors import ChatTemplateError, LimitExceededError, MissingDependencyError

__all__ = ["MAX_TEMPLATE", "plain", "render_template"]

MAX_TEMPLATE = 1 << 20
"""The maximum number of characters of a template."""

MAX_DEPTH = 200
"""The maximum nesting of messages, tools and other values."""

WORK = 200_000
"""The units of work (`template_sandbox.py`) that a template may do, in addition to those of `WORK_PER_VALUE`."""

WORK_PER_VALUE = 500
"""The additional units of work for each value, and each 64 characters of a text, in the input of a template."""

_REASONING = ("reasoning_content", "thinking", "reasoning")
_TAG = "CONTINUE_FINAL_MESSAGE_TAG "


def render_template(
    template: str | None,
    messages: Sequence[Mapping[str, object]],
    /,
    *,
    special_tokens: Mapping[str, object],
    tools: Sequence[object] | None = None,
    documents: Sequence[object] | None = None,
    add_generation_prompt: bool = True,
    continue_final_message: bool | str = False,
    **variables: object,
) -> str:
    """Render messages as a text.

    Args:
        template: A Jinja template; None: the tokenizer has none, which is an error.
        messages: Messages with the keys "role" and "content". Keys with the value None are left out.
        special_tokens: Texts of special tokens by name, such as "bos_token".
        tools: Tools as dicts that the OpenAI API accepts, `Tool` objects, or Python functions.
        documents: Documents as JSON values.
        add_generation_prompt: Add the text with which a reply of the model begins.
        continue_final_message: End with the text of the last message, so that the model continues it. A str is the key
            of this text in the message; True: "content". Must not be combined with `add_generation_prompt`.
        **variables: Other variables of the template, such as `enable_thinking`.

    Raises:
        ChatTemplateError: There is no template, it raised an error, or a limit is exceeded (the length or the work of
            the template, the nesting of a value). With `continue_final_message`: the last message has no such text, or
            the template does not write it.
        MissingDependencyError: jinja2 is not installed.
        TypeError: A message is not a mapping, or a tool is not a dict, a `Tool` or a function.
        ValueError: `continue_final_message` and `add_generation_prompt` are both true.
    """
    if template is None:
        raise ChatTemplateError("the tokenizer has no chat template; pass the prompt as one string")
    if len(template) > MAX_TEMPLATE:
        raise ChatTemplateError(f"the chat template has {len(template):,} characters; the limit is {MAX_TEMPLATE:,}")
    chat, units = _plain_messages(messages), [0]
    if continue_final_message and add_generation_prompt:
        raise ValueError(
            "continue_final_message and add_generation_prompt exclude each other; pass add_generation_prompt=False"
        )
    key = continue_final_message if isinstance(continue_final_message, str) else "content"
    final = _tagged(chat, key, template) if continue_final_message else ""
    given = {
        **special_tokens,
        **variables,
        "messages": chat,
        "tools": None if tools is None else [_tool(one) for one in tools],
        "documents": None if documents is None else list(documents),
        "add_generation_prompt": add_generation_prompt,
    }
    values = {name: plain(value, name, units) for name, value in given.items()}
    text = _rendered(template, values, WORK + WORK_PER_VALUE * units[0])
    return _cut(text, final) if continue_final_message else text


def _rendered(template: str, values: Mapping[str, Any], units: int) -> str:
    try:
        from guideway.tokenizers.template_sandbox import bounded
    except ImportError:
        raise MissingDependencyError(
            "chat templates need the package jinja2, which is not installed: pip install 'guideway[chat]'"
        ) from None
    try:
        with bounded(units):
            text: str = _compiled(template).render(values)
            return text
    except LimitExceededError as error:
        raise ChatTemplateError(str(error)) from error
    except Exception as error:  # a template is untrusted code and can raise anything
        raise ChatTemplateError(f"the chat template failed for these messages: {_shown(error)}") from error


def _shown(error: Exception) -> str:
    """Return the message of an error, cut after 2000 characters; the name of its class if there is no message."""
    try:
        text = str(error) or type(error).__name__
    except Exception:
        text = type(error).__name__
    return text if len(text) <= 2000 else text[:2000] + "…"


@cached(16)
def _compiled(template: str) -> Any:
    return _environment().compiled(template)


@cached(1)
def _environment() -> Any:
    from guideway.tokenizers.template_sandbox import TemplateSandbox

    environment = TemplateSandbox(["jinja2.ext.loopcontrols", _generation_extension()])
    environment.add_filter("tojson", _to_json)
    environment.count_work()
    environment.globals["raise_exception"] = _refuse
    environment.globals["strftime_now"] = _now
    return environment


def _refuse(message: object = "") -> NoReturn:
    from jinja2 import TemplateError

    from guideway.tokenizers.template_sandbox import text_of

    raise TemplateError(text_of(message))


def _now(form: str) -> str:
    """Return the time in a format of `strftime`. A format of more than 200 characters raises `LimitExceededError`."""
    if len(form) > 200:
        raise LimitExceededError(f"the time format of the chat template has {len(form):,} characters; the limit is 200")
    return datetime.datetime.now().strftime(form)


@cached(1)
def _generation_extension() -> Any:
    """Return the Jinja extension for `{% generation %}`, which marks replies for training and renders its content."""
    from jinja2.ext import Extension
    from jinja2.nodes import CallBlock

    class Generation(Extension):
        tags = {"generation"}  # noqa: RUF012  # the interface of Jinja

        def parse(self, parser: Any) -> Any:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

        def _body(self, caller: Any) -> Any:
            return caller()

    return Generation


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


# The values that a template gets.


def plain(value: object, what: str, units: list[int], depth: int = 0) -> Any:
    """Return a copy of a value that consists of JSON values only.

    Dataclasses and pydantic models become dicts, and NumPy scalars numbers. Any other object becomes a text with the
    name of its class. Tuples remain tuples.

    Args:
        value: The value.
        what: The name of the value, for errors.
        units: A list of one number, to which the size is added: the number of values, and the characters divided by 64.
        depth: The number of containers around the value.

    Raises:
        ChatTemplateError: The value is nested deeper than `MAX_DEPTH`.
    """
    if depth > MAX_DEPTH:  # bounds the recursion
        raise ChatTemplateError(f"{what} of the chat template are nested deeper than {MAX_DEPTH} levels")
    units[0] += 1
    if value is None or type(value) in (bool, int, float):
        return value
    if isinstance(value, str):
        units[0] += len(value) >> 6
        return str.__str__(value)
    if isinstance(value, Mapping):
        return {plain(key, what, units, depth + 1): plain(one, what, units, depth + 1) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        copied = [plain(one, what, units, depth + 1) for one in value]
        return copied if isinstance(value, list) else tuple(copied)
    return _plain_object(value, what, units, depth)


def _plain_object(value: object, what: str, units: list[int], depth: int) -> Any:
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, float):
        return float.__float__(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        found: object = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    elif callable(dump := getattr(value, "model_dump", None)):
        found = dump()
    elif type(value).__module__ == "numpy" and callable(item := getattr(value, "item", None)) and _is_scalar(value):
        found = item()
    else:
        return f"<{type(value).__name__}>"
    return plain(found, what, units, depth + 1)


def _is_scalar(value: object) -> bool:
    return getattr(value, "shape", None) == ()


def _plain_messages(messages: Sequence[Mapping[str, object]]) -> list[dict[str, Any]]:
    """Return copies of messages without the keys whose value is None.

    The reasoning of a message gets both keys that templates read, "thinking" and "reasoning_content".
    """
    chat: list[dict[str, Any]] = []
    for number, message in enumerate(messages, 1):
        if not isinstance(message, Mapping):
            raise TypeError(f"message {number} of {len(messages)} must be a dict, got {type(message).__name__}")
        one: dict[str, Any] = {key: value for key, value in message.items() if value is not None}
        reasoning = next((one[key] for key in _REASONING if key in one), None)
        if reasoning is not None:
            one = {"thinking": reasoning, **one, "reasoning_content": reasoning}
        chat.append(one)
    return chat


def _tool(tool: Any) -> Any:
    """Return a tool as a mapping, as the OpenAI API writes it."""
    if isinstance(tool, Mapping):
        return tool
    convert = getattr(tool, "to_openai", None)
    if convert is None:
        if not callable(tool):
            raise TypeError(f"a tool must be a dict with a JSON Schema, a Tool or a function, got {short_repr(tool)}")
        # `guideway.constraints` imports this package, so `Tool` is imported here, only for a Python function.
        convert = importlib.import_module("guideway.constraints.tools").Tool.of(tool).to_openai
    return convert()


# The continuation of the last message.


def _tagged(chat: list[dict[str, Any]], key: str, template: str) -> str:
    """Append `_TAG` to the text of the last message, in place, and return the text without `_TAG`.

    Raises:
        ChatTemplateError: There is no message, the last one has no such text, or the template does not use its key.
    """
    if not chat:
        raise ChatTemplateError("continue_final_message needs a message")
    final = chat[-1]
    text = final.get(key)
    if text is None:
        raise ChatTemplateError(f"continue_final_message: the last message has no {key!r} to continue")
    keys = [one for one in _REASONING if final.get(one) == text] if key in _REASONING else [key]
    if not any(one in template for one in keys):
        raise ChatTemplateError(f"continue_final_message: the chat template does not use the key {key!r}")
    if isinstance(text, (list, tuple)):
        parts = [dict(part) if isinstance(part, Mapping) else part for part in text]
        last = next((part for part in reversed(parts) if isinstance(part, dict) and "text" in part), None)
        if last is None:
            raise ChatTemplateError("continue_final_message: the last message has no text to continue")
        found = str(last["text"])
        last["text"], final[key] = found + _TAG, parts
        return found
    for one in keys:
        final[one] = str(text) + _TAG
    return str(text)


def _cut(text: str, final: str) -> str:
    """Return the rendered text up to `_TAG`, which marks the end of the text `final` of the last message.

    Raises `ChatTemplateError` if the rendered text lacks `_TAG` or the text `final`.
    """
    at = text.rfind(_TAG.strip())
    if at < 0 or final.strip() not in text:
        raise ChatTemplateError(
            "continue_final_message: the last message does not appear in the text of the chat template, which may"
            " remove parts of it"
        )
    return text[:at] if text.startswith(_TAG, at) else text[:at].rstrip()
