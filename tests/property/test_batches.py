"""Batches, drafts, forks and cache settings give the same masks."""

from __future__ import annotations

import random

import numpy as np
import pytest

import guideway as gw
from guideway import _kernel
from guideway.constraints import of
from guideway.grammar.program import encode
from tests.helpers.byte_tokens import legal

from . import vocabularies

TEXTS = [
    b'{"name": "Ada", "tags": ["x", "yz"]}',
    b'"abc \\n \xc3\xa9\xe2\x82\xac def"',
    b"aaa bbb ccc ddd x",
    b"2026-11-21",
]
TOKENS = vocabularies.cut(random.Random(7), TEXTS, 60, alphabet=True)
SOURCES = [
    gw.JsonSchema({"properties": {"name": {"type": "string", "maxLength": 9}, "tags": {"items": {"type": "string"}}}}),
    gw.JsonSchema({"type": "object", "additionalProperties": {"maxLength": 3}}, profile="exact"),
    gw.JsonSchema({"type": "string", "minLength": 2, "maxLength": 40}, profile="exact"),
    gw.Regex(r"(\S+\s+){0,99}\S+"),
    gw.Regex(r".*x.{20}"),
    gw.Regex(r"[a-z ]{3,300}|\w{2,4}"),
    gw.Regex(r"[a-z ]{0,30}") & ~gw.Choice(["aaa", "ab", "abc def"]),
]


def automaton(source: object, **settings: object) -> gw.Automaton:
    """The source compiled on its own, with settings of the kernel."""
    table = vocabularies.table(list(TOKENS.texts), sorted(TOKENS.eos), [], **settings)
    return gw.Automaton.compile(table, encode(of(source).grammar()))


