"""`Session`: one sequence of tokens over a model, which can be extended and rewound.

The forward pass is lazy: tokens are queued until logits are requested, and then run together. Forced tokens therefore
share one pass, the last token of a generation needs none, and `rewind` only truncates.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from guideway import masks
from guideway.arguments import integer, short_repr
from guideway.compiler import Automaton, compile
from guideway.engines.base import Arrays, Cache, Logits
from guideway.errors import (
    BudgetTooSmallError,
    ContextOverflowError,
    EmptySequenceError,
    EngineError,
    InvalidTokenError,
    UnsatisfiableError,
)
from guideway.matcher import Fit, Matcher
from guideway.sampling import (
    DeviceDraw,
    DeviceRow,
    Sampler,
    draw_at,
    draw_bare,
    draws_on_device,
    on_cpu,
    probabilities,
    uniform,
)
from guideway.sessions import snapshot
from guideway.sessions.batch_invariance import settled_draw
from guideway.sessions.batch_step import catch_up, feed_all, infer_all
from guideway.sessions.divergence import Divergence
from guideway.sessions.history import Checkpoints, LogitsRing
from guideway.sessions.kv_cache import KVCache
from guideway.sessions.prefix_cache import common_length

if TYPE_CHECKING:
    from guideway.sessions.model import ModelBase

__all__ = ["Change", "Counts", "KVHook", "Parts", "Session"]

LOGITS_BYTES = 8 << 20
"""The default maximum number of bytes of earlier logits that a session stores for rewinding.

