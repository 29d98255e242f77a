"""`Gbnf`: grammars in the notation of llama.cpp."""

from __future__ import annotations

from collections.abc import Mapping

from guideway.arguments import short_list, short_repr
from guideway.constraints.rules import RuleConstraint
from guideway.frontends.cfg.gbnf import GbnfReader
from guideway.grammar.cfg import Rule

__all__ = ["Gbnf"]


class Gbnf(RuleConstraint):
    """The texts that a GBNF grammar derives. The value is the text.

    A grammar has the meaning that it has in llama.cpp. In addition, left recursion is supported. `<think>` and
    `<[1000]>` are special tokens. If the vocabulary has no token with the name, the name is matched as text.
    `!<think>*` is any text that does not contain the token. Not supported: duplicate rules, empty character classes,
    and a negated token that is not repeated.

    These additions of xgrammar's EBNF are accepted: names with `_` and `.`, rules that continue on the next line, `[^]`
    for any character, `{2,-1}` for two or more repetitions, and its escapes. Its rule options and macros are not
    supported.

    Args:
        text: The grammar.
        start: The start symbol.
        parts: Constraints for names that the text does not define.

    Raises:
        InvalidConstraintError: The grammar has an error (the message has line, column and caret), or another argument
            is not valid.
        UnsupportedError: The grammar uses an unsupported construct.
        UnsatisfiableError: The start symbol derives no finite text. The message names the rules.
        LimitExceededError: The grammar is too large.
    """

    def __init__(self, text: str, *, start: str = "root", parts: Mapping[str, object] | None = None) -> None:
        super().__init__(text, start, parts)

    def _read(self, start: str | None) -> tuple[list[Rule], str]:
        reader = GbnfReader(self.text)
        rules = reader.rules()
        names = self._completed(rules, reader, reader.mentioned)
        start = start or "root"
        if start not in names:
            reader.fail(
                f"the start rule {short_repr(start)} is not defined; defined rules: {short_list(sorted(names))}", 0
            )
        return rules, start
