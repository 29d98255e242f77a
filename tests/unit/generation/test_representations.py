"""The reprs of objects that users print: short, with the important attributes."""

from __future__ import annotations

import re
from typing import Any

import guideway as gw
from guideway.generation import View, complete
from guideway.integrations._common import Chained, Processor

WORDS = gw.JsonSchema({"type": "array", "items": {"type": "string"}, "minItems": 1})
MODEL = gw.load("tiny")


def test_results() -> None:
    found: Any = complete(MODEL, "Names: ", WORDS, max_tokens=6, logprobs=1)
    assert repr(found) == (
        f"Generation(value={found.value!r}, {len(found.tokens)} tokens, finish_reason='length',"
        " truncation='completed_early')"
    )
    free = complete(MODEL, "Names: ", max_tokens=200)
    assert len(repr(free)) < 200
    assert repr(free).startswith(f"Generation(value={free.text[:20]!r}"[:-1])
    cut: Any = complete(MODEL, "Names: ", WORDS, max_tokens=2, allow_truncation=True)
    assert repr(cut) == f"Generation(text={cut.text!r}, 2 tokens, finish_reason='length', truncation='cut')"
    assert re.fullmatch(
        r"GenerationState\(\d+ tokens of prompt, 2 tokens of output, seed=0, JsonSchema\(.*\)\)", repr(cut.state)
    )
    assert repr(View(MODEL, found)) == f"View(1 generations, {len(found.tokens)} tokens)"


def test_a_stream() -> None:
    stream = gw.stream(MODEL, ["a", "b", "c"], max_tokens=2)
    assert repr(stream) == "Stream(0 of 3 sequences finished)"
    for _ in stream:
        pass
    assert repr(stream) == "Stream(3 of 3 sequences finished)"


def test_a_session_and_its_matcher() -> None:
    session = MODEL.session()
    session.feed("Hello")
    assert repr(session) == f"Session('tiny', {len(session)} tokens, text='Hello')"
    session.constrain(gw.Regex("ab"))
    assert repr(session).endswith(", matcher=Matcher(position=0, is_accepting=False))")
    session.complete()
    assert repr(session.matcher) == f"Matcher(position={session.matcher.position}, is_finished=True)"  # type: ignore[union-attr]  # constrained
    session.constrain(None)
    session.feed(" and so on" * 40)
    assert f"{len(session)} tokens, text='…" in repr(session)
    assert len(repr(session)) < 200


def test_an_automaton() -> None:
    automaton = gw.compile(gw.Regex("a+"), gw.Vocabulary([b"a", b""], eos_ids=[1]))
    assert repr(automaton) == "Automaton(1 nodes, vocabulary of 2 tokens)"
    matcher = automaton.matcher()
    matcher.advance(0)
    assert repr(matcher) == "Matcher(position=1, is_accepting=True)"


def test_processors() -> None:
    table = gw.Vocabulary([b"a", b""], eos_ids=[1])
    processor = Processor([gw.Regex("a"), None, gw.Choice(["a"])], table, max_tokens=5)
    assert repr(processor) == "Processor([Regex('a'), None, Choice(['a'])], max_tokens=5)"

    class ConstrainedLogits(Chained):
        pass

    assert repr(ConstrainedLogits(Processor(gw.Regex("a"), table), ())) == "ConstrainedLogits(Regex('a'))"
    many = Processor([gw.Regex("a")] * 9, table)
    assert repr(many).endswith("Regex('a'), …])")
