"""The matcher: where a sequence stands in its constraint, and which tokens are legal next.

A matcher is the kernel's own object, so that a call costs no Python in between. A mask row is `ceil(V / 32)` uint32
words: bit `t % 32` of word `t // 32` is set exactly when the text so far and token `t` can still be completed; bits
from V on are 0. End-of-sequence tokens are set exactly when the text is complete. After one was taken the matcher is
finished: its mask is the end tokens alone, and `advance` raises.

Matchers of one automaton may be used from different threads; one matcher from one thread at a time. Each call either
succeeds or raises and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from guideway import masks
from guideway._kernel import LoopClock, LoopRows, Matcher, advance_and_fill, fill_masks
from guideway.tokenizers import Tokenizer

__all__ = ["LoopClock", "LoopRows", "Matcher", "advance_and_fill", "fill_masks", "forced_tokens"]

_CONTEXT = 16  # tokens before the forced text that are looked at first


def forced_tokens(matcher: Matcher, tokenizer: Tokenizer, after: Sequence[int] = ()) -> list[int]:
    """What the text goes on with in any case, as the tokenizer itself spells it: its own `encode` of the forced text.

    `after`: the ids that stand before, or some last ones of them; where the tokenizer would spell them so, the forced
    text is encoded behind them, as it depends on what stands before it in many tokenizers. Held back is what the
    tokenizer could join with a text that comes next. The ids can be taken (`matcher.validate` takes all of them); where
    the tokenizer has no ids for exactly these bytes they are `matcher.forced_tokens()`, longest tokens first. Nothing
    is taken.
    """
    bytes_of, forced = tokenizer.vocabulary.bytes_of, matcher.forced_bytes()
    ids, behind = [], None
    if forced:
        for before in _before(tokenizer, after):
            behind = partial(_behind, tokenizer, before)
            if ids := behind(forced):
                break
    if behind is None or not ids or not forced.startswith(bytes_of(ids)) or matcher.validate(ids) != len(ids):
        return matcher.forced_tokens()
    text = bytes_of(ids)
    if text == forced and _ends_there(matcher, ids, len(tokenizer.vocabulary.eos_ids)):
        return ids
    # The tokenizer's last word on a longer text has a boundary at the end of this one, or a token across it, which
    # begins where an end of the text begins one. Left of a boundary a text is spelled as if nothing came behind it.
    sure = len(ids)
    for place in tokenizer.vocabulary.kernel.open_ends(text):
        other = behind(text[:place])
        sure = next(
            (n for n, (one, two) in enumerate(zip(ids[:sure], other, strict=False)) if one != two),
            min(sure, len(other)),
        )
    return ids[:sure]


def _before(tokenizer: Tokenizer, after: Sequence[int]) -> Iterator[tuple[list[int], bytes]]:
    """Ids to encode the text behind, and their bytes: the last few, all, a line break where none is spelled alone."""
    bytes_of = tokenizer.vocabulary.bytes_of
    adds_space = bytes_of(tokenizer.encode("a")) == b" a"  # before whatever it is given, as sentencepiece does
    for count in (_CONTEXT, len(after)):
        ids = list(after[-count:])
        while adds_space and ids and not bytes_of(ids[:1]).startswith(b" "):
            del ids[0]
        if ids:
            yield ids, bytes_of(ids)[adds_space:]
    yield (tokenizer.encode("\n"), b"\n") if adds_space else ([], b"")


def _behind(tokenizer: Tokenizer, before: tuple[list[int], bytes], text: bytes) -> list[int]:
    """The ids of the whole characters of a text behind what stands before it; none where that would change."""
    ids, context = before
    try:
        whole = tokenizer.encode((context + text).decode())
    except UnicodeDecodeError as error:
        if error.end < len(context + text) and error.reason != "unexpected end of data":
            return []
        whole = tokenizer.encode((context + text)[: error.start].decode())
    return whole[len(ids) :] if whole[: len(ids)] == ids else []


def _ends_there(matcher: Matcher, ids: Sequence[int], ends: int) -> bool:
    """Whether nothing but one of so many end tokens can come behind these."""
    further = matcher.fork()
    for token_id in ids[:-1]:
        further.advance(token_id)
    row = masks.new_rows(1, 32 * matcher.words)[0]
    further.advance_and_fill(ids[-1], row)
    return further.is_accepting and masks.popcount(row) == ends
