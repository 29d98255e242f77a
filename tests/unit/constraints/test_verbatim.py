"""Verbatim strings: masks against all substrings, boundaries, sources, spans, hostile texts."""

from __future__ import annotations

import json
import pickle
import random
import re
import unicodedata
from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np
import pytest
from pydantic import BaseModel

import guideway as gw
from guideway import masks
from guideway.constraints import PythonType, Substring
from guideway.generation.spans import spans_of
from guideway.grammar.recognizer import accepts, byte_automaton
from guideway.grammar.substrings import Source, _classes, graph_of, source_of
from guideway.tokenizers import Vocabulary

PIECES = [
    "a",
    "b",
    "ab",
    "ba",
    "A",
    "é",
    "e\u0301",
    " ",
    "  ",
    "\n",
    "\r\n",
    "_",
    "1",
    ".",
    '"',
    "\\",
    "字",
    "😀",
    "\x07",
    "/",
]
BYTES = [bytes([code]) for code in range(256)]
SCOTLAND = "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f"


def vocabulary(rng: random.Random, text: str) -> Vocabulary:
    """Bytes, and pieces of the text in several spellings."""
    more = set()
    for _ in range(40):
        at = rng.randrange(len(text) + 1)
        piece = text[at : at + rng.randint(1, 4)]
        more |= {piece.encode(), json.dumps(piece)[1:-1].encode(), json.dumps(piece, ensure_ascii=False).encode()}
        more |= {(piece + rng.choice(['"', '", ', "x", " "])).encode(), ('"' + piece).encode()}
    tokens = [b"", *BYTES, *sorted(one for one in more if len(one) > 1)]
    return Vocabulary(tokens, eos_ids=[0], special_ids=[0])


def substrings(source: Source) -> set[str]:
    language = source.language
    text, found = language.text, {""} if language.empty else set[str]()
    for start in range(len(text)):
        for end in range(start + 1, len(text) + 1):
            if language.begins[start] and language.ends[end]:
                found.add(text[start:end])
    return found


def spelled(texts: set[str]) -> set[bytes]:
    return {json.dumps(text, ensure_ascii=False).encode() for text in texts}


