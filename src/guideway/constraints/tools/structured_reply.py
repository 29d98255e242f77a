"""`StructuredReply`: replies whose answer fits a constraint, with optional reasoning and tool calls."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from guideway.constraints.base import Constraint
from guideway.constraints.captures import Rules
from guideway.constraints.embed import term_of
from guideway.constraints.mismatch import does_not_fit
from guideway.constraints.special_token import marker, up_to_marker
from guideway.constraints.tools.calls import Reply, ToolCalls
from guideway.grammar.cfg import Alternation, Concatenation, Repetition, Rule, Term, Text, lower
from guideway.grammar.nodes import Grammar
from guideway.grammar.recognizer import fits
from guideway.grammar.regular import Literals

__all__ = ["StructuredReply"]

_GAPS = ("", "\n", "\n\n")


class StructuredReply(Constraint[Reply]):
    """Optional reasoning, then an answer that fits a constraint, or tool calls. The value is a `Reply`.

    Args:
        answer: The constraint of the answer.
        calls: Replies with calls in place of an answer. Its choice must be "required"; this is not checked. None: no
            calls.
        thoughts: The texts before and after the reasoning; None: no reasoning. If the first text is "", for example
            because the prompt already ends with the text before the reasoning, the reasoning and the second text must
            be present.
        opening: The text before the answer.
        special: Names in `thoughts` and `opening` that are special tokens, if the vocabulary has them.
    """

    def __init__(
        self,
        answer: Constraint[Any],
        *,
        calls: ToolCalls | None = None,
        thoughts: tuple[str, str] | None = None,
        opening: str = "",
        special: Iterable[str] = (),
    ) -> None:
        self.answer, self.calls, self.thoughts = answer, calls, thoughts
        self.opening, self.special = opening, tuple(special)
        written: Term = Concatenation((marker(opening, self.special), term_of(answer)))
        if thoughts is not None:
            before, after = thoughts
            gap = Text(Literals(_GAPS))
            thought = Concatenation((marker(before, self.special), up_to_marker(after, self.special), gap))
            written = Concatenation((Repetition(thought, 0 if before else 1, 1), written))
        ways = (written,) if calls is None else (written, term_of(calls))
        self._shape = Rules((Rule("reply", Alternation(ways)),), "reply")
        self._grammar = lower(list(self._shape.rules), "reply").grammar

    def grammar(self) -> Grammar:
        """Return the lowered rules."""
        return self._grammar

    def shape(self) -> Rules:
        """Return the rules."""
        return self._shape

    def parse(self, text: str) -> Reply:
        """Return the reply. A text that can be calls or an answer is parsed as calls."""
        if not fits(self._grammar, text):
            raise does_not_fit(self._grammar, text, f"does not match {self!r}")
        if self.calls is not None and fits(self.calls.grammar(), text):
            return self.calls.parse(text)
        before, after = self.thoughts or ("", "")
        end = text.find(after, len(before)) if self.thoughts is not None and text.startswith(before) else -1
        for gap in _GAPS if end >= 0 else ():
            lead = gap + self.opening
            answer = text[end + len(after) :]
            if answer.startswith(lead) and fits(self.answer.grammar(), answer[len(lead) :]):
                self.answer.parse(answer[len(lead) :])
                return Reply(answer[len(lead) :], (), text[len(before) : end])
        text = text[len(self.opening) :]
        self.answer.parse(text)
        return Reply(text)

    def _content(self) -> object:
        return self.answer, self.calls, self.thoughts, self.opening, self.special

    def __repr__(self) -> str:
        return f"StructuredReply({self.answer!r})"
