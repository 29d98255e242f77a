"""Exports of constraints: the same texts in GBNF, Lark and as regular expressions."""

from __future__ import annotations

import itertools
import json
import random
import re
import time
from collections import Counter
from typing import Any

import pytest

from guideway import constraints as c
from guideway.constraints import Constraint, exports
from guideway.errors import LimitExceededError, UnsatisfiableError, UnsupportedError
from guideway.grammar.nodes import Object
from guideway.grammar.recognizer import accepts, byte_automaton
from guideway.grammar.rules_text import rules_of
from tests.helpers.byte_tokenizer import ByteTokenizer
from tests.helpers.counts import counts

ITEM = {"type": "array", "items": {"$ref": "#"}, "minItems": 1, "maxItems": 3}
NESTED = {
    "type": "object",
    "properties": {"a": {"type": "integer", "minimum": 3, "maximum": 20}, "b": {"enum": ["x", 'q"\n', 1]}, "c": ITEM},
    "required": ["a"],
    "minProperties": 2,
}
REGULAR: list[Constraint[Any]] = [
    c.Regex("a+b|é[^x]{1,3}"),
    c.Regex(r"(?=.*a)[ab/\-\]]{2,4}"),
    ~c.Regex("ab*"),
    c.Regex("[ab]*a") & c.Regex(".{2,3}"),
    c.Choice(["a", "ab", "b/c", ""]),
    c.Substring("abab", most=3),
    c.Regex("a") | c.Regex("b").repeat(0, 2, separator=","),
    c.JsonSchema({"type": "string", "maxLength": 2}, profile="exact"),
    c.JsonSchema({"type": "string", "not": {"pattern": "^a"}, "maxLength": 3}),
    c.JsonSchema({"type": "array", "items": {"enum": [1, "a"]}, "maxItems": 2}),
    c.JsonSchema({"properties": {"a": {"const": 1}, "b": {"const": 2}}, "type": "object", "required": ["b"]}),
    c.Format("date"),
]
RECURSIVE: list[Constraint[Any]] = [
    c.JsonSchema(NESTED),
    c.JsonSchema(NESTED, key_order="any", whitespace="any"),
    c.JsonSchema({"type": "array", "items": {"type": "boolean"}, "contains": {"const": True}, "maxContains": 2}),
    c.JsonSchema({"type": "array", "prefixItems": [{"const": 1}, {"const": 2}], "items": {"const": 3}, "minItems": 1}),
    c.Gbnf('root ::= "(" root ")" root | ""'),
    c.Lark('start: "a" start "b" | "c"'),
]
PIECES = [
    "a",
    "b",
    "ab",
    "c",
    "(",
    ")",
    '"',
    "\\",
    "\\u0061",
    "{",
    "}",
    "[",
    "]",
    ", ",
    ": ",
    "1",
    "2",
    "12",
    "é",
    "-",
    "/",
]
PIECES += ['{"a": 3', '"b": 1', '"b": "x"', '"a": 1', "true", "false", ",", " ", "3", '"c": [', "2024", "-01"]


def texts(one: Constraint[Any], count: int) -> list[str]:
    """Random texts, and texts of the constraint with and without a change."""
    draw = random.Random(7)
    found = ["".join(draw.choice(PIECES) for _ in range(draw.randrange(5))) for _ in range(count)]
    automaton = byte_automaton(one.grammar())
    for _ in range(count // 4):
        matcher, text = automaton.matcher(), b""
        for _ in range(60):
            allowed = [byte for byte in range(257) if matcher.validate([byte])]
            if (256 in allowed and draw.random() < 0.3) or not allowed:
                break
            plain = [byte for byte in allowed if byte < 128] or [byte for byte in allowed if byte != 256]
            if not plain:
                break
            byte = draw.choice(plain)
            matcher.advance(byte)
            text += bytes([byte])
        found.append(text.decode("utf-8", "ignore"))
        at = draw.randrange(len(text) + 1)
        found.append((text[:at] + draw.choice(PIECES).encode() + text[at:]).decode("utf-8", "ignore"))
    return found


@pytest.mark.parametrize("one", REGULAR + RECURSIVE, ids=lambda one: repr(one)[:50])
def test_gbnf_has_the_same_texts(one: Constraint[Any]) -> None:
    own, other = byte_automaton(one.grammar()), byte_automaton(c.Gbnf(one.to_gbnf(duplicate_keys=True)).grammar())
    verdicts = set()
    for text in texts(one, 400):
        assert accepts(own, text) == accepts(other, text), text
        verdicts.add(accepts(own, text))
    assert verdicts == {True, False}


@pytest.mark.parametrize("one", REGULAR, ids=lambda one: repr(one)[:50])
def test_regex_has_the_same_texts(one: Constraint[Any]) -> None:
    automaton = byte_automaton(one.grammar())
    python = re.compile(one.to_regex("python"))
    ecma = byte_automaton(c.Regex(one.to_regex("ecma"), dialect="ecma").grammar())
    for text in texts(one, 400):
        assert accepts(automaton, text) == bool(python.fullmatch(text)) == accepts(ecma, text), text


@pytest.mark.parametrize("one", REGULAR + RECURSIVE, ids=lambda one: repr(one)[:50])
def test_lark_has_the_same_texts(one: Constraint[Any]) -> None:
    llguidance = pytest.importorskip("llguidance", reason="the notation's own parser judges")
    tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(ByteTokenizer()))
    matcher = llguidance.LLMatcher(tokenizer, llguidance.grammar_from("lark", one.to_lark()))
    assert not matcher.get_error(), matcher.get_error()
    automaton = byte_automaton(one.grammar())
    for text in texts(one, 60):
        data = list(text.encode())
        fits = matcher.deep_copy()
        taken = fits.try_consume_tokens(data) == len(data) and fits.is_accepting()
        assert accepts(automaton, text) == taken, text