def masks_along(source: object, table: Vocabulary, allowed: set[bytes], rng: random.Random) -> Iterator[None]:
    """Walk to random texts and compare each mask with the set of allowed texts."""
    beginnings = {text[:n] for text in allowed for n in range(len(text) + 1)}
    automaton = gw.compile(source, table)
    for _ in range(6):
        matcher, done = automaton.matcher(), b""
        for _ in range(30):
            mask = np.zeros((len(table) + 31) // 32, np.uint32)
            matcher.fill_mask(mask)
            bits = np.unpackbits(mask.view(np.uint8), bitorder="little")[: len(table)]
            wanted = [done + table.bytes_of([one]) in beginnings for one in range(1, len(table))]
            assert bits[1:].tolist() == wanted, (done, allowed)
            assert bool(bits[0]) == (done in allowed)
            choices = np.flatnonzero(bits)
            if not len(choices) or (token := int(rng.choice(choices))) == 0:
                break
            matcher.advance(token)
            done += table.bytes_of([token])
        yield


@pytest.mark.parametrize("seed", range(40))
def test_masks_are_those_of_all_substrings(seed: int) -> None:
    rng = random.Random(seed)
    text = "".join(rng.choices(PIECES, k=rng.randint(1, 14)))
    options: dict[str, bool] = {name: rng.random() < 0.3 for name in ("normalize_whitespace",)}
    source = source_of(text, word_boundaries=rng.random() < 0.7, **options)
    allowed = substrings(source)
    if not allowed:
        return
    table = vocabulary(rng, text)
    plain = Substring(text, word_boundaries=source.language.begins != b"\1" * len(source.written), **options)
    for _ in masks_along(plain, table, {one.encode() for one in substrings(plain.source)}, rng):
        pass
    if plain.word_boundaries:
        name = "verbatim:normalize-whitespace" if options["normalize_whitespace"] else "verbatim"
        schema = gw.JsonSchema({"type": "string", "format": name}, formats="strict").quoting(text)
        for _ in masks_along(schema, table, spelled(allowed), rng):
            pass


@pytest.mark.parametrize("start", [b'"a b', b'"b', b'"'])
def test_no_byte_continues_the_end_of_a_text(start: bytes) -> None:
    """The byte 0xF4 begins characters up to beyond the last one, U+10FFFF."""
    table = Vocabulary([b"", *BYTES, b"b\xf4", b"\xf4\x90"], eos_ids=[0], special_ids=[0])
    for constraint, written in (
        (gw.JsonSchema({"type": "string", "format": "verbatim"}).quoting("a b"), start),
        (Substring("a b"), start[1:]),
    ):
        matcher = gw.compile(constraint, table).matcher()
        for byte in written:
            matcher.advance(byte + 1)
        row = masks.new_rows(1, len(table))[0]
        matcher.fill_mask(row)
        legal = set(masks.ids(row, len(table)).tolist())
        for token_id in range(1, len(table)):
            assert (matcher.validate([token_id]) == 1) == (token_id in legal), table.bytes_of([token_id])


def test_every_spelling_of_the_exact_profile() -> None:
    text = 'é "x"\t😀'
    schema = gw.JsonSchema({"type": "string", "format": "verbatim"}, profile="exact").quoting(text)
    for value in ("é", '"x"', 'é "x"\t😀', "😀"):
        for written in (
            json.dumps(value),
            json.dumps(value, ensure_ascii=False),
            json.dumps(value).replace("e9", "E9"),
        ):
            assert schema.parse(written) == json.loads(written)
    for value in ("x y", "", "e", "é "):
        with pytest.raises(gw.errors.InvalidTextError):
            schema.parse(json.dumps(value))


@pytest.mark.parametrize(
    ("text", "good", "bad"),
    [
        ("Marta Lindqvist, 36px", ["Marta", "Lindqvist", "36px", "Marta Lindqvist,"], ["Mart", "arta", "36", " Marta"]),
        ("東京都に住む", ["東京都", "住む", "東"], ["東京都 "]),
        ("cafe\u0301 ole", ["cafe\u0301"], ["cafe", "\u0301"]),
        ("👩\u200d🚀 ok", ["👩\u200d🚀", "ok"], ["👩", "🚀", "👩\u200d"]),
        ("👍🏽!", ["👍🏽", "!"], ["👍"]),
        (f"{SCOTLAND} {SCOTLAND}x", [SCOTLAND, f"{SCOTLAND}x", "x"], ["\U0001f3f4", SCOTLAND[:-1], SCOTLAND[1:]]),
        ("a\r\nb", ["a\r\nb", "a"], ["a\r", "\nb"]),
        ("x_1-y", ["x_1", "y", "x_1-y", "-"], ["x", "1"]),
        ("ภาษาไทย", ["ภาษา", "ไทย"], []),
    ],
)
def test_word_boundaries(text: str, good: list[str], bad: list[str]) -> None:
    quotation = Substring(text, word_boundaries=True)
    allowed = substrings(quotation.source)
    for value in good:
        assert value in allowed
        assert quotation.parse(value) == value
    for value in bad:
        assert value not in allowed
        with pytest.raises(gw.errors.InvalidTextError):
            quotation.parse(value)


def test_case_and_white_space_are_normalised_on_request() -> None:
    text = "Ada \n\t LOVELACE  née Straße"
    loose = Substring(text, word_boundaries=True, ignore_case=True, normalize_whitespace=True)
    automaton = gw.compile(loose, Vocabulary([b"", *BYTES], eos_ids=[0], special_ids=[0]))
    for value in ("ada lovelace", "ADA Lovelace NÉE straße", "née \u017ftraße"):
        matcher = automaton.matcher()
        for byte in value.encode():
            matcher.advance(byte + 1)
        assert loose.parse(value) == value
    assert [text[a:b] for a, b in loose.source.spans("ada lovelace née", 9)] == ["Ada \n\t LOVELACE  née"]
    assert [text[a:b] for a, b in loose.source.spans("straße", 9)] == ["Straße"]
    with pytest.raises(gw.errors.InvalidTextError):
        loose.parse("Ada  lovelace")


def test_exports_of_short_texts() -> None:
    for text in ("abab", "a b a", "né 字"):
        source = source_of(text)
        states = graph_of(source.language).states
        found, todo = set(), [(0, "")]
        while todo:
            state, done = todo.pop()
            if states[state][0]:
                found.add(done)
            todo += [(to, done + chr(chars.ranges[0][0])) for chars, to in states[state][1]]
        assert found == substrings(source)
    with pytest.raises(gw.errors.LimitExceededError, match="2,000 characters"):
        graph_of(source_of("a " * 1001).language)


class Person(BaseModel):
    name: Annotated[str, gw.Verbatim()]
    nick: Annotated[str | None, gw.Verbatim(ignore_case=True)] = None
    tags: list[Annotated[str, gw.Verbatim()]] = []
    note: str = ""


def test_marks_are_formats_of_the_schema() -> None:
    schema = PythonType(Person).schema["properties"]
    assert schema["name"]["format"] == "verbatim"
    assert schema["nick"]["anyOf"][0]["format"] == "verbatim:ignore-case"
    assert schema["tags"]["items"]["format"] == "verbatim"
    assert "format" not in schema["note"]
    every = PythonType(Person).verbatim("verbatim").schema["properties"]
    assert every["note"]["format"] == "verbatim"
    assert every["nick"]["anyOf"][0]["format"] == "verbatim:ignore-case", "a mark of the type stays"


def test_a_type_with_marks_needs_a_source() -> None:
    table = Vocabulary([b"", *BYTES], eos_ids=[0], special_ids=[0])
    with pytest.raises(gw.errors.InvalidConstraintError, match="needs a source text"):
        gw.compile(PythonType(Person), table)
    bound = PythonType(Person).quoting("Ada, née Byron")
    gw.compile(bound, table)
    assert bound.parse('{"name": "Ada", "nick": "ada", "tags": ["Byron"]}').tags == ["Byron"]
    for wrong in ('{"name": "Bob"}', '{"name": ""}', '{"name": "Ad"}', '{"name": "Ada", "tags": ["Bo"]}'):
        with pytest.raises(gw.errors.InvalidTextError):
            bound.parse(wrong)
    assert bound != PythonType(Person).quoting("Bob")
    assert bound == PythonType(Person).quoting("Ada, née Byron")


@pytest.mark.parametrize("formats", ["known", "annotate"])
def test_a_schema_without_a_source_ignores_the_format(formats: Any) -> None:
    assert gw.JsonSchema({"type": "string", "format": "verbatim"}, formats=formats).parse('"x"') == "x"


@pytest.mark.parametrize("formats", ["known", "annotate", "strict"])
def test_a_source_enforces_the_format_in_every_mode(formats: Any) -> None:
    for schema in (
        gw.JsonSchema({"type": "string"}, formats=formats).verbatim("verbatim"),
        gw.JsonSchema({"type": "string", "format": "verbatim"}, formats=formats),
    ):
        assert schema.quoting("Ada Lovelace").parse('"Ada"') == "Ada"
        with pytest.raises(gw.errors.InvalidTextError):
            schema.quoting("Ada Lovelace").parse('"Alan"')


NO_SPACES = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf\u2e80-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uaa60-\uaa7f\uf900-\ufaff\uff66-\uff9d\U0001b000-\U0001b16f\U00020000-\U0003ffff]"
)


