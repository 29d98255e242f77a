"""Walks over real vocabularies: every mask is compared with the oracle's."""

from __future__ import annotations

import functools
import random
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import guideway as gw
from tests.oracle import regular
from tests.oracle.machine import State
from tests.oracle.wide import WideOracle, WideTokens

from . import gallery, patterns, schemas
from .aimed import Aim, aims
from .checks import Mismatch
from .worlds import PROFILES

FILES = {"tekken": "tekken_240718.json", "sentencepiece": "tokenizer.model.v1"}


@functools.cache
def tokenizer(name: str) -> gw.Tokenizer:
    """Tekken (131,072 tokens), or the sentencepiece model of 32,000; skips where mistral-common is missing."""
    pytest.importorskip("mistral_common", reason="needs mistral-common, whose package holds real vocabularies")
    home = Path(str(import_module("mistral_common").__file__)).parent / "data" / FILES[name]
    if name == "sentencepiece":
        processor: Any = import_module("sentencepiece").SentencePieceProcessor(model_file=str(home))
        return gw.Tokenizer.of(processor)
    tekken: Any = import_module("mistral_common.tokens.tokenizers.tekken").Tekkenizer
    return gw.Tokenizer.of(tekken.from_file(str(home)))


def vocabulary(name: str) -> gw.Vocabulary:
    """The tokens of a tokenizer, with a new store: no test uses masks that another test has cached."""
    found = tokenizer(name).vocabulary
    return gw.Vocabulary(found.token_bytes, found.eos_ids, found.special_ids)


def constraints(rng: random.Random) -> Iterator[Aim]:
    """Without an end: schemas in every profile, those of the gallery now and then, and patterns."""
    names = list(gallery.GALLERY)
    while True:
        regular.forget()
        ours, theirs = rng.choice(PROFILES)
        kind = rng.random()
        if kind < 0.2:
            made = patterns.drawn(rng, rng.randrange(3, 9), rng.choice((patterns.LETTERS, patterns.WIDE)))
            yield Aim(made.text, gw.Regex(made.text), made.oracle())
        elif kind < 0.3:
            name = rng.choice(names)
            source = gw.JsonSchema(gallery.GALLERY[name], **theirs)
            yield Aim(f"{name} {theirs}", source, gallery.case(name).oracle(ours))
        else:
            case, _ = schemas.draw(rng.randrange(10**9), 3)
            if not case.world(ours).satisfiable("#"):  # that these are refused is what the tiny worlds see
                continue
            try:
                source = gw.JsonSchema(case.schema, **theirs)
            except gw.errors.UnsupportedError:
                continue
            yield Aim(f"{case.schema} {theirs}", source, case.oracle(ours))


@dataclass
class Walk:
    """A matcher and the oracle's state, over a vocabulary."""

    name: str
    matcher: Any
    wide: WideOracle
    rng: random.Random
    pairs: int = 0

    def here(self, state: State | None) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Compare the mask; the legal ids."""
        size = self.wide.tokens.size
        row = np.full((size + 31) // 32, 0xFFFFFFFF, np.uint32)
        self.matcher.fill_mask(row)
        got = np.unpackbits(row.view(np.uint8), bitorder="little").astype(bool)
        expected = self.wide.mask(state)
        if got[size:].any() or (got[:size] != expected).any():
            wrong = np.flatnonzero(got[:size] != expected)[:10].tolist()
            some = [(n, self.wide.tokens.texts[n], "set" if got[n] else "not set") for n in wrong]
            raise Mismatch(f"{self.name}, after {self.matcher.position} tokens: {some}")
        self.pairs += 1
        return np.flatnonzero(expected)

    def begin(self, tokens: list[int]) -> list[State | None]:
        """Advances until a token is refused; returns the path."""
        path: list[State | None] = [self.wide.oracle.start]
        for token in tokens:
            here = path[-1]
            after = None if here is None else self.wide.oracle.read(here, self.wide.tokens.texts[token])
            if after is None:
                break
            self.matcher.advance(token)
            path.append(after)
        return path

    def run(self, length: int, path: list[State | None] | None = None) -> None:
        """Advances by random tokens, spread over their first bytes; then rolls back a random number and continues."""
        texts, path = self.wide.tokens.texts, path or [self.wide.oracle.start]
        for _ in range(2):
            for _ in range(length):
                legal = self.here(path[-1])
                if path[-1] is None or not len(legal):
                    break
                some = self.rng.choices(legal.tolist(), k=12)
                firsts = {texts[n][:1]: n for n in some}
                token = firsts[self.rng.choice(sorted(firsts))]
                self.matcher.advance(token)
                ends = token in self.wide.tokens.eos
                path.append(None if ends else self.wide.oracle.read(path[-1], texts[token]))
            back = self.rng.randrange(len(path))
            self.matcher.rollback(back)
            del path[len(path) - back :]


class Cutter:
    """Texts cut at random into tokens of a vocabulary."""

    def __init__(self, name: str, rng: random.Random) -> None:
        self.vocabulary, self.rng = vocabulary(name), rng
        silent = self.vocabulary.unusable()
        self.table: dict[bytes, list[int]] = {}
        for token, text in enumerate(self.vocabulary.token_bytes):
            if token not in silent:
                self.table.setdefault(text, []).append(token)
        self.longest = max(map(len, self.table))

    def cut(self, text: bytes) -> list[int] | None:
        """Any tokens that spell the text, and the end; None where there are no tokens for its bytes."""
        ids, at = [], 0
        while at < len(text):
            ends = [e for e in range(at + 1, min(len(text), at + self.longest) + 1) if text[at:e] in self.table]
            if not ends:
                return None
            end = self.rng.choice(ends)
            ids.append(self.rng.choice(self.table[text[at:end]]))
            at = end
        return [*ids, self.vocabulary.eos_ids[0]]

    def taken(self, source: Any, texts: list[str], each: int) -> int:
        """Returns the number of spellings of the texts that were tried; every spelling must be accepted."""
        matcher, done = gw.compile(source, self.vocabulary, cache=False).matcher(), 0
        for text in texts:
            for _ in range(each):
                ids = self.cut(text.encode())
                if ids is not None:
                    assert matcher.validate(ids) == len(ids), (source, text, ids)
                    done += 1
        return done


def compared(name: str, pairs: int, seed: int, *, aimed: bool = False) -> int:
    """Compares at least `pairs` (state, mask) pairs over a vocabulary; returns the number of their constraints."""
    rng = random.Random(seed)
    cutter = Cutter(name, rng)
    vocabulary = cutter.vocabulary
    tokens = WideTokens(vocabulary.token_bytes, vocabulary.eos_ids, vocabulary.special_ids)
    done = worlds = 0
    for aim in aims(rng) if aimed else constraints(rng):
        try:
            automaton = gw.compile(aim.source, vocabulary, cache=False)
        except gw.errors.UnsupportedError:
            continue
        wide = WideOracle(aim.oracle, tokens)
        for text in rng.sample(aim.beginnings, min(3, len(aim.beginnings))):
            walk = Walk(f"{aim.name} from {text!r}", automaton.matcher(), wide, rng)
            walk.run(5 if aimed else 12, walk.begin((cutter.cut(text) or [])[:-1]))
            done += walk.pairs
        worlds += 1
        if done >= pairs:
            return worlds
    raise AssertionError("constraints come without an end")
