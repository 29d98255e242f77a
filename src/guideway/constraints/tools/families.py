"""The notations of tool calls of model families, from their published chat templates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from guideway.arguments import short_repr
from guideway.errors import InvalidConstraintError, UnsupportedError
from guideway.jsontext.copying import SURROGATE

__all__ = ["FAMILIES", "NAME_KEY", "Family", "family_of"]

NAME_KEY = '{"name": "'
"""The beginning of a call that is a JSON object with the name of the tool."""


@dataclass(frozen=True)
class Family:
    """How a model family writes replies with tool calls.

    A reply is text, or text followed by `opening`, calls with `separator` between them, and `closing`. A call is
    `prefix`, name, `middle`, arguments and `suffix`. With an empty `trigger`, or with `answer`, no text precedes the
    calls.

    Attributes:
        prefix: The text before the name of a call.
        middle: The text between name and arguments.
        suffix: The text after the arguments.
        trigger: The text with which `opening` begins, or the first call if `opening` is empty. The text before the
            calls does not contain it. "": a reply with calls has no text before them, and its beginning after the
            reasoning matches `begins`.
        opening: The text before the first call.
        separator: The text between two calls.
        closing: The text after the last call.
        begins: The pattern that the beginning of a reply with calls matches, if `trigger` is "". A reply without calls
            does not match it, neither at its beginning nor after its reasoning.
        lead: A text that may precede `opening`. It is not part of the text of the reply.
        call_id: The texts before and after the id of a call. The id may be missing; it has nine letters and digits. It
            follows the name; in a call that is a JSON object, it follows the arguments. None: calls have no id.
        arguments: "json" (one JSON object), "pairs" (keys and values between the texts of `pair`: strings without
            quotes, other values as JSON) or "python" (keyword arguments).
        pair: Three texts: before a key, between key and value, and after a value.
        several: Whether one reply may have more than one call.
        thoughts: The texts before and after reasoning, which may begin a reply; None: there is no reasoning.
        answer: The marker before the text of a reply, used by Harmony; "": there is none.
        special: Texts in the other attributes that are special tokens, if the vocabulary has them.
    """

    prefix: str
    middle: str
    suffix: str
    trigger: str = ""
    opening: str = ""
    separator: str = ""
    closing: str = ""
    begins: str = ""
    lead: str = ""
    call_id: tuple[str, str] | None = None
    arguments: Literal["json", "pairs", "python"] = "json"
    pair: tuple[str, str, str] = ("<arg_key>", "</arg_key>\n<arg_value>", "</arg_value>\n")
    several: bool = True
    thoughts: tuple[str, str] | None = None
    answer: str = ""
    special: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the types, which a wire document can have wrong. Raises `InvalidConstraintError`."""
        if self.arguments not in ("json", "pairs", "python"):
            raise _wrong("arguments", '"json", "pairs" or "python"', self.arguments)
        if not isinstance(self.several, bool):
            raise _wrong("several", "a bool", self.several)
        for name in ("call_id", "pair", "thoughts", "special"):
            texts = getattr(self, name)
            if texts is None and name in ("call_id", "thoughts"):
                continue
            size = {"pair": 3, "special": None}.get(name, 2)
            if not isinstance(texts, tuple) or not all(map(_is_text, texts)) or len(texts) != (size or len(texts)):
                raise _wrong(name, f"a tuple of {size} texts" if size else "a tuple of texts", texts)
        for name in _TEXTS:
            if not _is_text(getattr(self, name)):
                raise _wrong(name, "a text without lone surrogates", getattr(self, name))

    @property
    def is_object(self) -> bool:
        """Whether a call is one JSON object that contains the name."""
        return NAME_KEY in self.prefix


_TEXTS = ("prefix", "middle", "suffix", "trigger", "opening", "separator", "closing", "begins", "lead", "answer")


def _is_text(value: object) -> bool:
    return isinstance(value, str) and not SURROGATE.search(value)


def _wrong(name: str, expected: str, value: object) -> InvalidConstraintError:
    return InvalidConstraintError(f"{name} of a family must be {expected}, got {short_repr(value)}")


_THINK = ("<think>", "</think>")
_HERMES = Family(
    trigger="<tool_call>",
    prefix='<tool_call>\n{"name": "',
    middle='", "arguments": ',
    suffix="}\n</tool_call>",
    separator="\n",
    thoughts=_THINK,
    special=("<tool_call>", "</tool_call>", *_THINK),
)
_DEEPSEEK = tuple(f"<｜tool▁{part}｜>" for part in ("calls▁begin", "calls▁end", "call▁begin", "call▁end", "sep"))
_HARMONY = tuple(f"<|{part}|>" for part in ("start", "channel", "constrain", "message", "end", "call"))

