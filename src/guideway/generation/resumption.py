"""`resume`: a text that was cut or edited, gone on with under its constraint."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from guideway.errors import ContextOverflowError
from guideway.generation.options import Options
from guideway.generation.plan import Plan
from guideway.generation.results import Generation, GenerationState
from guideway.generation.scheduler import Row, decode
from guideway.sessions import ModelBase, Session
from guideway.sessions.prefix_cache import common_length

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["resume"]


def resume(model: ModelBase, state: GenerationState, **options: Unpack[Options]) -> Generation[Any]:
    """Go on from a state (`Generation.state`, `Stream.states`), with its seed unless one is given.

    The result is the whole output, what was there before included. `max_tokens` counts the tokens that are new; other
    options are those of `generate`. An unchanged state goes on as if it had never stopped. Raises `RejectedTokenError`
    where the tokens do not fit the constraint, and what `generate` raises.
    """
    if not isinstance(state, GenerationState):
        raise TypeError(f"resume goes on from a GenerationState (`Generation.state`, `Stream.states`), not {state!r}")
    plan = Plan(model, state.source, {"seed": state.seed, **options})
    session = _session(model, state, plan)
    begun = len(state.tokens)
    room = session.context_size - len(session)
    if not room:
        raise ContextOverflowError(f"the context of {session.context_size} tokens is full: no room to go on")
    limits = plan.limits
    row = Row(
        session,
        replace(limits, max_tokens=begun + min(limits.max_tokens, room), min_tokens=begun + limits.min_tokens),
        begun=begun,
        steps=state.steps if len(state.steps) <= begun else (),
        healed=state.healed,
        free_after=state.source is None,
    )
    decode([row])
    return plan.result(row)


def _session(model: ModelBase, state: GenerationState, plan: Plan) -> Session:
    """A session with the state's tokens; what its keys and values know does not run again."""
    settings = plan.settings
    wanted = [*state.prompt, *state.tokens]
    known = state.kv is not None and state.kv.owner is model.engine
    session = model.session(seed=settings.seed, row=state.row, sampler=settings.sampler, kv=state.kv if known else None)
    there = session.tokens
    kept = common_length(there, wanted)
    if len(there) - kept > session.max_rewind:
        raise ValueError(f"the state's prompt {state.prompt[:8]}... does not begin with the BOS ids of {model.name}")
    session.rewind(len(there) - kept)
    session.feed(wanted[kept:])
    session.memory = state.memory
    written = model.vocabulary.bytes_of(state.tokens)
    if state.source is None and len(written) >= len(state.healed.encode()):
        return session
    automaton = plan.behind(state.healed)
    if automaton is not None:
        matcher = automaton.matcher()
        for token_id in state.tokens:
            matcher.advance(token_id)
        session.constrain(matcher)
    return session