@pytest.mark.parametrize("one", REGULAR + RECURSIVE, ids=lambda one: repr(one)[:50])
def test_xgrammar_reads_the_same_texts(one: Constraint[Any]) -> None:
    xgrammar = pytest.importorskip("xgrammar", reason="the library of vLLM and SGLang judges")
    words = [*(bytes([byte]) for byte in range(256)), b"</s>"]
    info = xgrammar.TokenizerInfo(words, xgrammar.VocabType.RAW, vocab_size=257, stop_token_ids=[256])
    compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
    notations = [xgrammar.Grammar.from_ebnf(one.to_gbnf(duplicate_keys=True))]
    if one in REGULAR:
        notations += [xgrammar.Grammar.from_regex(one.to_regex(dialect)) for dialect in ("rust", "python")]
    automaton = byte_automaton(one.grammar())
    for notation in notations:
        compiled = compiler.compile_grammar(notation)
        for text in texts(one, 60):
            matcher = xgrammar.GrammarMatcher(compiled)
            fits = all(map(matcher.accept_token, text.encode())) and matcher.accept_token(256)
            assert accepts(automaton, text) == fits, text


ESCAPED: list[Constraint[Any]] = [
    c.Choice(["a\x01b", 'q"\\n\n', "é😀\u2028", "\x7f0", "\u200b\ufeff"]),
    c.Regex(r"[-^\]\\/\[\"#]{1,2}"),
    c.Regex(r"[-0-9A-F]+"),
    c.Regex(r"[\x00-\x1f0-9]|[^a]b"),
    c.Regex("[à-ÿĀ-࿿က-\ufffd]|[\U00010000-\U0010ffff]"),
]
CHARACTERS = [*'ab09AFG-^]\\/["#éÿĀကbé😀', "\x00", "\x01", "\n", "\x7f", "\x80", "\u0fff", "\u2028", "\ufeff", "\uffff"]


@pytest.mark.parametrize("one", REGULAR + RECURSIVE + ESCAPED, ids=lambda one: repr(one)[:50])
def test_the_converter_of_llguidance_reads_the_same_texts(one: Constraint[Any]) -> None:
    """vLLM gives grammars in GBNF to this converter, if its backend is "guidance"."""
    llguidance = pytest.importorskip("llguidance", reason="the library of vLLM judges")
    tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(ByteTokenizer()))
    text = one.to_gbnf(duplicate_keys=True, single_characters=True)
    matcher = llguidance.LLMatcher(tokenizer, llguidance.grammar_from("gbnf", text))
    assert not matcher.get_error(), matcher.get_error()
    automaton = byte_automaton(one.grammar())
    for text in texts(one, 60) + special_texts(one):
        data = list(text.encode())
        fits = matcher.deep_copy()
        taken = fits.try_consume_tokens(data) == len(data) and fits.is_accepting()
        assert accepts(automaton, text) == taken, text


def special_texts(one: Constraint[Any]) -> list[str]:
    """Return texts of characters that need an escape in some notation."""
    chosen = one.texts if isinstance(one, c.Choice) else ()
    return [*CHARACTERS, *(first + second for first in CHARACTERS[::3] for second in "a0b-"), *chosen]