def class_of(char: str) -> int:
    """The class of one character, by its definition."""
    space, word, alone, mark, joiner, extender = range(6)
    kind = unicodedata.category(char)
    if char.isspace() or kind in ("Cc", "Zs", "Zl", "Zp"):
        return space
    if char in "\u200c\u200d":
        return joiner
    if "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef" or "\U0001f3fb" <= char <= "\U0001f3ff":
        return extender
    if "\U000e0020" <= char <= "\U000e007f":
        return extender
    if kind.startswith("M"):
        return mark
    if NO_SPACES.match(char):
        return alone
    return word if kind[0] in "LN" or kind == "Pc" or "\U0001f1e6" <= char <= "\U0001f1ff" else alone


def test_classes_of_characters() -> None:
    codes = [*range(0x3400), *range(0xA000, 0xAC80), *range(0xF800, 0x10100), *range(0x1AF00, 0x1FB00)]
    codes += [*range(0x10100, 0x110000, 97), 0x1FFFF, 0x20000, 0x3FFFF, 0x40000, *range(0xE0000, 0xE0200), 0x10FFFF]
    text = "".join(map(chr, codes))
    assert _classes(text).tolist() == [class_of(char) for char in text]
    assert _classes("").tolist() == []


@pytest.mark.parametrize("text", ["", " \n ", "\x00"])
def test_a_text_without_words(text: str) -> None:
    table = Vocabulary([b"", *BYTES], eos_ids=[0], special_ids=[0])
    with pytest.raises(gw.errors.UnsatisfiableError, match=r"/name/format \(no such string occurs in the source text"):
        gw.compile(PythonType(Person).quoting(text), table)
    optional = gw.JsonSchema({"type": ["string", "null"], "format": "verbatim"}).quoting(text)
    assert optional.parse("null") is None
    gw.compile(optional, table)
    empty = gw.JsonSchema({"type": "string", "format": "verbatim:allow-empty"}).quoting(text)
    gw.compile(empty, table)
    assert empty.parse('""') == ""


