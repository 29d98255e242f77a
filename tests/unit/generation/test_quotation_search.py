"""Verbatim strings chosen as a whole: against all token sequences, and the options that go with it."""

from __future__ import annotations

import json
import random
from typing import Annotated, Any

import numpy as np
import pytest
from pydantic import BaseModel

import guideway as gw
from guideway import masks
from guideway.constraints import PythonType
from guideway.errors import TruncatedError
from guideway.generation import complete, complete_extract, extraction, resume
from guideway.generation.plan import Job
from guideway.generation.quotation_search import (
    LENGTH,
    LONG,
    MAX_TOKENS,
    SIMILARITY,
    SURPRISE,
    Quotations,
    QuotationSearch,
    similarity,
)
from guideway.generation.scheduler import decode, rounds
from guideway.sampling import log_softmax
from guideway.sessions import Session, feed_all
from guideway.sessions.prefix_cache import common_length
from guideway.testing import ConstantModel, ScriptedModel
from guideway.tokenizers import Vocabulary
from tests.helpers.counts import seeds
from tests.helpers.toy_models import toy_model

BYTES = [bytes([code]) for code in range(256)]
TABLE = Vocabulary([b"", *BYTES, b"ab", b"bc", b'c"', b' b"', b"ca"], eos_ids=[0], special_ids=[0])
MARKS = np.array([piece in (b",", b"?", b"!", b"-") for piece in TABLE.token_bytes])
"""Whether each token is a punctuation mark of a text in `TEXTS`."""

SCHEMA = gw.JsonSchema({"type": "string", "format": "verbatim"})
TEXTS = ["ab bca c", "aab, c", "b", "ab?! c, ab-a", 'a "bc" \\ b', "né c字"]


def constrained(model: gw.Model, text: str, prompt: bytes = b"x") -> Session:
    session = model.session()
    session.feed([code + 1 for code in prompt])
    session.constrain(gw.compile(SCHEMA.quoting(text), TABLE).matcher())
    session.feed([ord('"') + 1])
    feed_all([session])
    return session


def bounded_logprobs(session: Session) -> np.ndarray[Any, Any]:
    """The log-probabilities of the legal tokens: under the model, but not below those under the mask minus `SURPRISE`.

    Those of punctuation marks are not bounded.
    """
    logits = np.array(session.shared_logits())
    model = log_softmax(logits)
    logits[~masks.unpack(session.mask, logits.size)] = -np.inf
    masked = log_softmax(logits)
    bounded = np.where(MARKS, model, np.maximum(model, masked - SURPRISE))
    return np.where(masked > -np.inf, bounded, -np.inf)


def own_string(session: Session) -> tuple[tuple[int, ...] | None, bytes]:
    """The string that the model writes without the source: its tokens if it occurs there, and its text."""
    one, tokens, occurs = session.fork(), list[int](), True
    free = session.fork()
    free.constrain(None)
    while len(tokens) < MAX_TOKENS:
        feed_all([free])
        tokens.append(int(free.shared_logits().argmax()))
        free.feed(tokens[-1:])
        if occurs and one.matcher is not None and one.matcher.validate(tokens[-1:]):
            one.feed(tokens[-1:])
            if one.matcher.quotation != "inside":
                return tuple(tokens), TABLE.bytes_of(tokens)
        else:
            occurs = False
            if b'"' in TABLE.bytes_of(tokens[-1:]) or tokens[-1] in TABLE.eos_ids:
                break
    return None, TABLE.bytes_of(tokens)


def content(text: bytes) -> bytes:
    """What is before the quotation mark that ends a string."""
    at = 0
    while at < len(text) and text[at : at + 1] != b'"':
        at += 2 if text[at : at + 1] == b"\\" else 1
    return text[:at]


def score(logprob: float, tokens: tuple[int, ...], own: bytes) -> float:
    text = content(TABLE.bytes_of(tokens))
    return logprob + SIMILARITY * similarity(text, content(own)) + LENGTH * np.log(1 + min(len(text), LONG))


