"""Exact bytes of every id, per tokenizer family and library."""

from __future__ import annotations

import functools
import pickle

import pytest

from guideway.tokenizers import Tokenizer, Vocabulary
from tests.helpers.tokenizer_files import FAMILIES, Form

TEXTS = [
    "",
    "hello world",
    " leading and trailing ",
    "two  spaces,   three",
    "line\nline\r\nline\r\n\r\n\ttab",
    "naïve café €5, Москва 東京 القاهرة",
    "שלום ‏world‎ مرحبا",
    "👩‍👩‍👧‍👦 🏳️‍🌈 é é 👍🏽",
    "control \x01\x02\x1b\x7f and \u200b\u2028\ufeff",
    "=" * 45 + "and" + "-" * 37,
    "don't 1234567 3.14e-10 {'a': [1, 2]}",
    "<0x0A> as text",
    "\U0010ffff\ue000",
    "a" * 300,
]


@functools.cache
def load(family: str, library: str) -> tuple[Form, Tokenizer]:
    for module in {"Llama 3": ["tiktoken"], "Llama 4": ["tiktoken"], "bytes": [], "tiny": []}.get(family, ["gguf"]):
        pytest.importorskip(module)
    forms = FAMILIES[family]()
    if library not in forms:
        pytest.skip(f"{library} has no form of it")
    return forms[library], Tokenizer.of(forms[library].source)


PAIRS = [
    (family, library)
    for family, libraries in {
        "byte-level BPE": ["tokenizers", "folder", "gguf"],
        "unigram": ["sentencepiece", "path", "gguf"],
        "unigram without prefix": ["sentencepiece", "path", "gguf"],
        "sentencepiece BPE": ["sentencepiece", "path", "gguf", "tokenizers"],
        "Llama 3": ["tiktoken", "tokenizers", "gguf"],
        "Llama 4": ["tiktoken"],
        "tiny": ["folder", "tokenizers"],
        "bytes": ["list", "tuple"],
        "Tekken 240718": ["mistral-common", "path"],
        "Tekken 240911": ["mistral-common", "path"],
        **{
            f"Mistral v{n}": ["sentencepiece", "path", "gguf", "mistral-common", "mistral-common, whole"]
            for n in (1, 2, 3, 7)
        },
    }.items()
    for library in libraries
]


@pytest.mark.parametrize(("family", "library"), PAIRS)
def test_texts_come_back(family: str, library: str) -> None:
    _, tokenizer = load(family, library)
    for text in TEXTS:
        ids = tokenizer.encode(text)
        assert tokenizer.decode(ids) == text
        data = tokenizer.vocabulary.bytes_of(ids)
        assert data in (text.encode(), b" " + text.encode())


@pytest.mark.parametrize(("family", "library"), PAIRS)
def test_ids_and_texts_are_the_librarys_own(family: str, library: str) -> None:
    form, tokenizer = load(family, library)
    for text in TEXTS:
        if form.ids is not None:
            assert tokenizer.encode(text) == form.ids(text), text
        if form.text is not None:
            assert tokenizer.decode(tokenizer.encode(text)) == form.text(tokenizer.encode(text))


@pytest.mark.parametrize("family", dict(PAIRS))
def test_one_tokenizer_through_two_libraries_has_equal_bytes(family: str) -> None:
    made = [load(family, library)[1] for name, library in PAIRS if name == family]
    assert len({tokenizer.vocabulary.token_bytes for tokenizer in made}) == 1
    assert len({tokenizer.vocabulary.fingerprint for tokenizer in made}) == 1, [t.vocabulary for t in made]
    for text in TEXTS:
        assert len({tuple(tokenizer.encode(text)) for tokenizer in made}) == 1, text


@pytest.mark.parametrize(("family", "library"), PAIRS)
def test_pickles_hold_no_handle_and_give_the_same(family: str, library: str) -> None:
    _, tokenizer = load(family, library)
    tokenizer.encode("warm")
    again = pickle.loads(pickle.dumps(tokenizer))
    assert again == tokenizer
    assert hash(again) == hash(tokenizer)
    assert again.encode("hello world") == tokenizer.encode("hello world")


@pytest.mark.parametrize("library", ["sentencepiece", "gguf"])
def test_tokens_of_the_user_are_found_in_the_text(library: str) -> None:
    _, tokenizer = load("sentencepiece BPE", library)
    tool = tokenizer.vocabulary.token_bytes.index(b"<tool>")
    for text in ("<tool>", "a <tool> b", " <tool><tool> "):
        ids = tokenizer.encode(text)
        assert ids.count(tool) == text.count("<tool>")
        assert tokenizer.decode(ids) == text
    assert load("sentencepiece BPE", "gguf")[1].encode("<tool> x") == load("sentencepiece BPE", "path")[1].encode(
        "<tool> x"
    )


@pytest.mark.parametrize("family", dict(PAIRS))
def test_every_byte_can_be_written(family: str) -> None:
    _, tokenizer = load(family, dict(PAIRS)[family])
    single = {token for token in tokenizer.vocabulary.token_bytes if len(token) == 1}
    assert len(single) == 256 or family.startswith("unigram") or "sentencepiece" in family
    assert isinstance(tokenizer.vocabulary, Vocabulary)


BROKEN = [
    b"\x80",
    b"\xbf\x80",
    b"a\xc3",
    b"\xe6\x9d",
    b"\x9d\xb1 x",
    b"\xf0\x9f\x91\xa9\xe2\x80",
    b"\xff\xfe",
    b"\xc0\xaf",
]


@pytest.mark.parametrize(("family", "library"), PAIRS)
def test_bytes_that_are_no_text_come_back_through_ids(family: str, library: str) -> None:
    """Lone continuation bytes, truncated characters and invalid UTF-8: a `str` cannot contain them, ids can."""
    _, tokenizer = load(family, library)
    unusable = tokenizer.vocabulary.unusable()
    single = {t[0]: i for i, t in enumerate(tokenizer.vocabulary.token_bytes) if len(t) == 1 and i not in unusable}
    for data in BROKEN:
        ids = [single[byte] for byte in data]
        assert tokenizer.vocabulary.bytes_of(ids) == data
        assert tokenizer.decode(ids) == data.decode("utf-8", "replace")
        assert tokenizer.decode(ids).startswith(tokenizer.decode_complete(ids))