def test_wrong_sources_and_options() -> None:
    with pytest.raises(gw.errors.InvalidConstraintError, match="lone surrogate"):
        PythonType(Person).quoting("a\ud800")
    with pytest.raises(gw.errors.InvalidConstraintError, match="'verbatim:loud' has the option 'loud'"):
        gw.JsonSchema({"type": "string", "format": "verbatim:loud"})
    with pytest.raises(gw.errors.UnsupportedError, match="write it on a str"):
        PythonType(Annotated[int, gw.Verbatim()])
    with pytest.raises(gw.errors.InvalidConstraintError, match="with parentheses"):
        PythonType(Annotated[str, gw.Verbatim])


def bound_constraints() -> list[Any]:
    schema = gw.JsonSchema({"type": "string", "format": "verbatim"}).quoting("Ada")
    kind = PythonType(Person).quoting("Ada")
    return [
        Substring("Ada Byron", word_boundaries=True, ignore_case=True),
        schema,
        kind,
        PythonType(Person).verbatim("verbatim").quoting("Ada"),
        gw.Reasoning(schema),
        gw.Reasoning(PythonType(Person).verbatim("verbatim").quoting("Ada")),
    ]


@pytest.mark.parametrize("number", range(6))
def test_pickles_and_wire_form_keep_the_source(number: int) -> None:
    source = bound_constraints()[number]
    copied = pickle.loads(pickle.dumps(source))
    assert copied == source
    assert gw.from_wire(gw.to_wire(source), types=[Person, __name__]) == source
    without = gw.from_wire(json.dumps(gw.to_wire(source)))
    for text in ('{"name": "Bob", "nick": null, "tags": [], "note": "x"}', '"Bob"', "Bob"):
        for one in (copied, without):
            with pytest.raises(gw.errors.InvalidTextError):
                (one.answer if isinstance(one, gw.Reasoning) else one).parse(text)


def test_malformed_sources_in_wire_documents() -> None:
    document = gw.to_wire(gw.JsonSchema({"type": "string", "format": "verbatim"}).quoting("Ada"))
    del document["digest"]
    for wrong in (1, None, "a\ud800"):
        with pytest.raises(gw.errors.InvalidConstraintError):
            gw.from_wire({**document, "options": {**document["options"], "source": wrong}})
    kind = gw.to_wire(PythonType(Person).quoting("Ada"))
    del kind["digest"]
    for name in ("source", "verbatim", "other"):
        with pytest.raises(gw.errors.InvalidConstraintError):
            gw.from_wire({**kind, "spec": {**kind["spec"], name: 1}}, types=[Person, __name__])


