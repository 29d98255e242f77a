"""`Sampler`: the stages of sampling, their parameters and order."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from guideway.arguments import short_repr
from guideway.sampling.checks import is_finite, is_number
from guideway.sampling.mirostat import Mirostat
from guideway.sampling.repeats import Dry

if TYPE_CHECKING:
    from guideway._kernel import Sampling

__all__ = ["KINDS", "ORDER", "Sampler", "Stage"]

Stage = Callable[[Sequence[int], NDArray[np.float64]], NDArray[np.float64]]
"""A user-defined stage: a function of the tokens so far and of the logits, which returns new logits.

The logits are float64 [V], with -inf for tokens that are not allowed.
"""

KINDS = {
    "logit_bias": "bias",
    "repetition_penalty": "penalty",
    "presence_penalty": "penalty",
    "frequency_penalty": "penalty",
    "dry": "dry",
    "top_n_sigma": "cut",
    "temperature": "temperature",
    "top_k": "cut",
    "tail_free": "cut",
    "typical_p": "cut",
    "top_a": "cut",
    "top_p": "cut",
    "min_p": "cut",
    "xtc_probability": "xtc",
    "mirostat": "mirostat",
}
"""The stages in the default order, each with its kind.

A stage of the kind "cut" removes tokens. Stages of the kinds "cut" and "temperature" are functions in `stages.py`;
stages of the kind "penalty" are functions in `repeats.py`.
"""

ORDER = tuple(KINDS)


@dataclass(frozen=True)
class Sampler:
    """How a token is drawn from logits. Immutable and stateless: a draw depends only on its arguments.

    The stages run in the order of `ORDER`: `logit_bias`, penalties, `dry`, `top_n_sigma`, `temperature`, `top_k`,
    `tail_free`, `typical_p`, `top_a`, `top_p`, `min_p`, XTC or Mirostat.

    Args:
        temperature: 0 takes the most probable token after the other stages (greedy); of equal ones the lowest id.
        top_k: Keep this number of most probable tokens; 0: off.
        top_p: Keep the fewest most probable tokens with at least this total probability; 1: off.
        min_p: Remove tokens below this share of the largest probability; 0: off.
        tail_free: Part of the curvature of the sorted probabilities that tail-free sampling keeps; 1: off.
        typical_p: Total probability that locally typical sampling keeps; 1: off.
        top_a: Remove tokens below `top_a` times the squared largest probability; 0: off.
        top_n_sigma: Keep logits within this number of standard deviations of the largest; 0: off.
        xtc_probability: Probability with which XTC is applied; 0: off.
        xtc_threshold: XTC removes all tokens of at least this probability except the least probable of them; at most
            0.5.
        logit_bias: For token ids, a number that is added to the logit; -inf forbids the token.
        repetition_penalty: Divides positive logits of earlier tokens and multiplies negative ones; 1: off.
        presence_penalty: Subtracted from the logits of earlier tokens; 0: off.
        frequency_penalty: Subtracted from the logit of a token for each earlier occurrence; 0: off.
        penalty_window: Number of last tokens that the penalties consider, including the prompt; 0: all.
        dry: Parameters of DRY; None: off.
        mirostat: Parameters of Mirostat, which replaces the other truncations; None: off.
        order: The stages in another order: names and functions (`Stage`). It must contain every stage that is on. A
            function cannot allow a token that was not allowed before.

    Raises:
        ValueError: A value is out of range, or parameters contradict each other.
        TypeError: A value has a wrong type, or a stage is neither a name nor a callable.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    tail_free: float = 1.0
    typical_p: float = 1.0
    top_a: float = 0.0
    top_n_sigma: float = 0.0
    xtc_probability: float = 0.0
    xtc_threshold: float = 0.1
    logit_bias: Mapping[int, float] | tuple[tuple[int, float], ...] = ()
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    penalty_window: int = 0
    dry: Dry | None = None
    mirostat: Mirostat | None = None
    order: tuple[str | Stage, ...] = ORDER

    def __post_init__(self) -> None:
        object.__setattr__(self, "logit_bias", self.biases)  # a hashable copy
        object.__setattr__(self, "order", tuple(self.order))
        self._check_ranges()
        self._check_order()
        self._check_together()

    @cached_property
    def stages(self) -> tuple[str | Stage, ...]:
        """The stages that are on, and the user-defined stages, in order."""
        return tuple(stage for stage in self.order if not isinstance(stage, str) or self._is_on(stage))

    @cached_property
    def biases(self) -> tuple[tuple[int, float], ...]:
        """`logit_bias` as pairs, by ascending id."""
        pairs = self.logit_bias.items() if isinstance(self.logit_bias, Mapping) else self.logit_bias
        try:
            return tuple(sorted((operator.index(token_id), _real(bias)) for token_id, bias in pairs))
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"logit_bias must map token ids to numbers, got {short_repr(self.logit_bias)} ({error})"
            ) from None
        except OverflowError:
            raise ValueError(f"logit_bias has a number that is too large: {short_repr(self.logit_bias)}") from None

    @cached_property
    def kinds(self) -> frozenset[str]:
        """The kinds of `stages`; "own" for a user-defined stage."""
        return frozenset(KINDS[stage] if isinstance(stage, str) else "own" for stage in self.stages)

    @cached_property
    def bare(self) -> bool:
        """Whether a draw is always the token with the largest logit, independently of earlier tokens."""
        return self.temperature == 0 and self.kinds <= {"cut", "xtc"}

    @cached_property
    def kernel(self) -> Sampling | None:
        """The kernel's sampler.

        None: the kernel does not support the stages or their order, or `top_k` is 2**32 or more.
        """
        from guideway._kernel import Sampling

        if self.kinds & {"own", "dry", "mirostat"} or self.stages != tuple(s for s in ORDER if s in self.stages):
            return None
        if self.top_k >= 1 << 32:
            return None
        return Sampling(
            temperature=self.temperature,
            top_k=self.top_k,
            top_p=self.top_p,
            min_p=self.min_p,
            tail_free=self.tail_free,
            typical_p=self.typical_p,
            top_a=self.top_a,
            top_n_sigma=self.top_n_sigma,
            xtc_threshold=self.xtc_threshold,
            repetition_penalty=self.repetition_penalty,
            presence_penalty=self.presence_penalty,
            frequency_penalty=self.frequency_penalty,
            bias_ids=[token_id for token_id, _ in self.biases],
            biases=[bias for _, bias in self.biases],
        )

    @cached_property
    def quick(self) -> Callable[[Any, Any], int | None] | None:
        """The kernel's greedy draw if `bare`; None: the sampler is not `bare`, or the kernel does not support it.

        The function gets logits and a mask. It returns the token; None: there is no token to draw, or a logit is NaN.
        """
        return self.kernel.draw if self.bare and self.kernel is not None else None

    @cached_property
    def by_number(self) -> Callable[[Any, Any, float], int | None] | None:
        """The kernel's draw, if it depends on no earlier token and on one random number; else None.

        The function gets logits, a mask and the random number. It returns the token; None: there is no token
        to draw, or a logit is NaN.
        """
        if self.kernel is None or "penalty" in self.kinds or self.xtc_probability or not self.temperature:
            return None
        return self.kernel.draw

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields without cached values."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def _is_on(self, name: str) -> bool:
        if name == "temperature":
            return self.temperature not in (0, 1)
        return bool(getattr(self, name) != _OFF[name])

    def _check_ranges(self) -> None:
        for name, (fits, meaning) in _RANGES.items():
            value = getattr(self, name)
            if not is_number(value):
                raise TypeError(f"{name} must be a number, got {short_repr(value)}")
            if not (is_finite(value) and fits(value)):
                raise ValueError(f"{name} must be {meaning}, got {short_repr(value)}")
        for name, value, kind in (("dry", self.dry, Dry), ("mirostat", self.mirostat, Mirostat)):
            if value is not None and not isinstance(value, kind):
                raise TypeError(f"{name} must be a {kind.__name__} or None, got {short_repr(value)}")
        for name in ("top_k", "penalty_window"):
            if int(getattr(self, name)) != getattr(self, name):
                raise ValueError(f"{name} must be an integer, got {short_repr(getattr(self, name))}")
            object.__setattr__(self, name, int(getattr(self, name)))
        for token_id, bias in self.biases:
            if not 0 <= token_id < 1 << 31 or not bias < math.inf:
                given = f"{short_repr(token_id)}: {bias}"
                raise ValueError(f"logit_bias needs ids >= 0 and biases that are finite or -inf, got {given}")

    def _check_order(self) -> None:
        named = [stage for stage in self.order if isinstance(stage, str)]
        if unknown := [name for name in named if name not in ORDER]:
            raise ValueError(f"order: unknown stage {short_repr(unknown[0])}; known stages: {', '.join(ORDER)}")
        if twice := [name for name in named if named.count(name) > 1]:
            raise ValueError(f"order: the stage {twice[0]} occurs twice")
        if lost := [name for name in ORDER if self._is_on(name) and name not in named]:
            raise ValueError(f"order: the stage {lost[0]} is on but missing from the order")
        for stage in self.order:
            if not isinstance(stage, str) and not callable(stage):
                raise TypeError(f"order: a stage must be a name or a callable, got {short_repr(stage)}")
        if self.mirostat and self.order[-1] != "mirostat":
            raise ValueError("order: mirostat must be the last stage")

    def _check_together(self) -> None:
        """Raise `ValueError` if a parameter has no effect or contradicts another one."""
        cuts = [name for name, kind in KINDS.items() if kind in ("cut", "xtc") and self._is_on(name)]
        if self.mirostat and cuts:
            raise ValueError(f"mirostat replaces other truncations; it cannot be combined with {cuts[0]}")
        if self.temperature == 0:
            for name in (*cuts, "mirostat"):
                if self._is_on(name):
                    raise ValueError(
                        f"{name} has no effect at temperature 0, where the most probable token is taken; set a"
                        " temperature above 0"
                    )
        if self.penalty_window and "penalty" not in self.kinds:
            raise ValueError("penalty_window has no effect without a penalty; set a penalty or omit penalty_window")


