"""Special tokens by name: exactly one token id in every kind of constraint, or text if the vocabulary has none."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import guideway as gw
from guideway.generation import complete
from guideway.grammar import nodes as ir
from guideway.grammar.cfg.expressions import Expressions
from guideway.grammar.regular import (
    Concat,
    Intersection,
    Literals,
    Regular,
    Repeat,
    Special,
    Union,
    distinct,
    parts_of,
)
from guideway.testing import ConstantModel
from tests.oracle.grammars import GrammarWorld
from tests.oracle.matcher import SlowMatcher, Tokens
from tests.property import vocabularies

NAMES = ("<a>", "<|b|>", "[C]", "</s>", "<a>")  # two tokens have one name; the fourth ends a text
PIECES = (*"ab<>|[]/sC1", "ab", "<|", "<a>", "[C", "bb", "<|b|>", "a1", "\xe9", "s>")


def vocabulary(**limits: int) -> gw.Vocabulary:
    """Pieces as tokens, then the special ones, then single bytes: ASCII and 0xff."""
    tokens = [*(one.encode() for one in (*PIECES, *NAMES)), *(bytes([b]) for b in (*range(128), 0xFF))]
    first = len(PIECES)
    made = gw.Vocabulary(tokens, eos_ids=[first + 3], special_ids=range(first, first + len(NAMES)))
    return vocabularies.limited(made, **limits)


def mask(matcher: gw.Matcher, size: int) -> set[int]:
    row = np.zeros((size + 31) // 32, dtype=np.uint32)
    matcher.fill_mask(row)
    return {i for i in range(size) if row[i >> 5] >> (i & 31) & 1}


def private(name: str | int) -> str:
    """Returns the character that represents a special token in the oracle's texts."""
    return chr(0xE000 + (NAMES.index(name) if isinstance(name, str) else name - len(PIECES)))


def in_private(part: Regular) -> Regular:
    match part:
        case Special(name):
            return Literals((private(name),))
        case Concat(parts) | Union(parts) | Intersection(parts):
            return type(part)(tuple(map(in_private, parts)))
        case Repeat(inner, least, most):
            return Repeat(in_private(inner), least, most)
    return part


def oracle(source: gw.Regex | Any, table: gw.Vocabulary) -> SlowMatcher:
    """Returns the slow matcher, over texts in which a private character represents each special token."""
    grammar = ir.Grammar()
    for node in source.grammar().nodes:
        grammar.add(ir.Leaf(in_private(node.text)) if isinstance(node, ir.Leaf) else node)
    grammar.root = source.grammar().root
    texts = list(table.token_bytes)
    for i, name in enumerate(NAMES, len(PIECES)):
        texts[i] = private(name).encode()
    eos = len(PIECES) + 3
    return SlowMatcher(GrammarWorld(grammar).oracle(), Tokens((*texts[:eos], b"", *texts[eos + 1 :]), frozenset({eos})))


GRAMMARS: dict[str, Callable[[], Any]] = {
    "between texts": lambda: gw.Regex("[ab]*") + gw.constraints.SpecialToken("<a>") + gw.Regex("[<a>]+"),
    "beside its text": lambda: (gw.constraints.SpecialToken("<a>") | "<a>") + gw.Regex("[1s]?"),
    "repeated": lambda: (gw.Regex("a{1,3}") + gw.constraints.SpecialToken("[C]")).repeat(1, 3) + "b",
    "lark": lambda: gw.Lark('start: "[" start "]" | <a> WORD <|b|>\nWORD: /[ab<]+/\n%ignore "s"'),
    "gbnf": lambda: gw.Gbnf('root ::= (<a> item)+\nitem ::= "a" | <|b|> item <[22]>'),
    "tags": lambda: gw.Tags([gw.Tag("<a>", gw.Regex("[ab]+"), "<|b|>")], special=["<a>", "<|b|>"], separator="1"),
}


