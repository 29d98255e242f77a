"""Packed masks, and how they meet logits. Bit t%32 of word t//32 of a row says whether token t is legal."""

from __future__ import annotations

from guideway.masks.numpy import Row, all_of, apply, ids, masked_into, new_rows, only, pack, popcount, unpack, words

__all__ = ["Row", "all_of", "apply", "ids", "masked_into", "new_rows", "only", "pack", "popcount", "unpack", "words"]
