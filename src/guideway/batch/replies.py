"""The prompt of a chat request, and the constraint on its whole reply: reasoning, tool calls and answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from guideway.batch.requests import BatchRequest
from guideway.batch.tool_fields import ToolFields
from guideway.constraints import Constraint, ToolCalls, of
from guideway.constraints.tools import FAMILIES, Family, family_of
from guideway.constraints.tools.structured_reply import StructuredReply
from guideway.errors import InvalidRequestError, UnsupportedError
from guideway.sessions import ModelBase

__all__ = ["chat_prompt", "family_of_prompt", "reply_of"]


def chat_prompt(model: ModelBase, request: BatchRequest) -> str:
    """Return the prompt of a chat request, rendered by the chat template of the model.

    Raises:
        ChatTemplateError: There is no template, or it rejects the messages.
        InvalidRequestError: The request sets a reasoning effort other than "none", but the chat template contains
            neither of the variables `reasoning_effort` and `enable_thinking`.
    """
    messages: Sequence[Mapping[str, Any]] = request.prompts()[0]
    instructions = request.details.get("instructions")
    if instructions is not None:
        messages = [{"role": "system", "content": instructions}, *messages]
    tools: ToolFields | None = request.details.get("tools")
    shown = list(tools.shown) if tools is not None else None
    return model.tokenizer.render_chat(messages, tools=shown, **_template_options(model, request))


def _template_options(model: ModelBase, request: BatchRequest) -> dict[str, Any]:
    effort = request.details.get("effort")
    if effort is None:
        return {}
    template = model.tokenizer.chat_template or ""
    if "reasoning_effort" in template:
        return {"reasoning_effort": effort}
    if "enable_thinking" in template:
        return {"enable_thinking": effort != "none"}
    if effort == "none":
        return {}
    param = "reasoning.effort" if request.endpoint == "/v1/responses" else "reasoning_effort"
    raise InvalidRequestError(
        "the chat template of this model has no reasoning effort; omit it or send 'none'",
        param,
        "unsupported_parameter",
    )


def family_of_prompt(model: ModelBase, request: BatchRequest, prompt: str) -> Family | None:
    """Return the notation of the replies to a request; None: the chat template is unknown, and there are no tools.

    A notation with `answer` is returned unchanged. In other notations, `thoughts` is None if the template has no
    reasoning or the request switches it off. If the prompt ends with the text that begins the reasoning, the first text
    of `thoughts` is "", because the reply continues after this text.
    """
    template = model.tokenizer.chat_template or ""
    tools: ToolFields | None = request.details.get("tools")
    try:
        family = FAMILIES[family_of(template)]
    except UnsupportedError:
        return None if tools is None else replace(FAMILIES["hermes"], thoughts=None)
    if family.thoughts is None or family.answer:
        return family
    before, after = family.thoughts
    if before not in template or request.details.get("effort") == "none":
        return replace(family, thoughts=None)
    return replace(family, thoughts=("", after)) if prompt.rstrip().endswith(before) else family


def reply_of(request: BatchRequest, family: Family | None) -> Constraint[Any] | None:
    """Return the constraint on a whole reply; None: free text.

    The value of the result is a `Reply`, unless the result is the constraint of the request itself.

    Args:
        request: The request.
        family: The notation of the replies, from `family_of_prompt`.

    Raises:
        ConstraintError: The tools and the answer cannot be combined exactly.
    """
    tools: ToolFields | None = request.details.get("tools")
    answer = None if request.output is None else of(request.output)
    if family is None:
        return answer
    thoughts = family.thoughts
    if tools is not None and not (tools.choice == "none" and answer is not None):
        choice = "required" if answer is not None and tools.choice == "auto" else tools.choice
        calls = ToolCalls(tools.tools, family=family, choice=choice, parallel=tools.parallel)
        if answer is None or tools.choice != "auto":
            return calls
        return StructuredReply(answer, calls=calls, thoughts=thoughts, opening=family.answer, special=family.special)
    if answer is not None and (thoughts is not None or family.answer):
        return StructuredReply(answer, thoughts=thoughts, opening=family.answer, special=family.special)
    if answer is not None or thoughts is None:
        return answer
    if any(request.options.get(name) for name in ("stop", "stop_token_ids")):
        return None  # stop strings and stop tokens are refused with a constraint; the reasoning stays in the text
    return ToolCalls([], family=family, choice="none")
