"""Parsing of tool calls as models write them, compared with other implementations."""

from __future__ import annotations

import json
import random
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import guideway as gw
from guideway.constraints.tools import FAMILIES, Reply
from guideway.constraints.tools.writing import written_calls
from guideway.grammar.recognizer import fits
from guideway.jsontext.encoder import exact_json
from tests.conformance.test_conformance import cases
from tests.helpers.tokenizer_files import data_of, llama3_ranks
from tests.helpers.work import lines
from tests.unit.constraints.tools.test_calls import TOOLS, WRITERS, Call, drawn

ROME: dict[str, Any] = {"city": "Rome", "days": 2}
ONE: list[Call] = [("weather", ROME)]
TWO: list[Call] = [*ONE, ("now", {})]

CASES = [pytest.param(*case.values, id=f"{case.values[0]['family']}-{case.id}") for case in cases("tool_calls.toml")]
BROKEN = [(case.values[0]["family"], case.values[0]["reply"]) for case in cases("tool_calls.toml", "broken")]
ENDLESS = [
    ("hermes", "<tool_call>" + '{"name": "now", "arguments": ' + "[" * 100_000),
    ("llama-pythonic", "[now(" + "(" * 10_000),
    ("llama-pythonic", "[now(a=" + "-" * 100_000 + "1)]"),
]


@pytest.mark.parametrize("number", ["1", "1.50"])
def test_deep_arguments_are_read_and_written_without_recursion(number: str) -> None:
    calls = gw.ToolCalls([gw.Tool("f", {"type": "object"})], family="hermes")
    arguments = '{"a": ' + "[" * 5000 + number + "]" * 5000 + "}"
    message = calls.parse('<tool_call>\n{"name": "f", "arguments": ' + arguments + "}\n</tool_call>")
    written = message.as_message(arguments="json")["tool_calls"][0]["function"]["arguments"]
    assert written == arguments.replace("1.50", "1.5")


@pytest.mark.parametrize("number", ["1e400", "-1e-400", "1e99999999999999999999", "9" * 5000])
def test_numbers_beyond_floats_in_messages(number: str) -> None:
    call = '<tool_call>\n{"name": "f", "arguments": {"a": ' + number + "}}\n</tool_call>"
    reply = gw.ToolCalls([gw.Tool("f", {"type": "object"})], family="hermes").parse(call)
    message = reply.as_message()
    assert json.dumps(message)
    given = message["tool_calls"][0]["function"]["arguments"]
    assert isinstance(given["a"], float)
    assert written_calls(FAMILIES["hermes"], [("f", given)]) == call
    written = reply.as_message(arguments="json")["tool_calls"][0]["function"]["arguments"]
    assert written == f'{{"a": {number}}}'


@pytest.mark.parametrize("case", CASES)
def test_replies_are_read(case: dict[str, Any]) -> None:
    found = gw.ToolCalls(TOOLS, family=case["family"]).parse(case["reply"])
    assert [[call.name, call.arguments] for call in found.calls] == [[name, json.loads(a)] for name, a in case["calls"]]
    assert (found.text, found.reasoning) == (case.get("text", ""), case.get("reasoning", ""))


def test_ids_are_read() -> None:
    for family, reply in (
        ("mistral-v11", "[TOOL_CALLS]now[CALL_ID]abcdefghi[ARGS]{}"),
        ("mistral", '[TOOL_CALLS][{"name": "now", "arguments": {}, "id": "abcdefghi"}]'),
    ):
        assert gw.ToolCalls(TOOLS, family=family).parse(reply).calls[0].id == "abcdefghi"


@pytest.mark.parametrize("family", [name for name in FAMILIES if name != "llama-pythonic"])
@pytest.mark.parametrize("others", [[], ["find"]])
def test_names_of_tools_that_begin_with_functions(family: str, others: list[str]) -> None:
    schema = {"type": "object", "properties": {"words": {"type": "string"}}, "required": ["words"]}
    source = gw.ToolCalls([gw.Tool(name, schema) for name in ["functions.find", *others]], family=family)
    for name in ["functions.find", *others]:
        text = written_calls(FAMILIES[family], [(name, {"words": "a"})])
        assert fits(source.grammar(), text)
        assert [(call.name, call.arguments) for call in source.parse(text).calls] == [(name, {"words": "a"})]
    chosen = gw.ToolCalls(source.tools, family=family, choice=others[0]) if others and family != "harmony" else None
    if chosen is not None:
        with pytest.raises(gw.errors.InvalidTextError, match=r"'functions\.find' may not be called"):
            chosen.parse(written_calls(FAMILIES[family], [("functions.find", {"words": "a"})]))


