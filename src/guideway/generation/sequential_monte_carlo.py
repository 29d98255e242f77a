"""`smc`: sequential Monte Carlo sampling from the model's distribution, conditioned on the constraint.

Masking renormalises step by step, so it favours beginnings that look probable and then leave little choice. The weight
of a particle is the product of the probability masses that its masks allowed, and resampling selects particles by
weight. For the method, see Doucet, de Freitas and Gordon 2001; for language models, Lew et al. 2023 and Loula et al.
2025. If a constraint can only be tested token by token, adaptive weighted rejection (Lipkin et al. 2025) replaces the
mask.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from guideway import masks
from guideway.arguments import short_repr
from guideway.errors import BudgetTooSmallError
from guideway.generation.options import Options, Prompt, check_names, with_options
from guideway.generation.plan import Plan
from guideway.generation.results import Generation
from guideway.generation.scheduler import Limits, Row
from guideway.sampling import log_softmax, uniform
from guideway.sessions import ModelBase, Session, feed_all

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["Posterior", "rejection", "smc"]

_TAKEN = ("max_tokens", "temperature", "seed", "return_kv_cache", "kv_cache", "kv_hook")
_RESAMPLING_ROW = -1  # the argument `row` of `uniform` for resampling; no particle has this row
_FIRST_STREAM = 8  # the draws of a particle at one position use greater values of the argument `stream` of `uniform`


@dataclass(frozen=True)
class Posterior:
    """Weighted samples.

    Attributes:
        generations: The samples (particles). Particles of weight 0 are left out.
        weights: The weight of each sample, float64 [samples]; they sum to 1.
        log_evidence: The logarithm of the estimated probability that the model, at the given temperature and without a
            mask, writes a text that fits and ends within `max_tokens`. With a potential: of the estimated mean of
            exp(potential), where other texts count as 0.
    """

    generations: tuple[Generation[Any], ...]
    weights: NDArray[np.float64]
    log_evidence: float

    @property
    def effective_sample_size(self) -> float:
        """Effective sample size: the number of equally weighted samples that give estimates of the same variance."""
        return float(1.0 / np.square(self.weights).sum())

    def probabilities(self) -> dict[str, float]:
        """Return the distinct texts and their estimated probabilities (sums of weights), the most probable first."""
        found: dict[str, float] = {}
        for one, weight in zip(self.generations, self.weights.tolist(), strict=True):
            found[one.text] = found.get(one.text, 0.0) + weight
        return dict(sorted(found.items(), key=lambda item: -item[1]))


@dataclass
class _Particle:
    """One sequence.

    `potential`: the potential of its text so far. It has been added to `log_weight`, which resampling resets to 0. The
    next step adds only the difference.
    """

    session: Session
    log_weight: float = 0.0
    potential: float = 0.0
    ended: bool = False


@with_options(*_TAKEN)
def smc(
    model: ModelBase,
    prompt: Prompt,
    output: object = None,
    *,
    particles: int = 32,
    proposal: Literal["mask", "rejection"] = "mask",
    allows: Callable[[str, bool], bool] | None = None,
    potential: Callable[[str, bool], float] | None = None,
    resample_below: float = 0.5,
    **options: Unpack[Options],
) -> Posterior:
    """Sample from the model's distribution over whole texts, conditioned on the constraint (sequential Monte Carlo).

    Masking alone renormalises step by step, which changes that distribution. As `particles` grows, the result converges
    to the exact distribution of texts that end within `max_tokens`. The expected value of exp(`log_evidence`) is exact
    for any number of particles.

    Args:
        model: The model, from `guideway.load`.
        prompt: One prompt.
        output: A type or a constraint that the text must fit. None: free text.
        particles: The number of samples.
        proposal: "mask" computes the legal tokens, and multiplies the weight by their probability mass. "rejection"
            draws from the model and tests each drawn token, which estimates that mass without bias.
        allows: A further constraint, `allows(text, ended)`: False excludes all texts with this beginning. It is always
            tested by rejection.
        potential: A log-weight of texts, `potential(text, ended)`; -inf excludes a text.
        resample_below: Particles are resampled if the effective sample size falls below this fraction of `particles`;
            0: never.
        **options: Generation options. The default of `temperature` is 1. A text that has not ended after `max_tokens`
            has the weight 0.

    Returns:
        The samples with their weights.

    Raises:
        BudgetTooSmallError: All particles have the weight 0: none ended within `max_tokens`, or `allows` or `potential`
            excluded those that did.
        TypeError: An option is unknown or of the wrong type.
        ValueError: An option is out of range, or is not an option of this function.
        GuidewayError: As in `generate`.
    """
    check_names(options)
    if refused := [name for name in options if name not in _TAKEN]:
        raise ValueError(f"smc does not take {refused[0]}; its options are {', '.join(_TAKEN)}")
    if particles < 1 or not 0 <= resample_below <= 1:
        raise ValueError(f"particles must be >= 1 and resample_below 0 to 1, got {particles} and {resample_below}")
    if proposal not in ("mask", "rejection"):
        raise ValueError(f"proposal must be 'mask' or 'rejection', got {short_repr(proposal)}")
    temperature = options.get("temperature")
    temperature = 1.0 if temperature is None else temperature
    if not temperature > 0:
        raise ValueError(f"temperature must be above 0 for smc, got {temperature}")
    plan = Plan(model, output, options)
    row = plan.row(plan.prompted(prompt), 0)
    start = len(row.session)
    ways = _Ways(proposal, allows, potential, temperature, start)
    feed_all([row.session])  # shared by all particles
    cloud = [_Particle(row.session.fork(row=number)) for number in range(particles)]
    log_evidence = 0.0
    for taken in range(row.limits.max_tokens):
        going = [one for one in cloud if not one.ended]
        if not going:
            break
        feed_all([one.session for one in going])
        for one in going:
            ways.extend(one)
        if _effective(cloud) < resample_below * particles:
            log_evidence += _mean(cloud)
            cloud = _resampled(cloud, uniform(row.session.seed, _RESAMPLING_ROW, taken))
    for one in cloud:
        one.log_weight = one.log_weight if one.ended else -math.inf
    log_evidence += _mean(cloud)
    if log_evidence == -math.inf:
        raise BudgetTooSmallError(f"no particle completed its text within {row.limits.max_tokens} tokens")
    weights = _weights(cloud)
    kept = [(one, float(weight)) for one, weight in zip(cloud, weights, strict=True) if weight > 0]
    results = tuple(_result(plan, one.session, row.limits, start) for one, _ in kept)
    return Posterior(results, np.array([weight for _, weight in kept]), log_evidence)


class _Ways:
    """Extends particles by one token and updates their weights. `start`: the number of tokens of the prompt."""

    def __init__(
        self,
        proposal: str,
        allows: Callable[[str, bool], bool] | None,
        potential: Callable[[str, bool], float] | None,
        temperature: float,
        start: int,
    ) -> None:
        self._masked = proposal == "mask"
        self._allows = allows
        self._potential = potential
        self._temperature = temperature
        self._start = start

    def extend(self, one: _Particle) -> None:
        session = one.session
        logprobs = log_softmax(session.shared_logits(), self._temperature)
        if self._masked and session.matcher is not None:
            session.only_legal()
            outside = np.ones(logprobs.size, dtype=bool)
            outside[masks.ids(session.mask, logprobs.size) if session.mask is not None else slice(None)] = False
            logprobs[outside] = -np.inf
        inside = float(np.logaddexp.reduce(logprobs))
        if inside == -math.inf:
            one.log_weight, one.ended = -math.inf, True
            return
        share = np.exp(logprobs - inside)
        asks = self._allows is not None or (not self._masked and session.matcher is not None)
        numbers = _Numbers(session)
        token_id, estimate = (
            rejection(share, lambda t: self._fits(session, t), numbers) if asks else (_pick(share, numbers()), 1.0)
        )
        if token_id is None:
            one.log_weight, one.ended = -math.inf, True
            return
        one.log_weight += inside + math.log(estimate)
        session.feed([token_id])
        one.ended = token_id in session.tokenizer.eos_ids
        if self._potential is not None:
            after = self._potential(self._text(session, None), one.ended)
            if not after < math.inf:
                raise ValueError(f"a potential must be a number or -inf, got {after}")
            one.log_weight += after - one.potential
            one.potential = after
        one.ended = one.ended or one.log_weight == -math.inf

    def _fits(self, session: Session, token_id: int) -> bool:
        if not self._masked and session.matcher is not None and not session.matcher.validate([token_id]):
            return False
        if self._allows is None:
            return True
        return self._allows(self._text(session, token_id), token_id in session.tokenizer.eos_ids)

    def _text(self, session: Session, token_id: int | None) -> str:
        ids = session.tokens[self._start :] + ([] if token_id is None else [token_id])
        return session.tokenizer.vocabulary.bytes_of(ids).decode("utf-8", "ignore")


class _Numbers:
    """A sequence of random numbers for one particle at one position."""

    def __init__(self, session: Session) -> None:
        self._place = (session.seed, session.row, len(session))
        self._next = _FIRST_STREAM

    def __call__(self) -> float:
        self._next += 1
        return uniform(*self._place, self._next)


def rejection(
    share: NDArray[np.float64], fits: Callable[[int], bool], number: Callable[[], float]
) -> tuple[int | None, float]:
    """Draw a token that fits from `share` (float64 [V], sums to 1), and estimate the probability of all that fit.

    Adaptive weighted rejection: a rejected token is not drawn again. Draws continue until two have fitted; the first is
    the token. With M_j the mass left after j rejections, and n rejections in all, the estimate is
    1 / (1/M_0 + … + 1/M_n). This is the probability that the very first draw would have fitted, given the rejected
    tokens and their order. So the estimate is unbiased. It is independent of the token, so it is the token's proper
    weight.

    `fits` is called at most once for each token. `number` returns the next random number. Returns the token and the
    estimate; None and 0 if no token fits.
    """
    left, total, mass = share.copy(), 1.0, 1.0
    token_id, known = None, dict[int, bool]()
    while True:
        drawn = _pick(left, number())
        if drawn not in known:
            known[drawn] = fits(drawn)
        if known[drawn]:
            if token_id is not None:
                return token_id, 1.0 / total
            token_id = drawn
            continue
        left[drawn] = 0.0
        mass = float(left.sum())
        if mass <= 0.0:
            return None, 0.0
        total += 1.0 / mass


def _pick(share: NDArray[np.float64], number: float) -> int:
    reached = np.cumsum(share)
    return min(int(np.searchsorted(reached, number * reached[-1], side="right")), int(np.flatnonzero(share)[-1]))


def _log_weights(cloud: Sequence[_Particle]) -> NDArray[np.float64]:
    return np.array([one.log_weight for one in cloud])


def _mean(cloud: Sequence[_Particle]) -> float:
    """Return the logarithm of the mean weight."""
    return float(np.logaddexp.reduce(_log_weights(cloud))) - math.log(len(cloud))


def _weights(cloud: Sequence[_Particle]) -> NDArray[np.float64]:
    logs = _log_weights(cloud)
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


def _effective(cloud: Sequence[_Particle]) -> float:
    return float(1.0 / np.square(_weights(cloud)).sum()) if _mean(cloud) > -math.inf else math.inf


def _resampled(cloud: Sequence[_Particle], number: float) -> list[_Particle]:
    """Return the same number of particles with equal weights by systematic resampling (Kitagawa 1996)."""
    places = (np.arange(len(cloud)) + number) / len(cloud)
    reached = np.cumsum(_weights(cloud))
    chosen = np.minimum(np.searchsorted(reached / reached[-1], places, side="right"), len(cloud) - 1)
    return [
        replace(cloud[at], session=cloud[at].session.fork(row=row), log_weight=0.0)
        for row, at in enumerate(chosen.tolist())
    ]


def _result(plan: Plan, session: Session, limits: Limits, start: int) -> Generation[Any]:
    row = Row(session, replace(limits, complete=False), begun=len(session) - start)
    row.finish_reason = "stop"
    return plan.result(row)
