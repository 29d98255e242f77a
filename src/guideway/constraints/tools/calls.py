"""`ToolCalls`: the grammar of replies with tool calls, and the parser of their values."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from guideway.arguments import short_list, short_repr
from guideway.caching import cached_property
from guideway.constraints.base import Constraint
from guideway.constraints.captures import Rules
from guideway.constraints.embed import term_of
from guideway.constraints.known import DeferredLowering
from guideway.constraints.special_token import marker, up_to_marker
from guideway.constraints.tags import without
from guideway.constraints.tools.arguments import is_text, pairs, properties, python
from guideway.constraints.tools.families import FAMILIES, Family, family_of
from guideway.constraints.tools.reply_parser import NUMBERS, Found, read
from guideway.constraints.tools.tool import Tool, named
from guideway.errors import (
    ConstraintError,
    InvalidConstraintError,
    InvalidTextError,
    UnsatisfiableError,
    UnsupportedError,
)
from guideway.frontends.regex import parse_pattern
from guideway.grammar.cfg import Alternation, Concatenation, Repetition, Rule, Term, Text, lower
from guideway.grammar.nodes import Grammar
from guideway.grammar.recognizer import byte_automaton, fits
from guideway.grammar.regular import (
    ANY_CHAR,
    ANY_TEXT,
    EMPTY,
    Complement,
    Concat,
    Intersection,
    Regular,
    Repeat,
    Union,
    chars,
    literal,
)
from guideway.jsontext.decoder import float_json, loads
from guideway.jsontext.encoder import exact_json
from guideway.tokenizers.tokenizer import Tokenizer

__all__ = ["Reply", "ToolCall", "ToolCalls"]

_ID = Repeat(chars("az", "AZ", "09"), 9, 9)


class HasTokenizer(Protocol):
    """An object with a tokenizer, such as a model."""

    @property
    def tokenizer(self) -> Tokenizer:
        """Its tokenizer."""


@dataclass(frozen=True)
class ToolCall:
    """A tool call.

    Attributes:
        name: The name of the tool.
        arguments: The arguments, as the constraint `Tool.parameters` parses them: a dict, or an instance of its type.
        id: The id of the call; "": it has none.
    """

    name: str
    arguments: Any
    id: str = ""
    _parsed: tuple[Any, Any] | None = field(default=None, repr=False, compare=False)
    """The arguments, and the JSON values that they were parsed from; None for a call that was not parsed."""

    def json_arguments(self) -> Any:
        """Return the arguments as JSON values.

        If the call was parsed from a text, and `arguments` was not replaced, these are the values of the text. Numbers
        are int or float. Otherwise Pydantic converts `arguments`, with serialisation aliases.

        Raises:
            ValueError: A value has no JSON text, such as infinity or bytes that are not UTF-8.
        """
        if self._parsed is not None and self._parsed[0] is self.arguments:
            return self._parsed[1]
        from pydantic_core import PydanticSerializationError, to_jsonable_python

        try:
            values = to_jsonable_python(self.arguments, by_alias=True)
            json.dumps(values, allow_nan=False)
        except (PydanticSerializationError, ValueError) as error:
            raise ValueError(
                f"the arguments of the call of {short_repr(self.name)} have no JSON text: {error}"
            ) from error
        return values


@dataclass(frozen=True)
class Reply:
    """A reply of a model.

    Attributes:
        text: The text, without tool calls and reasoning.
        calls: The tool calls, in order.
        reasoning: The reasoning text; "": there is none.
    """

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    reasoning: str = ""

    def as_message(self, *, arguments: Literal["object", "json"] = "object") -> dict[str, Any]:
        """Return the reply as a message, to append to the messages of the next prompt.

        Args:
            arguments: How the arguments of calls are written: "object" (as JSON values, for chat templates), or "json"
                (as JSON text, for the OpenAI API).

        Returns:
            A dict with "role" and "content", and with "reasoning_content" and "tool_calls" if the reply has them.

        Raises:
            ValueError: `arguments` has another value, or the arguments of a call have no JSON text.
        """
        if arguments not in ("object", "json"):
            raise ValueError(f'arguments must be "object" or "json", got {short_repr(arguments)}')
        message: dict[str, Any] = {"role": "assistant", "content": self.text}
        if self.reasoning:
            message["reasoning_content"] = self.reasoning
        if self.calls:
            message["tool_calls"] = calls = []
            for call in self.calls:
                values = call.json_arguments()
                function = {
                    "name": call.name,
                    "arguments": values if arguments == "object" else exact_json(values),
                }
                calls.append({**({"id": call.id} if call.id else {}), "type": "function", "function": function})
        return message


class ToolCalls(DeferredLowering, Constraint[Reply]):
    """Replies that may, must or must not call tools, in the notation of a model family. The value is a `Reply`.

    `parse` accepts more than the grammar generates: other white space, other JSON spellings and missing end markers,
    as models of the family write them without a constraint.

    Args:
        tools: The tools, each a `Tool` or a value that `Tool.of` accepts.
        family: A name in `FAMILIES`, a `Family`, or a tokenizer or a model, whose chat template determines the family.
            None: the constraint has the family "hermes", and `generate` and similar functions replace it by the family
            of the model's chat template, if that is known.
        choice: "auto" (text, or text and calls), "required" (at least one call), "none" (text), or the one tool to
            call, by name or as the OpenAI API writes it.
        parallel: Whether a reply may have several calls, if the family supports that. None: True unless `choice` is a
            tool.

    Raises:
        InvalidConstraintError: An argument is not valid.
        UnsupportedError: The chat template has no known notation of tool calls, or the notation of the family cannot
            express the arguments of a tool.
    """

    def __init__(
        self,
        tools: Iterable[Tool | Mapping[str, Any] | Callable[..., Any]],
        *,
        family: str | Family | Tokenizer | HasTokenizer | None = None,
        choice: Literal["auto", "required", "none"] | str | Mapping[str, Any] = "auto",
        parallel: bool | None = None,
    ) -> None:
        if isinstance(tools, (str, bytes, Mapping, Tool)) or not isinstance(tools, Iterable):
            raise InvalidConstraintError(
                f"tools must be a list of tools, functions or dicts, got {type(tools).__name__}"
            )
        if parallel is not None and not isinstance(parallel, bool):
            raise InvalidConstraintError(f"parallel must be True, False or None, got {short_repr(parallel)}")
        self.tools = tuple(map(Tool.of, tools))
        names = [tool.name for tool in self.tools]
        if len(set(names)) < len(names):
            twice = sorted({name for name in names if names.count(name) > 1})
            raise InvalidConstraintError(
                f"tool names must be unique, got {short_list(map(repr, twice))} more than once"
            )
        self.choice = _chosen(choice, names)
        self.parallel = self.choice not in names if parallel is None else parallel
        if not self.tools and self.choice != "none":
            raise InvalidConstraintError(f"choice {self.choice!r} needs at least one tool; pass tools or choice='none'")
        self.has_default_family = family is None
        self.family = _family("hermes" if family is None else family)
        self._called = {tool.name: tool for tool in self.tools if self.choice in ("auto", "required", tool.name)}
        self._prepare(*(tool.parameters for tool in self.tools))

    @classmethod
    def _named_arguments(cls, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Replace a tokenizer or a model by the family of its chat template."""
        family = kwargs.get("family")
        if family is None or isinstance(family, (str, Family)):
            return args, kwargs
        return args, {**kwargs, "family": _family(family)}

    @cached_property
    def _rules(self) -> list[Rule]:
        return [Rule("reply", self._reply())]

    @cached_property
    def _grammar(self) -> Grammar:
        return lower(self._rules, "reply").grammar

    @cached_property
    def _without_reasoning(self) -> Grammar:
        return lower([Rule("reply", self._choice())], "reply").grammar

    def for_tokenizer(self, tokenizer: Tokenizer | None) -> ToolCalls:
        """Return the constraint with the family of a tokenizer's chat template, or itself if the family was given.

        Args:
            tokenizer: The tokenizer. If it is None or its template has no known notation of tool calls, the family is
                "hermes".
        """
        if not self.has_default_family:
            return self
        try:
            family = "hermes" if tokenizer is None else family_of(tokenizer.template_for(self.tools or None) or "")
        except UnsupportedError:
            family = "hermes"
        return ToolCalls(self.tools, family=family, choice=self.choice, parallel=self.parallel)

    # The grammar.

    def _marker(self, text: str) -> Term:
        return marker(text, self.family.special)

    def _reply(self) -> Term:
        family = self.family
        reply = self._choice()
        if family.thoughts is None:
            return reply
        before, after = family.thoughts
        if family.answer:  # the parser of channels takes each marker for one, so reasoning contains none
            inside: Term = Concatenation((Text(without(family.trigger)), self._marker(after)))
        else:
            inside = up_to_marker(after, family.special)
        return Concatenation((Repetition(Concatenation((self._marker(before), inside)), 0, 1), reply))

    def _choice(self) -> Term:
        family = self.family
        if family.trigger:
            text: Term = Text(without(family.trigger))
        else:
            text = Text(Complement(Concat((self._thought(), parse_pattern(family.begins, "python"), ANY_TEXT))))
        text = Concatenation((self._marker(family.answer), text))
        if self.choice == "none":
            return text
        if self.choice != "auto":
            return self._calls("")
        if not family.trigger or family.answer:
            return Alternation((text, self._calls("")))
        return Alternation(
            (text, Concatenation((up_to_marker(family.trigger, family.special), self._calls(family.trigger))))
        )

    def _thought(self) -> Regular:
        """Return the texts that `parse` reads as the reasoning of a reply, and the empty text."""
        if self.family.thoughts is None:
            return EMPTY
        before, after = map(literal, self.family.thoughts)
        early = Concat((ANY_TEXT, after, ANY_CHAR, ANY_TEXT))
        first = Intersection((Concat((ANY_TEXT, after)), Complement(early)))
        return Union((EMPTY, Concat((parse_pattern(r"\s*", "python"), before, first))))

    def _calls(self, written: str) -> Term:
        """Return the term of the calls, without their beginning `written`, which precedes the term.

        Before that beginning, the text before the calls can end with `Family.lead`.
        """
        family = self.family
        lead = Repetition(self._marker(family.lead), 0, 1 if family.lead and not written else 0)
        first = self._marker((family.opening + family.prefix)[len(written) :])
        one = Alternation(tuple(map(self._call, self._called.values())))
        several = self.parallel and family.several
        more = Repetition(
            Concatenation((self._marker(family.separator + family.prefix), one)), 0, None if several else 0
        )
        return Concatenation((lead, first, one, more, self._marker(family.closing)))

    def _call(self, tool: Tool) -> Term:
        family = self.family
        before, after = family.call_id or ("", "")
        call_id = Repetition(
            Concatenation((self._marker(before), Text(_ID), self._marker(after))), 0, 1 if family.call_id else 0
        )
        forms: dict[str, Callable[[], Term]] = {
            "json": lambda: term_of(tool.parameters.capture(tool.name)),
            "pairs": lambda: pairs(tool, family),
            "python": lambda: python(tool),
        }
        name, middle, suffix = (self._marker(text) for text in (tool.name, family.middle, family.suffix))
        try:
            arguments = forms[family.arguments]()
        except ConstraintError as error:
            raise named(error, tool.name) from error
        parts = (name, middle, arguments, call_id) if family.is_object else (name, call_id, middle, arguments)
        return Concatenation((*parts, suffix))

    def grammar(self) -> Grammar:
        """Return the lowered rules."""
        return self._grammar

    def shape(self) -> Rules:
        """Return the rules of a reply. Arguments that are written as JSON are a capture with the name of their tool."""
        return Rules(tuple(self._rules), "reply")

    def conflict(self, place: str | None) -> str | None:
        """Explain why no reply is possible; see `Constraint.conflict`. `place` is not used.

        Returns:
            A phrase for the error message that names up to five tools whose `parameters` allow no value; None: there
            are no such tools.
        """
        wrong = [name for name, tool in self._called.items() if not _has_arguments(tool)]
        return f"the parameters of {short_list(map(repr, wrong[:5]))}" if wrong else None

    # The parser.

    def parse(self, text: str) -> Reply:
        """Return the text, the calls and the reasoning of a reply.

        Raises:
            InvalidTextError: A part of the reply cannot be parsed, a call is not allowed, there are too many calls, or
                a required call is missing.
        """
        found = self.found(text)
        calls = tuple(self._read(*call) for call in found.calls)
        if not calls and self.choice not in ("auto", "none"):
            raise InvalidTextError(f"expected a tool call, found {text[:80]!r}")
        if len(calls) > 1 and not (self.parallel and self.family.several):
            raise InvalidTextError(f"expected at most one tool call, found {len(calls)} in {text[:80]!r}")
        return Reply(found.text, calls, found.reasoning)

    def found(self, text: str) -> Found:
        """Return the parts of a reply, without a check of the calls. Raises `InvalidTextError` if one cannot be parsed."""
        names = {tool.name for tool in self.tools}
        return read(self.family, text, names, self.is_text, lambda one: fits(self._without_reasoning, one))

    def _read(self, name: str, arguments: Any, call_id: str) -> ToolCall:
        if name not in self._called:
            raise InvalidTextError(
                f"tool {short_repr(name)} may not be called; callable tools: {short_list(self._called) or 'none'}"
            )
        arguments, value = _read_arguments(self._called[name], arguments)
        return ToolCall(name, value, call_id, (value, arguments))

    def is_text(self, name: str, key: str) -> bool:
        """Return whether a value among `pairs` is written as text: an argument `key` of the tool `name`."""
        tool = self._called.get(name)
        return tool is None or any(one == key and is_text(tool, schema) for one, schema, _ in properties(tool))

    def _content(self) -> object:
        return self.tools, self.family, self.has_default_family, self.choice, self.parallel

    def __repr__(self) -> str:
        return f"ToolCalls({list(self.tools)!r}, choice={self.choice!r})"