@pytest.mark.parametrize("family", ["deepseek", "glm", "mistral-v11"])
def test_functions_before_the_name_of_a_tool_is_ignored(family: str) -> None:
    written = written_calls(FAMILIES[family], [("functions.now", {})])
    assert gw.ToolCalls(TOOLS, family=family).parse(written).calls[0].name == "now"


@pytest.mark.parametrize("family", ["hermes", "glm", "qwen-coder", "mistral-v11", "deepseek"])
@pytest.mark.parametrize(
    "inside", ["{}", "{}<tool_call>\n", "{}<tool_call>\n<function=now>\n</function>\n</tool_call>"]
)
def test_the_end_of_reasoning_in_an_argument(family: str, inside: str) -> None:
    thoughts = FAMILIES[family].thoughts or ("", "")
    city = inside.format(thoughts[1])
    for begin in ("", thoughts[0]):
        known = replace(FAMILIES[family], thoughts=(begin, thoughts[1]))
        for before in ("", f"{begin}I call <tool_call>.{thoughts[1]}"):
            for choice in ("required", "weather"):
                source = gw.ToolCalls(TOOLS, family=known, choice=choice)
                written = before + written_calls(known, [("weather", {"city": city, "days": 2})])
                assert fits(source.grammar(), written)
                found = source.parse(written)
                assert [(call.name, call.arguments["city"]) for call in found.calls] == [("weather", city)]
                assert found.reasoning == ("I call <tool_call>." if before else "")


NUMBERS = ["0.12345678901234567890123", "-0.12345678901234567890123", "1e400", "-4E12581", "1e-400", "1E2", "9" * 5_000]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("number", NUMBERS)
def test_all_digits_of_arguments_are_read(family: str, number: str) -> None:
    known = FAMILIES[family]
    schema = {
        "type": "object",
        "properties": {"c": {"type": "number"}},
        "required": ["c"],
        "additionalProperties": False,
    }
    exact = gw.JsonSchema(schema, profile="exact")
    written = written_calls(known, [("f", {"c": 0})])
    at = written.rindex("0")
    text = written[:at] + number + written[at + 1 :]
    source = gw.ToolCalls([gw.Tool("f", exact)], family=known)
    assert fits(source.grammar(), text) or known.arguments != "json"  # other notations have plain numbers only
    call = source.parse(text).calls[0]
    assert call.arguments == exact.parse(f'{{"c": {number}}}')
    assert exact.parse(exact_json(call.json_arguments())) == call.arguments
    if number[:2] in ("0.", "-0"):
        fixed = gw.JsonSchema(f'{{"type": "object", "properties": {{"c": {{"const": {number}}}}}, "required": ["c"]}}')
        only = gw.ToolCalls([gw.Tool("f", fixed)], family=known)
        assert fits(only.grammar(), text)
        assert only.parse(text).calls[0].json_arguments() == {"c": float(number)}
        with pytest.raises(gw.errors.InvalidTextError):
            only.parse(text.replace("8901234567890123", "8"))


@pytest.mark.parametrize(("family", "reply"), [*BROKEN, *ENDLESS])
def test_what_cannot_be_read(family: str, reply: str) -> None:
    with pytest.raises(gw.errors.InvalidTextError):
        gw.ToolCalls(TOOLS, family=family).parse(reply)


# Other people's code: Meta's reader of Llama's forms, Mistral's writers.


@pytest.mark.parametrize("family", ["llama", "llama-pythonic"])
def test_llama_parser_reads_generated_calls(family: str) -> None:
    theirs = pytest.importorskip("llama_models.llama3.tool_utils").ToolUtils
    rng = random.Random(family)
    for _ in range(200):
        call = drawn(rng)
        written = WRITERS[family]("", [call])
        assert theirs.maybe_extract_custom_tool_call(written) == call
        assert gw.ToolCalls(TOOLS, family=family).parse(written).calls[0].arguments == call[1]


def mistrals(version: str) -> Any:
    """Returns Mistral's message encoder in one version of its format, over one of its published vocabularies."""
    instruct = pytest.importorskip("mistral_common.tokens.tokenizers.instruct")
    tekken = pytest.importorskip("mistral_common.tokens.tokenizers.tekken")
    base = pytest.importorskip("mistral_common.tokens.tokenizers.base")
    with data_of("mistral_common", "data", "tekken_240911.json").open(encoding="utf-8") as file:
        held = json.load(file)
    names = [token["token_str"] for token in tekken.Tekkenizer.DEPRECATED_SPECIAL_TOKENS]
    names += [one.value for one in base.SpecialTokens if one.value not in names]
    made = tekken.Tekkenizer(
        held["vocab"][:5000],
        special_tokens=[{"rank": i, "token_str": name, "is_control": True} for i, name in enumerate(names)],
        pattern=held["config"]["pattern"],
        vocab_size=5000 + len(names),
        num_special_tokens=len(names),
        version=base.TokenizerVersion(version),
    )
    return getattr(instruct, f"InstructTokenizer{version.upper()}")(made)


