"""The common code of logits processors: compiled constraints, the states of rows, and masks computed in advance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from time import perf_counter
from typing import Any

import numpy as np

from guideway.compiler import Automaton, compile
from guideway.errors import GuidewayError, NoAllowedTokenError, ProcessorError, ProcessorReuseError
from guideway.integrations._common.rows import Begun, Ids, Masks, Rows
from guideway.integrations._common.timings import ProcessorTimings
from guideway.matcher import LoopClock
from guideway.tokenizers import Tokenizer

__all__ = ["Chained", "Function", "Processor", "no_token_left"]

Function = Callable[[Any, Any], Any]

_SINGLE_USE = "call reset() before each generate() call, or create a new processor"


SHOWN = 4
"""The maximum number of constraints in a repr."""


def _name(constraint: object) -> str:
    return constraint.__name__ if isinstance(constraint, type) else repr(constraint)


def no_token_left(row: int | None = None) -> NoAllowedTokenError:
    """Return the error for logits in which the mask and other processors together leave no token to draw.

    `row`: the number of the row, for the message; None: there is only one.
    """
    where = "" if row is None else f" to draw in row {row}"
    return NoAllowedTokenError(
        f"no token is left{where}: another processor forbids all tokens that the constraint allows"
    )


class Processor:
    """The compiled constraints of a logits processor, and the states of its rows.

    The rows of the first step are the prompts of one generate() call. Rows with other prompts are refused until
    `reset()`.

    Args:
        constraints: One for all rows, or a list with one for each prompt (None: no constraint): constraints, Python
            types or automata.
        tokenizer: A value that `Tokenizer.of` accepts.
        max_tokens: The maximum number of tokens of each text, which is complete within it; None: no limit.
    """

    def __init__(self, constraints: object, tokenizer: object, *, max_tokens: int | None = None) -> None:
        table = Tokenizer.of(tokenizer)
        several = isinstance(constraints, (list, tuple))
        given: Sequence[object] = constraints if isinstance(constraints, (list, tuple)) else [constraints]
        if not given:
            raise ValueError("constraints must be one constraint or a list with one for each prompt, got an empty list")
        self._count = len(given) if several else None
        self._shown = ", ".join(map(_name, given[:SHOWN])) + (", …" if len(given) > SHOWN else "")
        self._shown = f"[{self._shown}]" if several else self._shown
        made = [one if one is None or isinstance(one, Automaton) else compile(one, table) for one in given]
        self.is_free = all(one is None for one in made)  # no row has a constraint: the processor does nothing
        self._automata, self._max_tokens = made, max_tokens
        self.rows = Rows(made, max_tokens=max_tokens)
        self._timings, self._clock = ProcessorTimings(), LoopClock()
        self._prompts: Ids | None = None
        self._widest = 0
        self._begun: tuple[Ids, Begun] | None = None

    def __repr__(self) -> str:
        """Return the constraints, the token budget, and the number of rows of the running call."""
        parts = [self._shown]
        if self._max_tokens is not None:
            parts.append(f"max_tokens={self._max_tokens}")
        if self._prompts is not None:
            parts.append(f"{len(self._prompts)} rows")
        return f"Processor({', '.join(parts)})"

    def reset(self) -> None:
        """Remove the prompts and rows, so that the processor can be used for another generate() call.

        Raises:
            ProcessorReuseError: A step has not ended.
        """
        self._enter()
        try:
            self._drop_begun()
            rows = Rows(self._automata, max_tokens=self._max_tokens)
            rows.room = self.rows.room
            self.rows, self._prompts, self._widest = rows, None, 0
        finally:
            self._clock.leave()

    @property
    def timings(self) -> ProcessorTimings:
        """The times of the parts of the engine's loop so far, as measured by the processor."""
        calls, model, mask, copy = self._clock.take()
        found = self._timings
        found.calls, found.model = found.calls + calls, found.model + model
        found.mask, found.copy = found.mask + mask, found.copy + copy
        return found

    def __enter__(self) -> Processor:
        """Begin one step of the engine. Raises `ProcessorReuseError` if another step has not ended."""
        self._timings.model += self._enter()
        return self

    def __exit__(self, *_: object) -> None:
        self._clock.leave()

    def _enter(self) -> float:
        since = self._clock.enter()
        if since is None:
            raise ProcessorReuseError(f"the logits processor is in use by another call: {_SINGLE_USE}")
        return since

    def ahead(self, ids: Ids) -> None:
        """Start to compute the masks of rows in a thread of the kernel, while the model runs.

        It is for loops that report the drawn tokens before they run the model. If `masks` is then called with the same
        rows, it waits for this result. If it is called with other rows, the result is dropped.

        Raises:
            ProcessorReuseError: A step has not ended, or the rows belong to another generate() call.
            ProcessorError: The rows do not match the constraints.
        """
        self._timings.sample += self._enter()
        try:
            start = perf_counter()
            self._drop_begun()
            kept = np.array(ids)
            self._begun = kept, self._begin_masks(kept, background=True)
            self._timings.mask += perf_counter() - start
        finally:
            self._clock.leave()

    def masked(self, ids: Any, source: Any, target: Any) -> list[int] | None:
        """Mask logits in one call of the kernel, see `Rows.masked`.

        Returns the rows without an allowed token. None: this was not possible; use the `with` block and `masks`
        instead.
        """
        return None if self._begun is not None else self.rows.masked(ids, source, target, self._clock)

    def masks(self, ids: Ids) -> Masks:
        """Return the masks of rows, as `Rows.masks` does. `ids`: the tokens, [rows, tokens], prompts included."""
        start = perf_counter()
        timings = self._timings
        if self._begun is not None and np.array_equal(self._begun[0], ids):
            found = self._ended()
            waited = perf_counter() - start
            timings.mask += max(waited, self.rows.seconds)
            timings.overlap += max(0.0, self.rows.seconds - waited)
        else:
            self._drop_begun()
            found = self._begin_masks(ids, background=False)()
            timings.mask += perf_counter() - start
        timings.calls += 1
        return found

    def fed(self, count: int) -> None:
        """Report that the loop itself appends `count` legal tokens to each row before it requests masks again."""
        self._widest = max(self._widest, self.rows.width) + count

    def _ended(self) -> Masks:
        begun, self._begun = self._begun, None
        if begun is None:
            raise ProcessorReuseError("masks were requested before a forward pass began")
        return begun[1]()

    def _drop_begun(self) -> None:
        """Wait for masks that `ahead` has started and that are not needed, and ignore their errors."""
        if self._begun is not None:
            with suppress(GuidewayError):
                self._ended()

    def _begin_masks(self, given: Ids, *, background: bool) -> Begun:
        ids = np.ascontiguousarray(given, np.int64)
        length = ids.shape[1]
        if self._prompts is None:
            self._learn_prompts(ids)
        prompts = self._prompts if self._prompts is not None else ids
        width = prompts.shape[1]
        self._widest = max(self._widest, self.rows.width)
        if not width <= length <= self._widest + 1:
            raise ProcessorReuseError(f"the rows belong to another generate() call: {_SINGLE_USE}")
        self._widest = max(self._widest, length)
        found = self.rows.begin_grown(ids, background=background)
        if found is None:
            slots = self._slots(ids[:, :width], prompts)
            found = self.rows.begin_masks([row[width:] for row in ids], slots, background=background, ids=ids)
        return found

    def _learn_prompts(self, ids: Ids) -> None:
        count = self._count
        if count is not None and (not len(ids) or len(ids) % count):
            raise ProcessorError(
                f"got {count} constraints for {len(ids)} rows; pass one constraint, or one for each prompt"
            )
        if count is not None and len(ids) > count:  # with beams or samples, the copies of a prompt are adjacent rows
            copies = len(ids) // count
            groups = ids.reshape(count, copies, -1)
            if (different := np.flatnonzero((groups != groups[:, :1]).any(axis=(1, 2)))).size:
                first = int(different[0]) * copies
                raise ProcessorError(
                    f"{count} constraints were given for {len(ids)} rows, and rows {first} to {first + copies - 1} are"
                    " different prompts: give one constraint, or a list with one per prompt"
                )
        self._prompts = np.array(ids)
        self._widest = ids.shape[1]

    def _slots(self, begin: Ids, prompts: Ids) -> list[int]:
        """Return for each row the number of its constraint.

        The number follows from the position of the row or, if rows were removed or moved, from its prompt. `begin` has
        the first tokens of the rows, `prompts` the prompts of the call.
        """
        copies = len(prompts) // (self._count or len(prompts))
        if begin.shape == prompts.shape and np.array_equal(begin, prompts):
            return [index // copies if self._count else 0 for index in range(len(prompts))]
        slots: list[int] = []
        for row in begin:
            places = np.flatnonzero((prompts == row).all(axis=1))
            found = {int(place) // copies if self._count else 0 for place in places}
            if len(found) != 1:
                why = "several prompts begin like" if found else "no prompt begins like"
                raise ProcessorReuseError(f"{why} one of these rows: {_SINGLE_USE}")
            slots += found
        return slots


class Chained:
    """The base class of logits processors. `before`: functions of (ids, logits) that are called first."""

    def __init__(self, processor: Processor, before: Sequence[Function]) -> None:
        self._processor, self._before = processor, tuple(before)

    def __repr__(self) -> str:
        return type(self).__name__ + repr(self._processor).removeprefix("Processor")

    @property
    def timings(self) -> ProcessorTimings:
        """The times of the parts of the engine's loop, as measured by the processor."""
        return self._processor.timings

    def reset(self) -> None:
        """Prepare for another generate() call, with other prompts. The constraints stay compiled.

        Raises:
            ProcessorReuseError: A step has not ended.
        """
        self._processor.reset()

    def _after_others(self, ids: Any, logits: Any) -> Any:
        for one in self._before:
            logits = one(ids, logits)
        return logits