def _chosen(choice: object, names: list[str]) -> str:
    """Return the choice as a str: "auto", "required", "none" or a name of `names`. Accepts the forms of common APIs."""
    if isinstance(choice, Mapping):
        inner = choice.get("function", choice)
        choice = inner.get("name") if isinstance(inner, Mapping) else None
    choice = "required" if choice == "any" and "any" not in names else choice
    if not isinstance(choice, str) or choice not in ("auto", "required", "none", *names):
        raise InvalidConstraintError(
            f"choice must be 'auto', 'required', 'none' or one of {names}, got {short_repr(choice)}"
        )
    return choice


def _read_arguments(tool: Tool, given: Any) -> tuple[Any, Any]:
    """Return the arguments of a call as JSON data, and their value.

    A str is the JSON text of the arguments, as in the OpenAI API, or the arguments themselves if the tool allows a str.

    Raises:
        InvalidTextError: The tool does not allow the arguments.
    """
    if not isinstance(given, str):
        return float_json(given), tool.read(given)
    decoded = _decoded(given)
    first, second = (decoded, given) if isinstance(decoded, dict) else (given, decoded)
    try:
        return float_json(first), tool.read(first)
    except InvalidTextError:
        with suppress(InvalidTextError):
            return float_json(second), tool.read(second)
        raise


def _decoded(text: str) -> Any:
    """Return the value of a JSON text; the text itself if it is not JSON."""
    try:
        return loads(text, **NUMBERS)
    except (ValueError, ConstraintError):
        return text


def _has_arguments(tool: Tool) -> bool:
    try:
        byte_automaton(tool.parameters.grammar())
    except UnsatisfiableError:
        return False
    return True


def _family(family: object) -> Family:
    tokenizer = getattr(family, "tokenizer", family)
    if isinstance(tokenizer, Tokenizer):
        family = family_of(tokenizer.chat_template or "")
    if isinstance(family, Family):
        return family
    if not isinstance(family, str):
        raise InvalidConstraintError(
            f"family must be a name, a Family, a Tokenizer or a model, got {type(family).__name__}; known names: "
            f"{', '.join(FAMILIES)}"
        )
    if family not in FAMILIES:
        raise InvalidConstraintError(f"unknown family {short_repr(family)}; known families: {', '.join(FAMILIES)}")
    return FAMILIES[family]
