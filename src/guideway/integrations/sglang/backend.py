"""The grammar backend of SGLang: `--grammar-backend guideway`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sglang.srt.constrained.base_grammar_backend import BaseGrammarBackend, BaseGrammarObject, InvalidGrammarObject

from guideway.compiler import compile
from guideway.errors import GuidewayError
from guideway.integrations._common import Follower, requested
from guideway.integrations.sglang import masking
from guideway.integrations.sglang.grammar import GuidewayGrammar
from guideway.tokenizers import Tokenizer

__all__ = ["GuidewayBackend"]


class GuidewayBackend(BaseGrammarBackend):  # type: ignore[misc]  # SGLang's types are not read here
    """The grammar backend of one scheduler.

    SGLang calls it in threads; the kernel releases the GIL while it compiles.
    """

    def __init__(self, tokenizer: Any, vocab_size: int, eos_token_ids: Iterable[int] | int | None = None) -> None:
        super().__init__()
        ends = [eos_token_ids] if isinstance(eos_token_ids, int) else sorted(eos_token_ids or ())
        self._tokenizer = Tokenizer.of(tokenizer)
        self._stops = [one for one in ends if one < vocab_size]

    allocate_vocab_mask = staticmethod(masking.allocate)
    move_vocab_mask = staticmethod(masking.move)
    apply_vocab_mask = staticmethod(masking.apply)
    set_token_filter = staticmethod(masking.narrow)

    @property
    def is_support_token_filter(self) -> bool:
        """Return True: `set_token_filter` can narrow masks, which SGLang needs to restrict tokens of reasoning."""
        return True

    def dispatch_json(self, key_string: str) -> BaseGrammarObject:
        """Return a `GuidewayGrammar` for a JSON Schema, given as text; `$$ANY$$` means any JSON object.

        This method and the next ones return an `InvalidGrammarObject` with the message if the constraint is not valid.
        """
        return self._made("json_object" if key_string == "$$ANY$$" else "json", key_string)

    def dispatch_regex(self, key_string: str) -> BaseGrammarObject:
        """Return a `GuidewayGrammar` for a regular expression, which must match the whole text."""
        return self._made("regex", key_string)

    def dispatch_ebnf(self, key_string: str) -> BaseGrammarObject:
        """Return a `GuidewayGrammar` for a grammar, given as text.

        The text is a `to_wire` document if it begins with "{", GBNF if it has `::=`, else Lark.
        """
        return self._made("grammar", key_string)

    def dispatch_structural_tag(self, key_string: str) -> BaseGrammarObject:
        """Return a `GuidewayGrammar` for a structural tag, given as JSON text.

        The tag has SGLang's form with `structures` and `triggers`, or xgrammar's form with `format`.
        """
        return self._made("structural_tag", key_string)

    def _made(self, kind: str, spec: str) -> BaseGrammarObject:
        try:
            automaton = compile(requested(kind, spec), self._tokenizer)
        except GuidewayError as error:
            return InvalidGrammarObject(f"{type(error).__name__}: {error}")
        return GuidewayGrammar(Follower(automaton, self._tokenizer.eos_ids, stop_token_ids=self._stops))
