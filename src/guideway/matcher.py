"""`Matcher`: the state of one sequence in an automaton. It computes the mask of the tokens allowed next.

The class is implemented in the kernel, so a call runs no Python code. For a vocabulary of V tokens, a mask has
`ceil(V / 32)` uint32 words. Bit `t % 32` of word `t // 32` is set if and only if the text so far followed by token `t`
can be completed; bits from V on are 0. The bits of end-of-sequence tokens are set if and only if the text is complete.
After such a token the matcher is finished: its mask has only the bits of end-of-sequence tokens, and `advance` raises.

Matchers of one automaton can be used from different threads; one matcher must be used from one thread at a time. A call
that raises changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from guideway import masks
from guideway._kernel import Fit, LoopClock, LoopRows, Matcher, advance_and_fill, fill_masks
from guideway.tokenizers import Tokenizer

__all__ = ["Fit", "LoopClock", "LoopRows", "Matcher", "advance_and_fill", "fill_masks", "forced_tokens", "usual_tokens"]

MOST_ENCODED = 512
"""If the forced text has more bytes than this, `usual_tokens` does not encode it and returns the longest tokens."""

_CONTEXT = 16  # the number of preceding tokens that `forced_tokens` uses as context first
_MOST_CONTEXT = 64  # the number of preceding tokens that `usual_tokens` passes to `forced_tokens`


def forced_tokens(matcher: Matcher, tokenizer: Tokenizer, after: Sequence[int] = ()) -> list[int]:
    """Return tokens for the text that the constraint forces, as the tokenizer encodes it.

    Tokens at the end are omitted if the tokenizer could merge them with the text that follows. The state of the matcher
    does not change. `matcher.validate` accepts all returned ids. If the tokenizer cannot encode exactly the forced
    bytes, the result is `matcher.forced_tokens()`, which takes the longest token at each position.

    Args:
        matcher: The matcher.
        tokenizer: The tokenizer of its vocabulary.
        after: The ids before the forced text, or the last of them. With many tokenizers, the encoding depends on them.
    """
    bytes_of, forced = _bytes_of(tokenizer), matcher.forced_bytes()
    ids, encode_after = [], None
    if forced:
        for before in _before(tokenizer, _checked(tokenizer, after)):
            encode_after = partial(_encode_after, tokenizer, before)
            if ids := encode_after(forced):
                break
    if encode_after is None or not ids or not forced.startswith(bytes_of(ids)) or matcher.validate(ids) != len(ids):
        return matcher.forced_tokens()
    text = bytes_of(ids)
    if text == forced and _ends_there(matcher, ids, len(tokenizer.vocabulary.eos_ids)):
        return ids
    # Text could follow. An encoding of a longer text either has a token boundary at the end of `text`, or a token
    # across it; such a token begins where a suffix of `text` is a proper prefix of a token (`open_ends`). The encoding
    # up to this boundary, or up to the beginning of this token, equals that of the text up to there. Keep the ids on
    # which all these encodings agree.
    sure = len(ids)
    for place in tokenizer.vocabulary.kernel.open_ends(text):
        other = encode_after(text[:place])
        sure = next(
            (n for n, (one, two) in enumerate(zip(ids[:sure], other, strict=False)) if one != two),
            min(sure, len(other)),
        )
    return ids[:sure]


def usual_tokens(
    matcher: Matcher, tokenizer: Tokenizer, after: Sequence[int], most: int, *, longest: list[int] | None = None
) -> list[int]:
    """Return tokens for all forced bytes: those of `forced_tokens`, and the longest tokens for the rest.

    A model expects the tokens of the tokenizer, and usually draws them if it writes the text itself. If these or the
    longest tokens are `most` or more, or the text has more than `MOST_ENCODED` bytes, the longest tokens are returned
    for the whole text.

    Args:
        matcher: The matcher.
        tokenizer: As in `forced_tokens`.
        after: As in `forced_tokens`.
        most: This number of tokens or more are too many.
        longest: The result of `matcher.forced_tokens`, if it is known.
    """
    ids = matcher.forced_tokens() if longest is None else longest
    if not ids or len(ids) >= most:
        return ids
    bytes_of = _bytes_of(tokenizer)
    if len(text := bytes_of(ids)) > MOST_ENCODED:
        return ids
    encoded = forced_tokens(matcher, tokenizer, after[-_MOST_CONTEXT:])
    if bytes_of(encoded) != text:
        further = matcher.fork()
        for token_id in encoded:
            further.advance(token_id)
        encoded += further.forced_tokens()
    return encoded if len(encoded) < most else ids


def _bytes_of(tokenizer: Tokenizer) -> Callable[[Sequence[int]], bytes]:
    """Return a function that returns the bytes of ids.

    The returned function does not check the ids, so it is faster than the method of the vocabulary.
    """
    pieces = tokenizer.vocabulary.pieces
    return lambda ids: b"".join(pieces(ids))


def _checked(tokenizer: Tokenizer, ids: Sequence[int]) -> Sequence[int]:
    """Return ids of the vocabulary as ints. Raises `InvalidTokenError` for others. The usual case is fast."""
    if not len(ids) or (set(map(type, ids)) == {int} and 0 <= min(ids) <= max(ids) < len(tokenizer.vocabulary)):
        return ids
    return tokenizer.vocabulary.checked(ids)


def _before(tokenizer: Tokenizer, after: Sequence[int]) -> Iterator[tuple[list[int], bytes]]:
    """Yield contexts for the encoding of a text, each as ids that precede the text, and their bytes.

    The contexts are the last `_CONTEXT` ids of `after`, all of its ids, and no ids. If the tokenizer adds a space
    before a text, ids at the beginning of a context are removed until one begins with a space, and the last context is
    a line break. Of the first two contexts, those without ids are left out.
    """
    bytes_of, adds_space = _bytes_of(tokenizer), tokenizer.adds_space
    for count in (_CONTEXT, len(after)):
        ids = list(after[-count:])
        while adds_space and ids and not bytes_of(ids[:1]).startswith(b" "):
            del ids[0]
        if ids:
            yield ids, bytes_of(ids)[adds_space:]
    yield (tokenizer.encode("\n"), b"\n") if adds_space else ([], b"")


def _encode_after(tokenizer: Tokenizer, before: tuple[list[int], bytes], text: bytes) -> list[int]:
    """Return the ids of the complete characters of a text after a context.

    The list is empty if the tokenizer encodes the context differently when the text follows, or if the text has invalid
    UTF-8.
    """
    ids, context = before
    try:
        whole = tokenizer.encode((context + text).decode())
    except UnicodeDecodeError as error:
        if error.end < len(context + text) and error.reason != "unexpected end of data":
            return []
        whole = tokenizer.encode((context + text)[: error.start].decode())
    return whole[len(ids) :] if whole[: len(ids)] == ids else []


def _ends_there(matcher: Matcher, ids: Sequence[int], ends: int) -> bool:
    """Return whether nothing but an end token can follow these ids.

    `ends`: the number of end tokens in the vocabulary.
    """
    further = matcher.fork()
    for token_id in ids[:-1]:
        further.advance(token_id)
    row = masks.new_rows(1, 32 * matcher.words)[0]
    further.advance_and_fill(ids[-1], row)
    return further.is_accepting and masks.popcount(row) == ends
