"""GBNF: the grammars of llama.cpp."""

from __future__ import annotations

from collections.abc import Mapping

from guideway.constraints.rules import RuleConstraint
from guideway.frontends.cfg.gbnf import GbnfReader
from guideway.grammar.cfg import Rule

__all__ = ["Gbnf"]


class Gbnf(RuleConstraint):
    """What a grammar in llama.cpp's notation derives from `root`.

    As llama.cpp reads it; left recursion works too. `parts`: sources for names that the text does not define. `<think>`
    and `<[1000]>` are special tokens (a name that is none of the vocabulary's: its text), `!<think>*` is text without
    it. Refused: a rule given twice, an empty class, any token but one where it is not repeated. Raises
    `InvalidConstraintError` with line, column and caret, `UnsatisfiableError` with the names of rules that never end,
    `LimitExceededError`.
    """

    def __init__(self, text: str, *, parts: Mapping[str, object] | None = None) -> None:
        super().__init__(text, "root", parts)

    def _read(self, start: str | None) -> tuple[list[Rule], str]:
        reader = GbnfReader(self.text)
        rules = reader.rules()
        names = self._completed(rules, reader, reader.mentioned)
        if "root" not in names:
            reader.fail("there is no rule 'root', where every text begins", 0)
        return rules, "root"
