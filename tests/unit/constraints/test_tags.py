"""`Tags`: free text with structured parts between markers."""

from __future__ import annotations

import pytest

import guideway as gw
from tests.property.sampling import samples

NUMBER = gw.Tag("<n>", gw.Regex(r"\d+"), "</n>")
RECORD = gw.Tag("<r>", gw.JsonSchema({"type": "object", "properties": {"a": {"type": "string"}}}), "</r>")


def pieces(source: gw.Tags, text: str) -> list[object]:
    return [one if isinstance(one, str) else one.value for one in source.parse(text)]


def refuses(source: gw.Tags | gw.Reasoning, *texts: str) -> None:
    for text in texts:
        with pytest.raises(gw.errors.InvalidTextError):
            source.parse(text)


def test_free_text_and_tags() -> None:
    source = gw.Tags([NUMBER, RECORD])
    assert pieces(source, "") == []
    assert pieces(source, "a < b <n") == ["a < b <n"]
    assert pieces(source, 'x<n>12</n><r>{"a": "</r>"}</r>\n') == ["x", "12", {"a": "</r>"}, "\n"]
    refuses(source, "<n>", "<n>a</n>", "<n>1</n", "<n>1</r>", "a<r>{}</r><n>")


def test_number_of_tags() -> None:
    source = gw.Tags([NUMBER], least=1, most=2)
    assert pieces(source, "<n>1</n>.<n>2</n>") == ["1", ".", "2"]
    refuses(source, "", "none", "<n>1</n><n>2</n><n>3</n>")


def test_lists_with_separators() -> None:
    source = gw.Tags([NUMBER, RECORD], separator=", ", least=1)
    assert pieces(source, "<n>1</n>, <r>{}</r>") == ["1", {}]
    refuses(source, "", "<n>1</n>,<n>2</n>", "<n>1</n>, ", "a<n>1</n>")
    assert pieces(gw.Tags([NUMBER], separator="\n"), "") == []
    nested = gw.Tag("<t>", gw.Regex("a(</t>x)?"), "</t>")
    assert pieces(gw.Tags([nested], separator=","), "<t>a</t>x</t>,<t>a</t>") == ["a</t>x", "a"]
    refuses(gw.Tags([NUMBER], separator="\n", most=1), "<n>1</n>\n<n>1</n>")


def test_triggers_precede_names() -> None:
    tags = [gw.Tag(f"<call {name}>", gw.Choice([name.upper()]), "</call>") for name in ("f", "g", "gg")]
    source = gw.Tags(tags, triggers=["<call "])
    assert pieces(source, "a <call gg>GG</call>, <call f>F</call>") == ["a ", "GG", ", ", "F"]
    refuses(source, "<call h>H</call>", "<call ", "<call f>G</call>")


def test_what_is_refused() -> None:
    with pytest.raises(gw.errors.InvalidConstraintError, match="contained in another"):
        gw.Tags([NUMBER, gw.Tag("<n><m>", "x", "")])
    with pytest.raises(gw.errors.InvalidConstraintError, match="not a prefix of the begin of any tag"):
        gw.Tags([NUMBER], triggers=["<n>", "<q>"])
    with pytest.raises(gw.errors.InvalidConstraintError, match="no trigger is a prefix"):
        gw.Tags([NUMBER, RECORD], triggers=["<n>"])
    with pytest.raises(gw.errors.InvalidConstraintError, match="at least one"):
        gw.Tags([])
    with pytest.raises(gw.errors.InvalidConstraintError, match="must not be empty"):
        gw.Tag("", "x", "y")


def test_reasoning_then_structure() -> None:
    source = gw.Reasoning(gw.JsonSchema({"type": "boolean"}))
    assert source.parse("<think>a </thin b</think>\n\ntrue") == ("a </thin b", True)
    refuses(source, "true", "<think>true", "<think></think> true", "<think></think>x")
    assert gw.Reasoning(gw.Choice(["a"]), optional=True).parse("a") == ("", "a")
    assert gw.Reasoning(gw.Choice(["a"]), begin="", end="###").parse("so###a") == ("so", "a")


def test_samples_are_read_back() -> None:
    source = gw.Tags([NUMBER, RECORD], least=1)
    for text in samples(source, 15, 3):
        found = source.parse(text)
        assert "".join(one if isinstance(one, str) else one.tag.begin for one in found)
        assert any(not isinstance(one, str) for one in found)


def test_free_text_does_not_begin_a_trigger_that_a_special_token_completes() -> None:
    """`x` before the token `<|tool|>` is the trigger `x<`, which `parse` would find first."""
    tokens = [b"x", b"y", b"<", b"<|tool|>", b"1", b">", b"</s>"]
    vocabulary = gw.Vocabulary(tokens, eos_ids=[6], special_ids=[3, 6])
    digit = gw.Regex("1")
    tags = [gw.Tag("x<", digit, ">"), gw.Tag("<|tool|>", digit, ">")]
    source = gw.Tags(tags, special=["<|tool|>"])
    automaton = gw.compile(source, vocabulary)
    for ids, legal in [([1], True), ([0], False), ([0, 1], True), ([1, 0], False), ([0, 0], False), ([], True)]:
        matcher = automaton.matcher()
        for token in ids:
            matcher.advance(token)
        if not legal:
            with pytest.raises(gw.errors.RejectedTokenError):
                matcher.advance(3)
            continue
        for token in (3, 4, 5):
            matcher.advance(token)
        text = b"".join(tokens[token] for token in [*ids, 3, 4, 5]).decode()
        assert pieces(source, text)[-1] == "1"


def test_contents_with_very_many_possible_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("guideway.constraints.tags._MOST_READ", 100_000)
    source = gw.Tags([gw.Tag("<", gw.Regex("[>x]*"), ">"), gw.Tag("<", gw.Regex("(?s)>.*!"), ">")], triggers=["<"])
    with pytest.raises(gw.errors.LimitExceededError, match="too many possible ends"):
        source.parse("<" + ">" * 400 + "<" + "x>" * 400 + "<!>")
    assert source.parse("<" + ">" * 50 + "<" + "x>" * 50 + "<!>")
