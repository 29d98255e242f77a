"""Small vocabularies."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import guideway as gw
from guideway import _kernel
from tests.oracle.matcher import Tokens

ABC = Tokens((b"a", b"b", b"c", b"ab", b"bc", b"abc", b"", b"</s>"), frozenset({7}))
SHORT = Tokens((b"</s>", b"c", b"b", b"a", b"aa", b"cab", b"ba", b"aaa"), frozenset({0}))
TWO_ENDS = Tokens((b"<end>", b"a", b"b", b"c", b"cc", b"<stop>", b"bcc", b"b"), frozenset({0, 5}), frozenset({4}))
WIDE = Tokens((b"a", b"\xc3", b"\xa9", b"\xe6\x97", b"\xa5", b"\xe6\x97\xa5", b"\xa9a\xe6", b"</s>"), frozenset({7}))
TAILS = Tokens((b"a", b"\xc3\xa9", b"\xe6", b"\x97\xa5", b"\x97", b"\xa5\xc3", b"\xa9", b"</s>"), frozenset({7}))

LETTERS = (ABC, SHORT, TWO_ENDS)
BYTES = (WIDE, TAILS)


def cut(rng: random.Random, texts: list[bytes], count: int, *, alphabet: bool = False) -> Tokens:
    """Pieces of some texts as tokens, and the end; `alphabet`: every byte of the texts is a token as well."""
    pieces: list[bytes] = [bytes([byte]) for byte in sorted({b for text in texts for b in text})] if alphabet else []
    longest = rng.choice((2, 4, 9, 20))
    for _ in range(8 * count):
        text = rng.choice(texts)
        start = rng.randrange(len(text))
        piece = text[start : start + rng.randrange(1, longest + 1)]
        if piece not in pieces and len(pieces) < count + (256 if alphabet else 0):
            pieces.append(piece)
    rng.shuffle(pieces)
    end = rng.randrange(len(pieces) + 1)
    return Tokens((*pieces[:end], b"</s>", *pieces[end:]), frozenset({end}))


# Tunings of the kernel (kernel/base/tuning.h): no mechanism that shortens work; thresholds that small vocabularies reach;
# some mechanisms off.
PLAIN: dict[str, int] = dict.fromkeys(_kernel.KernelVocabulary.mechanisms(), 0)
EAGER: dict[str, int] = _kernel.KernelVocabulary.thresholds()
SUBTREES = (
    "self_loops",
    "loop_scans",
    "counted_heads",
    "class_sequences",
    "stable_sets",
    "inside_characters",
    "child_filters",
    "plain_tokens",
    "alphabet_slices",
)


def without(*names: str) -> dict[str, int]:
    """An eager tuning without some mechanisms."""
    return EAGER | dict.fromkeys(names, 0)


# Ways to make masks, none of which may change one: what is cached, when a store is replaced, which mechanisms are used.
SETTINGS: tuple[dict[str, Any], ...] = (
    {"memo_bytes": 1},
    {"tuning": PLAIN},
    {"tuning": EAGER},
    {"store_bytes": 1, "tuning": without(*SUBTREES)},
    {"memo_bytes": 1, "tuning": without("saturated_counters", "supersets", "loop_bounds", "child_filters")},
    {"memo_bytes": 2000, "tuning": without("differences", "bases", "delta_sets", "self_loops")},
    {"tuning": without("summaries", "key_index", "plain_tokens")},
    {"tuning": without("punctuation", "composite_walks")},
)


def table(
    tokens: Sequence[bytes], eos: Sequence[int], special: Sequence[int], **limits: Any
) -> _kernel.KernelVocabulary:
    """A vocabulary of the kernel under limits, and perhaps with a `tuning`."""
    made = _kernel.KernelVocabulary
    return made.tuned(tokens, eos, special, **limits) if "tuning" in limits else made(tokens, eos, special, **limits)


def kernel(tokens: Tokens, **limits: Any) -> gw.Vocabulary:
    """The same for the library; `limits` are those of the kernel's vocabulary."""
    made = gw.Vocabulary(list(tokens.texts), eos_ids=sorted(tokens.eos), special_ids=sorted(tokens.special))
    return limited(made, **limits)


def limited(made: gw.Vocabulary, **limits: Any) -> gw.Vocabulary:
    """The same under limits of the kernel's vocabulary."""
    if limits:
        under = table(made.token_bytes, made.eos_ids, made.special_ids, **limits)
        object.__setattr__(made, "_kernel", under)  # limits are for tests and servers of the kernel; not public
    return made


class Kernels:
    """Vocabularies of the same tokens under the default setting and under another, which changes at each call."""

    def __init__(self, tokens: Tokens) -> None:
        self.plain, self.turn = kernel(tokens), 0
        self.others = [kernel(tokens, **setting) for setting in SETTINGS]

    def __call__(self) -> tuple[gw.Vocabulary, gw.Vocabulary]:
        """The default one, and the next of the others."""
        self.turn += 1
        return self.plain, self.others[self.turn % len(self.others)]
