"""Replies with tool calls: what may be written, and what was meant."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from guideway.errors import InvalidConstraint, InvalidText, Unsupported
from guideway.grammar.nodes import Grammar
from guideway.grammar.regular import ANY_TEXT, Cat, Literals, Not
from guideway.grammar.rules import Choice, Rule, Series, Term, Text, Times, lower
from guideway.sources.base import Source
from guideway.sources.fits import fits
from guideway.sources.json_schema import JsonSchema
from guideway.sources.of import of
from guideway.sources.tags import literal, up_to, without
from guideway.sources.terms import term_of
from guideway.vocabulary.tokenizer import Tokenizer

from .families import FAMILIES, Family, family_of

__all__ = ["Reply", "Tool", "ToolCall", "ToolCalls"]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,127}")
_KEY, _VALUE = ("<arg_key>", "</arg_key>\n"), ("<arg_value>", "</arg_value>\n")
_SAYS_NOTHING = {"title", "description", "default", "examples"}


class Tool:
    """A function that a model may call: its name, and the constraint of its arguments.

    `parameters`: a JSON Schema of an object, or a Python type or source whose texts are JSON objects. `Tool.of` takes a
    Python function, by its name and signature.
    """

    def __init__(self, name: str, parameters: object, description: str = "") -> None:
        if not _NAME.fullmatch(name):
            raise InvalidConstraint(f"{name!r} is no name of a tool: letters, digits, '_', '.' and '-'")
        self.name, self.description = name, description
        self.schema: Mapping[str, Any] | None = parameters if isinstance(parameters, Mapping) else None
        self.parameters: Source[Any] = of(parameters)

    @classmethod
    def of(cls, function: Any) -> Tool:
        """A Python function as a tool; its value is the dict of its arguments."""
        return cls(function.__name__, function, (function.__doc__ or "").strip())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tool) and (self.name, self.parameters) == (other.name, other.parameters)

    def __hash__(self) -> int:
        return hash((self.name, self.parameters))

    def __repr__(self) -> str:
        return f"Tool({self.name!r}, {self.parameters!r})"


@dataclass(frozen=True)
class ToolCall:
    """A call as it was read: the tool's name, and its arguments as the tool's constraint reads them."""

    name: str
    arguments: Any


@dataclass(frozen=True)
class Reply:
    """A reply as it was read."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    reasoning: str = ""


class ToolCalls(Source[Reply]):
    """Replies of a model that may, must or must not call tools, in the form of its family.

    `family`: a name ("llama", "hermes", "qwen", "mistral", "deepseek", "glm", "harmony"), a `Family`, or a tokenizer,
    whose chat template says it. `choice`: "auto" (text, or text and calls), "required" (calls at once), "none" (text),
    or the name of the one tool that must be called. `parallel`: whether a reply may hold several calls, where the
    family can. The value is a `Reply`. Raises `InvalidConstraint`, `NotAvailable` where a template shows no family,
    `Unsupported` for arguments that a family cannot write.
    """

    def __init__(
        self,
        tools: Iterable[Tool],
        *,
        family: str | Family | Tokenizer,
        choice: Literal["auto", "required", "none"] | str = "auto",
        parallel: bool = True,
    ) -> None:
        self.tools = tuple(tools)
        names = [tool.name for tool in self.tools]
        if len(set(names)) < len(names):
            raise InvalidConstraint("two tools have one name")
        if choice not in ("auto", "required", "none", *names):
            raise InvalidConstraint(
                f"the choice {choice!r} is neither 'auto', 'required' nor 'none', nor one of {names}"
            )
        if not self.tools and choice != "none":
            raise InvalidConstraint("there must be at least one tool")
        self.family = _family(family)
        self.choice, self.parallel = choice, parallel
        self._called = [tool for tool in self.tools if choice in ("auto", "required", tool.name)]
        self._grammar = lower([Rule("reply", self._reply())], "reply").grammar

    # What may be written.

    def _reply(self) -> Term:
        family = self.family
        if family.thoughts is not None:
            before, after = family.thoughts
            thoughts = Times(Series((literal(before), Text(without(family.trigger)), literal(after))), 0, 1)
            return Series((thoughts, self._choice(Series((literal(family.answer), Text(without(family.trigger)))), "")))
        if family.trigger:
            return self._choice(Text(without(family.trigger)), family.trigger)
        return self._choice(Text(Not(Cat((Literals((family.opening + family.prefix,)), ANY_TEXT)))), "")

    def _choice(self, text: Term, trigger: str) -> Term:
        if self.choice == "none":
            return text
        if self.choice != "auto":
            return self._calls("")
        start: tuple[Term, ...] = (Text(up_to(trigger)),) if trigger else ()
        return Choice((text, Series((*start, self._calls(trigger)))))

    def _calls(self, written: str) -> Term:
        """The calls, without what was `written` of them already."""
        family = self.family
        first = literal((family.opening + family.prefix)[len(written) :])
        one = Choice(tuple(self._call(tool) for tool in self._called))
        several = self.parallel and family.several
        more = Times(Series((literal(family.separator + family.prefix), one)), 0, None if several else 0)
        return Series((first, one, more, literal(family.closing)))

    def _call(self, tool: Tool) -> Term:
        arguments = term_of(tool.parameters) if self.family.arguments == "json" else _pairs(tool)
        return Series((literal(tool.name + self.family.middle), arguments, literal(self.family.suffix)))

    def grammar(self) -> Grammar:
        """Rules, lowered."""
        return self._grammar

    # What was meant.

    def parse(self, text: str) -> Reply:
        """The reply's text, calls and reasoning."""
        if not fits(self._grammar, text):
            raise InvalidText(f"{text!r} is no reply with tool calls of this kind")
        family, reasoning = self.family, ""
        if family.thoughts is not None:
            before, after = family.thoughts
            if text.startswith(before):
                end = text.index(after, len(before))
                reasoning, text = text[len(before) : end], text[end + len(after) :]
            if text.startswith(family.answer):
                return Reply(text[len(family.answer) :], (), reasoning)
            start = 0
        elif family.trigger:
            start = text.find(family.trigger)
        else:
            start = 0 if text.startswith(family.opening + family.prefix) else -1
        if start < 0 or self.choice == "none":
            return Reply(text)
        return Reply(text[:start], tuple(self._read(text, start)), reasoning)

    def _read(self, text: str, at: int) -> Iterable[ToolCall]:
        family = self.family
        at += len(family.opening)
        while True:
            at += len(family.prefix)
            tool = next(one for one in self._called if text.startswith(one.name + family.middle, at))
            at += len(tool.name + family.middle)
            if family.arguments == "json":
                end = json.JSONDecoder().raw_decode(text, at)[1]
                yield ToolCall(tool.name, tool.parameters.parse(text[at:end]))
            else:
                found, end = _read_pairs(tool, text, at)
                yield ToolCall(tool.name, found)
            at = end + len(family.suffix)
            if not text.startswith(family.separator + family.prefix, at):
                return
            at += len(family.separator)

    def _content(self) -> object:
        return self.tools, self.family, self.choice, self.parallel

    def __repr__(self) -> str:
        return f"ToolCalls({list(self.tools)!r}, choice={self.choice!r})"


