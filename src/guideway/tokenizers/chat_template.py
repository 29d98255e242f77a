"""Chat templates: Jinja in a sandbox, as transformers renders them."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from typing import Any

from guideway.errors import ChatTemplateError, MissingDependencyError

__all__ = ["render_template"]


def render_template(
    template: str | None, messages: Sequence[Mapping[str, object]], *, bos_token: str, eos_token: str
) -> str:
    """Render a prompt that ends where the reply of the model begins.

    Args:
        template: A Jinja template, or None.
        messages: Messages with the keys "role" and "content".
        bos_token: Text of the BOS token.
        eos_token: Text of the EOS token.

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
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)
    try:
        return environment.from_string(template).render(
            messages=[dict(message) for message in messages],
            add_generation_prompt=True,
            bos_token=bos_token,
            eos_token=eos_token,
        )
    except Exception as error:  # a template is untrusted code and can raise anything
        raise ChatTemplateError(f"the chat template failed for these messages: {error}") from error


def _to_json(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)