@pytest.mark.parametrize(
    ("version", "family"), [("v3", "mistral"), ("v7", "mistral"), ("v11", "mistral-v11"), ("v13", "mistral-v11")]
)
def test_parse_reads_mistral_calls(version: str, family: str) -> None:
    messages = pytest.importorskip("mistral_common.protocol.instruct.messages")
    calls_of = pytest.importorskip("mistral_common.protocol.instruct.tool_calls")
    theirs = mistrals(version)
    tokenizer = gw.Tokenizer.of(theirs.tokenizer)
    source = gw.ToolCalls(TOOLS, family=family)
    automaton = gw.compile(source, tokenizer.vocabulary)
    rng = random.Random(version)
    for _ in range(30):
        calls = [drawn(rng) for _ in range(rng.randrange(1, 4))]
        written = [
            calls_of.ToolCall(
                id="".join(rng.choices("abcXYZ019", k=9)),
                function=calls_of.FunctionCall(name=name, arguments=json.dumps(arguments)),
            )
            for name, arguments in calls
        ]
        message = messages.AssistantMessage(tool_calls=written)
        ids = theirs.encode_assistant_message(message, is_before_last_user_message=False, continue_message=False)
        reply = source.parse(tokenizer.vocabulary.bytes_of(ids, special=True).decode())
        assert [(call.name, call.arguments) for call in reply.calls] == calls
        assert [call.id for call in reply.calls] == ["" if version == "v13" else call.id for call in written]
        assert automaton.matcher().validate(ids) == len(ids)  # the tokens of the reference writer, including the end


# Real vocabularies in which the markers are special tokens.


def ids_of(table: gw.Vocabulary, text: str, encode: Any) -> list[int]:
    """Encodes special tokens by their names, and the rest of the text with the tokenizer."""
    from guideway.tokenizers.tokenizer import split_at

    named = table.special_tokens
    found: list[int] = []
    for number, piece in enumerate(split_at(text, named)):
        found += [named[piece]] if number % 2 else encode(piece)
    return found


def llama_table(names: tuple[str, ...]) -> gw.Tokenizer:
    """The first 5,000 tokens of Llama 3 with these special tokens, the last of which ends a text."""
    import tiktoken

    ranks = {token: rank for token, rank in llama3_ranks().items() if rank < 5_000}
    special = {name: len(ranks) + i for i, name in enumerate(names)}
    encoding = tiktoken.Encoding("made", pat_str=r"\p{L}+|\s+|.", mergeable_ranks=ranks, special_tokens=special)
    return gw.Tokenizer.of(encoding, eos_ids=[special[names[-1]]])


@pytest.mark.parametrize(
    "family", ["llama", "hermes", "mistral", "mistral-v11", "deepseek", "deepseek-v3.1", "glm", "harmony"]
)
def test_markers_are_special_tokens(family: str) -> None:
    """A call in the tokens of a vocabulary that has the markers as special tokens, and not in those that spell them."""
    form = FAMILIES[family]
    tokenizer = llama_table((*form.special, "<|eot|>"))
    source = gw.ToolCalls(TOOLS, family=family)
    automaton = gw.compile(source, tokenizer.vocabulary)
    end = tokenizer.eos_ids[0]
    for calls in (ONE, TWO) if form.several else (ONE,):
        text = form.lead + WRITERS[family]("", calls)
        ids = [*ids_of(tokenizer.vocabulary, text, tokenizer.encode), end]
        assert automaton.matcher().validate(ids) == len(ids)
        spelled = [*tokenizer.encode(text), end]
        assert automaton.matcher().validate(spelled) < len(spelled)
        assert [call.name for call in source.parse(text).calls] == [name for name, _ in calls]


