"""Combinators of constraints, and their errors."""

from __future__ import annotations

import pytest

from guideway.constraints import Choice, Ebnf, Gbnf, JsonSchema, Lark, PythonType, Reasoning, Regex
from guideway.constraints.base import Constraint
from guideway.errors import InvalidConstraintError, InvalidTextError
from guideway.grammar.nodes import Leaf
from tests.helpers.reference_grammar import fits


def test_choice() -> None:
    choice = Choice(["yes", "no", "yes"])
    assert choice.texts == ("yes", "no")
    assert fits(choice.grammar(), "yes")
    assert not fits(choice.grammar(), "ye")
    assert choice.parse("no") == "no"
    with pytest.raises(InvalidTextError):
        choice.parse("maybe")
    assert choice == Choice(["yes", "no"])
    for wrong in ([], "yes", [1], ["\ud800"]):
        with pytest.raises(InvalidConstraintError):
            Choice(wrong)  # type: ignore[arg-type]  # what a user may get wrong


def test_regular_ones_fold_into_one_leaf() -> None:
    number, word = Regex("[0-9]+"), Choice(["one", "two"])
    mixed = (number | word) + "!" + ~Regex("x*") + (Regex("[ab]*") & Regex("a.*"))
    grammar = mixed.grammar()
    assert [type(node) for node in grammar.nodes] == [Leaf]
    assert fits(grammar, "12!ya")
    assert fits(grammar, "one!zabab")
    assert not fits(grammar, "one!")
    assert fits(("<" + number).grammar(), "<7")
    assert fits(("-" | number).grammar(), "-")


def test_parse_of_combinations() -> None:
    number, word = Regex("[0-9]+"), Choice(["one", "two"])
    assert (number | word).parse("two") == "two"
    assert (~number).parse("x") == "x"
    assert (number & Regex("1.*")).parse("12") == "12"
    for source, text in ((number | word, "x"), (~number, "1"), (number & Regex("1.*"), "2")):
        with pytest.raises(InvalidTextError):
            source.parse(text)


NOTHING = Regex("a") & Regex("b")


@pytest.mark.parametrize(
    "part",
    [
        NOTHING,
        JsonSchema(False),
        Lark("start: p", parts={"p": NOTHING}),
        Gbnf("root ::= p", parts={"p": NOTHING}),
        Ebnf("root ::= p", parts={"p": NOTHING}),
    ],
    ids=lambda part: type(part).__name__,
)
def test_combinations_with_a_part_that_no_text_fits(part: Constraint[object]) -> None:
    with pytest.raises(InvalidTextError):
        part.parse("a")
    assert (part | "a").parse("a") == "a"
    assert part.optional().parse("") == ""
    if part.regular() is not None:
        assert (~part).parse("a") == "a"


def test_nested_constraints_of_types_with_equal_schemas_differ() -> None:
    lists, tuples = PythonType(list[int]), PythonType(tuple[int, ...])
    assert lists == PythonType(list[int])
    assert lists != tuples
    assert lists + "." == PythonType(list[int]) + "."
    assert lists + "." != tuples + "."  # `parse` gives a list or a tuple
    assert Reasoning(lists) == Reasoning(PythonType(list[int]))
    assert Reasoning(lists) != Reasoning(tuples)


def test_equality_and_names() -> None:
    a, b = Regex("a"), Regex("b")
    assert (a | b) == (a | b) != (b | a)
    assert hash(a + b) == hash(a + b)
    assert (a | b) != (a + b)
    assert repr((a | "x") + ~b) == "(Regex('a') | 'x') + ~(Regex('b'))"
    with pytest.raises(InvalidConstraintError):
        a | 3  # type: ignore[operator]  # what a user may get wrong
