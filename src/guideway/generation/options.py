"""What generating functions take by name, checked together."""

from __future__ import annotations

import contextlib
import difflib
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any, TypedDict, cast

from guideway.arguments import integer
from guideway.generation.scheduler import Limits
from guideway.sampling import Sampler
from guideway.sessions import Model

__all__ = [
    "BATCH",
    "CALL_ONLY",
    "MAX_TOKENS",
    "Messages",
    "Options",
    "Prompt",
    "Prompts",
    "Settings",
    "check_model",
    "check_names",
]

Messages = list[dict[str, Any]]
Ids = list[int]
Prompt = str | Messages | Ids
"""Text, messages for the chat template, or token ids."""
Prompts = list[str] | list[Messages] | list[Ids]

MAX_TOKENS = 512
"""How many tokens a generation takes at most, unless told; never more than the context holds."""

BATCH = 16
"""How many rows go on at once: each holds its KV cache, so a list of any length needs no more memory than these."""


_SAMPLERS = frozenset(field.name for field in fields(Sampler))
_NAMED = frozenset({"temperature", "top_k", "top_p", "min_p"})
"""What a sampler says too."""

CALL_ONLY = ("batch_size", "progress", "return_exceptions")
"""The options that are for a whole call, not for one of its prompts."""


class Options(TypedDict, total=False):
    """What every generating function takes by name; `generate` says what each means."""

    max_tokens: int
    min_tokens: int
    temperature: float | None
    top_k: int
    top_p: float
    min_p: float
    sampler: Sampler | None
    seed: int
    stop: str | Sequence[str]
    stop_token_ids: Sequence[int]
    stopping_criteria: Callable[[str], bool] | None
    bad_words: str | Sequence[str]
    token_healing: bool
    allow_truncation: bool
    logprobs: int | None
    return_kv_cache: bool
    return_exceptions: bool
    batch_size: int
    progress: bool


@dataclass(frozen=True)
class Settings:
    """Options, checked: the sampler, the limits and the rest. `own_seed`: whether the seed was given for this row."""

    sampler: Sampler
    limits: Limits
    seed: int
    own_seed: bool
    token_healing: bool
    return_kv_cache: bool

    @classmethod
    def of(cls, options: Options, *, constrained: bool, sampled: bool, own: Mapping[str, object]) -> Settings:
        """Raises `ValueError` for values out of range, and for what excludes each other, by name."""
        check_names(options)
        if constrained and (cutting := [n for n in ("stop", "stop_token_ids", "stopping_criteria") if options.get(n)]):
            raise ValueError(
                f"{cutting[0]} and a constraint exclude each other: a constraint's text is never cut; say in the"
                " constraint where it ends"
            )
        if options.get("allow_truncation") and not constrained:
            raise ValueError("allow_truncation=True needs a constraint; free text is always cut at max_tokens")
        seed = _integer(options, "seed", 0)
        token_healing, return_kv_cache = (
            bool(options.get("token_healing", False)),
            bool(options.get("return_kv_cache", False)),
        )
        return cls(_sampler(options, sampled), _limits(options), seed, "seed" in own, token_healing, return_kv_cache)


def check_model(model: object) -> None:
    """Raises `TypeError` for what is no model: its name, most often."""
    if not isinstance(model, Model):
        raise TypeError(f'model is what gw.load("tiny") or another name gave, not {model!r}')


def check_names(options: Mapping[str, object]) -> None:
    """Raises `TypeError` for an option that there is not."""
    known = Options.__annotations__
    if unknown := sorted(options.keys() - known.keys()):
        meant = ", ".join(filter(None, map(_meant, unknown)))
        raise TypeError(f"unknown options: {', '.join(unknown)}{meant and f' ({meant})'}; known are {', '.join(known)}")


def _meant(name: str) -> str:
    """What an unknown name was likely to mean; "" where nothing is near."""
    if name in _SAMPLERS:
        return f"{name} is given by sampler=Sampler({name}=...)"
    if name in {"n", "samples", "num_return_sequences"}:
        return "use n= of generate and stream"
    near = difflib.get_close_matches(name.lower(), [*Options.__annotations__, *_SAMPLERS, "n"], 1)
    return f"did you mean {near[0]}?" if near else ""


def merged(options: Options, own: Options) -> Options:
    """The options of a row that has some of its own. A temperature or cut of its own changes the call's sampler; a
    sampler of its own replaces all that the call says of drawing.
    """
    found: dict[str, Any] = {**options, **own}
    if own.get("sampler") is not None:
        for name in _NAMED - own.keys():
            found.pop(name, None)
    elif isinstance(shared := options.get("sampler"), Sampler) and (changed := _NAMED & own.keys()):
        values = {name: found.pop(name) for name in changed}
        found["sampler"] = replace(shared, **{name: one for name, one in values.items() if one is not None})
    return cast(Options, found)


def _sampler(options: Options, sampled: bool) -> Sampler:
    given = options.get("sampler")
    named = [name for name in Options.__annotations__ if name in _NAMED and name in options]
    if given is not None:
        if not isinstance(given, Sampler):
            raise TypeError(f"sampler must be a Sampler, got {given!r}")
        if named:
            raise ValueError(f"sampler and {named[0]} exclude each other: give {named[0]} to the Sampler")
        return given
    temperature = options.get("temperature")
    if temperature is None:
        temperature = 1.0 if sampled else 0.0
    values = temperature, options.get("top_k", 0), options.get("top_p", 1.0), options.get("min_p", 0.0)
    with contextlib.suppress(TypeError):  # of what cannot be remembered: no number, as the sampler then says
        return _remembered(*values)
    return Sampler(*values)


_remembered = lru_cache(maxsize=256)(Sampler)
"""Samplers have no state, and checking one takes longer than a step of a small model."""


def _limits(options: Options) -> Limits:
    most = integer("max_tokens", options.get("max_tokens", MAX_TOKENS), 1)
    least = _integer(options, "min_tokens", 0)
    if not 0 <= least <= most:
        raise ValueError(f"min_tokens must be 0 to max_tokens ({most}), got {least}")
    logprobs = None if options.get("logprobs") is None else _integer(options, "logprobs", 0)
    if logprobs is not None and logprobs < 0:
        raise ValueError(f"logprobs must be 0 or how many alternatives to keep, got {logprobs}")
    ask = options.get("stopping_criteria")
    if ask is not None and not callable(ask):
        raise TypeError(f"stopping_criteria must be a function of the text, got {ask!r}")
    return Limits(
        most,
        least,
        _strings(options.get("stop", ()), "stop"),
        _ids(options.get("stop_token_ids", ())),
        ask,
        _strings(options.get("bad_words", ()), "bad_words"),
        not options.get("allow_truncation", False),
        logprobs,
    )


def _integer(options: Options, name: str, default: int) -> int:
    return integer(name, options.get(name, default))


def _ids(given: Iterable[int]) -> frozenset[int]:
    try:
        return frozenset(operator.index(one) for one in given)
    except TypeError:
        raise TypeError(f"stop_token_ids must be token ids, got {given!r}") from None


def _strings(given: object, name: str) -> tuple[str, ...]:
    strings = [given] if isinstance(given, str) else list(given) if isinstance(given, Iterable) else [given]
    found = tuple(one for one in strings if isinstance(one, str) and one)
    if len(found) < len(strings) or any("\ud800" <= char <= "\udfff" for one in found for char in one):
        raise ValueError(f"{name} must be a string or strings, none of them empty or with a lone surrogate: {given!r}")
    return found
