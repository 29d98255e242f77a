"""Replies with tool calls: what may be written, and what was meant."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from guideway.constraints.base import Constraint
from guideway.constraints.captures import Rules
from guideway.constraints.embed import term_of
from guideway.constraints.special_token import marker, up_to_marker
from guideway.constraints.tags import without
from guideway.constraints.tools.arguments import is_text, pairs, properties, python
from guideway.constraints.tools.families import FAMILIES, Family, family_of
from guideway.constraints.tools.reply_parser import read
from guideway.constraints.tools.tool import Tool
from guideway.errors import InvalidConstraintError, InvalidTextError
from guideway.frontends.regex import parse_pattern
from guideway.grammar.cfg import Choice, Rule, Series, Term, Text, Times, lower
from guideway.grammar.nodes import Grammar
from guideway.grammar.regular import ANY_TEXT, Cat, Not, Repeat, chars
from guideway.tokenizers.tokenizer import Tokenizer

__all__ = ["Reply", "ToolCall", "ToolCalls"]

_ID = Repeat(chars("az", "AZ", "09"), 9, 9)


class HasTokenizer(Protocol):
    """Such as a model."""

    @property
    def tokenizer(self) -> Tokenizer:
        """Its tokenizer."""


@dataclass(frozen=True)
class ToolCall:
    """A call as it was read: the tool's name, its arguments as the tool's constraint reads them, and its id if it has
    one.
    """

    name: str
    arguments: Any
    id: str = ""


@dataclass(frozen=True)
class Reply:
    """A reply as it was read."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    reasoning: str = ""


