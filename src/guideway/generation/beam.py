"""`beam_search`: the most probable texts that fit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from guideway import masks
from guideway.generation.options import Options, Prompt, check_names, with_options
from guideway.generation.plan import GenerationRequest, Plan
from guideway.generation.results import Generation
from guideway.generation.scheduler import FinishReason, Limits, Row
from guideway.sampling import TokenLogprobs, log_softmax
from guideway.sessions import ModelBase, Session, feed_all

if TYPE_CHECKING:
    from typing_extensions import TypeVar, Unpack

    from guideway.constraints import Constraint

    T = TypeVar("T", default=str)

__all__ = ["beam_search"]

_TAKEN = ("max_tokens", "allow_truncation", "return_kv_cache", "kv_cache", "kv_hook")


@dataclass
class _Beam:
    session: Session
    steps: tuple[TokenLogprobs, ...]
    logprob: float


# fmt: off
@overload
def beam_search(model: ModelBase, prompt: Prompt, output: type[T] | Constraint[T] | None = None, *, width: int = 4,
                count: int | None = None, **options: Unpack[Options]) -> list[Generation[T]]: ...
@overload
def beam_search(model: ModelBase, prompt: Prompt | GenerationRequest, output: object = None, *, width: int = 4,
                count: int | None = None, **options: Unpack[Options]) -> list[Generation[Any]]: ...
# fmt: on
@with_options(*_TAKEN)
def beam_search(
    model: ModelBase,
    prompt: Prompt | GenerationRequest,
    output: object = None,
    *,
    width: int = 4,
    count: int | None = None,
    **options: Unpack[Options],
) -> list[Generation[Any]]:
    """Search for the most probable texts.

    In every step, the `width` most probable unfinished sequences are extended by one token. Their log-probabilities are
    those of the model, not renormalised by the mask. The search ends after `max_tokens` tokens, when no sequence is
    unfinished, or when there are `count` results and no unfinished sequence is more probable than the last of them. The
    result is exact if there are never more than `width` unfinished sequences.

    Args:
        model: The model, from `guideway.load`.
        prompt: One prompt, or a `GenerationRequest`, such as that of `extraction`.
        output: A type or a constraint that the text must fit. None: free text.
        width: The maximum number of unfinished sequences that are kept after each step.
        count: The maximum number of results. None: `width`.
        **options: Generation options.

    Returns:
        The results with their `steps`, the most probable first. There may be fewer than `count`.

    Raises:
        TypeError: An option is unknown or of the wrong type.
        ValueError: An option is out of range, or is not an option of this function.
        GuidewayError: As in `generate`.
    """
    check_names(options)
    request = prompt if isinstance(prompt, GenerationRequest) else GenerationRequest(prompt, output)
    if refused := [name for name in (*options, *request.options) if name not in _TAKEN]:
        raise ValueError(f"beam_search does not take {refused[0]}; its options are {', '.join(_TAKEN)}")
    count = width if count is None else count
    if width < 1 or count < 1:
        raise ValueError(f"width and count must be at least 1, got {width} and {count}")
    plan = Plan.of(model, request, output, options)
    prompted = plan.prompted(request.prompt)
    row = plan.row(prompted, 0)
    limits, start = row.limits, len(row.session)
    live, ended = [_Beam(row.session, (), 0.0)], list[tuple[float, Generation[Any]]]()
    for taken in range(limits.max_tokens):
        feed_all([beam.session for beam in live])
        chosen = _best(live, limits, taken, width)
        live = []
        for beam, step in chosen:
            session = beam.session.fork()
            session.feed([step.token_id])
            after = _Beam(session, (*beam.steps, step), beam.logprob + step.logprob)
            is_end = step.token_id in model.tokenizer.eos_ids
            if is_end:
                ended.append((after.logprob, _result(plan, after, limits, start, "stop")))
            elif taken + 1 < limits.max_tokens:
                live.append(after)
            elif plan.source is None:  # with a constraint, a text that was cut is not a result
                ended.append((after.logprob, _result(plan, after, limits, start, "length")))
        ended = sorted(ended, key=lambda one: -one[0])[:count]
        live = sorted(live, key=lambda beam: -beam.logprob)[:width]
        if len(ended) == count:
            live = [beam for beam in live if beam.logprob > ended[-1][0]]
        if not live:
            break
    return [result for _, result in ended]


def _best(live: list[_Beam], limits: Limits, taken: int, width: int) -> list[tuple[_Beam, TokenLogprobs]]:
    """Return the extensions of the sequences by one token, the most probable first.

    All extensions by EOS are returned, and the `width` most probable of the others. Extensions with the probability 0
    are left out.
    """
    found: list[tuple[float, int, int, TokenLogprobs]] = []
    for number, beam in enumerate(live):
        session = beam.session
        only = session.only_legal(limits.max_tokens - taken if limits.complete else None)
        logprobs = log_softmax(session.shared_logits())
        allowed = np.arange(logprobs.size) if session.mask is None else masks.ids(session.mask, logprobs.size)
        legal = logprobs[allowed]
        inside = float(np.logaddexp.reduce(legal))
        ends = np.isin(allowed, session.tokenizer.eos_ids)
        best = np.argsort(-np.where(ends, -np.inf, legal), kind="stable")[:width]
        for at in {*best.tolist(), *np.flatnonzero(ends).tolist()}:
            logprob = float(legal[at])
            step = TokenLogprobs(
                int(allowed[at]), logprob, logprob - inside, max(0.0, -float(np.expm1(inside))), only is not None
            )
            if logprob > -np.inf:
                found.append((beam.logprob + logprob, number, step.token_id, step))
    found.sort(key=lambda one: (-one[0], one[1], one[2]))
    going, chosen = 0, []
    for _, number, token_id, step in found:
        is_end = token_id in live[number].session.tokenizer.eos_ids
        going += not is_end
        if is_end or going <= width:
            chosen.append((live[number], step))
    return chosen


def _result(plan: Plan, beam: _Beam, limits: Limits, start: int, reason: FinishReason) -> Generation[Any]:
    row = Row(beam.session, replace(limits, complete=False), begun=len(beam.session) - start, steps=beam.steps)
    row.finish_reason = reason
    return replace(plan.result(row), forced=sum(step.forced for step in beam.steps))
