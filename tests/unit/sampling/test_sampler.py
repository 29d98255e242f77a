"""Every sampler stage against its definition, draws against the masked softmax, contradictory options."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from guideway import masks
from guideway.errors import NoAllowedTokenError
from guideway.sampling import ORDER, Dry, Mirostat, Sampler, draw, probabilities, repeats, stages, uniform
from tests.helpers import reference_samplers as reference
from tests.helpers.counts import counts

SHAPES = st.lists(st.floats(-12, 12).map(lambda x: round(x, 3)), min_size=1, max_size=40, unique=True)
TOKENS = st.lists(st.integers(0, 5), max_size=60)


def as_dict(logits: NDArray[np.float64]) -> dict[int, float]:
    return {int(t): float(logits[t]) for t in np.flatnonzero(logits > -np.inf)}


def near(found: NDArray[np.float64], wanted: dict[int, float]) -> None:
    assert as_dict(found) == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("temperature", 0.3), ("temperature", 4.0), ("top_k", 1), ("top_k", 7), ("top_p", 0.3), ("top_p", 0.95)),
        *(("min_p", 0.02), ("min_p", 0.5), ("typical_p", 0.2), ("typical_p", 0.9), ("top_a", 0.1), ("top_a", 0.9)),
        *(("tail_free", 0.5), ("tail_free", 0.97), ("top_n_sigma", 0.5), ("top_n_sigma", 1.5)),
        *(("xtc", 0.05), ("xtc", 0.3)),
    ],
)
@given(values=SHAPES)
def test_stages_are_what_their_papers_say(name: str, value: float, values: list[float]) -> None:
    found = getattr(stages, name)(np.array(values), value)
    wanted = getattr(reference, name)(dict(enumerate(values)), value)
    if name == "temperature":
        assert probabilities(found) == pytest.approx(list(reference.softmax(wanted).values()))
    else:
        near(found, wanted)


@given(values=SHAPES, tokens=TOKENS, strength=st.sampled_from([0.5, 1.3, 2.0]))
def test_penalties_are_what_their_papers_say(values: list[float], tokens: list[int], strength: float) -> None:
    ids, logits, before = np.arange(len(values)), np.array(values), np.array(tokens, dtype=np.int64)
    for name in ("repetition_penalty", "presence_penalty", "frequency_penalty"):
        wanted = getattr(reference, name)(dict(enumerate(values)), tokens, strength)
        near(getattr(repeats, name)(ids, logits, before, strength), wanted)


@given(values=SHAPES, tokens=TOKENS, allowed=st.integers(1, 3), breakers=st.sampled_from([(), (0,), (1, 4)]))
def test_dry_is_what_its_author_says(
    values: list[float], tokens: list[int], allowed: int, breakers: tuple[int, ...]
) -> None:
    settings = Dry(0.7, 1.5, allowed, breakers)
    found = repeats.dry(np.arange(len(values)), np.array(values), np.array(tokens, dtype=np.int64), settings)
    near(found, reference.dry(dict(enumerate(values)), tokens, 0.7, 1.5, allowed, breakers))


def test_dry_stays_quick_and_bounded_on_one_token_repeated() -> None:
    tokens = np.zeros(20_000, dtype=np.int64)
    found = repeats.dry(np.arange(3), np.zeros(3), tokens, Dry(1.0, 2.0, 2))
    assert found.tolist() == [-(2.0 ** (repeats.LONGEST - 2)), 0.0, 0.0]
    assert repeats.dry(np.arange(3), np.zeros(3), tokens, Dry(1.0, 2.0, 2, window=6)).tolist() == [-8.0, 0.0, 0.0]


@given(values=st.lists(st.integers(-60, 60), min_size=3, max_size=200, unique=True), mu=st.floats(0.2, 12))
def test_mirostat_is_what_its_paper_says(values: list[int], mu: float) -> None:
    logits = np.array(values) / 10
    near(Mirostat(version=2).cut(logits, mu), reference.mirostat_2(dict(enumerate(logits.tolist())), mu))
    near(Mirostat(version=1).cut(logits, mu), reference.mirostat_1(dict(enumerate(logits.tolist())), mu))


@pytest.mark.parametrize("version", [1, 2])
def test_mirostat_keeps_the_surprise(version: int) -> None:
    logits = -1.1 * np.log(np.arange(1, 5001))  # Zipf's law
    sampler = Sampler(1.0, mirostat=Mirostat(4.0, 0.2, version))
    share, memory, bits = probabilities(logits), None, []
    for position in range(600):
        token, memory = draw(sampler, logits, seed=1, position=position, memory=memory)
        bits.append(-math.log2(share[token]))
    assert np.mean(bits[100:]) == pytest.approx(4.0, abs=0.15)
    assert np.mean([-math.log2(share[draw(Sampler(1.0), logits, position=i)[0]]) for i in range(500)]) > 6


# -- what is drawn -----------------------------------------------------------------------------------------------------

TINY = np.array([0.3, -1.0, 2.0, 1.2, 0.9, -0.5, 1.9, 0.0])
BEFORE = [2, 2, 6, 3, 1, 6, 3]
MASK = masks.pack([0, 2, 3, 4, 6], 8)
LOGITS = {t: float(TINY[t]) for t in (0, 2, 3, 4, 6)}

CHAINS: list[tuple[dict[str, Any], Callable[[dict[int, float]], dict[int, float]]]] = [
    ({}, lambda x: x),
    ({"temperature": 0.6}, lambda x: reference.temperature(x, 0.6)),
    ({"top_k": 3}, lambda x: reference.top_k(x, 3)),
    ({"top_p": 0.8}, lambda x: reference.top_p(x, 0.8)),
    ({"min_p": 0.3}, lambda x: reference.min_p(x, 0.3)),
    ({"typical_p": 0.7}, lambda x: reference.typical_p(x, 0.7)),
    ({"top_a": 0.5}, lambda x: reference.top_a(x, 0.5)),
    ({"tail_free": 0.6}, lambda x: reference.tail_free(x, 0.6)),
    ({"top_n_sigma": 1.0, "temperature": 3.0}, lambda x: reference.temperature(reference.top_n_sigma(x, 1.0), 3.0)),
    ({"xtc_probability": 1.0, "xtc_threshold": 0.2}, lambda x: reference.xtc(x, 0.2)),
    ({"repetition_penalty": 1.4}, lambda x: reference.repetition_penalty(x, BEFORE, 1.4)),
    ({"presence_penalty": 0.5, "penalty_window": 2}, lambda x: reference.presence_penalty(x, BEFORE[-2:], 0.5)),
    ({"frequency_penalty": 0.4}, lambda x: reference.frequency_penalty(x, BEFORE, 0.4)),
    ({"dry": Dry(0.8, 1.5, 1)}, lambda x: reference.dry(x, BEFORE, 0.8, 1.5, 1, ())),
    ({"logit_bias": {2: -math.inf, 3: 1.0, 7: 9.0}}, lambda x: {t: v + (t == 3) for t, v in x.items() if t != 2}),
    (
        {"frequency_penalty": 0.3, "temperature": 1.5, "top_k": 4, "top_p": 0.9, "min_p": 0.1},
        lambda x: reference.min_p(
            reference.top_p(
                reference.top_k(reference.temperature(reference.frequency_penalty(x, BEFORE, 0.3), 1.5), 4), 0.9
            ),
            0.1,
        ),
    ),
    ({"order": ("temperature", lambda tokens, logits: logits * 2)}, lambda x: reference.temperature(x, 0.5)),
    (
        {"top_k": 2, "order": ("top_k", lambda tokens, logits: np.where(logits > -np.inf, 0.0, 5.0))},
        lambda x: dict.fromkeys(reference.top_k(x, 2), 0.0),  # what was cut or illegal does not come back
    ),
    ({"mirostat": Mirostat(1.0, 0.1, 2)}, lambda x: reference.mirostat_2(x, 2.0)),
    ({"mirostat": Mirostat(0.5, 0.1, 1)}, lambda x: reference.mirostat_1(x, 1.0)),
]


@pytest.mark.parametrize(("options", "wanted"), CHAINS, ids=lambda x: "+".join(x) if isinstance(x, dict) else "")
@pytest.mark.parametrize("masked", [True, False])
@counts(1000, 4000)
def test_draws_follow_the_distribution(
    options: dict[str, Any], wanted: Callable[[dict[int, float]], dict[int, float]], masked: bool, count: int
) -> None:
    """Chi-square against the softmax of what the definitions leave: p > 1e-4 for each of these, at a fixed seed."""
    sampler = Sampler(**{"temperature": 1.0, **options})
    logits, mask = (TINY, MASK) if masked else (np.where(np.isin(np.arange(8), list(LOGITS)), TINY, -np.inf), None)
    drawn = [draw(sampler, logits, mask, tokens=BEFORE, seed=11, position=i).token_id for i in range(count)]
    share = reference.softmax(wanted(LOGITS))
    assert set(drawn) <= set(share)
    seen = np.bincount(drawn, minlength=8)
    statistic = sum((seen[t] - count * p) ** 2 / (count * p) for t, p in share.items())
    assert statistic < CHI_SQUARE[len(share) - 1]


CHI_SQUARE = [1e-9, 15.14, 18.42, 21.11, 23.51, 25.74]  # exceeded with probability 1e-4, by degrees of freedom


def test_xtc_draws_its_own_number() -> None:
    sampler = Sampler(1.0, xtc_probability=0.5, xtc_threshold=0.2, top_k=2)
    drawn = [draw(sampler, np.log([0.6, 0.4]), position=i).token_id for i in range(4000)]
    # 0.5: only token 1 is left; 0.5: token 1 with 0.4
    assert np.mean(drawn) == pytest.approx(0.7, abs=0.03)
    assert (
        abs(np.corrcoef([uniform(0, 0, i, 1) for i in range(999)], [uniform(0, 0, i) for i in range(999)])[0, 1]) < 0.1
    )


def test_removed_tokens_are_sampled_again() -> None:
    first = [draw(Sampler(1.0), TINY, position=i).token_id for i in range(300)]
    second = [draw(Sampler(1.0), TINY, position=i, attempt=1).token_id for i in range(300)]
    share = probabilities(TINY)
    assert np.mean(np.array(first) == second) == pytest.approx(float(share @ share), abs=0.08)  # as if independent


@given(st.lists(st.integers(0, 2**32 - 1), min_size=4, max_size=4), st.integers(1, 128))
def test_ids_of_a_mask(words: list[int], size: int) -> None:
    row = np.array(words, dtype=np.uint32)
    assert masks.ids(row, size).tolist() == np.flatnonzero(masks.unpack(row, size)).tolist()


# -- order and refusals ------------------------------------------------------------------------------------------------


def test_stage_order_matters() -> None:
    logits = np.log([0.5, 0.3, 0.15, 0.05])
    cold_first = Sampler(0.5, top_p=0.65)
    cut_first = Sampler(0.5, top_p=0.65, order=("top_p", "temperature"))
    for sampler, wanted in ((cold_first, {0}), (cut_first, {0, 1})):
        assert {draw(sampler, logits, position=i).token_id for i in range(200)} == wanted


def test_a_callable_sees_the_tokens_and_the_whole_vocabulary() -> None:
    seen: list[tuple[list[int], list[float]]] = []

    def look(tokens: Sequence[int], logits: NDArray[np.float64]) -> NDArray[np.float64]:
        seen.append((list(tokens), logits.tolist()))
        return logits

    draw(Sampler(order=(look, *ORDER)), np.array([1.0, 2.0, 3.0], dtype=np.float32), masks.pack([0, 2], 3), tokens=[7])
    assert seen == [([7], [1.0, -math.inf, 3.0])]

    def short(tokens: Sequence[int], logits: NDArray[np.float64]) -> NDArray[np.float64]:
        return logits[:1]

    def nothing(tokens: Sequence[int], logits: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.full_like(logits, -np.inf)

    with pytest.raises(ValueError, match="short must return logits of shape"):
        draw(Sampler(order=(short,)), TINY)
    with pytest.raises(NoAllowedTokenError, match="nothing removed the last one"):
        draw(Sampler(order=(nothing,)), TINY)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"temperature": 1.0, "mirostat": Mirostat(), "top_k": 5}, "cannot be combined with top_k"),
        (
            {"temperature": 1.0, "mirostat": Mirostat(), "xtc_probability": 0.1},
            "cannot be combined with xtc_probability",
        ),
        ({"mirostat": Mirostat()}, "mirostat has no effect at temperature 0"),
        ({"xtc_probability": 0.5}, "xtc_probability has no effect at temperature 0"),
        ({"typical_p": 0.5}, "typical_p has no effect at temperature 0"),
        ({"penalty_window": 3}, "penalty_window has no effect"),
        ({"top_k": 3, "order": ("temperature",)}, "top_k is on but missing from the order"),
        ({"order": ("top_q",)}, "unknown stage 'top_q'"),
        ({"order": ("top_k", "top_k")}, "occurs twice"),
        (
            {"temperature": 1.0, "mirostat": Mirostat(), "order": ("mirostat", "temperature")},
            "mirostat must be the last stage",
        ),
        ({"logit_bias": {3: math.inf}}, "logit_bias"),
        ({"logit_bias": {-3: 1.0}}, "logit_bias"),
        ({"xtc_threshold": 0.6}, "xtc_threshold"),
        ({"repetition_penalty": 0.0}, "repetition_penalty"),
        ({"presence_penalty": math.nan}, "presence_penalty"),
        ({"tail_free": 0.0}, "tail_free"),
        ({"top_n_sigma": -1.0}, "top_n_sigma"),
    ],
)
def test_contradictory_options_are_refused_by_name(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Sampler(**options)
    with pytest.raises(TypeError, match="a name or a callable"):
        Sampler(order=(3,))  # type: ignore[arg-type]  # the mistake under test
    for wrong in ({"multiplier": -1.0}, {"allowed_length": 0}, {"base": 0.5}):
        with pytest.raises(ValueError, match="dry"):
            Dry(**wrong)  # type: ignore[arg-type]  # one field at a time
    for wrong in ({"version": 3}, {"target": 0.0}, {"rate": -1.0}):
        with pytest.raises(ValueError, match="mirostat"):
            Mirostat(**wrong)  # type: ignore[arg-type]  # one field at a time


@pytest.mark.parametrize(
    ("made", "error", "words"),
    [
        *(
            (lambda name=name: Sampler(**{name: 10**400}), ValueError, name)
            for name in ("top_k", "temperature", "top_p")
        ),
        (lambda: Sampler(logit_bias={1: 10**400}), ValueError, "logit_bias"),
        *(
            (lambda wrong=wrong: Sampler(logit_bias=wrong), TypeError, "logit_bias must map token ids to numbers")
            for wrong in ({"a": 1}, {1: "x"}, {1.5: 1}, 5, [1, 2])
        ),
        (lambda: Sampler(1.0, dry=True), TypeError, "dry must be a Dry"),  # type: ignore[arg-type]  # under test
        (lambda: Sampler(1.0, mirostat=5), TypeError, "mirostat must be a Mirostat"),  # type: ignore[arg-type]  # under test
        (lambda: Dry(window=math.inf), ValueError, "dry: .* integers"),  # type: ignore[arg-type]  # under test
        (lambda: Dry(allowed_length=math.nan), ValueError, "dry: .* integers"),  # type: ignore[arg-type]  # under test
        (lambda: Dry(multiplier=10**400), ValueError, "dry: expected multiplier"),
        (lambda: Dry(multiplier="a"), TypeError, "dry: expected a number"),  # type: ignore[arg-type]  # under test
        (lambda: Dry(breakers=5), TypeError, "dry: breakers"),  # type: ignore[arg-type]  # under test
        (lambda: Mirostat(target=10**400), ValueError, "mirostat: expected target"),
        (lambda: Mirostat(rate="a"), TypeError, "mirostat: expected a number"),  # type: ignore[arg-type]  # under test
    ],
)
def test_values_of_a_wrong_type_or_size_are_refused_by_name(
    made: Callable[[], object], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        made()


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: Mirostat(target=10**5000), "mirostat: expected target"),
        (lambda: Mirostat(rate=10**5000), "mirostat: .* rate"),
        (lambda: Mirostat(version=10**5000), "mirostat: version"),
        (lambda: Mirostat(version=[1] * 10**6), "mirostat: version"),  # type: ignore[arg-type]  # under test
        (lambda: Mirostat(version=np.array([1, 2])), "mirostat: version"),  # type: ignore[arg-type]  # under test
        (lambda: Dry(multiplier=10**5000), "dry: expected multiplier"),
        (lambda: Dry(base=10**5000), "dry: .* base"),
        (lambda: Dry(window=10**5000), "dry: .*window .*integers, got an int of"),
        (lambda: Dry(window=-(10**300)), "dry: .*window >= 0"),
        (lambda: Dry(breakers=(*range(10**5), 0.5)), "dry: .*breakers must be integers, got 0[.]5$"),  # type: ignore[arg-type]  # under test
        (lambda: Sampler(logit_bias={10**5000: 1.0}), "logit_bias"),
    ],
)
def test_messages_about_large_parameters_are_short(made: Callable[[], object], words: str) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        made()
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("kind", [np.complex64, np.complex128])
@pytest.mark.parametrize(
    ("made", "error"),
    [
        (lambda value: Mirostat(target=value), TypeError),
        (lambda value: Mirostat(version=value), ValueError),
        (lambda value: Dry(multiplier=value), TypeError),
        (lambda value: Dry(window=value), TypeError),
        (lambda value: Sampler(value), TypeError),
        (lambda value: Sampler(logit_bias={1: value}), TypeError),
    ],
)
def test_complex_numbers_are_refused(made: Callable[[Any], object], error: type[Exception], kind: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(error, match=r"a number|version must be|logit_bias must map"):
            made(kind(2))
