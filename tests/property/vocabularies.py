"""Small vocabularies."""

from __future__ import annotations

import random

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


# Ways to make masks, none of which may change one: what is remembered, when a store is left, which shortcuts are taken.
SETTINGS: tuple[dict[str, int], ...] = (
    {"memo_bytes": 1},
    {"shortcuts": 0},
    {"store_bytes": 1, "shortcuts": 14},
    {"memo_bytes": 1, "shortcuts": 11},
    {"memo_bytes": 2000, "shortcuts": 13},
    {"shortcuts": 7},
)


def kernel(tokens: Tokens, **limits: int) -> gw.Vocabulary:
    """The same for the library; `limits` are those of the kernel's vocabulary."""
    made = gw.Vocabulary(list(tokens.texts), eos_ids=sorted(tokens.eos), special_ids=sorted(tokens.special))
    return limited(made, **limits)


def limited(made: gw.Vocabulary, **limits: int) -> gw.Vocabulary:
    """The same under limits of the kernel's vocabulary."""
    if limits:
        table = _kernel.KernelVocabulary(made.token_bytes, made.eos_ids, made.special_ids, **limits)
        object.__setattr__(made, "_kernel", table)  # limits are for tests and servers of the kernel; not public
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