def rows(count: int) -> np.ndarray:
    return np.full((count, (len(TOKENS.texts) + 31) // 32), 0xFFFFFFFF, dtype=np.uint32)


def ids(row: np.ndarray) -> list[int]:
    return legal(row)


@pytest.mark.parametrize("source", SOURCES, ids=str)
def test_every_setting_gives_the_same_masks(source: object) -> None:
    settings = [
        {},
        {"memo_bytes": 0},
        {"memo_bytes": 20_000},
        {"tuning": vocabularies.PLAIN},
        {"tuning": vocabularies.PLAIN, "memo_bytes": 0},
    ]
    rng = random.Random(str(source))
    made = [automaton(source, **each) for each in settings]
    for _ in range(6):
        matchers = [each.matcher() for each in made]
        for _ in range(30):
            batch = rows(len(matchers))
            gw.matcher.fill_masks(matchers, batch)
            assert (batch == batch[0]).all()
            legal = ids(batch[0])
            if not legal or matchers[0].is_finished:
                break
            token = rng.choice(legal)
            alone = rows(len(matchers))
            gw.matcher.advance_and_fill(matchers, [token] * len(matchers), alone, threads=rng.choice((1, 2)))
            gw.matcher.fill_masks(matchers, batch)
            assert (batch == alone).all()


@pytest.mark.parametrize("source", SOURCES, ids=str)
def test_a_draft_is_what_its_tokens_give_one_by_one(source: object) -> None:
    rng = random.Random(str(source))
    matcher = automaton(source).matcher()
    for _ in range(12):
        tokens = [rng.randrange(len(TOKENS.texts)) for _ in range(12)]
        parents = [rng.randrange(-1, i) for i in range(12)]
        start = rows(1)[0]
        matcher.fill_mask(start)
        tokens = [rng.choice(ids(start)) if rng.random() < 0.8 else t for t in tokens]
        drafts = rows(12)
        matcher.fill_draft_masks(tokens, parents, drafts)
        for i, row in enumerate(drafts):
            path, at = [], i
            while at >= 0:
                path.append(tokens[at])
                at = parents[at]
            fork, expected = matcher.fork(), rows(1)[0]
            if matcher.validate(path[::-1]) == len(path):
                for token in path[::-1]:
                    fork.advance(token)
                fork.fill_mask(expected)
            else:
                expected.fill(0)
            assert (row == expected).all()
        legal = [t for t in ids(start) if t not in TOKENS.eos]
        if not legal:
            break
        matcher.advance(rng.choice(legal))


def test_a_draft_is_checked() -> None:
    matcher = automaton(SOURCES[0]).matcher()
    for tokens, parents, count in (([1], [0], 1), ([1, 1], [-1, 1], 2), ([1], [-2], 1), ([1], [], 1), ([1], [-1], 2)):
        with pytest.raises(ValueError, match="draft"):
            matcher.fill_draft_masks(tokens, parents, rows(count))
    with pytest.raises(gw.errors.InvalidTokenError):
        matcher.fill_draft_masks([10**6], [-1], rows(1))


def test_batch_advances_atomically() -> None:
    made = automaton(SOURCES[3])
    first, second = made.matcher(), made.matcher()
    letter = TOKENS.texts.index(b"a")
    with pytest.raises(gw.errors.RejectedTokenError, match="row 1"):
        gw.matcher.advance_and_fill([first, second], [letter, next(iter(TOKENS.eos))], rows(2))
    assert first.position == second.position == 0
    with pytest.raises(ValueError, match="twice"):
        gw.matcher.advance_and_fill([first, first], [letter, letter], rows(2))
    batch = rows(3)
    gw.matcher.advance_and_fill([first, None, second], [letter, -5, letter], batch, threads=4)
    assert first.position == second.position == 1
    assert len(ids(batch[1])) == len(TOKENS.texts)
    assert (batch[0] == batch[2]).all()


def test_long_histories_are_shared_and_given_back() -> None:
    letter = TOKENS.texts.index(b"a")
    matcher = automaton(gw.Regex("[a-z]*")).matcher()
    for _ in range(200_000):
        matcher.advance(letter)
    forks = [matcher.fork() for _ in range(1000)]
    for i, fork in enumerate(forks):
        fork.rollback(i * 200)
        assert fork.position == 200_000 - i * 200
        fork.advance(letter)
    matcher.rollback(200_000)
    assert matcher.position == 0
    del forks, fork, matcher  # freed link by link: no deep recursion


def test_a_character_begun_after_a_count() -> None:
    matcher = gw.compile(gw.Regex("[^é]{1,2}日{1,2}"), vocabularies.kernel(vocabularies.WIDE), cache=False).matcher()
    matcher.advance(3)
    row = np.zeros(1, dtype=np.uint32)
    matcher.fill_mask(row)
    assert 6 in ids(row)  # ends a character, is another, and begins a third that only the second part takes


@pytest.mark.parametrize(
    ("schema", "how", "text"),
    [
        ({"type": "array", "uniqueItems": True, "items": {"type": "number", "minimum": 12.75}}, "exact", "[14"),
        ({"type": "array", "uniqueItems": True, "items": {"type": "number", "minimum": 12.75}}, "generation", "[14"),
        ({"type": "object", "additionalProperties": {"const": 1}, "minProperties": 2}, "exact", '{"a":1'),
        ({"type": "object", "additionalProperties": {"const": 1}}, "generation", '{"a'),
    ],
)
def test_a_budget_counts_what_comes_behind_a_value_that_is_read(schema: dict, how: str, text: str) -> None:
    tokens = [bytes([byte]) for byte in range(256)] + [b"", b'": 1, ', b'":1,', b"4,", b", "]
    table = _kernel.KernelVocabulary(tokens, [256], [])
    source = gw.JsonSchema(schema, profile=how)  # type: ignore[arg-type]  # one of the two
    matcher, row = gw.Automaton.compile(table, encode(source.grammar())).matcher(), np.zeros(9, np.uint32)
    for byte in text.encode():
        matcher.advance(byte)
    for left in range(1, 16):
        assert matcher.fill_mask_within(row, left) == (matcher.min_tokens_to_complete() <= left) == bool(ids(row))
        for token in ids(row):
            after = matcher.fork()
            after.advance(token)
            assert after.min_tokens_to_complete() <= left - 1, (left, tokens[token])