@pytest.mark.parametrize("setting", range(len(vocabularies.SETTINGS) + 1))
@pytest.mark.parametrize("name", GRAMMARS)
def test_masks_are_the_oracles(name: str, setting: int) -> None:
    source = GRAMMARS[name]()
    table = vocabulary(**({} if setting == 0 else vocabularies.SETTINGS[setting - 1]))
    rng = random.Random(name)
    automaton, slow = gw.compile(source, table, cache=False), oracle(source, table)
    for _ in range(6):
        fast, walk = automaton.matcher(), slow.fork()
        for _ in range(12):
            legal = mask(fast, len(table))
            assert legal == walk.mask()
            for token in rng.sample(range(len(table)), 8):
                assert fast.validate([token]) == (token in legal)
            if not legal or fast.is_finished:
                break
            token = rng.choice(sorted(legal))
            fast.advance(token)
            assert walk.advance(token)


def ids(table: gw.Vocabulary, *texts: str) -> list[int]:
    """Special tokens by name, and single bytes."""
    named, first = table.special_tokens, len(PIECES) + len(NAMES)
    return [one for text in texts for one in ([named[text]] if text in named else [first + b for b in text.encode()])]


def takes(source: Any, table: gw.Vocabulary, *texts: str) -> bool:
    wanted = [*ids(table, *texts), table.eos_ids[0]]
    return gw.compile(source, table).matcher().validate(wanted) == len(wanted)


def test_special_token_name_does_not_match_its_text() -> None:
    table = vocabulary()
    source = gw.Regex("a") + gw.constraints.SpecialToken("<|b|>")
    assert takes(source, table, "a", "<|b|>")
    assert not takes(source, table, "a", *"<|b|>")
    assert source.parse("a<|b|>") == "a<|b|>"


def test_unknown_special_token_name_is_text() -> None:
    table = vocabulary()
    source = gw.Regex("a") + gw.constraints.SpecialToken("<c>")
    assert takes(source, table, "a", *"<c>")


def test_free_text_and_complements_hold_no_special_token() -> None:
    table = vocabulary()
    for source in (gw.Regex("(?s:.*)"), ~gw.Regex("a"), ~gw.constraints.SpecialToken("[C]")):
        assert not mask(gw.compile(source, table).matcher(), len(table)) & set(table.special_ids) - set(table.eos_ids)


@pytest.mark.parametrize(
    "make",
    [
        lambda: gw.Gbnf('root ::= item root | "1"\nitem ::= <a>? [ab]*'),  # left recursion after an empty rule
        lambda: gw.Gbnf('root ::= item root | "1"\nitem ::= (<a> | "b"){0,2} [ab]*'),
        lambda: gw.Gbnf('root ::= item root | "1"\nitem ::= (<a>? [ab]?){1,2}'),
        lambda: gw.Ebnf('root = {item}-, "1"; ', parts={"item": gw.constraints.SpecialToken("<a>") | gw.Regex("[ab]")}),
        lambda: (
            (gw.constraints.SpecialToken("<a>") | gw.Regex("[ab1]")).repeat(1)
            & gw.Lark('start: one* "1"', parts={"one": gw.constraints.SpecialToken("<a>") | gw.Regex("[ab]")})
        ),
    ],
)
def test_special_tokens_remain_where_the_empty_text_is_removed(make: Callable[[], Any]) -> None:
    table, source = vocabulary(), make()
    for texts in (("<a>", "1"), ("a", "b", "1"), ("<a>", "a", "<a>", "b", "1"), ("b", "<a>", "<a>", "1")):
        assert takes(source, table, *texts), texts
    assert not takes(source, table, "<a>")
    assert not takes(source, table, *"<a>1")


@pytest.mark.parametrize("exception", ['""', '("" | "")', "empty"])
def test_special_tokens_remain_without_the_empty_text(exception: str) -> None:
    table, item = vocabulary(), gw.constraints.SpecialToken("<a>") | gw.Regex("[ab]?")
    parts = {"item": item} | ({"empty": gw.Choice([""])} if exception == "empty" else {})
    source = gw.Ebnf(f"root ::= item - {exception}", parts=parts)
    assert takes(source, table, "<a>")
    assert takes(source, table, "a")
    assert not takes(source, table)