def test_harmony_ends_with_its_call() -> None:
    """`<|call|>` ends a text of gpt-oss: the reply may end after it, and may not end while a call is open."""
    tokenizer = llama_table(
        ("<|channel|>", "<|constrain|>", "<|message|>", "<|start|>", "<|end|>", "<|return|>", "<|call|>")
    )
    table = tokenizer.vocabulary
    matcher = gw.compile(gw.ToolCalls(TOOLS, family="harmony", choice="required"), table).matcher()
    text = WRITERS["harmony"]("", TWO[1:]).removesuffix("<|call|>")
    row = np.zeros((len(table) + 31) // 32, dtype=np.uint32)
    for token in ids_of(table, text, tokenizer.encode):
        matcher.fill_mask(row)
        assert row[token >> 5] >> (token & 31) & 1
        matcher.advance(token)
    matcher.fill_mask(row)
    call = table.special_tokens["<|call|>"]
    assert [i for i in range(len(table)) if row[i >> 5] >> (i & 31) & 1] == [call]
    matcher.advance(call)
    assert matcher.is_accepting


def test_family_from_a_tokenizer() -> None:
    tokenizer = gw.Tokenizer.of([b"a", b"</s>"], eos_ids=[1])
    special = replace(tokenizer._specials, chat_template="… '<tool_call>\\n' …")
    object.__setattr__(tokenizer, "_specials", special)
    source = gw.ToolCalls(TOOLS, family=tokenizer)
    assert source.family == FAMILIES["hermes"]
    assert source.parse("Hello.") == Reply("Hello.")


HOSTILE: dict[str, Callable[[int], str]] = {
    "spaces": lambda size: " " * size,
    "spaces after an end": lambda size: "<|end|>" + "\n" * size + "x",
    "a long name": lambda size: "to=" + "a" * size,
    "many names": lambda size: "<|channel|>final" + " to=" * (size // 4),
    "many formats": lambda size: "<|channel|>final<|constrain|>" * (size // 20),
    "many messages": lambda size: "<|channel|>analysis<|message|>a<|end|>" * (size // 6) + " " * size + "x",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_headers_are_read_once(name: str) -> None:
    """The lines of Python grow with the text; the time bounds what `re` does inside one line."""
    source = gw.ToolCalls(TOOLS, family="harmony")

    def parsed(size: int) -> bool:
        try:
            source.parse(HOSTILE[name](size))
        except gw.errors.InvalidTextError:
            return False
        return True

    short, long = lines(lambda: parsed(3_000)), lines(lambda: parsed(6_000))
    assert long < 2.2 * short
    start = time.thread_time()
    assert parsed(12_000) is (name == "spaces")
    assert time.thread_time() - start < 4  # 0.02 s; minutes where an expression backtracks


def test_pythonic_calls_emit_no_warnings() -> None:
    tool = gw.Tool("f", {"type": "object", "properties": {"a": {"type": "string"}}})
    source = gw.ToolCalls([tool], family="llama-pythonic")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert source.parse(r'[f(a="\d")]').calls[0].arguments == {"a": r"\d"}
    assert not caught


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"days": 2}, "missing required arguments: 'city'"),
        ({"city": "Rome", "days": 2, "when": 1}, "unknown arguments: 'when'"),
        ({"city": 3, "days": 2}, "at '/city'"),
        ([1], "expected a JSON object"),
    ],
)
def test_what_is_wrong_with_arguments_is_said(arguments: Any, words: str) -> None:
    with pytest.raises(gw.errors.InvalidTextError, match=words):
        gw.ToolCalls(TOOLS, family="hermes").parse(WRITERS["hermes"]("", [("weather", arguments)]))


@pytest.mark.parametrize(
    ("schema", "written", "arguments"),
    [
        ({"type": "object"}, {"a": 1}, {"a": 1}),
        ({"type": "object"}, '{"a": 1}', {"a": 1}),
        ({"type": "array"}, "[1]", [1]),
        ({"type": "string"}, "now", "now"),
        ({"type": "string"}, '{"a": 1}', '{"a": 1}'),
        ({"type": "string"}, "5", "5"),
        ({}, '{"a": 1}', {"a": 1}),
        ({}, "now", "now"),
        ({}, "5", "5"),
    ],
)
def test_a_string_is_the_text_of_the_arguments_or_the_arguments(schema: Any, written: Any, arguments: Any) -> None:
    source = gw.ToolCalls([gw.Tool("f", schema)], family="hermes")
    [call] = source.parse(WRITERS["hermes"]("", [("f", written)])).calls
    assert call.arguments == arguments


@pytest.mark.parametrize("written", ["now", "[1", '{"a": NaN}', '"x"'])
def test_a_string_that_is_no_text_of_an_object(written: str) -> None:
    source = gw.ToolCalls([gw.Tool("f", {"type": "object"})], family="hermes")
    with pytest.raises(gw.errors.InvalidTextError, match="expected a JSON object"):
        source.parse(WRITERS["hermes"]("", [("f", written)]))
