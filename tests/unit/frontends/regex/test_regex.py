"""`Regex` compared with Python's `re`."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable

import pytest
from hypothesis import given, settings, strategies as st

from guideway.constraints import Regex
from guideway.errors import (
    ConstraintError,
    InvalidConstraintError,
    InvalidTextError,
    LimitExceededError,
    UnsupportedError,
)
from guideway.frontends.regex import parse_pattern
from guideway.grammar.regular import MAX_CODE_POINT, Chars, Literals
from tests.helpers.reference_grammar import matches

EXACT = [
    r"",
    r"abc",
    r"a|b|",
    r"(a|b)*c",
    r"a{2}b{,2}c{1,}d{2,3}",
    r"a{x}{|}a{",
    r"[a-c\d]+",
    r"[^a-c\n]",
    r"[]a]|[^]a]",
    r"[a\-z-]",
    r".",
    r"(?s).",
    r"\x61\u0062\U00000063\N{LATIN SMALL LETTER D}\0\012\141[\141\b]",
    r"(?x) a b # c" "\n" r" [ ] \  d",
    r"(?#c)(?x) a",
    r"(?i)sK",
    r"(?i)[k-s]|ſ",
    r"(?i:a)a",
    r"(?i-s:a.)",
    r"(?ai)k",
    r"(?P<n>a)(?:b)(?#comment)*",
    r"a*?b+?c??d{1,2}?",
    r"^a$",
    r"\Aa\Z",
    r"^a|b$",
    r"(^a|b)c$",
    r"a$\n",
    r"(a$\n?|b)*",
    r"a$b*\n*",
    r"(^|a)+b",
    r"(a|^b){2}",
    r"(a|b$){1,3}",
    r"(?:$\n)*",
    r"a\Z\n?",
    r"()a",
    r"((a*)*)*",
    r"(\n|a$)*",
    r"(a$|\n)*",
    r"(^a?$\n?)*",
    r"(?=a)[ab]+",
    r"(?!ab)[abc]*",
    r"(?=.*b)(?!.*c)[abc]{2,3}",
    r"a(?=b)b|a(?!b).",
    r"(?:(?!bc)[abc])*",
    r"(?:a(?=b)|b(?<=ab)|(?<!b)c)*",
    r"[ab]*(?<=a)b?",
    r"(?<!a)b|(?<=^)a",
    r"\ba+\b|\Bb",
    r"(?:\b[ab]\B|c\b)*",
    r"(?=(?!b).)[ab](?<=(?<!b)a)",
    r"(?m)(?:^a$\n?)*",
    r"(?m:a$\n^)b?",
    r"(?:(?=a)){2}a",
    r"(?=a)*b",
]
TEXTS = [
    "",
    "a",
    "b",
    "c",
    "ab",
    "abc",
    "aab",
    "ac",
    "bc",
    "a\n",
    "\n",
    "a\n\n",
    "aa",
    "k",
    "K",
    "\u212a",
    "s",
    "ſ",
    "S",
]


@pytest.mark.parametrize("pattern", EXACT)
def test_means_what_re_means(pattern: str) -> None:
    language = parse_pattern(pattern, "python")
    texts = [
        *TEXTS,
        "abcd\0\naa",
        "abcd\0\na\b",
        "aabbcdd",
        "aabbcddd",
        "aacd",
        "a{x}{",
        "}a{",
        "ab d",
        "ab" + " d",
        "sK",
    ]
    for text in [*texts, *(chr(c) for c in range(0x180))]:
        assert matches(language, text) == bool(re.fullmatch(pattern, text)), (pattern, text)


@pytest.mark.parametrize("pattern", [*EXACT, r"a|^b", r"b$|c", r"(^|b)a($|c)"])
def test_search_means_what_re_means(pattern: str) -> None:
    language = parse_pattern(pattern, "python", search=True)
    for text in TEXTS:
        assert matches(language, text) == bool(re.search(pattern, text)), (pattern, text)


anchors = ["^", "$", r"\A", r"\Z", r"\b", r"\B", "(?m:^)", "(?m:$)"]
behind = ["(?<=a)", "(?<!b)", "(?<=ab|ba)", r"(?<!\b.)", "(?<=(?=b).)", "(?<=^a)", "(?<!(?<!a)b)"]
atoms = st.sampled_from(["a", "b", "\n", ".", "[ab]", "[^a]", r"\n", *anchors, *behind, "()", "", r"\s", "(?i:A)"])
counts = st.sampled_from(["*", "+", "?", "{2}", "{0,2}", "{1,}", "*?", "{,1}"])
patterns = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map("|".join),
        st.tuples(inner, counts).map(lambda pair: f"(?:{pair[0]}){pair[1]}"),
        inner.map(lambda pattern: f"({pattern})"),
        inner.map(lambda pattern: f"(?={pattern})"),
        inner.map(lambda pattern: f"(?!{pattern})"),
    ),
    max_leaves=8,
)


@settings(max_examples=400, deadline=None)
@given(patterns, st.lists(st.text("abA\n", max_size=5), min_size=1, max_size=6))
def test_random_patterns(pattern: str, texts: list[str]) -> None:
    full, search = parse_pattern(pattern, "python"), parse_pattern(pattern, "python", search=True)
    for text in texts:
        assert matches(full, text) == bool(re.fullmatch(pattern, text)), (pattern, text)
        assert matches(search, text) == bool(re.search(pattern, text)), (pattern, text)


@settings(max_examples=600, deadline=None)
@given(st.text("ab(|)[]{}^$*+?.\\,-:0123<>P#ismxdwbAZuN \n", max_size=9))
def test_random_characters_fail_where_re_fails(pattern: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # re warns of nested sets; the meaning stays
        try:
            compiled = re.compile(pattern)
        except (re.error, OverflowError):
            with pytest.raises(ConstraintError):
                Regex(pattern)
            return
    try:
        language = parse_pattern(pattern, "python")
    except (UnsupportedError, LimitExceededError):
        return
    for text in ["", "a", "b", "ab", "aa", "1", " ", "\n", "a\n"]:
        assert matches(language, text) == bool(compiled.fullmatch(text)), (pattern, text)


EVERY_CHARACTER = "".join(map(chr, range(MAX_CODE_POINT + 1)))
CLASSES = [r"\d", r"\w", r"\s", r"\D", r"\W", r"\S", ".", "[a-z]", r"[^\W\d]", "[k-sµ]", r"[\dk]", "[^k]", "[Ā-ſ]"]


@pytest.mark.parametrize("flags", ["", "(?i)", "(?a)", "(?ai)"])
@pytest.mark.parametrize("source", [*CLASSES, "k", "ß", "µ", "ı", "İ", "ς", "ǆ", "\U00010400", "A"])
def test_characters_are_those_of_re(source: str, flags: str) -> None:
    finder = re.compile(f"{flags}(?:{source})+")
    expected = marked((found.start(), found.end() - 1) for found in finder.finditer(EVERY_CHARACTER))
    language = parse_pattern(flags + source, "python")
    if isinstance(language, Literals):
        assert marked((ord(char), ord(char)) for char in language.texts) == expected
        return
    assert isinstance(language, Chars)
    assert marked(language.ranges) == expected
    assert all(a[1] + 1 < b[0] for a, b in zip(language.ranges, language.ranges[1:], strict=False))


def marked(ranges: Iterable[tuple[int, int]]) -> bytearray:
    marks = bytearray(MAX_CODE_POINT + 1)
    for low, high in ranges:
        marks[low : high + 1] = b"x" * (high + 1 - low)
    marks[0xD800:0xE000] = bytes(0x800)
    return marks


def test_no_character_beyond_the_table_has_a_case() -> None:
    assert all(chr(c).lower() == chr(c) == chr(c).upper() for c in range(0x20000, MAX_CODE_POINT + 1))


@pytest.mark.parametrize(
    ("pattern", "what", "position"),
    [
        (r"(a)\1", "back-reference", 3),
        (r"(?P<x>a)(?P=x)", "back-reference", 8),
        (r"a++", "possessive", 2),
        (r"(?>a)", "atomic", 0),
        (r"(a)?(?(1)b|c)", "conditional", 4),
    ],
)
def test_refused_with_a_caret(pattern: str, what: str, position: int) -> None:
    with pytest.raises(UnsupportedError, match=re.escape(what)) as caught:
        Regex(pattern)
    assert caught.value.place == f"{pattern}\n{' ' * position}^"
    assert caught.value.place in str(caught.value)


@pytest.mark.parametrize(
    ("pattern", "position"),
    [("a)", 1), ("(a", 0), ("[a", 0), ("*a", 0), ("a**", 2), ("a{3,2}", 1), (r"\q", 0), ("[b-a]", 1), ("a(?i)", 1)],
)
def test_malformed_with_a_caret(pattern: str, position: int) -> None:
    with pytest.raises(InvalidConstraintError, match=f"at position {position}:") as caught:
        Regex(pattern)
    assert str(caught.value.place).endswith("\n" + " " * position + "^")


def test_limits() -> None:
    Regex("(" * 200 + "a" + ")" * 200)
    with pytest.raises(LimitExceededError, match="200"):
        Regex("(" * 201 + "a" + ")" * 201)
    with pytest.raises(LimitExceededError):
        Regex("a{4294967295}")
    with pytest.raises(LimitExceededError, match="at most 50 deep"):
        Regex("(?:" * 60 + "^a" + "|b)*" * 60)
    Regex("(?:" * 49 + "^a" + "|b)*" * 49)
    for large in ("(?:(?!a{99})c{30000}x)*", "(?:(?=a.{14}b)a|b|a.)*$", "(?:(?<=a.{14})b|[ab])*"):
        with pytest.raises(LimitExceededError, match=r"more than|work") as caught:
            Regex(large)
        assert str(caught.value.place).endswith("^")
    Regex("x" * 100_000)


def test_ecma_meanings() -> None:
    def means(pattern: str, text: str) -> bool:
        return matches(parse_pattern(pattern, "ecma", search=True), text)

    assert means(r"^\d$", "7")
    assert not means(r"^\d$", "٣")
    assert not means(r"^\w$", "é")
    assert means(r"^\s$", "\ufeff")
    assert not means("a$", "a\n")
    assert not means("^.$", "\u2028")
    assert means(r"^[^]$", "\n")
    assert not means("[]", "a")
    assert means(r"^\cJ\/\-\u{1F600}\ud83d\ude00$", "\n/-😀😀")
    assert means("^a|b$", "ax")
    assert means("^a|b$", "xb")
    assert not means("^a|b$", "xa")
    assert means("(?<year>a)", "a")
    for pattern in (r"\k<a>", r"(a)\1"):
        with pytest.raises(UnsupportedError):
            parse_pattern(pattern, "ecma")
    for pattern in (r"\A", r"(?P<a>b)", "a{2,1}", r"\p{Nope}", r"\pL", "(?<=a)*"):
        with pytest.raises(InvalidConstraintError):
            parse_pattern(pattern, "ecma")


def test_dialects() -> None:
    assert Regex(r"\d", dialect="ecma") != Regex(r"\d")
    assert Regex(r"\p{Lu}\p{Script=Greek}", dialect="ecma").parse("Aα") == "Aα"
    assert Regex("(?i:k)", dialect="ecma").parse("\u212a")
    assert Regex("(?i)[^k]", dialect="ecma").parse("j")
    with pytest.raises(InvalidTextError):
        Regex("(?i)[^k]", dialect="ecma").parse("\u212a")
    with pytest.raises(InvalidConstraintError, match="perl"):
        Regex("a", dialect="perl")  # type: ignore[arg-type]  # the slip is the test


def test_parse_and_equality() -> None:
    assert Regex("a+").parse("aa") == "aa"
    with pytest.raises(InvalidTextError):
        Regex("a+").parse("b")
    assert Regex("a") == Regex("a") != Regex("b")
    assert len({Regex("a"), Regex("a")}) == 1


def test_parse_takes_linear_time_and_checks_joined_sources() -> None:
    text = "a" * 5000 + "b"
    assert Regex("(a+)+c|a+b").parse(text) == text  # `re` would try 2**5000 paths
    with pytest.raises(InvalidTextError):
        Regex("(a+)+c").parse(text)
    joined = Regex("a+") + Regex("[ab]")
    assert joined.parse(text) == text
    with pytest.raises(InvalidTextError):
        joined.parse("b")
