"""The end tokens of a model of transformers: those of its tokenizer, and those of its generation config."""

from __future__ import annotations

from typing import Any

from guideway.tokenizers import Tokenizer
from guideway.tokenizers.special_tokens import ids_of

__all__ = ["with_end_tokens"]


def with_end_tokens(tokenizer: object, generation_config: Any = None) -> Tokenizer:
    """Return a tokenizer whose end tokens include the `eos_token_id` list of the generation config.

    A chat model usually ends its turn with a token of this list, while its tokenizer names only one end token.

    Args:
        tokenizer: Whatever `Tokenizer.of` takes.
        generation_config: The `GenerationConfig`; None: that of the local files from which the tokenizer was loaded,
            if there is one.
    """
    table = Tokenizer.of(tokenizer)
    name = getattr(tokenizer, "name_or_path", None)
    if generation_config is None and isinstance(name, str) and name:
        generation_config = _local(name)
    ends = ids_of(getattr(generation_config, "eos_token_id", None))
    known = {*table.eos_ids, *(one for one in ends if one < len(table.vocabulary))}
    return table if known == set(table.eos_ids) else Tokenizer.of(table, eos_ids=known)


def _local(name: str) -> Any:
    from transformers import GenerationConfig

    try:
        return GenerationConfig.from_pretrained(name, local_files_only=True)
    except (OSError, ValueError):
        return None
