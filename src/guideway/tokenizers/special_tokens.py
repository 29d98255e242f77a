"""Guesses BOS, EOS and padding tokens from conventional names, for tokenizers that do not define them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from guideway.tokenizers.tokenizer import SpecialTokens

__all__ = ["by_custom", "ids_of", "named_in"]

_EOS_NAMES = (
    "</s>", "<eos>", "<|endoftext|>", "<|end_of_text|>", "<|eot_id|>", "<|eom_id|>", "<|im_end|>", "<|end|>",
    "<end_of_turn>", "<|endofsentence|>", "<｜end▁of▁sentence｜>", "[EOS]", "<|eos|>", "<EOS>", "<|eot|>", "<|eom|>",
)  # fmt: skip
_BOS_NAMES = ("<s>", "<bos>", "<|begin_of_text|>", "<｜begin▁of▁sentence｜>", "[BOS]", "<|bos|>", "<BOS>")
_PAD_NAMES = ("<pad>", "[PAD]", "<|pad|>", "<PAD>", "<|finetune_right_pad_id|>", "<|finetune_right_pad|>")


def by_custom(named: Mapping[str, int]) -> SpecialTokens:
    """Return the special tokens among named tokens, guessed from conventional names such as `</s>`.

    `named` has the ids by name. All names of EOS tokens that occur are used; of the names of BOS tokens and of padding
    tokens, the first one that occurs.
    """

    def first(names: Iterable[str]) -> int | None:
        return next((named[name] for name in names if name in named), None)

    eos = tuple(sorted(named[name] for name in _EOS_NAMES if name in named))
    return SpecialTokens(first(_BOS_NAMES), eos, first(_PAD_NAMES))


def ids_of(value: object) -> tuple[int, ...]:
    """Return the sorted ids in a configuration value: an id, a list of ids, or None.

    Values that are no ids are ignored.
    """
    values = value if isinstance(value, (list, tuple, set, frozenset)) else [value]
    return tuple(sorted({v for v in values if isinstance(v, int) and not isinstance(v, bool) and v >= 0}))


def named_in(config: Mapping[str, object]) -> tuple[tuple[str, str | tuple[str, ...]], ...]:
    """Return the special tokens in a tokenizer's configuration, as pairs of a name in chat templates and a text.

    A name that ends in "_special_tokens" has a tuple of texts.
    """

    def text(value: object) -> str | None:
        value = value.get("content") if isinstance(value, Mapping) else getattr(value, "content", value)
        return value if isinstance(value, str) else None

    found: list[tuple[str, str | tuple[str, ...]]] = []
    for name, value in sorted(config.items()):
        if name.endswith("_token") and (one := text(value)) is not None:
            found.append((name, one))
        elif name.endswith("_special_tokens") and isinstance(value, (list, tuple)):
            found.append((name, tuple(filter(None, map(text, value)))))
    return tuple(found)