FAMILIES: dict[str, Family] = {
    "llama": Family(
        prefix='{"name": "',
        middle='", "parameters": ',
        suffix="}",
        separator="; ",
        begins=r'\s*(?:<\|python_(?:tag|start)\|>|(?:\[\s*)?\{\s*"(?:type|name|function|arguments|parameters)"\s*:)',
        lead="<|python_tag|>",
        special=("<|python_tag|>",),
    ),
    "llama-pythonic": Family(
        opening="[",
        prefix="",
        middle="",
        suffix="",
        separator=", ",
        closing="]",
        arguments="python",
        begins=r"\s*(?:<\|python_(?:tag|start)\|>|\[\s*[A-Za-z_][A-Za-z0-9_.]*\s*\()",
    ),
    "hermes": _HERMES,
    "qwen": _HERMES,
    "qwen-coder": Family(
        trigger="<tool_call>",
        prefix="<tool_call>\n<function=",
        middle=">\n",
        suffix="</function>\n</tool_call>",
        separator="\n",
        arguments="pairs",
        pair=("<parameter=", ">\n", "\n</parameter>\n"),
        thoughts=_THINK,
        special=("<tool_call>", "</tool_call>", *_THINK),
    ),
    "mistral": Family(
        trigger="[TOOL_CALLS]",
        opening="[TOOL_CALLS][",
        prefix='{"name": "',
        middle='", "arguments": ',
        suffix="}",
        separator=", ",
        closing="]",
        call_id=(', "id": "', '"'),
        special=("[TOOL_CALLS]",),
    ),
    "mistral-v11": Family(
        trigger="[TOOL_CALLS]",
        prefix="[TOOL_CALLS]",
        middle="[ARGS]",
        suffix="",
        call_id=("[CALL_ID]", ""),
        thoughts=("[THINK]", "[/THINK]"),
        special=("[TOOL_CALLS]", "[ARGS]", "[CALL_ID]", "[THINK]", "[/THINK]"),
    ),
    "deepseek": Family(
        trigger="<｜tool▁calls▁begin｜>",
        opening="<｜tool▁calls▁begin｜>",
        prefix="<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
        middle="\n```json\n",
        suffix="\n```<｜tool▁call▁end｜>",
        separator="\n",
        closing="<｜tool▁calls▁end｜>",
        thoughts=_THINK,
        special=(*_DEEPSEEK, *_THINK),
    ),
    "deepseek-v3.1": Family(
        trigger="<｜tool▁calls▁begin｜>",
        opening="<｜tool▁calls▁begin｜>",
        prefix="<｜tool▁call▁begin｜>",
        middle="<｜tool▁sep｜>",
        suffix="<｜tool▁call▁end｜>",
        closing="<｜tool▁calls▁end｜>",
        thoughts=_THINK,
        special=(*_DEEPSEEK, *_THINK),
    ),
    "glm": Family(
        trigger="<tool_call>",
        prefix="<tool_call>",
        middle="\n",
        suffix="</tool_call>",
        separator="\n",
        arguments="pairs",
        thoughts=_THINK,
        special=("<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", *_THINK),
    ),
    "harmony": Family(
        trigger="<|",
        prefix="<|channel|>commentary to=functions.",
        middle=" <|constrain|>json<|message|>",
        suffix="<|call|>",
        several=False,
        thoughts=("<|channel|>analysis<|message|>", "<|end|><|start|>assistant"),
        answer="<|channel|>final<|message|>",
        special=_HARMONY,
    ),
}
"""The families by name.

Llama 3 and 4 (JSON notation, and Python notation), Hermes, Qwen 2.5 and 3, Qwen3-Coder, Mistral (up to tokenizer
version 10, and from version 11), DeepSeek V3 and R1, DeepSeek V3.1, GLM 4.5, gpt-oss (Harmony).
"""

# For each family, texts that all occur in its chat templates. The first row that applies determines the family.
_SIGNS = (
    (("<｜tool▁call▁begin｜>", "```json"), "deepseek"),
    (("<｜tool▁call▁begin｜>",), "deepseek-v3.1"),
    (("<arg_key>",), "glm"),
    (("[TOOL_CALLS]", "[ARGS]"), "mistral-v11"),
    (("[TOOL_CALLS]",), "mistral"),
    (("<|channel|>",), "harmony"),
    (("<tool_call>", "<function="), "qwen-coder"),
    (("<tool_call>",), "hermes"),
    (("[func_name1(",), "llama-pythonic"),
    (("<|python_tag|>",), "llama"),
    (("<|python_start|>",), "llama"),
    (('"parameters": dictionary',), "llama"),
)


def family_of(chat_template: str) -> str:
    """Return the name of the family whose notation of tool calls a chat template uses.

    Raises `UnsupportedError` if the template has no known notation.
    """
    for signs, name in _SIGNS:
        if all(sign in chat_template for sign in signs):
            return name
    raise UnsupportedError(
        f"the chat template has no known notation of tool calls; pass family=, one of {', '.join(FAMILIES)}"
    )
