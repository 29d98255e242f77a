"""`Ebnf`: grammars in EBNF, in the W3C or the ISO/IEC 14977 notation."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from guideway.arguments import short_list, short_repr
from guideway.constraints.rules import RuleConstraint
from guideway.errors import InvalidConstraintError
from guideway.frontends.cfg.ebnf_iso import IsoReader
from guideway.frontends.cfg.ebnf_w3c import W3cReader
from guideway.grammar.cfg import Rule

__all__ = ["Ebnf"]

_OPENING = re.compile(r"[\"']|/\*|\(\*")
_CLOSING = {'"': '"', "'": "'", "/*": "*/", "(*": "*)"}


def _without_quotes(text: str) -> str:
    """Return a grammar text without quoted strings and comments, in linear time.

    A closing mark that does not occur is searched only once.
    """
    kept: list[str] = []
    missing: set[str] = set()
    at = 0
    while (found := _OPENING.search(text, at)) is not None:
        opening = found[0]
        end = -1 if opening in missing else text.find(_CLOSING[opening], found.end())
        if end < 0:
            missing.add(opening)
            kept.append(text[at : found.start() + 1])
            at = found.start() + 1
        else:
            kept.append(text[at : found.start()])
            at = end + len(_CLOSING[opening])
    kept.append(text[at:])
    return "".join(kept)


class Ebnf(RuleConstraint):
    """The texts that an EBNF grammar derives. The value is the text.

    White space between symbols of the grammar text is not significant. Not supported, because the meaning is ambiguous
    or informal: `-` with more than two operands or between recursive operands, empty character classes, duplicate
    rules, `? prose ?` and `[wfc: prose]`.

    Args:
        text: The grammar.
        start: The start symbol; None: the name of the first rule.
        form: "w3c" (`a ::= b | "c"* - d`) or "iso" (`a = b | {"c"}, d;`). None: "w3c" if the text contains `::=`
            outside strings and comments, otherwise "iso".
        parts: Constraints for names that the text does not define.

    Raises:
        InvalidConstraintError: The grammar has an error (the message has line, column and caret), or another argument
            is not valid.
        UnsupportedError: The grammar uses an unsupported construct.
        UnsatisfiableError: The start symbol derives no finite text. The message names the rules.
        LimitExceededError: The grammar is too large.
    """

    def __init__(
        self,
        text: str,
        *,
        start: str | None = None,
        form: Literal["w3c", "iso"] | None = None,
        parts: Mapping[str, object] | None = None,
    ) -> None:
        if form not in (None, "w3c", "iso"):
            raise InvalidConstraintError(f"form must be 'w3c' or 'iso', got {short_repr(form)}")
        if form is None and isinstance(text, str):
            form = "w3c" if "::=" in _without_quotes(text) else "iso"
        self.form = form
        super().__init__(text, start, parts)

    def _read(self, start: str | None) -> tuple[list[Rule], str]:
        reader = W3cReader(self.text) if self.form == "w3c" else IsoReader(self.text)
        rules = reader.rules()
        if not rules:
            reader.expected("a rule")
        start = rules[0].name if start is None else start
        names = self._completed(rules, reader, reader.mentioned)
        if start not in names:
            raise InvalidConstraintError(
                f"start rule {short_repr(start)} is not defined; defined rules: {short_list(sorted(names))}"
            )
        return rules, start

    def _content(self) -> object:
        return super()._content(), self.form
