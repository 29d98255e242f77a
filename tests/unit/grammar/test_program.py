"""Grammars encoded as programs: refused grammars, and programs with common prefixes."""

from decimal import Decimal, localcontext
from typing import Any

import pytest

import guideway as gw
from guideway.grammar.nodes import Alternative, Cell, Grammar, Leaf, Number, Object, Property, Punctuation
from guideway.grammar.program import encode
from guideway.grammar.regular import ANY_TEXT, Complement, Concat, JsonEscaped, Literals
from tests.helpers.byte_tokens import BYTES

BRACES = Punctuation("{", ",", ":", "}")


def odd(value: Any) -> Any:
    """Returns a value of the wrong type, which a type checker would refuse."""
    return value


def of(node: Any) -> Grammar:
    grammar = Grammar()
    grammar.root = grammar.add(node, "/here")
    return grammar


@pytest.mark.parametrize(
    "node",
    [
        "text",
        Property(Literals(("a",)), 0, True),
        Leaf(odd("text")),
        Leaf(Concat((odd(Leaf(ANY_TEXT)),))),
        Object(BRACES, (odd(Leaf(ANY_TEXT)),)),
        Object(odd("{}"), ()),
        Alternative(odd([0])),
        Alternative((odd("0"),)),
        Number((Cell(odd("")),)),
        Number((Cell(odd("E")),)),
        Object(BRACES, (Property(Literals(("a",)), 0, odd("yes")),)),
        Leaf(Concat((Literals((odd(b"x"),)), JsonEscaped(ANY_TEXT, "json"), Literals((odd(b"x"),))))),
    ],
)
def test_misplaced_nodes_are_type_errors(node: Any) -> None:
    with pytest.raises(TypeError):
        encode(of(node))


def test_what_words_cannot_hold_names_its_place() -> None:
    with pytest.raises(gw.errors.LimitExceededError, match="1E") as raised:
        encode(of(Number((Cell(Decimal("1E+3000000000")),))))
    assert raised.value.place == "/here"
    with pytest.raises(gw.errors.LimitExceededError, match="demands"):
        encode(of(Object(BRACES, (), demands=1 << 64)))
    with pytest.raises(OverflowError):
        encode(of(Alternative((1 << 32,))))
    with pytest.raises(gw.errors.InvalidConstraintError, match="never given") as unset:
        encode(of(None))
    assert unset.value.place == "/here"


def test_a_number_is_the_same_in_every_decimal_context() -> None:
    tiny = of(Number((Cell(Decimal("1e-7")),)))
    with localcontext() as context:
        context.capitals = 0
        assert encode(tiny) == encode(of(Number((Cell(Decimal("0.0000001")),))))


def test_a_list_of_nodes_may_be_cleared_while_it_is_written() -> None:
    class Clearing:
        def __str__(self) -> str:
            grammar.nodes.clear()
            return "1"

    grammar = of(Number((Cell(odd(Clearing())),)))
    for _ in range(10_000):
        grammar.add(Leaf(ANY_TEXT))
    encode(grammar)
    assert not grammar.nodes


def takes(automaton: gw.Automaton, text: str) -> bool:
    matcher = automaton.matcher()
    return matcher.validate(list(text.encode())) == len(text.encode())


def test_programs_that_begin_alike_say_what_they_say() -> None:
    """The first expressions of a program occur in another program: as text, inside a string, or not at all."""
    word = Literals(("a/b", "c"))
    either = Concat((word, Complement(word)))

    def compiled(text: Any) -> gw.Automaton:
        grammar = of(Leaf(text))
        grammar.first = (word, either)
        return gw.Automaton.compile(BYTES.kernel, encode(grammar))

    inside = Concat((Literals(('"',)), JsonEscaped(either, "json-any"), Literals(('"',))))
    for _ in range(3):
        assert takes(compiled(word), "a/b")
        assert not takes(compiled(word), "a\\/b")
        assert takes(compiled(inside), '"a\\/bx"')
        assert not takes(compiled(inside), '"ax')
        assert takes(compiled(either), "cx")
        assert not takes(compiled(Literals(("c",))), "a")