After rewinding to a position whose logits are not stored, the model runs the last token again; a recurrent model may
have to run more. Of up to 1,024 positions before the stored ones, the 256 largest logits are stored (3 KB per
position). They are sufficient for most greedy draws, without running the model.
"""

SHOWN_TOKENS = 16
"""The number of last tokens whose text the repr shows."""

CHECKPOINT_BYTES = 64 << 20
"""The default maximum number of bytes of earlier caches that a session stores, if the engine cannot truncate caches."""


KVHook = Callable[["Session"], Arrays | None]
"""A function of the session that returns new keys and values of the soft prompt; None: they do not change."""


class Change(NamedTuple):
    """The changes that `Session.set_text` made.

    Attributes:
        kept: The number of tokens at the beginning that did not change.
        removed: The ids that were removed after these.
        fed: The ids that were appended then.
    """

    kept: int
    removed: list[int]
    fed: list[int]


@dataclass(frozen=True)
class Counts:
    """How many tokens the model ran for a session.

    Attributes:
        run: All tokens that the model ran, `recomputed` included.
        recomputed: Tokens that the model ran again, because their logits or states were no longer stored, or because a
            draw was repeated (`Session.tolerance`).
        cached: Tokens that the model did not run, because the prefix cache had them.
    """

    run: int = 0
    recomputed: int = 0
    cached: int = 0


class Session:
    """One sequence of tokens with its KV cache, the state of its constraint, its sampler and its random numbers.

    `Model.session` returns one. It begins with the ids that the tokenizer puts before a text (`Model.bos_ids`), which
    cannot be removed, or with the tokens of a KV cache. A method that raises does not change the tokens. A session must
    not be used by several threads at once; `fork` is cheap. As a context manager, it releases its KV cache at the end
    of the block.

    Attributes:
        model: The model.
        tokenizer: The tokenizer of the model.
        context_size: The maximum number of tokens, those of a soft prompt included.
        matcher: The state of the constraint, for inspection; None: no constraint.
        seed: The seed of the random numbers.
        row: The number of the sequence, by which sessions with the same seed get different random numbers.
        sampler: How tokens are drawn.
        tolerance: If a change of the difference of two logits by less than this number could change the drawn token,
            the token is drawn again from logits that the model computes for this session alone
            (`sessions.batch_invariance`). 0: no draw is repeated.
        divergence: The first position at which a token budget (`tokens_left`, `max_tokens`) changed the token, with the
            token without the budget. None: there is none. Rewinding to or before this position sets it to None.
        model_seconds: The time spent in the model.
        mask_seconds: The time spent on masks.
        sample_seconds: The time spent on drawing tokens.
    """

    def __init__(
        self,
        model: ModelBase,
        *,
        seed: int = 0,
        row: int = 0,
        sampler: Sampler | None = None,
        kv_cache: KVCache | None = None,
        tokens: Sequence[int] | None = None,
        logits_bytes: int = LOGITS_BYTES,
        checkpoint_bytes: int = CHECKPOINT_BYTES,
    ) -> None:
        engine = model.engine
        if kv_cache is not None and kv_cache.owner is not engine:
            raise ValueError("this KV cache belongs to a different model")
        if (
            kv_cache is not None
            and len(kv_cache) + (kv_cache.prefix.length if kv_cache.prefix is not None else 0) != kv_cache.positions
        ):
            raise ValueError(
                f"the KV cache must have one token per position, got {len(kv_cache)} tokens for {kv_cache.positions} positions"
            )
        self.model = model
        self.tokenizer = model.tokenizer
        self.context_size = engine.context_size
        begun = kv_cache.tokens if kv_cache is not None and kv_cache.tokens else model.bos_ids
        self._tokens: list[int] = list(begun if tokens is None else tokens)
        self._floor = len(model.bos_ids) if self._tokens[: len(model.bos_ids)] == list(model.bos_ids) else 0
        self._prefix: Cache | None = None  # a soft prompt: positions without tokens, before all tokens
        self._shift = 0  # the number of these positions
        self._cache: Cache | None = None
        self._shareable = tokens is None and (kv_cache is None or kv_cache.shareable)
        self._ran = 0  # the number of tokens at the start that were run at least once, here or for a given cache
        self._ring = LogitsRing(logits_bytes)
        self._checkpoints = None if engine.supports_rollback else Checkpoints(checkpoint_bytes)
        self.matcher: Matcher | None = None
        """The state of the constraint, for inspection. It advances with the session."""
        self._constrained_from = 0
        self._width = len(self.tokenizer.vocabulary)
        self._mask = masks.new_rows(1, self._width)[0]
        self._masked = False
        self._whole: masks.Row | None = None  # the mask without the budget, if `_narrowed`
        self._narrowed = False  # whether `draw` must compare with `_whole`: the budget removed tokens from the mask
        self.divergence: Divergence | None = None
        self.seed = integer("seed", seed)
        self.row = integer("row", row)
        self.sampler = sampler or Sampler()
        self._memory: list[_Memory] = []  # Mirostat's state after draws; empty if no draw used Mirostat
        self.tolerance = 0.0
        self._repeated = 0  # the number of tokens that the model ran for `logits_alone`
        self._counted = [0, 0, 0]  # as in `Counts`
        self.model_seconds = self.mask_seconds = self.sample_seconds = 0.0
        self.kv_hook: KVHook | None = None
        """Supplies the keys and values of the soft prompt before each run of the model; see `Model.session`."""
        self._hooked_at = -1  # the number of tokens at the last call of `kv_hook`
        if kv_cache is not None:
            self._start_from(kv_cache)

    @property
    def room(self) -> int:
        """The number of tokens that the context has room for."""
        return self.context_size - self._shift - len(self._tokens)

    @property
    def tokens(self) -> list[int]:
        """The ids, as a copy."""
        return list(self._tokens)

    @property
    def counts(self) -> Counts:
        """How many tokens the model ran."""
        return Counts(*self._counted)

    @property
    def text(self) -> str:
        """The text. An incomplete character at the end is left out."""
        return self.tokenizer.decode_complete(self._tokens)

    @property
    def memory(self) -> list[tuple[int, int, float]]:
        """The state of the Mirostat sampler after draws: (position, id, mu). Empty if no draw used Mirostat.

        `rewind` removes the entries of removed tokens.
        """
        return [(one.at, one.token_id, one.value) for one in self._memory]

    @memory.setter
    def memory(self, remembered: Iterable[tuple[int, int, float]]) -> None:
        self._memory = [_Memory(int(at), int(token_id), float(value)) for at, token_id, value in remembered]

    @property
    def max_rewind(self) -> int:
        """The maximum number of tokens that `rewind` can remove."""
        return len(self._tokens) - self._floor

    def __len__(self) -> int:
        return len(self._tokens)

    def __repr__(self) -> str:
        end = self.tokenizer.decode(self._tokens[-SHOWN_TOKENS:])
        more = "…" if len(self._tokens) > SHOWN_TOKENS else ""
        matcher = "" if self.matcher is None else f", matcher={self.matcher!r}"
        return f"Session({self.model.name!r}, {len(self._tokens)} tokens, text={more + end!r}{matcher})"

    def feed(self, text: str | Iterable[int]) -> list[int]:
        """Append text or token ids. The model runs over them when logits are needed.

        Args:
            text: A text, or token ids. At the start, both may begin with `Model.bos_ids` (a text with the name of the
                BOS token); these are not appended again.

        Returns:
            The appended ids.

        Raises:
            InvalidTokenError: An id is not an integer or is outside the vocabulary, or the text cannot be encoded.
            ContextOverflowError: The context has no room for the tokens.
            RejectedTokenError: The constraint does not allow a token.
            TypeError: `text` is neither a str nor iterable.
        """
        if not isinstance(text, Iterable):
            raise TypeError(f"text must be a string or token ids, got {short_repr(text)}")
        ids = self.tokenizer.encode(text) if isinstance(text, str) else self.tokenizer.vocabulary.checked(text)
        if len(self) == self._floor:
            ids = self._without_opening(ids)
        self.check(ids, len(self))
        self.take(ids)
        return ids

    def _without_opening(self, ids: list[int]) -> list[int]:
        """Return ids without `Model.bos_ids`, if they begin with them."""
        opening = self._tokens[: self._floor]
        return ids[self._floor :] if ids[: self._floor] == opening else ids

    def set_text(self, text: str, *, release: bool = False) -> Change:
        """Replace the whole text. The tokens that both texts begin with do not run again.

        Args:
            text: The new text.
            release: Whether a constraint that began after the first change is removed; otherwise it causes an error.

        Returns:
            The number of tokens kept, the removed ids and the appended ids.

        Raises:
            InvalidTokenError: As in `feed`.
            ContextOverflowError: As in `feed`.
            RejectedTokenError: As in `feed`.
            ValueError: The constraint began after the first change, and `release` is False.
        """
        ids = [*self._tokens[: self._floor], *self._without_opening(self.tokenizer.encode(text))]
        kept = common_length(ids, self._tokens)
        self.check(ids[kept:], kept)
        before = self._mark()
        removed = self.rewind(len(self) - kept, release=release)
        try:
            self.take(ids[kept:])
        except BaseException:
            self._return_to(before)
            raise
        return Change(kept, removed, ids[kept:])

    def constrain(self, constraint: object) -> None:
        """Apply a constraint to the following tokens. It replaces an earlier one.

        Args:
            constraint: A constraint, a type or an automaton, which begins here; or a matcher that has already taken the
                session's last tokens. None removes the constraint.

        Raises:
            ConstraintError: As in `guideway.compile`.
        """
        if constraint is None:
            self.matcher = None
            return
        if not isinstance(constraint, (Matcher, Automaton)):
            constraint = compile(constraint, self.tokenizer)
        self.matcher = constraint if isinstance(constraint, Matcher) else constraint.matcher()
        self._constrained_from = len(self._tokens) - self.matcher.position

    def infer(self, *, tokens_left: int | None = None) -> int:
        """Generate one token: the sampler draws it from the logits, under the constraint.

        If the constraint allows exactly one token, it is taken without running the model. Without a constraint, tokens
        can follow EOS.

        Args:
            tokens_left: The token budget: take only a token after which the text can be completed within this number of
                tokens, this token and EOS included. None: no limit.

        Returns:
            The id of the token.

        Raises:
            EmptySequenceError: The session is empty.
            ContextOverflowError: The context is full.
            BudgetTooSmallError: `tokens_left` is too small to complete the text.
            RejectedTokenError: The constraint is finished.
            EngineError: The engine failed.
        """
        return infer_all([self], tokens_left=tokens_left)[0]

    def complete(self, *, max_tokens: int | None = None) -> list[int]:
        """Generate tokens until the constraint is finished.

        Args:
            max_tokens: The maximum number of tokens, EOS included; by default as many as the context holds. Only
                tokens are drawn after which the text can still be completed within it.

        Returns:
            The generated ids, the end token included.

        Raises:
            ValueError: The session has no constraint.
            BudgetTooSmallError: The shortest completion has more tokens than `max_tokens`, or than the context holds.
            EngineError: The engine failed.

        After an error, the session has the tokens that it had before the call.
        """
        if self.matcher is None:
            raise ValueError("Session.complete needs a constraint: call session.constrain(constraint) first")
        room = self.room
        left = room if max_tokens is None else min(room, integer("max_tokens", max_tokens, 1))
        ids: list[int] = []
        try:
            while not self.is_finished:
                if len(ids) >= left:
                    raise BudgetTooSmallError(
                        f"the text is not complete after {left} tokens: the context or max_tokens is too small"
                    )
                ids.append(self.infer(tokens_left=left - len(ids)))
        except BaseException:
            self.rewind(len(ids))
            raise
        return ids

    @property
    def is_finished(self) -> bool:
        """Whether the session has a constraint, and its end token was taken."""
        return self.matcher is not None and self.matcher.is_finished

    def close(self) -> None:
        """Release the KV cache and the stored logits.

        The tokens remain; if the session is used again, the model runs them.
        """
        self._cache = self._prefix
        self._ring = LogitsRing(self._ring.budget_bytes)
        if self._checkpoints is not None:
            self._checkpoints = Checkpoints(self._checkpoints.budget_bytes)

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def only_legal(
        self,
        tokens_left: int | None = None,
        *,
        without: Collection[int] = (),
        avoid: Collection[int] = (),
        compare: bool = False,
    ) -> int | None:
        """Compute the mask of the next token. `draw` uses it.

        Args:
            tokens_left: As in `infer`.
            without: Ids that are excluded at this position.
            avoid: Ids that are excluded unless the constraint allows no other token.
            compare: Whether the mask without the budget is computed, too, so that `draw` can set `divergence`. A token
                that is the only legal one because of `tokens_left` is then not returned, because the comparison needs
                the logits. Without effect if `divergence` is set already.

        Returns:
            The legal token if there is exactly one; else None.

        Raises:
            BudgetTooSmallError: `tokens_left` is too small to complete the text.
            UnsatisfiableError: `without` excludes all tokens that are legal within the budget.
        """
        matcher = self.matcher
        self._masked = matcher is not None or bool(without) or bool(avoid)
        self._narrowed = False
        if not self._masked:
            return None
        start = perf_counter()
        mask, fits = self._mask, True
        if matcher is None:
            mask[:] = masks.all_of(self._width)
        elif tokens_left is None:
            matcher.fill_mask(mask)
        elif not compare or self.divergence is not None:
            fits = matcher.fill_mask_within(mask, tokens_left)
        else:
            if self._whole is None:
                self._whole = np.empty_like(mask)
            fit = matcher.fill_masks_within(mask, self._whole, tokens_left)
            fits, self._narrowed = fit is not Fit.NONE, fit is Fit.SOME
        if without or avoid:
            for row in (mask, self._whole) if self._narrowed and self._whole is not None else (mask,):
                _exclude(row, without)
                if avoid:
                    kept = row.copy()
                    _exclude(row, avoid)
                    if matcher is not None and not row.any():
                        row[:] = kept
        one = masks.only(mask)
        self.mask_seconds += perf_counter() - start
        if matcher is not None and not fits:
            raise BudgetTooSmallError(
                f"{matcher.min_tokens_to_complete()} tokens are needed to finish, {tokens_left} are left"
            )
        if (without or avoid) and one is None and not mask.any():
            raise UnsatisfiableError("every token that the constraint allows here was excluded")
        return None if self._narrowed else one

    @property
    def budget_narrows(self) -> bool:
        """Whether the last call of `only_legal`, with `compare=True`, found tokens that only the budget excludes."""
        return self._narrowed

    @property
    def budget_excludes_all(self) -> bool:
        """Whether the last call of `only_legal`, with `compare=True`, found no token because of the budget."""
        return self._narrowed and self._whole is not None and bool(self._whole.any()) and not self._mask.any()

    @property
    def mask(self) -> masks.Row | None:
        """The mask that `only_legal` computed, uint32 [words]. It must not be modified.

        None: there is no constraint and no excluded id, or `only_legal` was not called yet.
        """
        return self._mask if self._masked else None

    def kept_choice(self) -> int | None:
        """Return the token that `draw` would return, if the stored largest logits of this position determine it.

        The model does not run. None: the model must run, or all logits of this position are stored, so that `draw` can
        be called. Call `only_legal` first.
        """
        top = self._ring.top_at(len(self._tokens))
        if top is None or not self.sampler.bare or self._narrowed:
            return None
        return top.best(self.mask)

    def draw(self, *, attempt: int = 0, unbudgeted: int | None = None) -> int:
        """Draw a token from the logits at this position, under the mask that `only_legal` computed.

        The token is not appended (`take`). If the logits are not stored, the model runs first. Apart from that, only
        `divergence`, `memory` and `sample_seconds` change.

        Args:
            attempt: The number of draws at this position that were undone. The random number depends on it.
            unbudgeted: The token that would be taken without the budget, if it is known. None: it is drawn for
                comparison, if the budget removed tokens from the mask.

        Returns:
            The id of the token.
        """
        logits = self.shared_logits()
        start = perf_counter()
        token_id = self.draw_masked(logits, attempt, unbudgeted)
        self.sample_seconds += perf_counter() - start
        return token_id

    def device_draw(self) -> DeviceDraw | None:
        """Return what `draw_masked` draws next, for `device_rows`. None: this draw needs the logits on the CPU."""
        if self.tolerance or not draws_on_device(self.sampler):
            return None
        mask = self._mask if self._masked else None
        number = uniform(self.seed, self.row, len(self._tokens)) if self.sampler.temperature else 0.0
        return DeviceDraw(
            self.sampler, number, [mask, self._whole] if self._narrowed and self.divergence is None else [mask]
        )

    def draw_masked(self, logits: Any, attempt: int = 0, unbudgeted: int | None = None) -> int:
        """As `draw`, from given logits instead of the logits at this position."""
        mask = self._mask if self._masked else None
        if self.divergence is not None or not (self._narrowed or unbudgeted is not None):
            return self.draw_from(logits, mask, attempt)
        if unbudgeted is None:  # the token is not taken, so the next draw removes its sampler state
            unbudgeted = self.draw_from(logits, self._whole, attempt)
        token_id = self.draw_from(logits, mask, attempt)
        if token_id != unbudgeted:
            self.divergence = Divergence(len(self._tokens), unbudgeted)
        return token_id

    def draw_from(self, logits: Any, mask: masks.Row | None, attempt: int = 0) -> int:
        """Draw a token from given logits under a given mask (None: all tokens). `divergence` does not change."""
        if self.tolerance and (settled := settled_draw(self, logits, mask, attempt)) is not None:
            return settled
        if isinstance(logits, DeviceRow) and not attempt and (token_id := logits.token(mask)) is not None:
            return token_id
        if (token_id := draw_bare(self.sampler, logits, mask)) is not None:
            return token_id
        tokens, remembered = self._tokens, self._memory
        while remembered and tokens[remembered[-1].at :][:1] != [remembered[-1].token_id]:
            remembered.pop()  # the state after a draw whose token was not taken
        memory, at = remembered[-1].value if remembered else None, len(tokens)
        drawn, memory = draw_at(self.sampler, logits, mask, tokens, (self.seed, self.row, at), attempt, memory)
        if memory is not None:
            remembered.append(_Memory(at, drawn, memory))
        return drawn

    def logits(self) -> Logits:
        """The logits of the next token, without the constraint.

        Returns:
            A copy, float32 [vocabulary].

        Raises:
            EmptySequenceError: The session is empty.
            EngineError: The engine failed.
        """
        return np.array(self.shared_logits())

    def logits_alone(self) -> Logits | None:
        """Run all tokens in one call without other rows and stored states. Returns the logits, for `settled_draw`.

        They depend only on the tokens. None if they would not (KV caches from files, `kv_hook`), or if such calls have
        already run more tokens than the session has, which limits their cost in long sessions.
        """
        count = len(self._tokens)
        if self._repeated > count or not self._shareable or self.kv_hook is not None:
            return None
        start = perf_counter()
        logits, _ = self.model.run(self.model.engine.forward, [self._tokens], [self._prefix])
        self._repeated += count
        self._counted[0] += count
        self._counted[1] += count
        self.model_seconds += perf_counter() - start
        return on_cpu(logits[0])[: self._width]

    def shared_logits(self) -> Logits:
        """Return the same as `logits`, without copying. The array must not be modified. Raises the same errors."""
        found = self._ring.at(len(self._tokens))
        if found is None:
            feed_all([self])
            found = self._ring.at(len(self._tokens))
        if found is None:
            raise EngineError("the engine returned no logits")
        return found

    def top_k(self, count: int) -> list[tuple[int, float]]:
        """Return the tokens that are most probable by the logits of the model, without the constraint and the sampler.

        Args:
            count: The number of tokens.

        Returns:
            Pairs of id and probability, the most probable first.
        """
        count = integer("count", count, 1)
        share = probabilities(self.logits().astype(np.float64))
        order = np.argsort(-share, kind="stable")[:count]
        return [(int(i), float(share[i])) for i in order]

    def rewind(self, count: int, *, release: bool = False) -> list[int]:
        """Remove the last tokens, and restore the state of the constraint and of the sampler before them.

        Args:
            count: The number of tokens.
            release: Whether a constraint that began within the removed tokens is removed; otherwise it causes an error.

        Returns:
            The removed ids.

        Raises:
            EmptySequenceError: The session has fewer than `count` tokens after `Model.bos_ids`.
            ValueError: The constraint began within the removed tokens, and `release` is False.
        """
        count = integer("count", count, 0)
        kept = len(self._tokens) - count
        if kept < self._floor:
            bos = f" after its {self._floor} BOS ids" if self._floor else ""
            raise EmptySequenceError(f"cannot rewind {count} tokens: the session has {self.max_rewind}{bos}")
        if self.matcher is not None and kept >= self._constrained_from:
            self.matcher.rollback(count)
        elif self.matcher is not None:
            if not release:
                raise ValueError(
                    f"the constraint began after token {self._constrained_from}, and {kept} tokens would remain: rewind"
                    f" at most {len(self._tokens) - self._constrained_from} tokens, or pass release=True to remove the"
                    " constraint"
                )
            self.matcher = None
        removed = self._tokens[kept:]
        del self._tokens[kept:]
        while self._memory and self._memory[-1].at >= kept:
            self._memory.pop()
        if self.divergence is not None and self.divergence.position >= kept:
            self.divergence = None
        self._cache = self._kept(kept)
        self._ring.rewind(kept)
        if self._checkpoints is not None:
            self._checkpoints.rewind(self._shift + kept)
        self._ran, self._hooked_at = min(self._ran, kept), -1
        return removed

    def fork(self, *, row: int | None = None) -> Session:
        """Return an independent session with the same tokens and state. The KV cache is shared, not copied.

        Args:
            row: The `row` of the fork, for different random numbers; None: the same `row`.

        Returns:
            The new session.
        """
        row = self.row if row is None else row
        other = Session(self.model, seed=self.seed, row=row, sampler=self.sampler)
        other._return_to(self._mark())
        other._floor, other._counted = self._floor, list(self._counted)
        other._prefix, other._shift = self._prefix, self._shift
        other.kv_hook, other._hooked_at = self.kv_hook, self._hooked_at
        other._shareable = self._shareable
        other.tolerance = self.tolerance
        other.model_seconds = self.model_seconds
        other.mask_seconds = self.mask_seconds
        other.sample_seconds = self.sample_seconds
        return other

    def become(self, fork: Session) -> None:
        """Take the tokens and the state of a fork of this session, which must not be used afterwards."""
        self._return_to(fork._mark())
        self._counted, self._hooked_at = fork._counted, fork._hooked_at
        self._prefix, self._repeated = fork._prefix, max(self._repeated, fork._repeated)
        self.model_seconds, self.mask_seconds, self.sample_seconds = (
            fork.model_seconds,
            fork.mask_seconds,
            fork.sample_seconds,
        )

    def kv_cache(self) -> KVCache:
        """Return the KV cache as an immutable value, with which any number of sessions can start.

        The model first runs tokens that it has not run yet.

        Returns:
            The cache with its tokens.

        Raises:
            EmptySequenceError: The session is empty.
            EngineError: The engine failed.
        """
        cache = catch_up(self)
        logits = self._ring.at(len(self))
        # Copied, because a view would keep the logits of the whole batch in memory.
        own = None if logits is None else np.array(logits)
        return KVCache(tuple(self._tokens), cache, self.model.engine, self._prefix, own, self._shareable)

    def parts(self) -> Parts:
        """Return the caches and logits that `save` writes in addition to tokens and numbers. They are not copied."""
        start = None if self.matcher is None else self._constrained_from
        logits = self._ring.at(len(self))
        return Parts(self._prefix, self._cache, logits, start)

    def need_room(self, count: int, *, kept: int | None = None) -> None:
        """Raise `ContextOverflowError` if the context has no room for `count` tokens after the first `kept`."""
        total = self._shift + (len(self._tokens) if kept is None else kept) + count
        if total > self.context_size:
            raise ContextOverflowError(
                f"the sequence would have {total} tokens; the model's context holds {self.context_size}: shorten the text, or"
                " load a model with a larger context"
            )

    def check(self, ids: Sequence[int], kept: int) -> None:
        """Check that the model knows these ids, and that they fit the context after the first `kept` tokens.

        The constraint is not checked. Raises `InvalidTokenError` and `ContextOverflowError`.
        """
        known = self.model.engine.vocab_size
        for token_id in ids:
            if token_id >= known:
                raise InvalidTokenError(f"token id {token_id} is outside the model's {known} tokens")
        self.need_room(len(ids), kept=kept)

    def take(self, ids: Sequence[int]) -> None:
        """Append tokens that were drawn, or checked by `check`. The constraint must allow them.

        If it does not, `RejectedTokenError` is raised, and the session is unchanged.
        """
        if self.matcher is not None:
            start = perf_counter()
            for done, token_id in enumerate(ids):
                try:
                    self.matcher.advance(token_id)
                except BaseException:
                    self.matcher.rollback(done)
                    raise
            self.mask_seconds += perf_counter() - start
        self._tokens += ids

    def keep_prefix(self) -> None:
        """Store the KV cache of this session in the prefix cache of the model, without tokens that have not run yet.

        Long prompts are stored without this call. Soft prompts and caches from files are never stored.
        """
        if self._cache is not None and self._prefix is None and self._shareable:
            # The cache is copied while no other thread calls the engine, which may extend it in place for a fork.
            self.model.run(self.model.prefixes.put, self._tokens[: self._cache.length], self._cache)

    def save(self, path: str | Path) -> None:
        """Write the session to a file, from which `Model.load_session` restores it.

        `kv_hook`, `tolerance`, the counts, the times, and the logits and states of earlier positions are not saved.

        Args:
            path: The file.

        Raises:
            InvalidFileError: The file cannot be written.
            EngineError: The engine failed.
            SnapshotError: The sampler has stages that are functions.
        """
        snapshot.save(self, Path(path))

    # -- for `batch_step` and `multi_step` ---------------------------------------------------------------

    def _start_from(self, kv_cache: KVCache) -> None:
        self._prefix, self._cache, self._ran = kv_cache.prefix, kv_cache.cache, len(kv_cache.tokens)
        self._shift = kv_cache.prefix.length if kv_cache.prefix is not None else 0
        if self._checkpoints is not None and kv_cache.tokens:
            self._checkpoints.put(kv_cache.cache)
        if kv_cache.logits is not None:
            self._ring.put(len(self._tokens), kv_cache.logits)

    def call_hook(self) -> None:
        """Call `kv_hook` if the model must run at this position, and replace the keys and values of the soft prompt.

        It is called at most once per position, and again after `rewind`.

        Raises:
            ValueError: The hook returned another number of positions than the soft prompt has.
            EngineError: The arrays do not fit the model.
        """
        if self.kv_hook is None or self._hooked_at == len(self._tokens) or self.has_logits:
            return
        arrays = self.kv_hook(self)
        self._hooked_at = len(self._tokens)
        if arrays is None:
            return
        run, engine, cache = self.model.run, self.model.engine, self._cache
        prefix = run(engine.restore, arrays)
        if prefix.length != self._shift:
            raise ValueError(f"kv_hook must return the {self._shift} positions of the soft prompt, got {prefix.length}")
        if cache is not None and cache.length > self._shift:
            known = run(engine.export, cache)
            joined = {name: np.concatenate([arrays[name], own[:, :, self._shift :]], 2) for name, own in known.items()}
            cache = run(engine.restore, joined)
        else:
            cache = prefix
        self._prefix, self._cache = prefix, cache

    def _kept(self, limit: int) -> Cache | None:
        """Return the engine's cache of at most the first `limit` tokens; None: there is none."""
        if self._cache is None or self._cache.length <= self._shift + limit:
            return self._cache
        if self._checkpoints is not None:
            return self._checkpoints.best(self._shift + limit) or self._prefix
        return self._cache.truncated(self._shift + limit) if limit else self._prefix

    def _plan(self) -> tuple[Cache | None, list[int]]:
        """Return the cache to continue from, and the ids that the model must run to get the logits of the next token.

        The ids are [] if the logits are stored. Raises `EmptySequenceError` if the session has no tokens.
        """
        total = len(self._tokens)
        known = self._cache
        if known is not None and known.length == self._shift + total - 1 and self._checkpoints is None:
            return known, self._tokens[-1:]  # the usual case
        if not total:
            raise EmptySequenceError("no token was fed, so there are no logits")
        if self._ring.at(total) is not None:
            return self._cache, []
        # After rewinding to a position whose logits are not stored, the last token runs again.
        cache = self._kept(total - 1)
        covered = cache.length - self._shift if cache is not None else 0
        prefixes = self.model.prefixes
        if total - covered > prefixes.shortest and self._prefix is None:
            found = prefixes.find(self._tokens[: total - 1], more_than=covered)
            if found is not None:
                return found, self._tokens[found.length :]
        return cache, self._tokens[covered:]

    def _received(self, count: int, cache: Cache, logits: Logits | None = None) -> None:
        """Record that the model ran `count` tokens.

        `cache`: the cache after these tokens. `logits`: the logits after the last one; None: they are not stored.
        """
        reached, counted, known = cache.length - self._shift, self._counted, self._cache
        covered = reached - count
        if known is None or known.length != self._shift + covered:
            before = self._kept(covered)
            counted[2] += covered + self._shift - (before.length if before is not None else 0)
        self._cache = cache
        if self._checkpoints is not None:
            self._checkpoints.rewind(self._shift + covered)
            self._checkpoints.put(cache)
        if logits is not None and reached == len(self._tokens):
            # The model pads its vocabulary; the ids of the padding have no text.
            self._ring.put(reached, logits if len(logits) <= self._width else logits[: self._width])
        counted[0] += count
        if self._ran > covered:
            counted[1] += min(self._ran, reached) - covered
        if reached > self._ran:
            self._ran = reached
        if logits is not None and count >= self.model.prefixes.shortest:
            self.keep_prefix()

    @property
    def has_logits(self) -> bool:
        """Whether the logits of the next token are stored, so that the model need not run."""
        return self._ring.at(len(self._tokens)) is not None

    @property
    def is_waiting(self) -> bool:
        """Whether the model must run to get the logits of the next token, and its caches can be truncated."""
        return self._checkpoints is None and self._ring.at(len(self._tokens)) is None and bool(self._tokens)

    def _went_on(self, cache: Cache, count: int, lowest: int) -> None:
        """As `_received`, after a call of `decode_steps`.

        `lowest`: the smallest number of tokens to which the session was rewound.
        """
        self._received(count, cache)
        if lowest < cache.length - self._shift:
            self._cache, self._ran = self._kept(lowest), lowest

    def _mark(self) -> _Mark:
        """Return the tokens and all states that belong to them, for `_return_to`."""
        return _Mark(
            list(self._tokens),
            self._cache,
            self._ran,
            self._ring.copy(),
            None if self._checkpoints is None else self._checkpoints.copy(),
            list(self._memory),
            None if self.matcher is None else self.matcher.fork(),
            self._constrained_from,
            self.divergence,
        )

    def _return_to(self, mark: _Mark) -> None:
        self._tokens, self._cache, self._ran, self._ring, self._checkpoints, self._memory = mark[:6]
        self.matcher, self._constrained_from, self.divergence = mark[6:]


class Parts(NamedTuple):
    """What `save` writes: the soft prompt, the cache, the logits, and the number of tokens before the constraint began.

    Each may be None.
    """

    prefix: Cache | None
    cache: Cache | None
    logits: Logits | None
    constrained_from: int | None


class _Memory(NamedTuple):
    """The state (mu) of the Mirostat sampler after the token `token_id` was drawn at position `at`."""

    at: int
    token_id: int
    value: float


class _Mark(NamedTuple):
    tokens: list[int]
    cache: Cache | None
    ran: int
    ring: LogitsRing
    checkpoints: Checkpoints | None
    memory: list[_Memory]
    matcher: Matcher | None
    constrained_from: int
    divergence: Divergence | None


def _exclude(row: masks.Row, ids: Collection[int]) -> None:
    for token_id in ids:
        row[token_id >> 5] &= ~np.uint32(1 << (token_id & 31))