@pytest.mark.parametrize("one", ESCAPED, ids=lambda one: repr(one)[:50])
def test_escapes_have_the_same_texts_in_every_notation(one: Constraint[Any]) -> None:
    automaton = byte_automaton(one.grammar())
    others = [byte_automaton(c.Gbnf(one.to_gbnf(single_characters=single)).grammar()) for single in (False, True)]
    others += [byte_automaton(c.Regex(one.to_regex("ecma"), dialect="ecma").grammar())]
    python = re.compile(one.to_regex("python"))
    for text in special_texts(one):
        own = accepts(automaton, text)
        assert {own} == {accepts(other, text) for other in others} == {bool(python.fullmatch(text))}, text
    xgrammar = pytest.importorskip("xgrammar", reason="the library of vLLM and SGLang judges")
    words = [*(bytes([byte]) for byte in range(256)), b"</s>"]
    info = xgrammar.TokenizerInfo(words, xgrammar.VocabType.RAW, vocab_size=257, stop_token_ids=[256])
    compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
    compiled = compiler.compile_grammar(xgrammar.Grammar.from_ebnf(one.to_gbnf()))
    for text in special_texts(one):
        matcher = xgrammar.GrammarMatcher(compiled)
        fits = all(map(matcher.accept_token, text.encode())) and matcher.accept_token(256)
        assert accepts(automaton, text) == fits, text


def test_escapes_have_a_fixed_length_and_repetitions_one_quantifier() -> None:
    """xgrammar reads any number of hexadecimal digits after \\x, and no quantifier after another one."""
    assert c.Choice(['"a', "\nb"]).to_gbnf() == 'root ::= "\\"a" | "\\nb"\n'
    assert c.Choice(["a\x01b"]).to_gbnf() == 'root ::= ("a" [\\x01] "b")\n'
    assert c.Choice(['a"']).to_gbnf(single_characters=True) == 'root ::= ("a" "\\"")\n'
    assert c.Regex(r"[-^0-9\]\x00]").to_gbnf() == "root ::= [0-9\\x00\\x2D\\]-\\x5E]\n"
    assert c.Regex("\n1").to_regex("rust") == c.Regex("\n1").to_regex("python") == "\\u000A1"
    repeated = c.Gbnf('root ::= ("a"+)? "b"').to_gbnf()
    assert not re.search(r"[+*?}][+*?{]", repeated), repeated


def test_what_cannot_be_exported_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="open key") as found:
        c.JsonSchema({"properties": {"a": {"type": "object", "additionalProperties": True}}}).to_gbnf()
    assert found.value.place == "/properties/a"
    assert "root" in c.JsonSchema({"type": "object"}).to_gbnf(duplicate_keys=True)
    with pytest.raises(UnsupportedError, match="uniqueItems"):
        c.JsonSchema({"type": "array", "uniqueItems": True}).to_gbnf()
    with pytest.raises(UnsupportedError, match="special token"):
        c.SpecialToken("<x>").to_lark()
    with pytest.raises(UnsupportedError, match="recursive") as found:
        c.JsonSchema(NESTED).to_regex()
    assert found.type is UnsupportedError
    with pytest.raises(UnsatisfiableError):
        c.JsonSchema({"type": "string", "minLength": 3, "maxLength": 2}).to_gbnf()
    with pytest.raises(LimitExceededError):
        (~c.Regex("[ab]*a[ab]{14}")).to_gbnf()
    with pytest.raises(UnsupportedError, match="dialect"):
        c.Regex("a").to_regex("perl")  # type: ignore[arg-type]  # what is tested


def test_large_counts_are_divided() -> None:
    one = c.Regex("a{1500,4200}")
    text = one.to_gbnf()
    assert max(int(number) for number in re.findall(r"\d+", re.sub(r"r\d+", "", text))) <= 1000
    back = byte_automaton(c.Gbnf(text).grammar())
    for size in (0, 1499, 1500, 2500, 4199, 4200, 4201):
        assert accepts(back, "a" * size) == (1500 <= size <= 4200), size


def test_the_counts_of_an_object_are_exported() -> None:
    """One object counts the branches that fail, also by an absent key."""
    kinds = {"enum": [f"k{at}" for at in range(9)]}
    branches = [
        {"properties": {"kind": {"const": f"k{at}"}, f"p{at}": {"const": "x"}}, "minProperties": 1} for at in range(8)
    ]
    known = {f"p{at}": {"enum": ["x", "y"]} for at in range(8)}
    one = c.JsonSchema({"type": "object", "oneOf": branches, "properties": {"kind": kinds, **known}})
    assert any(isinstance(node, Object) and node.least is not None for node in one.grammar().nodes)
    automata = byte_automaton(one.grammar()), byte_automaton(c.Gbnf(one.to_gbnf(duplicate_keys=True)).grammar())
    seen = []
    for values in itertools.product(["y", "x", None], repeat=3):  # the other five branches fail
        members = [*zip(range(3), values, strict=True), *((at, "y") for at in range(3, 8))]
        text = "{" + ", ".join(f'"p{at}": "{value}"' for at, value in members if value is not None) + "}"
        expected, found = (accepts(automaton, text) for automaton in automata)
        assert found == expected, text
        seen.append(expected)
    assert sum(seen) == 3 * 2  # exactly one branch holds: its property is "x" or absent