def pairs(count: int) -> Iterator[tuple[str, Any]]:
    """Texts with repeated, overlapping and unusual parts, and records of quotations from them."""
    rng = random.Random(7)
    for _ in range(count):
        text = "".join(rng.choices(PIECES, k=rng.randint(1, 30)))
        allowed = sorted(substrings(source_of(text)))
        record = {f"k{n}": rng.choice([rng.choice(allowed or [""]), [rng.choice(allowed or [""])]]) for n in range(3)}
        yield text, record


def check_spans(count: int) -> None:
    for text, record in pairs(count):
        found = spans_of(json.dumps(record, ensure_ascii=False), text)
        for name, value in record.items():
            place, value = (f"/{name}/0", value[0]) if isinstance(value, list) else (f"/{name}", value)
            if not value:
                assert place not in found
                continue
            assert found[place], (text, value)
            assert {text[start:end] for start, end in found[place]} == {value}
            assert len(set(found[place])) == len(found[place])


def test_spans_are_the_values() -> None:
    check_spans(500)


@pytest.mark.slow  # half a minute
def test_spans_of_ten_thousand_records_are_the_values() -> None:
    check_spans(10_000)


def test_a_source_does_not_get_the_program_of_another() -> None:
    table = Vocabulary([b"", *BYTES], eos_ids=[0], special_ids=[0])
    schema = gw.JsonSchema({"type": "string", "format": "verbatim"})
    for text in ("", "Ada", "Bob"):
        one = schema.quoting(text) if text else schema
        for _ in range(2):
            matcher = gw.compile(one, table).matcher()
            matcher.advance(ord('"') + 1)
            mask = np.zeros((len(table) + 31) // 32, np.uint32)
            matcher.fill_mask(mask)
            legal = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
            assert not text or legal.tolist() == [ord(text[0]) + 1]


@pytest.mark.parametrize("name", ["default", "enum", "const", "examples", "propertyNames", "properties"])
def test_properties_with_the_name_of_a_keyword_are_verbatim(name: str) -> None:
    schema = gw.JsonSchema(
        {"type": "object", "properties": {name: {"type": "string"}}, "required": [name], "additionalProperties": False}
    )
    bound = schema.verbatim("verbatim").quoting("Ada Lovelace")
    assert bound.parse(f'{{"{name}": "Ada"}}') == {name: "Ada"}
    with pytest.raises(gw.errors.InvalidTextError):
        bound.parse(f'{{"{name}": "Alan"}}')


def test_a_quote_that_ends_a_quoted_substring_or_continues_it() -> None:
    vocabulary = Vocabulary([b'"', b"a", b'"a', b'a"', b"<eos>"], [4])
    matcher = gw.compile('"' + Substring('a"a') + '"', vocabulary).matcher()
    row = masks.new_rows(1, 5)[0]
    for token, legal in ((0, [0, 2]), (1, [0, 1, 2, 3]), (0, [0, 2]), (4, [0, 1, 3, 4])):
        matcher.fill_mask(row)
        assert masks.ids(row, 5).tolist() == legal
        matcher.advance(token)
    assert matcher.is_finished


def test_case_does_not_change_word_boundaries() -> None:
    text = "a\u0345 -\u0345 b"  # U+0345 is a combining mark whose case folding is the letter iota
    exact, loose = (Substring(text, word_boundaries=True, ignore_case=ignored) for ignored in (False, True))
    for quoted, fits in (("a", False), ("a\u0345", True), ("-", False), ("\u0345", False), ("-\u0345 b", True)):
        for source in (exact, loose):
            assert bool(source.source.spans(quoted, 1)) is fits
            assert accepts(byte_automaton(source.grammar()), quoted) is fits
    assert loose.source.spans("A\u0345 -", 1) == []
    assert loose.source.spans("A\u0399", 1) == [(0, 2)]
