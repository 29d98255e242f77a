"""Chat templates: Jinja in a sandbox, as transformers renders them."""

from __future__ import annotations

import datetime
import functools
import json
from collections.abc import Mapping, Sequence
from typing import Any

from guideway.errors import ChatTemplateError, MissingDependencyError

__all__ = ["render_template"]


def render_template(
    template: str | None,
    messages: Sequence[Mapping[str, object]],
    *,
    special_tokens: Mapping[str, object],
    tools: Sequence[object] | None = None,
    documents: Sequence[object] | None = None,
) -> str:
    """Render a prompt that ends where the reply of the model begins.

    Args:
        template: A Jinja template, or None.
        messages: Messages with the keys "role" and "content".
        special_tokens: Texts of special tokens by name, such as "bos_token".
        tools: Tools as JSON values.
        documents: Documents as JSON values.

    Raises:
        ChatTemplateError: There is no template, or it raised an error.
        MissingDependencyError: jinja2 is not installed.
    """
    if template is None:
        raise ChatTemplateError("the tokenizer has no chat template; pass the prompt as one string")
    try:
        from jinja2 import TemplateError
        from jinja2.sandbox import ImmutableSandboxedEnvironment
    except ImportError:
        raise MissingDependencyError(
            "chat templates need the package jinja2, which is not installed: pip install 'guideway[chat]'"
        ) from None

    def refuse(message: str) -> None:
        raise TemplateError(message)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", _generation_extension()]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)
    try:
        return environment.from_string(template).render(
            messages=[dict(message) for message in messages],
            tools=tools,
            documents=documents,
            add_generation_prompt=True,
            **special_tokens,
        )
    except Exception as error:  # a template is untrusted code and can raise anything
        raise ChatTemplateError(f"the chat template failed for these messages: {error}") from error


@functools.cache
def _generation_extension() -> Any:
    """Return the Jinja extension for `{% generation %}`, which marks replies in training texts and changes no text."""
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
