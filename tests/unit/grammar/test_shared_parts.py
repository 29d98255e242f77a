"""Expressions share parts: the time of each traversal depends on the number of objects, not of the paths to them."""

import pytest

import guideway as gw
from guideway.constraints.tools.text_input import TextInput
from guideway.errors import LimitExceededError
from guideway.grammar.automata.alphabet import Alphabet
from guideway.grammar.derivatives import determinized, spelled_out
from guideway.grammar.nodes import Grammar, Leaf
from guideway.grammar.recognizer import accepts, byte_automaton
from guideway.grammar.regular import (
    Chars,
    Complement,
    Concat,
    Intersection,
    JsonEscaped,
    Literals,
    Regular,
    Repeat,
    Union,
    distinct,
)
from guideway.grammar.rules_text import rules_of

DOUBLINGS = 60
"""A traversal of all paths would take 2^60 steps."""


def doubled(kind: type[Concat] | type[Union] | type[Intersection], one: Regular) -> Regular:
    for _ in range(DOUBLINGS):
        one = kind((one, one))
    return one


WIDE = doubled(Union, Repeat(Union((Literals(("ab",)), Chars(((0x61, 0x7A),)))), 0, None))
LONG = doubled(Concat, Union((Literals(("ab",)), Chars(((0x61, 0x7A),)))))
MEET = doubled(Intersection, Repeat(Chars(((0x61, 0x7A),)), 1, None))


def grammar_of(text: Regular) -> Grammar:
    grammar = Grammar()
    grammar.root = grammar.add(Leaf(text))
    return grammar


@pytest.mark.parametrize("text", [WIDE, LONG, MEET])
def test_each_object_is_visited_once(text: Regular) -> None:
    found = list(distinct(JsonEscaped(text, "json")))
    assert len(found) == len(set(map(id, found))) <= DOUBLINGS + 5
    assert len(Alphabet([text]).ranges) <= 4


@pytest.mark.parametrize("text", [WIDE, MEET])
def test_automata_of_shared_parts_are_small(text: Regular) -> None:
    assert len(determinized(text).states) <= 3
    assert len(determinized(spelled_out(JsonEscaped(text, "json"))).states) <= 3
    assert len(determinized(Complement(text)).states) <= 3


def test_long_automata_are_refused() -> None:
    with pytest.raises(LimitExceededError, match="states"):
        determinized(LONG)


@pytest.mark.parametrize("text", [WIDE, LONG, MEET])
def test_exported_rules_share_parts(text: Regular) -> None:
    assert len(rules_of(grammar_of(JsonEscaped(text, "json")))) <= DOUBLINGS + 5


def test_long_lists_that_occur_twice_become_rules() -> None:
    words = Literals(tuple(f"word {number}" for number in range(100)))
    space, pair = Literals((" ",)), Literals(("a", "b"))
    assert len(rules_of(grammar_of(Concat((words, space, words))))) == 2
    assert len(rules_of(grammar_of(Concat((words, space, pair, pair))))) == 1


def test_nested_terms_become_rules() -> None:
    text: Regular = Chars(((0x61, 0x7A),))
    for _ in range(2_000):
        text = Concat((Literals(("(",)), text, Literals((")",))))
    rules = rules_of(grammar_of(text))
    assert 30 < len(rules) < 100


def test_format_regex_is_exported_within_bounds() -> None:
    schema = {"type": "string", "format": "regex"}
    constraint = gw.JsonSchema(schema)
    assert len(constraint.to_gbnf()) < 20_000
    assert len(constraint.to_lark(dialect="llguidance")) < 20_000
    with pytest.raises(LimitExceededError, match="200,000 characters"):
        constraint.to_regex(dialect="rust")


def test_format_regex_beside_a_verbatim_string() -> None:
    schema = {
        "properties": {"a": {"type": "string", "format": "regex"}, "b": {"type": "string", "format": "verbatim"}},
        "required": ["a", "b"],
    }
    constraint = gw.JsonSchema(schema).quoting("some text")
    automaton = byte_automaton(constraint.grammar())
    assert accepts(automaton, '{"a": "(a|b)*", "b": "text"}')
    assert not accepts(automaton, '{"a": "(a|b", "b": "text"}')
    assert not accepts(automaton, '{"a": "(a|b)*", "b": "other"}')


def test_text_input_with_shared_parts() -> None:
    class Shared(gw.Regex):
        def grammar(self) -> Grammar:
            return grammar_of(WIDE)

    assert accepts(byte_automaton(TextInput(Shared("a")).grammar()), '{"input": "abba"}')