def every_string(session: Session) -> dict[tuple[int, ...], float]:
    """The log-probability of each token sequence up to the end of the string."""
    found: dict[tuple[int, ...], float] = {}
    todo: list[tuple[Session, tuple[int, ...], float]] = [(session.fork(), (), 0.0)]
    while todo:
        one, tokens, logprob = todo.pop()
        if tokens and (one.matcher is None or one.matcher.quotation != "inside"):
            found[tokens] = logprob
            continue
        feed_all([one])
        one.only_legal(None)
        logprobs = bounded_logprobs(one)
        for token_id in np.flatnonzero(logprobs > -np.inf).tolist():
            further = one.fork()
            further.feed([token_id])
            todo.append((further, (*tokens, token_id), logprob + float(logprobs[token_id])))
    return found


def best_quotation(session: Session, width: int) -> tuple[int, ...]:
    search = QuotationSearch(session, width)
    while (found := search.advance()) is None:
        feed_all([search.session])
    return tuple(step.token_id for step in found.steps)


def beam_search(session: Session, width: int) -> tuple[int, ...]:
    """The best string of a beam search of this width, length by length."""
    tokens, own = own_string(session)
    if tokens is not None:
        return tokens
    live: list[tuple[float, tuple[int, ...], Session]] = [(0.0, (), session.fork())]
    ended: list[tuple[float, tuple[int, ...]]] = []
    while live:
        further: list[tuple[float, tuple[int, ...], Session]] = []
        for logprob, tokens, one in live:
            feed_all([one])
            one.only_legal(None)
            logprobs = bounded_logprobs(one)
            for token_id in np.flatnonzero(logprobs > -np.inf).tolist():
                after = one.fork()
                after.feed([token_id])
                further.append((logprob + float(logprobs[token_id]), (*tokens, token_id), after))
        live = []
        for logprob, tokens, one in sorted(further, key=lambda beam: -beam[0])[:width]:
            if one.matcher is None or one.matcher.quotation != "inside":
                ended.append((logprob, tokens))
            else:
                live.append((logprob, tokens, one))
    return max((score(*one, own), one[1]) for one in ended)[1]


def test_similarity_is_that_of_the_longest_common_subsequence() -> None:
    rng = random.Random(1)
    for _ in range(300):
        one, other = (bytes(rng.choices(b"abc\xff", k=rng.randrange(9))) for _ in range(2))
        known: dict[tuple[int, int], int] = {}
        for i in range(len(one) + 1):
            for j in range(len(other) + 1):
                if not i or not j:
                    known[i, j] = 0
                elif one[i - 1] == other[j - 1]:
                    known[i, j] = known[i - 1, j - 1] + 1
                else:
                    known[i, j] = max(known[i - 1, j], known[i, j - 1])
        assert similarity(one, other) == known[len(one), len(other)] / max(1, len(one), len(other))
    assert similarity(b"a" * 10**6, b"a" * 10**6) == 1


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("text", TEXTS)
def test_a_wide_search_finds_the_most_probable_string(seed: int, text: str) -> None:
    session = constrained(toy_model(TABLE, seed), text)
    wanted = every_string(session)
    before = session.tokens
    found = best_quotation(session, 10_000)
    tokens, own = own_string(session)
    if tokens is None:
        scores = {tokens: score(logprob, tokens, own) for tokens, logprob in wanted.items()}
        assert scores[found] == pytest.approx(max(scores.values()))
    else:
        assert found == tokens
    assert found in wanted
    assert session.tokens == before
    for width in (1, 2, 3):
        assert best_quotation(session, width) == beam_search(session, width)


def test_where_a_text_is_in_a_quotation() -> None:
    schema = gw.JsonSchema(
        {
            "type": "object",
            "properties": {"a": {"type": ["string", "null"], "format": "verbatim"}, "b": {"type": "string"}},
            "required": ["a", "b"],
        }
    ).quoting("né c字")
    matcher = gw.compile(schema, TABLE).matcher()
    seen = []
    for byte in '{"a": "né", "b": "né"}'.encode():
        matcher.advance(byte + 1)
        seen.append(matcher.quotation)
    at = b'{"a": "'
    assert seen[: len(at) - 1] == [None] * (len(at) - 1)
    assert seen[len(at) - 1 : len(at) + 3] == ["begins", "inside", "inside", "inside"]
    assert set(seen[len(at) + 3 :]) == {None}
    matcher.advance(0)
    assert matcher.quotation is None