class ToolCalls(Constraint[Reply]):
    """Replies of a model that may, must or must not call tools, in the form of its family.

    `tools`: each a `Tool`, or what `Tool.of` takes. `family`: a name (`FAMILIES` has them), a `Family`, or a tokenizer
    or a model with one, whose chat template says it. `choice`: "auto" (text, or text and calls), "required" (calls at
    once), "none" (text), or the one tool that must be called, by its name or as APIs write it. `parallel`: whether a
    reply may hold several calls, where the family can; None: it may, but where one tool was chosen, which is then
    called once. The value is a `Reply`; it is read from what models of the family write, also where it is spaced or
    spelled in another way than this constraint would. Raises `InvalidConstraintError`, `UnsupportedError` where a template shows
    no family, `UnsupportedError` for arguments that a family cannot write.
    """

    def __init__(
        self,
        tools: Iterable[Tool | Mapping[str, Any] | Callable[..., Any]],
        *,
        family: str | Family | Tokenizer | HasTokenizer,
        choice: Literal["auto", "required", "none"] | str | Mapping[str, Any] = "auto",
        parallel: bool | None = None,
    ) -> None:
        if isinstance(tools, (str, bytes, Mapping, Tool)) or not isinstance(tools, Iterable):
            raise InvalidConstraintError(f"tools is a list of tools, functions or dicts, not {type(tools).__name__}")
        if parallel is not None and not isinstance(parallel, bool):
            raise InvalidConstraintError(f"parallel is True, False or None, not {parallel!r}")
        self.tools = tuple(map(Tool.of, tools))
        names = [tool.name for tool in self.tools]
        if len(set(names)) < len(names):
            raise InvalidConstraintError("two tools have one name")
        self.choice = _chosen(choice, names)
        self.parallel = self.choice not in names if parallel is None else parallel
        if not self.tools and self.choice != "none":
            raise InvalidConstraintError("there must be at least one tool")
        self.family = _family(family)
        self._called = {tool.name: tool for tool in self.tools if self.choice in ("auto", "required", tool.name)}
        self._rules = [Rule("reply", self._reply())]
        self._grammar = lower(self._rules, "reply").grammar

    # What may be written.

    def _marker(self, text: str) -> Term:
        return marker(text, self.family.special)

    def _reply(self) -> Term:
        family = self.family
        reply = self._choice()
        if family.thoughts is None:
            return reply
        before, after = family.thoughts
        inside = Text(without(family.trigger if family.answer else after))
        return Series((Times(Series((self._marker(before), inside, self._marker(after))), 0, 1), reply))

    def _choice(self) -> Term:
        family = self.family
        if family.trigger:
            text: Term = Text(without(family.trigger))
        else:
            text = Text(Not(Cat((parse_pattern(family.begins, "python"), ANY_TEXT))))
        text = Series((self._marker(family.answer), text))
        if self.choice == "none":
            return text
        if self.choice != "auto":
            return self._calls("")
        if not family.trigger or family.answer:
            return Choice((text, self._calls("")))
        return Choice((text, Series((up_to_marker(family.trigger, family.special), self._calls(family.trigger)))))

    def _calls(self, written: str) -> Term:
        """The calls, without what was `written` of them already."""
        family = self.family
        lead = Times(self._marker(family.lead), 0, 1 if family.lead else 0)
        first = self._marker((family.opening + family.prefix)[len(written) :])
        one = Choice(tuple(map(self._call, self._called.values())))
        several = self.parallel and family.several
        more = Times(Series((self._marker(family.separator + family.prefix), one)), 0, None if several else 0)
        return Series((lead, first, one, more, self._marker(family.closing)))

    def _call(self, tool: Tool) -> Term:
        family = self.family
        before, after = family.call_id or ("", "")
        call_id = Times(Series((self._marker(before), Text(_ID), self._marker(after))), 0, 1 if family.call_id else 0)
        forms: dict[str, Callable[[], Term]] = {
            "json": lambda: term_of(tool.parameters.capture(tool.name)),
            "pairs": lambda: pairs(tool, family),
            "python": lambda: python(tool),
        }
        name, middle, suffix = (self._marker(text) for text in (tool.name, family.middle, family.suffix))
        arguments = forms[family.arguments]()
        parts = (name, middle, arguments, call_id) if family.is_object else (name, call_id, middle, arguments)
        return Series((*parts, suffix))

    def grammar(self) -> Grammar:
        """Rules, lowered."""
        return self._grammar

    def shape(self) -> Rules:
        """The rules; JSON arguments have the name of their tool."""
        return Rules(tuple(self._rules), "reply")

    # What was meant.

    def parse(self, text: str) -> Reply:
        """The reply's text, calls and reasoning."""
        found = read(self.family, text, self._is_text)
        calls = tuple(self._read(*call) for call in found.calls)
        if not calls and self.choice not in ("auto", "none"):
            raise InvalidTextError(f"{text[:80]!r} calls no tool")
        if len(calls) > 1 and not (self.parallel and self.family.several):
            raise InvalidTextError(f"{text[:80]!r} holds {len(calls)} calls")
        return Reply(found.text, calls, found.reasoning)

    def _read(self, name: str, arguments: Any, call_id: str) -> ToolCall:
        if name not in self._called:
            raise InvalidTextError(f"{name!r} is not a tool that may be called here")
        return ToolCall(name, self._called[name].read(arguments), call_id)

    def _is_text(self, name: str, key: str) -> bool:
        tool = self._called.get(name)
        return tool is None or any(one == key and is_text(tool, schema) for one, schema, _ in properties(tool))

    def _content(self) -> object:
        return self.tools, self.family, self.choice, self.parallel

    def __repr__(self) -> str:
        return f"ToolCalls({list(self.tools)!r}, choice={self.choice!r})"


def _chosen(choice: object, names: list[str]) -> str:
    """A choice, as APIs write them too."""
    if isinstance(choice, Mapping):
        inner = choice.get("function", choice)
        choice = inner.get("name") if isinstance(inner, Mapping) else None
    choice = "required" if choice == "any" and "any" not in names else choice
    if not isinstance(choice, str) or choice not in ("auto", "required", "none", *names):
        raise InvalidConstraintError(
            f"the choice {choice!r} is neither 'auto', 'required' nor 'none', nor one of {names}"
        )
    return choice


def _family(family: object) -> Family:
    tokenizer = getattr(family, "tokenizer", family)
    if isinstance(tokenizer, Tokenizer):
        family = family_of(tokenizer.chat_template or "")
    if isinstance(family, Family):
        return family
    if not isinstance(family, str):
        raise InvalidConstraintError(
            f"family is a name, a Family, a Tokenizer or a model with one, not {type(family).__name__}; the names are "
            f"{', '.join(FAMILIES)}"
        )
    if family not in FAMILIES:
        raise InvalidConstraintError(f"there is no family {family!r}; there are {', '.join(FAMILIES)}")
    return FAMILIES[family]