def _real(value: Any) -> float:
    if isinstance(value, np.complexfloating):  # `float` returns its real part
        raise TypeError("a bias is complex")
    try:
        return float(value)
    except ValueError:
        raise TypeError(f"{short_repr(value)} is not a number") from None


_RANGES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "temperature": (lambda x: x >= 0, "0 (greedy) or more"),
    "top_k": (lambda x: x >= 0, "0 (off) or a positive integer"),
    "top_p": (lambda x: 0 < x <= 1, "above 0 and at most 1 (off)"),
    "min_p": (lambda x: 0 <= x <= 1, "0 (off) to 1"),
    "tail_free": (lambda x: 0 < x <= 1, "above 0 and at most 1 (off)"),
    "typical_p": (lambda x: 0 < x <= 1, "above 0 and at most 1 (off)"),
    "top_a": (lambda x: 0 <= x <= 1, "0 (off) to 1"),
    "top_n_sigma": (lambda x: x >= 0, "0 (off) or more"),
    "xtc_probability": (lambda x: 0 <= x <= 1, "0 (off) to 1"),
    "xtc_threshold": (lambda x: 0 < x <= 0.5, "above 0 and at most 0.5"),
    "repetition_penalty": (lambda x: x > 0, "above 0 (1: off)"),
    "presence_penalty": (lambda x: True, "a number (0: off)"),
    "frequency_penalty": (lambda x: True, "a number (0: off)"),
    "penalty_window": (lambda x: x >= 0, "0 (all) or a positive integer"),
}
_OFF: dict[str, object] = {field.name: field.default for field in fields(Sampler)}