class Record(BaseModel):
    names: list[Annotated[str, gw.Verbatim()]]
    note: Annotated[str | None, gw.Verbatim()]


@pytest.mark.parametrize("options", [{}, {"logprobs": 2}, {"bad_words": ["c"]}, {"temperature": 1.0, "seed": 3}])
@pytest.mark.parametrize("seed", range(6))
def test_records_fit_with_other_options(seed: int, options: dict[str, Any]) -> None:
    text = "ab bca aa b ca"
    model = toy_model(TABLE, seed)
    for beams in (1, 4):
        found = complete_extract(model, text, Record, max_tokens=120, verbatim_num_beams=beams, **options)
        assert all(name in text for name in found.value.names)
        assert "logprobs" not in options or len(found.steps) == len(found.tokens)
        assert "bad_words" not in options or "c" not in found.text.replace('"note"', "").replace("names", "")


@pytest.mark.parametrize("rollback", [True, False])
@pytest.mark.parametrize("seed", seeds(2, 6))
def test_the_budget_is_kept_and_reported(seed: int, rollback: bool) -> None:
    """The first token that differs from those without a budget is the truncation."""
    text = "abc bca cab aab " * 2
    model = toy_model(TABLE, 6 + seed, supports_rollback=rollback)
    whole = complete_extract(model, text, Record, max_tokens=300)
    shortest = gw.compile(PythonType(Record).quoting(text), TABLE).matcher().min_tokens_to_complete() + 1
    differ = 0
    for most in range(shortest, 80, 3):
        found = complete_extract(model, text, Record, max_tokens=most)
        assert len(found.tokens) <= most
        assert all(name in text for name in found.value.names)
        at = common_length(found.tokens, whole.tokens)
        seen = None if found.truncation is None else (found.truncation.token_index, found.truncation.token_id)
        assert seen == (None if at == len(whole.tokens) else (at, whole.tokens[at]))
        if seen is None:
            assert found.value == whole.value
            continue
        differ += 1
        with pytest.raises(TruncatedError) as caught:
            complete_extract(model, text, Record, max_tokens=most, on_truncation="raise")
        assert caught.value.generation is not None
        assert caught.value.generation.tokens == whole.tokens[:at]
    assert differ or len(whole.tokens) < shortest + 3


@pytest.mark.parametrize("compare", [True, False])
def test_the_divergence_is_found_only_if_it_is_requested(compare: bool) -> None:
    session = constrained(ScriptedModel(TABLE, ['ab bca c"']), "ab bca c")
    quotations, found = Quotations(2), None
    while found is None:
        feed_all([quotations.session or session])
        found = quotations.advance(session, 4, complete=True, compare=compare, min_position=0, logprobs=None)
        if quotations._search is not None and quotations._budgeted is None:
            quotations._search.is_narrowed = True  # as after a mask that is too small for the budget
    assert found.steps
    assert (found.divergence is not None) == compare


@pytest.mark.parametrize("rollback", [True, False])
def test_one_sequence_runs_for_each_row(rollback: bool) -> None:
    """A search neither delays other rows nor runs more sequences than there are rows."""
    model = toy_model(TABLE, 3, supports_rollback=rollback)
    counted: list[int] = []
    forward = model.engine.forward

    def counting(rows: Any, *rest: Any) -> Any:
        counted.append(len(rows))
        return forward(rows, *rest)

    model.engine.forward = counting  # type: ignore[method-assign]  # counts the rows
    source = PythonType(Record).quoting("ab bca aa b ca")
    requests = [gw.GenerationRequest("x", source, max_tokens=100), gw.GenerationRequest("y", None, max_tokens=30)]
    job = Job(model, requests, None, None, {})
    progress = []
    for moved in rounds(job.rows(), 2):
        progress += [len(row.tokens) for row in moved if row.limits.max_tokens == 30]
        job.finish_all(moved)
    assert progress[:-1] == list(range(1, len(progress)))  # a token in each round
    assert max(counted) == 2
    together = [one.tokens for one in job.shaped()]
    assert together == [complete(model, one).tokens for one in requests]


