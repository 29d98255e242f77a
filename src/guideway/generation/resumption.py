"""`resume`: continue a text that was cut or edited, under its constraint."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from guideway.arguments import integer, short_repr
from guideway.errors import ContextOverflowError
from guideway.generation.options import BATCH, Options, check_names, with_options
from guideway.generation.plan import Job, Plan
from guideway.generation.results import Generation, GenerationState
from guideway.generation.scheduler import Row, decode
from guideway.sessions import ModelBase, Session
from guideway.sessions.prefix_cache import common_length

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["ResumedJob", "resume"]


@with_options()
def resume(model: ModelBase, state: GenerationState, **options: Unpack[Options]) -> Generation[Any]:
    """Continue a generation from a state.

    With an unchanged state and the same options, the text is that of a generation without interruption, unless the
    limit of tokens changed the output of the state.

    Args:
        model: The model, from `guideway.load`.
        state: `Generation.state`, or one of `Stream.states`. Its seed is used unless one is given.
        **options: Generation options, see `guideway.generation.OPTIONS`.

    Returns:
        The whole output, which begins with the output of the state. `max_tokens` and `min_tokens` count only new
        tokens.

    Raises:
        RejectedTokenError: The tokens of the state do not fit its constraint.
        TypeError: `state` is not a `GenerationState`, or as in `generate`.
        ValueError: The prompt of the state does not begin with the BOS ids of the model, or as in `generate`.
        GuidewayError: As in `generate`.
    """
    if not isinstance(state, GenerationState):
        raise TypeError(f"state must be a GenerationState (Generation.state or Stream.states), got {short_repr(state)}")
    plan, row = _resumed(model, state, {"seed": state.seed, **options})
    decode([row])
    return plan.result(row)


class ResumedJob(Job):
    """A job that continues one text from a state, for the loop of `async_loop`. The arguments are those of `resume`."""

    def __init__(self, model: ModelBase, state: GenerationState, options: Options) -> None:
        check_names(options)
        self.model, self.n, self.many, self.progress = model, None, False, False
        self.width = integer("batch_size", options.get("batch_size", BATCH), 1)
        self.positions = range(1)
        self._keep_errors = self._closes_sessions = False
        self.results = [[None]]
        self._plan, self._row = _resumed(model, state, {"seed": state.seed, **options})
        self.plans = [self._plan]
        self.place = {self._row: (0, 0)}

    @property
    def prepared(self) -> list[tuple[Plan, Session]]:
        return [(self._plan, self._row.session)]

    def starts(self, work: int | None) -> Generator[Row, None, None]:
        """Yield the row."""
        yield self._row


def _resumed(model: ModelBase, state: GenerationState, options: Options) -> tuple[Plan, Row]:
    plan = Plan(model, state.source, options)
    session = _session(model, state, plan)
    begun = len(state.tokens)
    room = session.room
    if not room:
        raise ContextOverflowError(f"the context of {session.context_size} tokens is full")
    limits = plan.limits
    least = begun + limits.min_tokens if limits.min_tokens else 0  # a stop string may be in the edited text
    row = Row(
        session,
        replace(limits, max_tokens=begun + min(limits.max_tokens, room), min_tokens=least),
        begun=begun,
        steps=state.steps if len(state.steps) <= begun else (),
        healed=state.healed,
        free_after=state.source is None,
        earlier=state.divergence,
    )
    return plan, row


def _session(model: ModelBase, state: GenerationState, plan: Plan) -> Session:
    """Return a session with the tokens and the constraint of a state.

    The model does not run tokens again that the KV cache of the state contains, if it belongs to the model's engine.
    """
    settings = plan.settings
    wanted = [*state.prompt, *state.tokens]
    known = state.kv_cache is not None and state.kv_cache.owner is model.engine
    session = model.session(
        seed=settings.seed,
        row=state.row,
        sampler=settings.sampler,
        kv_cache=state.kv_cache if known else settings.kv_cache,
        kv_hook=settings.kv_hook,
    )
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