def test_removal_of_the_empty_text_is_linear() -> None:
    parts = (Special("<a>"), *(Repeat(Literals((chr(0x4E00 + n),)), 0, 1) for n in range(2_000)))
    made = Expressions().some(Concat((Repeat(parts[0], 0, 1), *parts[1:])))
    assert sum(1 + len(parts_of(one)) for one in distinct(made)) < 20 * len(parts)


def test_a_complement_excludes_the_text_of_the_name() -> None:
    table = vocabulary()
    for source in (
        ~gw.constraints.SpecialToken("<a>"),
        ~(gw.constraints.SpecialToken("<a>") | "b"),
        ~gw.Gbnf('root ::= <a> | "b"') & gw.Regex("[ab<>]*"),
    ):
        assert not takes(source, table, *"<a>")
        assert takes(source, table, *"<a>a")
        with pytest.raises(gw.errors.InvalidTextError):
            source.parse("<a>")
        assert source.parse("<a>a") == "<a>a"
    twice = ~~gw.constraints.SpecialToken("<a>")
    assert takes(twice, table, *"<a>")
    assert not takes(twice, table, "<a>")


def test_a_token_given_by_its_id_cannot_be_excluded() -> None:
    ids = gw.Gbnf('root ::= "b" | <[3]>')
    for excluding in (lambda: ~ids, lambda: ~(ids + "a"), lambda: ~(ids & "b"), lambda: gw.Regex("a") & ~ids):
        with pytest.raises(gw.errors.UnsupportedError, match="token with the id 3 cannot be excluded"):
            excluding()
    with pytest.raises(gw.errors.UnsupportedError, match="token with the id 3 cannot be excluded") as refused:
        gw.Ebnf("root ::= [a-z] - ids", parts={"ids": ids})
    assert refused.value.place == "line 1, column 16:\nroot ::= [a-z] - ids\n               ^"


def test_tokens_by_number() -> None:
    table = vocabulary()
    number = table.special_tokens["[C]"]
    assert takes(gw.Lark(f'start: "a" <[{number}]>'), table, "a", "[C]")
    with pytest.raises(gw.errors.InvalidConstraintError, match="token 0 is no special token"):
        gw.compile(gw.Gbnf("root ::= <[0]>"), table)


@pytest.mark.parametrize(
    ("output", "value"),
    [
        (gw.Gbnf('root ::= "x" <[0,2]> last\nlast ::= "a"'), None),
        (gw.Lark('start: "x" <[0-2]> last\nlast: "a"\n%ignore "_"'), None),
        (gw.Gbnf('root ::= "x" <[0]>') + gw.Gbnf('last ::= "a"', start="last"), None),
        (gw.Gbnf('root ::= "x" <[0]> "b"') | gw.Gbnf('root ::= "x" <[2]> last\nlast ::= "a"'), None),
        (gw.Tags([gw.Tag("(", gw.Gbnf('root ::= <[2]> last\nlast ::= "a"'), ")")], separator=""), "last"),
    ],
)
def test_texts_with_tokens_by_number_are_read_after_a_generation(output: Any, value: str | None) -> None:
    with gw.load("tiny") as model:
        for seed in range(3):
            found = gw.complete(model, "x", output, temperature=3, seed=seed, max_tokens=40)
            given = [one for one in found.tokens[:-1] if one in (0, 1, 2)]
            special = [model.vocabulary.bytes_of([one], special=True).decode() for one in given]
            if value is None:
                assert found.value == found.text
                assert special
                assert found.text.replace("_", "").startswith("x" + special[0])
            else:
                assert [one.value for one in found.value] == [f"{one}a" for one in special]
            if found.text.endswith(">a"):
                assert found.captures.last("last").start == len(found.text) - 1
    with pytest.raises(gw.errors.InvalidConstraintError, match=r"the name of the token with the id [02] is not known"):
        output.parse("(<pad>a)" if value else "x<pad>a")


def test_text_without_a_token() -> None:
    table = vocabulary()
    source = gw.Gbnf('root ::= <a> !<|b|>* <|b|> "1"')
    assert takes(source, table, "<a>", *"a|b", "<|b|>", "1")
    assert not takes(source, table, "<a>", *"<|b|>", "<|b|>", "1")
    assert not takes(source, table, "<a>", "[C]", "<|b|>", "1")
    assert source.parse("<a>x<|b|>1")