def test_large_counts_have_one_derivation() -> None:
    """llama.cpp follows all derivations of a text at the same time, so their number must not grow."""
    text = c.Regex("a{0,32767}").to_gbnf()
    assert not re.search(r"r\d+\{0,\d+\} r\d+\{0,", text.replace("{0,999}", "")), text
    assert "r2{0,31} r1{0,999} | r2{32} r1{0,767}" in text


@counts(exports.EXPORT_WORK // 4, exports.EXPORT_WORK)
def test_work_of_exports_is_limited(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Unicode categories of international host names divide characters into thousands of classes."""
    monkeypatch.setattr(exports, "EXPORT_WORK", count)
    constraint = c.JsonSchema({"type": "string", "format": "idn-hostname"})
    calls = (
        constraint.to_gbnf,
        lambda: constraint.to_lark(dialect="llguidance"),
        lambda: constraint.to_regex("rust"),
    )
    for export in calls:
        start = time.process_time()
        with pytest.raises(LimitExceededError, match="before it is exported"):
            export()
        assert time.process_time() - start < 6  # one to two seconds on an idle machine


def test_entries_of_objects_count_as_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rules of n keys in any order have 2^n states, with n / 2 next keys on average."""

    def export(size: int) -> str:
        keys = {chr(97 + number): {"type": "null"} for number in range(size)}
        schema = {"type": "object", "properties": keys, "additionalProperties": False}
        return c.JsonSchema(schema, key_order="any").to_gbnf()

    monkeypatch.setattr(exports, "EXPORT_WORK", exports.EXPORT_WORK // 100)
    assert export(8).count("::=") > 256
    with pytest.raises(LimitExceededError, match="before it is exported"):
        export(9)


def test_entries_in_any_order_are_written_once() -> None:
    names = [f"key{number}" for number in range(8)]
    schema = {
        "type": "object",
        "properties": {key: {"type": "string"} for key in names},
        "required": names,
        "additionalProperties": False,
    }
    constraint = c.JsonSchema(schema, profile="exact")
    text = constraint.to_gbnf()
    uses = Counter(re.findall(r"\br\d+\b", text))
    # After a comma, a key occurs in the rules of 2 ** 7 - 1 states; the name of its rule also occurs in the definition.
    assert sum(count == 2**7 for count in uses.values()) == len(names)
    assert len(text) < 40_000
    automaton = byte_automaton(c.Gbnf(text).grammar())
    order = random.Random(0).sample(names, len(names))
    assert accepts(automaton, json.dumps(dict.fromkeys(order, "x")))
    assert not accepts(automaton, json.dumps(dict.fromkeys(order[1:], "x")))


def test_a_class_that_occurs_often_is_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[object] = []
    write = exports._gbnf_class
    monkeypatch.setattr(exports, "_gbnf_class", lambda ranges: (written.append(ranges), write(ranges))[1])
    c.Regex(r"\w*\d?" * 100).to_gbnf()
    assert len(written) == len(set(written)) == 2


def test_characters_of_a_key_are_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def export(key: str) -> str:
        schema = {"type": "object", "properties": {key: {"type": "null"}}, "additionalProperties": False}
        return c.JsonSchema(schema, profile="exact").to_gbnf()

    monkeypatch.setattr(exports, "EXPORT_WORK", exports.EXPORT_WORK // 100)
    assert len(export("k" * 2000)) < 20_000
    with pytest.raises(LimitExceededError, match="before it is exported"):
        export("".join(chr(0x4E00 + number) for number in range(2000)))


def test_objects_with_too_many_sets_of_keys_are_refused_at_once() -> None:
    def rules(maximum: int, limit: int) -> int:
        keys = {chr(97 + number): {"type": "null"} for number in range(20)}
        schema = {"properties": keys, "maxProperties": maximum, "additionalProperties": False, "type": "object"}
        return len(rules_of(c.JsonSchema(schema, key_order="any").grammar(), limit=limit))

    least = 1 + 20 + 190  # sets with at most two of 20 keys
    with pytest.raises(LimitExceededError, match="more than 210 rules"):
        rules(2, least - 1)
    assert rules(2, 2 * least) > least
    for maximum in (19, 20):
        with pytest.raises(LimitExceededError, match="more than 50,000 rules"):
            rules(maximum, 50_000)


def test_a_plan_tests_once_whether_a_text_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    tested: list[object] = []

    def is_empty(grammar: object) -> bool:
        tested.append(grammar)
        raise LimitExceededError("too many automaton states")

    monkeypatch.setattr(exports, "is_empty", is_empty)
    constraint = c.Gbnf('root ::= "a" root | "b"')
    for export in (constraint.to_gbnf, constraint.to_lark, constraint.to_regex):
        with pytest.raises(LimitExceededError, match="too many automaton states"):
            export()
    assert len(tested) == 1