def test_a_certain_model_runs_no_other_strings() -> None:
    """The number of tokens that run is that of the text."""
    text = '{"names": ["ab bca", "c"], "note": null}'
    model = ScriptedModel(TABLE, [text])
    found = {}
    for beams in (1, 4):
        source = PythonType(Record).quoting("ab bca c")
        row = next(Job(model, "x", source, None, {"verbatim_num_beams": beams}).rows())
        decode([row])
        found[beams] = row.tokens, row.session.counts.run
    assert TABLE.bytes_of(found[4][0]).decode() == text
    assert found[4][0] == found[1][0]
    assert found[4][1] <= len(found[4][0]) + 1


def test_the_end_of_a_long_string_is_drawn_and_the_next_string_is_chosen() -> None:
    text = "ab bca " * 20
    long = text[:100].strip()
    model = ScriptedModel(TABLE, [json.dumps({"names": [long, "ab xbca"], "note": None})])
    source = PythonType(Record).quoting(text)
    chosen = []
    for beams in (1, 4):
        row = next(Job(model, "x", source, None, {"verbatim_num_beams": beams}).rows())
        decode([row])
        chosen.append(json.loads(TABLE.bytes_of(row.tokens))["names"])
    assert len(row.tokens) > MAX_TOKENS + len(chosen[1][1])
    assert chosen[0][0] == chosen[1][0] == long
    assert chosen[1][1] == "ab bca"


@pytest.mark.parametrize("seed", range(4))
def test_a_resumed_text_is_the_same(seed: int) -> None:
    model = toy_model(TABLE, seed)
    request = extraction(model, "ab bca aa b ca", Record, max_tokens=120)
    whole = complete(model, request)
    stream = gw.stream(model, request)
    for number, _ in enumerate(stream):
        if number % 3 == seed % 3 and stream.states:
            again = resume(model, stream.states[0], max_tokens=120)
            assert again.value == whole.value


def test_log_probabilities_are_those_of_a_score() -> None:
    model = toy_model(TABLE, 2)
    text = "ab bca aa b ca"
    found = complete_extract(model, text, Record, max_tokens=120, logprobs=2)
    plain = complete_extract(model, text, Record, max_tokens=120)
    assert found.value == plain.value
    assert [step.token_id for step in found.steps] == list(found.tokens)
    session = model.session()
    session.feed(extraction(model, text, Record).prompt)
    for step in found.steps:
        logprobs = log_softmax(session.logits())
        assert step.logprob == pytest.approx(float(logprobs[step.token_id]), abs=1e-4)
        session.feed([step.token_id])


def test_wrong_values() -> None:
    with pytest.raises(ValueError, match="verbatim_num_beams must be at least 1, got 0"):
        gw.generate(toy_model(TABLE, 1), "x", int, verbatim_num_beams=0)


def test_the_most_probable_string_is_not_that_of_the_most_probable_token() -> None:
    """The most probable first token begins several strings, which share its probability."""
    logits = np.full(len(TABLE), -20.0, np.float32)
    for char, value in (("a", 1.1), ("b", 1.0), ("x", 0.0), ("y", 0.0), ("z", 0.0), ('"', 0.0)):
        logits[ord(char) + 1] = value
    model = ConstantModel(TABLE, logits)
    source = SCHEMA.quoting("ax ay az b")
    assert gw.generate(model, "w", source, verbatim_num_beams=1) == "ax"
    assert gw.generate(model, "w", source) == "b"
    sampled = gw.generate(model, "w", source, temperature=1.0, top_k=1)
    assert sampled == gw.generate(model, "w", source, bad_words=["~"]) == "ax"  # token by token
