"""Which tokens end a text, begin it and fill it, by the names that are the custom: where nothing else says it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from guideway.tokenizers.tokenizer import SpecialTokens

__all__ = ["by_custom", "ids_of"]

_EOS_NAMES = (
    "</s>", "<eos>", "<|endoftext|>", "<|end_of_text|>", "<|eot_id|>", "<|eom_id|>", "<|im_end|>", "<|end|>",
    "<end_of_turn>", "<|endofsentence|>", "<｜end▁of▁sentence｜>", "[EOS]", "<|eos|>", "<EOS>", "<|eot|>", "<|eom|>",
)  # fmt: skip
_BOS_NAMES = ("<s>", "<bos>", "<|begin_of_text|>", "<｜begin▁of▁sentence｜>", "[BOS]", "<|bos|>", "<BOS>")
_PAD_NAMES = ("<pad>", "[PAD]", "<|pad|>", "<PAD>", "<|finetune_right_pad_id|>", "<|finetune_right_pad|>")


def by_custom(named: Mapping[str, int]) -> SpecialTokens:
    """The roles among special tokens, given by name. Every end-of-text name that is there ends a text."""

    def first(names: Iterable[str]) -> int | None:
        return next((named[name] for name in names if name in named), None)

    eos = tuple(sorted(named[name] for name in _EOS_NAMES if name in named))
    return SpecialTokens(first(_BOS_NAMES), eos, first(_PAD_NAMES))


def ids_of(value: object) -> tuple[int, ...]:
    """The ids in a configuration's value: one, several, or none. What is no id is left out."""
    values = value if isinstance(value, (list, tuple, set, frozenset)) else [value]
    return tuple(sorted({v for v in values if isinstance(v, int) and not isinstance(v, bool) and v >= 0}))