def _family(family: str | Family | Tokenizer) -> Family:
    if isinstance(family, Tokenizer):
        family = family_of(family.chat_template or "")
    if isinstance(family, Family):
        return family
    if family not in FAMILIES:
        raise InvalidConstraint(f"there is no family {family!r}; there are {', '.join(FAMILIES)}")
    return FAMILIES[family]


# Keys and values between tags: texts stand as they are, everything else as JSON.


def _properties(tool: Tool) -> list[tuple[str, Mapping[str, Any], bool]]:
    schema = tool.schema
    known = {"type", "properties", "required", "additionalProperties", "$defs", *_SAYS_NOTHING}
    if schema is None or schema.get("type") != "object" or schema.keys() - known:
        raise Unsupported(f"{tool.name!r}: this family writes the arguments of plain schemas of objects only")
    required = set(schema.get("required", ()))
    properties = schema.get("properties", {})
    if required - properties.keys() or any(not _NAME.fullmatch(name) for name in properties):
        raise Unsupported(f"{tool.name!r}: this family writes arguments with plain names and a schema each only")
    if not all(isinstance(value, Mapping) for value in properties.values()):
        raise Unsupported(f"{tool.name!r}: this family writes arguments with a schema each, which is an object")
    return [(name, value, name in required) for name, value in properties.items()]


def _is_text(tool: Tool, schema: Mapping[str, Any]) -> bool:
    """Whether the values are texts; raises `Unsupported` where they may be, but need not."""
    kind = schema.get("type")
    if kind == "string" and not schema.keys() - _SAYS_NOTHING - {"type", "enum"}:
        return True
    if isinstance(kind, str) and kind != "string":
        return False
    raise Unsupported(f"{tool.name!r}: this family writes plain texts, choices of texts, and values that are no texts")


def _pairs(tool: Tool) -> Term:
    made: list[Term] = []
    for name, schema, required in _properties(tool):
        if _is_text(tool, schema):
            texts = [one for one in schema["enum"] if isinstance(one, str)] if "enum" in schema else None
            value: Term = Text(without(_VALUE[1].strip()) if texts is None else Literals(tuple(texts)))
        else:
            value = term_of(_value_source(tool, schema))
        pair = Series((literal(_KEY[0] + name + _KEY[1] + _VALUE[0]), value, literal(_VALUE[1])))
        made.append(pair if required else Times(pair, 0, 1))
    return Series(tuple(made))


def _value_source(tool: Tool, schema: Mapping[str, Any]) -> JsonSchema:
    definitions = (tool.schema or {}).get("$defs")
    return JsonSchema(dict(schema) if definitions is None else {**schema, "$defs": definitions})


def _read_pairs(tool: Tool, text: str, at: int) -> tuple[dict[str, Any], int]:
    found: dict[str, Any] = {}
    for name, schema, _ in _properties(tool):
        before = _KEY[0] + name + _KEY[1] + _VALUE[0]
        if not text.startswith(before, at):
            continue
        at += len(before)
        if _is_text(tool, schema):
            end = text.index(_VALUE[1], at)
            found[name] = text[at:end]
        else:
            end = json.JSONDecoder().raw_decode(text, at)[1]
            found[name] = _value_source(tool, schema).parse(text[at:end])
        at = end + len(_VALUE[1])
    return found, at
