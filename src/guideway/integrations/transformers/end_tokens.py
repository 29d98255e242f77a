"""The end tokens of a model of transformers: those of its tokenizer, and those of its generation config."""

from __future__ import annotations

import os
from typing import Any

from guideway.caching import cached
from guideway.tokenizers import Tokenizer
from guideway.tokenizers.special_tokens import ids_of

__all__ = ["with_end_tokens"]


def with_end_tokens(tokenizer: object, generation_config: Any = None) -> Tokenizer:
    """Return a tokenizer whose end tokens include those in `eos_token_id` of the generation config.

    A chat model usually ends its reply with a token of the generation config, which need not be the end token of the
    tokenizer.

    Args:
        tokenizer: A value that `Tokenizer.of` accepts.
        generation_config: The `GenerationConfig`; None: that of the local files from which the tokenizer was loaded,
            if there is one.
    """
    table = Tokenizer.of(tokenizer)
    name = getattr(tokenizer, "name_or_path", None)
    if generation_config is None and isinstance(name, str) and name:
        ends = _local(name, _changed(name))
    else:
        ends = ids_of(getattr(generation_config, "eos_token_id", None))
    missing = [one for one in ends if one not in table.eos_ids and one < len(table.vocabulary)]
    return Tokenizer.of(table, eos_ids=[*table.eos_ids, *missing]) if missing else table


def _changed(name: str) -> tuple[int, int] | None:
    """Return the modification time and size of generation_config.json in a folder; None if there is no such file."""
    try:
        status = os.stat(os.path.join(name, "generation_config.json"))
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size


@cached(32)
def _local(name: str, changed: tuple[int, int] | None) -> tuple[int, ...]:
    """Return the end ids in the local generation config of a model name or folder.

    `changed` is the result of `_changed`, so that the cache has no outdated entry.
    """
    from transformers import GenerationConfig

    try:
        found = GenerationConfig.from_pretrained(name, local_files_only=True)
    except (OSError, ValueError):
        return ()
    return ids_of(getattr(found, "eos_token_id", None))
