"""`Session`: one sequence of tokens over a model, which goes forwards and back.

The forward pass is lazy: tokens wait until logits are asked for, and then run together. So forced tokens cost one
pass, the last token of a generation none, and going back is a matter of lengths.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from guideway import masks
from guideway.engines.base import Cache, Logits, StepEngine
from guideway.errors import BudgetTooSmall, ContextOverflow, EngineError, InvalidToken, NoTokens
from guideway.sampling import Sampler, probabilities
from guideway.vocabulary import Tokenizer

if TYPE_CHECKING:
    from guideway.matcher import Matcher

__all__ = ["Session", "feed_all"]

LOGITS_BYTES = 8 << 20
"""How much a session keeps of the logits it passed, so that a rewind finds them. Beyond, one token runs again."""


class Session:
    """Tokens, their KV cache, the constraint's state and the random numbers, as one.

    Made by `Model.session`. Whatever raises has changed nothing. Not for several threads at once; a fork is cheap.
    `model_seconds`, `mask_seconds`, `sample_seconds`: where the time went.
    """

    def __init__(
        self, engine: StepEngine, tokenizer: Tokenizer, *, seed: int = 0, row: int = 0, sampler: Sampler | None = None
    ) -> None:
        self._engine = engine
        self.tokenizer = tokenizer
        self._tokens: list[int] = []
        self._cache: Cache | None = None
        self._passed: list[tuple[int, Logits]] = []  # (how many tokens they follow, logits), oldest first
        self._matcher: Matcher | None = None
        self._constrained_from = 0
        self._mask = masks.new_rows(1, len(tokenizer.vocabulary))[0]
        self.seed = seed
        self.row = row
        self.sampler = sampler or Sampler()
        self.model_seconds = self.mask_seconds = self.sample_seconds = 0.0

    @property
    def tokens(self) -> list[int]:
        """The ids so far; a copy."""
        return list(self._tokens)

    @property
    def text(self) -> str:
        """The text so far. An incomplete character at the end is left out until the rest of it comes."""
        return self.tokenizer.decode_complete(self._tokens)

    @property
    def context_size(self) -> int:
        """How many tokens there is room for, in all."""
        return self._engine.context_size

    @property
    def matcher(self) -> Matcher | None:
        """The constraint's state, to look at; it moves with the session."""
        return self._matcher

    def __len__(self) -> int:
        return len(self._tokens)

    def feed(self, text: str | Iterable[int]) -> list[int]:
        """Take text or token ids; gives the ids.

        Text at the start of a session gets the tokens that the tokenizer puts there (BOS). Under a constraint the
        tokens must be legal. Raises `InvalidToken`, `ContextOverflow`, `RejectedToken`.
        """
        if isinstance(text, str):
            ids = self.tokenizer.encode(text, special=not self._tokens)
        else:
            ids = self.tokenizer.vocabulary.checked(text)
        known = self._engine.vocab_size
        for token_id in ids:
            if token_id >= known:
                raise InvalidToken(f"token id {token_id} is outside the model's {known} tokens")
        self._need_room(len(ids))
        self._take(ids)
        return ids

    def constrain(self, matcher: Matcher | None) -> None:
        """Hold everything from here on to a constraint (`automaton.matcher()`, moved by nobody else); None: free."""
        self._matcher = matcher
        self._constrained_from = len(self._tokens) - (matcher.position if matcher is not None else 0)

    def infer(self, *, tokens_left: int | None = None) -> int:
        """Produce the next token: the one that the sampler draws from the logits, under the constraint.

        Goes on past EOS where no constraint forbids it. A single legal token is taken without running the model.
        `tokens_left`: take only tokens after which the text can be completed within so many, this one and EOS
        counted. Raises `NoTokens` where nothing was fed, `ContextOverflow`, `BudgetTooSmall`, `RejectedToken` when
        the constraint is finished.
        """
        self._need_room(1)
        token_id = self.only_legal(tokens_left)
        if token_id is None:
            token_id = self.draw()
        self._take([token_id])
        return token_id

    def only_legal(self, tokens_left: int | None = None) -> int | None:
        """Fill the mask for the next token, for `draw`; gives the one legal token where there is just one."""
        matcher = self._matcher
        if matcher is None:
            return None
        start = perf_counter()
        fits = True
        if tokens_left is None:
            matcher.fill_mask(self._mask)
        else:
            fits = matcher.fill_mask_within(self._mask, tokens_left)
        self.mask_seconds += perf_counter() - start
        if not fits:
            raise BudgetTooSmall(f"{matcher.tokens_to_finish()} tokens are needed to finish, {tokens_left} are left")
        return masks.only(self._mask)

    def draw(self) -> int:
        """The token for the logits here, under the mask that `only_legal` filled; the session does not move."""
        logits = self.logits()
        start = perf_counter()
        if self._matcher is not None:
            masks.apply(logits, self._mask)
        drawn = self.sampler.choose(logits, seed=self.seed, row=self.row, position=len(self._tokens))
        self.sample_seconds += perf_counter() - start
        return drawn

    def logits(self) -> Logits:
        """What the model says about the next token: float32 [vocabulary], a copy, without the constraint.

        Raises `NoTokens` where nothing was fed, `EngineError` where the engine fails.
        """
        feed_all([self])
        return np.array(self._passed[-1][1])

    def top_k(self, count: int) -> list[tuple[int, float]]:
        """The `count` most probable next tokens as (id, probability), without the constraint."""
        if count < 1:
            raise ValueError(f"count must be at least 1, got {count}")
        share = probabilities(self.logits().astype(np.float64))
        order = np.argsort(-share, kind="stable")[:count]
        return [(int(i), float(share[i])) for i in order]

    def rewind(self, count: int) -> list[int]:
        """Give the last `count` tokens back; gives their ids. Everything is then as it was before them.

        A constraint that began among them is gone. Raises `NoTokens` for more than there are.
        """
        if count < 0:
            raise ValueError(f"count must not be negative, got {count}")
        if count > len(self._tokens):
            raise NoTokens(f"{count} tokens cannot be given back: the session has {len(self._tokens)}")
        kept = len(self._tokens) - count
        if self._matcher is not None and kept >= self._constrained_from:
            self._matcher.rollback(count)
        elif self._matcher is not None:
            self._matcher = None
        removed = self._tokens[kept:]
        del self._tokens[kept:]
        if self._cache is not None and self._cache.length > kept:
            self._cache = self._cache.truncated(kept) if kept else None
        while self._passed and self._passed[-1][0] > kept:
            self._passed.pop()
        return removed

    def fork(self, *, row: int | None = None) -> Session:
        """An independent session at the same place; what came before is shared. `row`: its stream of random numbers."""
        row = self.row if row is None else row
        other = Session(self._engine, self.tokenizer, seed=self.seed, row=row, sampler=self.sampler)
        other._tokens = list(self._tokens)
        other._cache = self._cache
        other._passed = list(self._passed)
        other._matcher = None if self._matcher is None else self._matcher.fork()
        other._constrained_from = self._constrained_from
        other.model_seconds = self.model_seconds
        other.mask_seconds = self.mask_seconds
        other.sample_seconds = self.sample_seconds
        return other

    def _need_room(self, count: int) -> None:
        total = len(self._tokens) + count
        if total > self.context_size:
            raise ContextOverflow(f"{total} tokens, and the model's context holds {self.context_size}")

    def _take(self, ids: Sequence[int]) -> None:
        """Move on by these tokens, or raise `RejectedToken` and stay."""
        if self._matcher is not None:
            start = perf_counter()
            for done, token_id in enumerate(ids):
                try:
                    self._matcher.advance(token_id)
                except BaseException:
                    self._matcher.rollback(done)
                    raise
            self.mask_seconds += perf_counter() - start
        self._tokens += ids

    def _waiting(self) -> list[int]:
        """The tokens to run before there are logits here; empty where there are. Raises `NoTokens`."""
        if not self._tokens:
            raise NoTokens("no token was fed, so there are no logits")
        if self._passed and self._passed[-1][0] == len(self._tokens):
            return []
        if self._cache is not None and self._cache.length == len(self._tokens):
            # A rewind went further back than the logits that were kept: the last token runs once more.
            self._cache = self._cache.truncated(len(self._tokens) - 1) if len(self._tokens) > 1 else None
        return self._tokens[self._cache.length if self._cache is not None else 0 :]

    def _received(self, logits: Logits, cache: Cache) -> None:
        usable = logits[: len(self.tokenizer.vocabulary)].copy()  # the model pads; ids beyond have no text
        self._cache = cache
        self._passed.append((len(self._tokens), usable))
        if len(self._passed) > max(2, LOGITS_BYTES // max(1, usable.nbytes)):
            del self._passed[0]


def feed_all(sessions: Sequence[Session]) -> None:
    """Run the tokens that wait in these sessions, all of one model, in as few passes as the engine can.

    Raises `NoTokens` for an empty session, `EngineError` where the engine fails; no session has moved then.
    """
    work = [(session, ids) for session in sessions if (ids := session._waiting())]
    if not work:
        return
    engine = work[0][0]._engine
    if any(session._engine is not engine for session, _ in work):
        raise EngineError("these sessions are of several models")
    start = perf_counter()
    logits, caches = engine.forward([ids for _, ids in work], [session._cache for session, _ in work])
    seconds = (perf_counter() - start) / len(work)
    for index, (session, _) in enumerate(work):
        session._received(logits[index], caches[index])
        session.model_seconds += seconds