def test_an_end_token_that_the_grammar_asks_for() -> None:
    table = vocabulary()
    matcher = gw.compile(gw.Regex("a") + gw.constraints.SpecialToken("</s>"), table).matcher()
    end = table.eos_ids[0]
    matcher.advance(ids(table, "a")[0])
    assert mask(matcher, len(table)) == {end}
    matcher.advance(end)
    assert matcher.is_accepting
    assert not matcher.is_finished
    matcher.advance(end)
    assert matcher.is_finished
    matcher.rollback(2)
    assert mask(matcher, len(table)) == {end}
    row = np.zeros((len(table) + 31) // 32, dtype=np.uint32)
    assert matcher.fill_mask_within(row, 2)
    assert not matcher.fill_mask_within(row, 1)


def test_special_token_names_in_forced_and_completed_text() -> None:
    table = vocabulary()
    matcher = gw.compile(gw.Regex("a1") + gw.constraints.SpecialToken("<|b|>"), table).matcher()
    assert matcher.forced_bytes() == b"a1<|b|>"
    assert matcher.completion() == b"a1<|b|>"
    assert matcher.forced_tokens()[-1] == table.special_tokens["<|b|>"]
    assert matcher.min_tokens_to_complete() == 3


def test_bytes_that_no_text_has_are_never_legal() -> None:
    table = vocabulary()
    matcher = gw.compile(gw.constraints.SpecialToken("<a>"), table).matcher()
    first = len(PIECES)
    assert mask(matcher, len(table)) == {first, first + 4}
    assert matcher.validate([len(table) - 1]) == 0


def test_vocabularies_with_names() -> None:
    table = vocabulary()
    assert table.special_tokens == {
        "<a>": len(PIECES) + 4,
        **{one: len(PIECES) + 1 + i for i, one in enumerate(NAMES[1:4])},
    }
    assert table.bytes_of(table.special_ids) == b""
    assert table.bytes_of(table.special_ids[:2], special=True) == b"<a><|b|>"
    assert set(table.special_ids) <= set(table.unusable())


def test_markers_that_cannot_be() -> None:
    with pytest.raises(gw.errors.InvalidConstraintError, match="suffix that is also a prefix"):
        gw.Tags([gw.Tag("aa", gw.Regex("b"), "c")], special=["aa"])
    with pytest.raises(gw.errors.InvalidConstraintError, match="inside the name"):
        gw.Tags([gw.Tag("<a>", gw.Regex("b"), "c")], special=["<a>"], triggers=["<"])
    with pytest.raises(gw.errors.InvalidConstraintError, match="must not be empty"):
        gw.constraints.SpecialToken("")
    with pytest.raises(gw.errors.InvalidConstraintError, match="special token '<a>'"):
        gw.Lark("start: A\nA: <a>")


def test_generated_text_has_the_names() -> None:
    table = vocabulary()
    model = ConstantModel(table)
    source = (
        gw.Regex("[ab]{2}") + gw.constraints.SpecialToken("<a>") + gw.Regex("1") + gw.constraints.SpecialToken("</s>")
    )
    made = complete(model, "ab", source, seed=1)
    assert made.text[2:] == "<a>1</s>"
    assert made.value == made.text == "".join(gw.stream(model, "ab", source, seed=1))
    assert made.finish_reason == "stop"
    assert made.tokens.count(table.eos_ids[0]) == 1
    assert made.state.text(model) == made.text.removesuffix("</s>")


def test_forced_bytes_end_before_one_of_several_tokens() -> None:
    table = vocabulary()
    token = gw.constraints.SpecialToken
    matcher = gw.compile("ab" + (token("<a>") | token("<|b|>")) + "1", table).matcher()
    assert matcher.forced_bytes() == b"ab"
    for one in ids(table, "a", "b"):
        matcher.advance(one)
    assert matcher.forced_bytes() == b""
    assert matcher.forced_tokens() == []
    assert gw.compile("a" + token("<|b|>") + "1", table).matcher().forced_bytes() == b"a<|b|>1"
