"""Masks over a vocabulary of thousands of tokens along random walks, compared with the oracle."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tokenizers

import guideway as gw
from tests.oracle import regular
from tests.oracle.machine import Oracle
from tests.oracle.matcher import Tokens

from . import gallery, schemas
from .checks import Lockstep, Tally
from .schemas import Case
from .worlds import PROFILES


@pytest.fixture(scope="module")
def tokenizer() -> gw.Tokenizer:
    """The bundled one."""
    home = Path(gw.__file__).parent / "tiny" / "tokenizer.json"
    if home.exists():
        return gw.Tokenizer.of(home.parent)
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    rng = random.Random(1)
    texts = [text for seed in range(500) for text in schemas.draw(seed, 2)[1]] + [str(rng.random()) for _ in range(300)]
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=2000, special_tokens=["</s>"], initial_alphabet=alphabet)
    made.train_from_iterator(texts, trainer)
    return gw.Tokenizer.of(made, eos_ids=[0])


def tokens_of(vocabulary: gw.Vocabulary) -> Tokens:
    return Tokens(vocabulary.token_bytes, frozenset(vocabulary.eos_ids), frozenset(vocabulary.special_ids))


def walks(pair: Lockstep, rng: random.Random, count: int, length: int) -> None:
    """Random walks that spread over first bytes, so that they do not stay inside strings."""
    texts = pair.tokens.texts
    for _ in range(count):
        for _ in range(length):
            if pair.slow.state is None:
                break
            legal = sorted(pair.mask())
            first = rng.choice(sorted({texts[t][:1] for t in legal}))
            pair.advance(rng.choice([t for t in legal if texts[t][:1] == first]))
        pair.here()
        pair.rollback(rng.randrange(len(pair.taken) + 1))
        pair.mask()
        pair.rollback(len(pair.taken))


def constraints() -> Iterator[tuple[str, Any, Oracle]]:
    for name in gallery.GALLERY:
        for ours, theirs in PROFILES[:2]:
            yield f"{name} {theirs}", gw.JsonSchema(gallery.GALLERY[name], **theirs), gallery.case(name).oracle(ours)
            regular.forget()
    for made in gallery.PATTERNS:
        yield made.text, gw.Regex(made.text), made.oracle()
        regular.forget()


def sampled(tokenizer: gw.Tokenizer, seed: int, count: int, length: int) -> Tally:
    tally, rng, tokens = Tally(), random.Random(seed), tokens_of(tokenizer.vocabulary)
    for name, source, oracle in constraints():
        matcher = gw.compile(source, tokenizer.vocabulary, cache=False).matcher()
        pair = Lockstep(name, matcher, oracle, tokens, rng, tally, 0)
        walks(pair, rng, count, length)
        tally.worlds += 1
    return tally


def test_masks_along_random_walks(tokenizer: gw.Tokenizer) -> None:
    tally = sampled(tokenizer, 1, 1, 10)
    assert tally.states > 280, tally


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_masks_along_many_random_walks(tokenizer: gw.Tokenizer, seed: int) -> None:
    tally = sampled(tokenizer, 10 + seed, 4, 40)
    print(tally)
    assert tally.states > 2000


def segments(rng: random.Random, text: bytes, table: dict[bytes, list[int]], longest: int) -> list[int]:
    """The text cut at random into tokens; short and long ones alike."""
    ids, at = [], 0
    while at < len(text):
        ends = [end for end in range(at + 1, min(len(text), at + longest) + 1) if text[at:end] in table]
        end = rng.choice(ends)
        ids.append(rng.choice(table[text[at:end]]))
        at = end
    return ids


def tokenizations(tokenizer: gw.Tokenizer, seeds: range, each: int) -> int:
    """A valid text is accepted with any division into tokens."""
    vocabulary, taken = tokenizer.vocabulary, 0
    silent = vocabulary.unusable()
    table: dict[bytes, list[int]] = {}
    for token, text in enumerate(vocabulary.token_bytes):
        if token not in silent:
            table.setdefault(text, []).append(token)
    longest = max(map(len, table))
    for seed in seeds:
        rng = random.Random(seed)
        case, texts = schemas.draw(seed, 2)
        oracle = case.oracle()
        valid = [text for text in texts if oracle.matches(text)]
        if valid:
            try:
                matcher = gw.compile(gw.JsonSchema(case.schema), vocabulary, cache=False).matcher()
            except gw.errors.UnsupportedError:
                continue
            for text in valid:
                for _ in range(each):
                    ids = [*segments(rng, text.encode(), table, longest), vocabulary.eos_ids[0]]
                    assert matcher.validate(ids) == len(ids), (case.schema, text, ids)
                    taken += 1
        regular.forget()
    return taken


def test_random_tokenizations_of_valid_texts(tokenizer: gw.Tokenizer) -> None:
    assert tokenizations(tokenizer, range(300), 5) > 2000


@pytest.mark.slow
def test_many_random_tokenizations_of_valid_texts(tokenizer: gw.Tokenizer) -> None:
    taken = tokenizations(tokenizer, range(1000, 5000), 10)
    print(taken)
    assert taken > 50_000


def test_tokenizer_encodings_are_legal(tokenizer: gw.Tokenizer) -> None:
    for seed in range(100):
        case: Case = schemas.draw(seed, 2)[0]
        oracle = case.oracle()
        for text in schemas.draw(seed, 2)[1]:
            if oracle.matches(text):
                try:
                    matcher = gw.compile(gw.JsonSchema(case.schema), tokenizer.vocabulary, cache=False).matcher()
                except gw.errors.UnsupportedError:
                    continue
                ids = tokenizer.encode(text)
                assert matcher.validate(ids) == len(ids), (json.dumps(case.schema), text)
        regular.forget()
