"""`continuous_constraints`: constraints for requests in continuous batching of transformers."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from time import perf_counter
from typing import Any

import numpy as np
import torch
from transformers.generation.continuous_batching.cb_logits_processors import ContinuousBatchingLogitsProcessor
from transformers.generation.continuous_batching.requests import RequestStatus

from guideway import masks
from guideway.compiler import Automaton, compile
from guideway.errors import ProcessorError
from guideway.integrations._common import Begun, Ids, ProcessorTimings, Rows, no_token_left
from guideway.integrations.transformers.end_tokens import with_end_tokens
from guideway.masks.torch import TorchMasks
from guideway.tokenizers import Tokenizer

__all__ = ["ContinuousConstraints", "continuous_constraints"]

# The class is longer than usual, because requests that join, fail and leave share one state under one lock.


class ContinuousConstraints(ContinuousBatchingLogitsProcessor):  # type: ignore[misc]  # transformers has no types
    """The logits processor that `continuous_constraints` adds to a continuous-batching manager and returns.

    Attributes:
        errors: By request id: the exception that ended the request.
        timings: The times spent in the processor.
    """

    supported_kwargs = {"constraint": int}  # noqa: RUF012  # the interface of transformers
    ignored_kwargs: tuple[str, ...] = ()

    def __init__(self, manager: Any, table: Tokenizer) -> None:
        self._manager, self._table = manager, table
        self._rows, self._apply, self._lock = Rows(), TorchMasks(), Lock()
        self._eos = masks.pack(table.eos_ids, len(table.vocabulary))
        self._count = 0
        self._states: list[Any] = []  # the requests of this step, in the order of the rows of its logits
        self._live: dict[str, tuple[Any, int]] = {}
        self._expected: list[tuple[str, int]] = []
        self._begun: Begun | None = None
        self.errors: dict[str, Exception] = {}
        self.timings = ProcessorTimings()

    def add_request(self, input_ids: Sequence[int], constraint: object, **options: Any) -> Any:
        """Do the same as `manager.add_request`, with a constraint for the request.

        Args:
            input_ids: The prompt.
            constraint: A constraint, a Python type or an automaton; None: no constraint.
            **options: Options of `manager.add_request`. With `max_new_tokens`, the output is complete within this
                number.

        Returns:
            The id of the request.

        Raises:
            ConstraintError: The constraint cannot be compiled.
            BudgetTooSmallError: The shortest complete output needs more than `max_new_tokens`.
        """
        if constraint is None:
            return self._manager.add_request(list(input_ids), **options)
        automaton = constraint if isinstance(constraint, Automaton) else compile(constraint, self._table)
        with self._lock:
            self._count += 1
            self._rows.begin(self._count, automaton, max_tokens=options.get("max_new_tokens"))
        return self._manager.add_request(list(input_ids), constraint=self._count, **options)

    def fill_defaults(self, int32_tensor: Any) -> None:
        int32_tensor.zero_()

    def prepare_tensor_args(self, requests_with_new_token: list[Any]) -> Any:
        """Start to compute the masks of requests. The manager calls it before it runs the model.

        Returns the number of the constraint of each request as a tensor, which the manager passes to `__call__`.
        """
        states = [one.state for one in requests_with_new_token]
        slots = [int(one.logit_processor_kwargs.get("constraint", 0)) for one in states]
        with self._lock:
            self._forget_finished()
            self._states, self._begun = states, None
            try:
                self._begun = self._begin(states, slots)
            except Exception as error:  # an exception would stop the manager and all requests
                self._failed(error, range(len(states)))
        return torch.tensor(slots, dtype=torch.int32)

    def __call__(self, scores: Any, tensor_arg: Any) -> Any:
        """Return masked scores, float32 [requests, vocabulary].

        An error ends the affected requests and is not raised.
        """
        with self._lock:
            start = perf_counter()
            rows = np.repeat(self._eos[None], len(scores), axis=0)
            held = [index < len(self._states) for index in range(len(scores))]
            try:
                if self._begun is not None:
                    found, known = self._begun()
                    rows[: len(found), : found.shape[1]] = found
                    held[: len(known)] = known
                self.timings.mask += perf_counter() - start
                start = perf_counter()
                made, nothing = self._apply(scores, rows, held)
                nothing = nothing or self._apply.nothing()
                if nothing:
                    self._failed(no_token_left(), nothing)
                    made[nothing] = float("-inf")
                    for index in nothing:
                        made[index, list(self._table.eos_ids)] = 0.0
            except Exception as error:
                self._failed(error, range(len(self._states)))
                rows[:], self._expected = self._eos, []
                made, _ = self._apply(torch.zeros_like(scores), rows, [True] * len(scores))
            self.timings.calls += 1
            self.timings.copy += perf_counter() - start
            return made

    def _begin(self, states: Sequence[Any], slots: Sequence[int]) -> Begun | None:
        texts: list[Ids] = [np.array(one.to_generation_output().generated_tokens, np.int64) for one in states]
        for one, slot in zip(states, slots, strict=True):
            self._live[one.request_id] = (one, slot)
            if not self._rows.has(slot):
                self._rows.begin(slot, None)
        keys = [(one.request_id, len(text)) for one, text in zip(states, texts, strict=True)]
        same, self._expected = keys == self._expected, [(name, length + 1) for name, length in keys]
        if same and texts:
            return self._rows.begin_next([int(text[-1]) for text in texts], lambda: texts, background=True)
        return self._rows.begin_masks(texts, slots, background=True)

    def _failed(self, error: Exception, indices: Sequence[int]) -> None:
        for index in indices:
            state = self._states[index]
            state.error = str(error)
            self.errors[state.request_id] = error

    def _forget_finished(self) -> None:
        for name, (state, slot) in list(self._live.items()):
            if state.status >= RequestStatus.FINISHED:
                del self._live[name]
                if slot not in {other for _, other in self._live.values()}:
                    self._rows.end(slot)
                    self._expected = []


def continuous_constraints(manager: Any, tokenizer: object) -> ContinuousConstraints:
    """Add a processor for requests with constraints to a continuous-batching manager, and return the processor.

        manager = model.init_continuous_batching(generation_config)
        constraints = continuous_constraints(manager, tokenizer)  # before the manager starts
        manager.start()
        number = constraints.add_request(ids, gw.Regex(...), max_new_tokens=20)

    A constraint is applied before temperature and top-k. If no token is left for a request, only this request ends. Any
    other error ends all requests of the step. The `error` of the output of such a request is the message, and
    `ContinuousConstraints.errors` has the exception.

    Args:
        manager: The manager, which must not have been started.
        tokenizer: The tokenizer of the model. End tokens are those of the tokenizer and of the manager's generation
            config.

    Raises:
        ProcessorError: The manager has started, uses asynchronous batching (which samples a token before the processor
            gets the previous one), or uses CUDA graphs (which do not call processors).
    """
    config = manager.continuous_batching_config
    if manager._generation_thread is not None:
        raise ProcessorError("the manager has started; call continuous_constraints before manager.start()")
    if config.use_async_batching or config.use_cuda_graph not in (None, False, (False, False)):
        raise ProcessorError("constraints need a manager with use_async_batching=False and use_cuda_graph=False")
    made = ContinuousConstraints(manager, with_end_tokens(tokenizer, getattr(manager, "generation_config", None)))
    processors = manager.logit_processor
    processors.logits_processor.insert(0, made)
    processors.supported_keys.update(made.supported_kwargs)
    processors.tensors_required += 1
    processors.do_processing = True
    return made
