"""Scores, beams and particles against all texts of a small model, enumerated."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import guideway as gw
from guideway.generation import Model
from guideway.generation.sequential_monte_carlo import rejection
from guideway.sampling import uniform
from guideway.testing import ConstantModel, ToyEngine
from guideway.tokenizers import Tokenizer, Vocabulary
from tests.helpers.toy_models import toy_model

VOCABULARY = Vocabulary([b"", b"a", b"b", b"c", b"ab", b"ca"], eos_ids=[0], special_ids=[0])
LONGEST = 5


@pytest.fixture(scope="module", params=[True, False], ids=["supports_rollback", "recurrent"])
def model(request: pytest.FixtureRequest) -> Model:
    return toy_model(VOCABULARY, 4, supports_rollback=request.param)


def every_text(model: Model, prompt: str, heat: float = 1.0, longest: int = LONGEST) -> dict[tuple[int, ...], float]:
    """Returns all sequences of at most `longest` tokens, including the end token, with their log-probabilities."""
    found: dict[tuple[int, ...], float] = {}
    session = model.session()
    session.feed(prompt)

    def walk(tokens: tuple[int, ...], logprob: float) -> None:
        logits = session.logits().astype(np.float64) / heat
        logprobs = logits - np.logaddexp.reduce(logits)
        found[(*tokens, 0)] = logprob + float(logprobs[0])
        if len(tokens) + 1 < longest:
            for token_id in range(1, len(VOCABULARY)):
                session.feed([token_id])
                walk((*tokens, token_id), logprob + float(logprobs[token_id]))
                session.rewind(1)

    walk((), 0.0)
    return found


def fitting(found: dict[tuple[int, ...], float], fits: Callable[[str], bool]) -> tuple[dict[str, float], float]:
    """The exact distribution over texts that fit, and the log of their mass."""
    mass: dict[str, float] = {}
    for tokens, logprob in found.items():
        text = VOCABULARY.bytes_of(tokens).decode()
        if fits(text):
            mass[text] = mass.get(text, 0.0) + math.exp(logprob)
    total = sum(mass.values())
    return {text: part / total for text, part in mass.items()}, math.log(total)


def distance(one: dict[str, float], other: dict[str, float]) -> float:
    """Total variation."""
    return sum(abs(one.get(text, 0.0) - other.get(text, 0.0)) for text in one.keys() | other.keys()) / 2


def begun(texts: dict[str, float]) -> dict[str, float]:
    """Returns the distribution of prefixes, for sets of texts that are too large to compare one by one."""
    found: dict[str, float] = {}
    for text, part in texts.items():
        found[text[:2]] = found.get(text[:2], 0.0) + part
    return found


# -- choices -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", [True, False])
@pytest.mark.parametrize("batch_size", [1, 3, 16])
def test_scores_are_the_probabilities_of_the_tokens(model: Model, end: bool, batch_size: int) -> None:
    options = ["abc", "abb", "cab", "b", "aca", "cc"] + (["ab", "a"] if end else [])
    scores = gw.score(model, "ab", options, end=end, batch_size=batch_size)
    session = model.session()
    session.feed("ab")
    for option, found in zip(options, scores, strict=True):
        ids, logprob = [*model.tokenizer.encode(option), *([0] if end else [])], 0.0
        for token_id in ids:
            logits = session.logits().astype(np.float64)
            logprob += float(logits[token_id] - np.logaddexp.reduce(logits))
            session.feed([token_id])
        session.rewind(len(ids))
        assert found.option == option
        assert found.tokens == tuple(ids)
        assert found.logprob == pytest.approx(logprob)
    shares = np.exp([found.logprob for found in scores])
    assert [found.probability for found in scores] == pytest.approx((shares / shares.sum()).tolist())


def test_scoring_runs_each_node_of_the_trie_once() -> None:
    class Counting(ToyEngine):
        ran = 0

        def forward(self, rows: Any, caches: Any) -> Any:
            self.ran += sum(map(len, rows))
            return super().forward(rows, caches)

    engine = Counting(len(VOCABULARY), seed=4)
    model = Model(engine, Tokenizer.of(VOCABULARY))
    options = ["cb" * 8 + end for end in ("b", "c", "ab")]
    gw.score(model, "b" * 10, options)
    assert engine.ran == 10 + 16  # the prompt and the shared prefixes; leaves need no run
    both = gw.score(model, ["b" * 10, "c"], options)
    assert both[0] == gw.score(model, "b" * 10, options)
    assert both[1] != both[0]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        *(([], "at least one"), (["a", "a"], "all different"), (["a", ""], "non-empty strings")),
        (["b", "ba"], "option 'b' is a token prefix of 'ba'"),
    ],
)
def test_indistinguishable_options_are_refused(model: Model, options: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        gw.score(model, "a", options)
    for wrong in ("ab", [1], None):
        with pytest.raises(TypeError, match="a list of strings"):
            gw.score(model, "a", wrong)


# -- beams -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pattern", ["[abc]*", "a[ab]{2}|bcc|c+a", "(ab|ca)*b?"])
def test_wide_beams_find_what_exhaustive_search_finds(model: Model, pattern: str) -> None:
    every = every_text(model, "ab")
    fits = {t: p for t, p in every.items() if re.fullmatch(pattern, VOCABULARY.bytes_of(t).decode())}
    wanted = sorted(fits.items(), key=lambda item: -item[1])[:6]
    found = gw.search.beam_search(
        model, "ab", gw.Regex(pattern), width=4000, count=6, max_tokens=LONGEST, allow_truncation=True
    )
    assert [one.tokens for one in found] == [tokens for tokens, _ in wanted]
    for one, (_, logprob) in zip(found, wanted, strict=False):
        assert one.logprob == pytest.approx(logprob)
        assert one.value == one.text


def test_narrow_beams_are_valid_and_not_worse_than_greedy(model: Model) -> None:
    source = gw.Regex("(a|b|c){3,8}")
    greedy = gw.generate(model, "ab", source, max_tokens=9)
    for width in (1, 2, 5):
        found = gw.search.beam_search(model, "ab", source, width=width, max_tokens=9)
        assert len(found) <= width
        assert all(re.fullmatch(source.pattern, one.value) for one in found)
        assert [one.logprob for one in found] == sorted((one.logprob for one in found), reverse=True)
        assert len({one.tokens for one in found}) == len(found)
    assert gw.search.beam_search(model, "ab", source, width=1, max_tokens=9)[0].value is not None or greedy
    free = gw.search.beam_search(model, "ab", width=3, max_tokens=6)
    assert all(len(one.tokens) <= 6 for one in free)
    with pytest.raises(ValueError, match="beam_search does not take temperature"):
        gw.search.beam_search(model, "ab", temperature=1.0)
    with pytest.raises(ValueError, match="width and count"):
        gw.search.beam_search(model, "ab", width=0)


# -- particles ---------------------------------------------------------------------------------------------------------

PATTERN = "a[ab]{2}|bcc|c+a"
HEAT = 3.0  # the toy's logits are steep: at 1 a few texts have almost all of the probability


@pytest.fixture(scope="module")
def toy() -> Model:
    return toy_model(VOCABULARY, 4)


def accepts(text: str) -> bool:
    return re.fullmatch(PATTERN, text) is not None


def no_cc(text: str, ended: bool) -> bool:
    return "cc" not in text and (not ended or len(text) >= 2)


@pytest.mark.parametrize("proposal", ["mask", "rejection"])
@pytest.mark.parametrize("heat", [HEAT, 5.0])
def test_particles_converge_to_the_exact_distribution(toy: Model, proposal: Any, heat: float) -> None:
    exact, mass = fitting(every_text(toy, "ab", heat), accepts)
    options: dict[str, Any] = {"proposal": proposal, "temperature": heat, "max_tokens": LONGEST, "seed": 2}
    found = gw.search.smc(toy, "ab", gw.Regex(PATTERN), particles=1500, **options)
    assert distance(found.probabilities(), exact) < 0.05
    assert found.log_evidence == pytest.approx(mass, abs=0.1)
    masked = gw.generate(toy, "ab", gw.Regex(PATTERN), n=500, temperature=heat, max_tokens=40, seed=2)
    counted = {text: masked.count(text) / len(masked) for text in set(masked)}
    assert distance(counted, exact) > 0.15  # plain masking draws from another distribution
    assert found.effective_sample_size > 300
    assert found.weights.sum() == pytest.approx(1.0)


def test_callable_constraints_are_sampled_exactly(toy: Model) -> None:
    every = every_text(toy, "ab", HEAT)
    exact, mass = fitting(every, lambda text: no_cc(text, True))
    found = gw.search.smc(toy, "ab", allows=no_cc, particles=1500, temperature=HEAT, max_tokens=LONGEST, seed=1)
    assert distance(begun(found.probabilities()), begun(exact)) < 0.06
    assert found.log_evidence == pytest.approx(mass, abs=0.1)
    both, mass = fitting(every, lambda text: accepts(text) and no_cc(text, True))
    found = gw.search.smc(
        toy, "ab", gw.Regex(PATTERN), allows=no_cc, particles=1000, temperature=HEAT, max_tokens=LONGEST, seed=1
    )
    assert distance(found.probabilities(), both) < 0.06
    assert found.log_evidence == pytest.approx(mass, abs=0.15)


def test_potentials_weight_texts(toy: Model) -> None:
    every = every_text(toy, "ab", HEAT)
    weighed = {t: p + 1.5 * VOCABULARY.bytes_of(t).count(b"b") for t, p in every.items()}
    exact, mass = fitting(weighed, accepts)
    found = gw.search.smc(
        toy,
        "ab",
        gw.Regex(PATTERN),
        potential=lambda text, ended: 1.5 * text.count("b"),
        particles=1500,
        temperature=HEAT,
        max_tokens=LONGEST,
    )
    assert distance(found.probabilities(), exact) < 0.06
    assert found.log_evidence == pytest.approx(mass, abs=0.1)


@pytest.mark.parametrize("resample_below", [0.0, 0.5, 1.0])
def test_the_evidence_is_without_bias_for_few_particles(toy: Model, resample_below: float) -> None:
    _, mass = fitting(every_text(toy, "ab", HEAT), accepts)
    estimates = []
    for seed in range(250):
        try:
            found = gw.search.smc(
                toy,
                "ab",
                gw.Regex(PATTERN),
                particles=4,
                temperature=HEAT,
                proposal="rejection",
                resample_below=resample_below,
                max_tokens=LONGEST,
                seed=seed,
            )
            estimates.append(math.exp(found.log_evidence))
        except gw.errors.BudgetTooSmallError:
            estimates.append(0.0)
    error = float(np.std(estimates)) / math.sqrt(len(estimates))
    assert abs(np.mean(estimates) - math.exp(mass)) < 4 * error
    assert error < 0.15 * math.exp(mass)


def test_rejection_draws_exactly_and_weighs_without_bias() -> None:
    share = np.array([0.5, 0.22, 0.2, 0.05, 0.03])
    right = {1, 3}
    drawn, estimates, asked = [], [], 0

    def fits(token_id: int) -> bool:
        nonlocal asked
        asked += 1
        return token_id in right

    for row in range(6000):
        numbers = iter(range(10_000))
        token_id, estimate = rejection(share, fits, lambda row=row, n=numbers: uniform(3, row, 0, next(n)))  # type: ignore[misc]  # defaults bind the loop's values
        drawn.append(token_id)
        estimates.append(estimate)
    assert set(drawn) == right
    assert np.mean([token_id == 1 for token_id in drawn]) == pytest.approx(0.22 / 0.27, abs=0.02)
    assert np.mean(estimates) == pytest.approx(0.27, abs=0.01)
    # Proper: the weight is independent of the sampled token.
    assert np.mean([e for t, e in zip(drawn, estimates, strict=True) if t == 3]) == pytest.approx(0.27, abs=0.02)
    assert asked < 6000 * 5
    assert rejection(share, lambda token_id: False, lambda: 0.5) == (None, 0.0)


def test_particles_keep_their_word(toy: Model) -> None:
    first, again = (gw.search.smc(toy, "ab", gw.Regex(PATTERN), particles=20, max_tokens=6, seed=7) for _ in range(2))
    assert first.probabilities() == again.probabilities()
    assert all(accepts(one.value) and one.tokens[-1] == 0 for one in first.generations)
    typed = gw.search.smc(
        ConstantModel(Vocabulary([b"", *(b"%d" % n for n in range(10))], [0], [0])), "1", int, max_tokens=9
    )
    assert all(type(one.value) is int for one in typed.generations)
    with pytest.raises(gw.errors.BudgetTooSmallError, match="no particle completed its text"):
        gw.search.smc(toy, "ab", gw.Regex("a*"), allows=lambda text, ended: not ended, max_tokens=4)
    for wrong in ({"temperature": 0.0}, {"top_k": 3}, {"particles": 0}, {"resample_below": 2}, {"proposal": "none"}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            gw.search.smc(toy, "ab", gw.Regex("a"), **wrong)  # type: ignore[arg-type]  # one option at a time
