"""`Tokenizer`: exact bytes for both families, token roles from the model's files, and errors."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from hypothesis import given, strategies as st
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors, trainers

from guideway.errors import (
    ChatTemplateError,
    InvalidFileError,
    InvalidTokenError,
    ModelNotFoundError,
    UnsupportedTokenizerError,
)
from guideway.tokenizers import Tokenizer, Vocabulary

CORPUS = ["the quick brown fox", "Ada Lovelace, 36", '{"name": "Zoë", "n": 1}', "naïve café €5", "  two  spaces\n\n"]


def byte_level() -> tokenizers.Tokenizer:
    made = tokenizers.Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=330,
        special_tokens=["<|endoftext|>", "<s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator(CORPUS * 3, trainer)
    made.add_tokens([AddedToken("<tool é>", special=False)])
    return made


def sentencepiece_like() -> tokenizers.Tokenizer:
    pieces = [
        "<unk>",
        "<s>",
        "</s>",
        *(f"<0x{b:02X}>" for b in range(256)),
        "▁",
        "a",
        "b",
        "▁a",
        "ab",
        "▁ab",
        "é",
        "▁▁",
    ]
    merges = [("▁", "a"), ("a", "b"), ("▁a", "b"), ("▁", "▁")]
    model = models.BPE({p: i for i, p in enumerate(pieces)}, merges, unk_token="<unk>", byte_fallback=True)
    made = tokenizers.Tokenizer(model)
    made.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    made.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    made.add_special_tokens(["<unk>", "<s>", "</s>"])
    made.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return made


BYTE_LEVEL, SENTENCEPIECE = byte_level(), sentencepiece_like()
TOKENIZERS = {"byte level": Tokenizer.of(BYTE_LEVEL), "sentencepiece": Tokenizer.of(SENTENCEPIECE)}


@pytest.mark.parametrize("name", TOKENIZERS)
@given(text=st.text(max_size=40))
def test_the_bytes_of_an_encoding_are_the_text(name: str, text: str) -> None:
    tokenizer = TOKENIZERS[name]
    ids = tokenizer.encode(text)
    data = tokenizer.vocabulary.bytes_of(ids)
    dummy = b" " if name == "sentencepiece" and text else b""
    assert data == dummy + text.encode()
    assert tokenizer.decode(ids) == text


@pytest.mark.parametrize("name", TOKENIZERS)
def test_decoding_agrees_with_the_library(name: str) -> None:
    tokenizer, theirs = TOKENIZERS[name], {"byte level": BYTE_LEVEL, "sentencepiece": SENTENCEPIECE}[name]
    for text in [*CORPUS, "", "日本", "a\tb"]:
        ids = theirs.encode(text, add_special_tokens=True).ids
        assert tokenizer.decode(ids) == theirs.decode(ids)


def test_every_byte_has_a_token_and_specials_have_names_alone() -> None:
    for tokenizer in TOKENIZERS.values():
        table = tokenizer.vocabulary.token_bytes
        assert {bytes([b]) for b in range(256)} <= set(table)
        special = tokenizer.vocabulary.special_ids
        assert all(table[i].decode() == tokenizer._backend.spelled(i) for i in special)
        assert tokenizer.decode(special) == ""


def test_bytes_of_odd_tokens() -> None:
    sentencepiece = TOKENIZERS["sentencepiece"].vocabulary.token_bytes
    assert sentencepiece[3 + 0x0A] == b"\n"
    assert sentencepiece[-4:] == (b"ab", b" ab", "é".encode(), b"  ")
    added = BYTE_LEVEL.token_to_id("<tool é>")
    assert TOKENIZERS["byte level"].vocabulary.token_bytes[added] == "<tool é>".encode()


def test_incomplete_characters_are_left_out_where_asked() -> None:
    tokenizer = TOKENIZERS["sentencepiece"]
    ids = tokenizer.encode("a€")
    assert tokenizer.decode(ids[:-1]) == "a�"
    assert tokenizer.decode_complete(ids[:-1]) == "a"


def test_roles_by_custom_and_special_encoding() -> None:
    tokenizer = TOKENIZERS["sentencepiece"]
    assert (tokenizer.bos_id, tokenizer.eos_ids, tokenizer.pad_id) == (1, (2,), 2)
    assert tokenizer.encode("a", special=True) == [1, *tokenizer.encode("a")]
    assert Tokenizer.of(tokenizer, eos_ids=[5]).vocabulary.eos_ids == (5,)
    assert TOKENIZERS["byte level"].eos_ids == (0,)


def test_an_eos_after_a_prompt_is_omitted() -> None:
    made = sentencepiece_like()
    made.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 2)])
    assert Tokenizer.of(made).encode("a", special=True) == Tokenizer.of(made).encode("a")


def test_the_callers_object_is_not_changed() -> None:
    made = byte_level()
    made.enable_truncation(3)
    made.enable_padding(length=9)
    before = made.to_str()
    tokenizer = Tokenizer.of(made)
    assert tokenizer.decode(tokenizer.encode("the quick brown fox")) == "the quick brown fox"
    assert made.to_str() == before
    assert tokenizer == TOKENIZERS["byte level"]


def test_identity_pickle_and_immutability() -> None:
    tokenizer, other = TOKENIZERS["byte level"], TOKENIZERS["sentencepiece"]
    assert tokenizer == Tokenizer.of(byte_level())
    assert hash(tokenizer) == hash(Tokenizer.of(byte_level()))
    assert tokenizer != other
    assert tokenizer != Tokenizer.of(tokenizer, eos_ids=[1])
    assert Tokenizer.of(tokenizer) is tokenizer
    again = pickle.loads(pickle.dumps(tokenizer))
    assert again == tokenizer
    assert again.encode("fox") == tokenizer.encode("fox")
    assert copy.deepcopy(tokenizer) == tokenizer
    with pytest.raises(AttributeError, match="immutable"):
        tokenizer.vocabulary = other.vocabulary


def write(folder: Path, **files: Any) -> Path:
    BYTE_LEVEL.save(str(folder / "tokenizer.json"))
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content), "utf-8")
    return folder


def test_folders_say_the_roles(tmp_path: Path) -> None:
    write(
        tmp_path,
        tokenizer_config={"eos_token": {"content": "<|endoftext|>"}, "bos_token": "<s>", "chat_template": "{{ 1 }}"},
        config={"eos_token_id": [0, 5]},
        generation_config={"pad_token_id": 7},
    )
    for source in (tmp_path, str(tmp_path), tmp_path / "tokenizer.json"):
        tokenizer = Tokenizer.of(source)
        assert (tokenizer.bos_id, tokenizer.eos_ids, tokenizer.pad_id) == (1, (0, 5), 7)
        assert tokenizer.has_chat_template


def test_fast_tokenizers_of_transformers_are_known_by_their_backend() -> None:
    class Fast:
        backend_tokenizer = byte_level()
        bos_token_id, eos_token_id, pad_token_id, chat_template = None, 1, 0, None

    tokenizer = Tokenizer.of(Fast())
    assert (tokenizer.bos_id, tokenizer.eos_ids, tokenizer.pad_id) == (None, (1,), 0)


def test_ids_that_the_tokenizer_lacks_have_no_role(tmp_path: Path) -> None:
    write(tmp_path, config={"eos_token_id": [0, 99999, -1, True], "bos_token_id": 1 << 40, "pad_token_id": "x"})
    tokenizer = Tokenizer.of(tmp_path)
    assert (tokenizer.bos_id, tokenizer.eos_ids, tokenizer.pad_id) == (1, (0,), 0)


def test_huge_ids_are_refused(tmp_path: Path) -> None:
    document = json.loads(BYTE_LEVEL.to_str())
    document["model"]["vocab"]["zzz"] = 4_000_000_000
    (tmp_path / "tokenizer.json").write_text(json.dumps(document), "utf-8")
    with pytest.raises(InvalidFileError, match="4000000000"):
        Tokenizer.of(tmp_path)


@pytest.mark.engine("transformers")
def test_fast_tokenizers_of_transformers_themselves(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=byte_level(), eos_token="<|endoftext|>")
    before = fast.backend_tokenizer.to_str()
    tokenizer = Tokenizer.of(fast)
    assert fast.backend_tokenizer.to_str() == before
    assert tokenizer.eos_ids == (0,)
    assert tokenizer.encode("Ada €5") == fast.encode("Ada €5")
    fast.save_pretrained(tmp_path)
    assert Tokenizer.of(tmp_path).vocabulary == tokenizer.vocabulary


TEMPLATE = "{{ bos_token }}{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}" + (
    "{% if messages|length > 2 %}{{ raise_exception('too many') }}{% endif %}[assistant]"
)


def test_chat_templates(tmp_path: Path) -> None:
    pytest.importorskip("jinja2", reason="chat templates need jinja2")
    folder = write(tmp_path, tokenizer_config={"bos_token": "<s>", "eos_token": "<|endoftext|>"})
    (folder / "chat_template.jinja").write_text(TEMPLATE, "utf-8")
    tokenizer = Tokenizer.of(folder)
    message = {"role": "user", "content": "hi"}
    assert tokenizer.render_chat([message]) == "<s>[user] hi\n[assistant]"
    with pytest.raises(ChatTemplateError, match="too many"):
        tokenizer.render_chat([message] * 3)


def test_without_a_template_chat_is_refused() -> None:
    with pytest.raises(ChatTemplateError, match="no chat template"):
        TOKENIZERS["byte level"].render_chat([{"role": "user", "content": "hi"}])


@pytest.mark.parametrize("given", [3, None, object(), b"tokenizer.json", "no/such/folder"])
def test_what_is_not_known_is_refused_by_name(given: object) -> None:
    with pytest.raises((ModelNotFoundError, UnsupportedTokenizerError), match="tokenizer"):
        Tokenizer.of(given)


def test_inexact_decoders_are_refused() -> None:
    word_piece = tokenizers.Tokenizer(models.WordPiece({"[UNK]": 0, "a": 1}, unk_token="[UNK]"))
    with pytest.raises(UnsupportedTokenizerError, match="without a decoder"):
        Tokenizer.of(word_piece)
    for decoder in (decoders.WordPiece(), decoders.BPEDecoder(), decoders.Strip(" ", 1, 0), decoders.CTC()):
        word_piece.decoder = decoder
        with pytest.raises(UnsupportedTokenizerError, match="would not be exact"):
            Tokenizer.of(word_piece)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"model": 3}', "\udcff"])
def test_damaged_files_are_engine_errors(tmp_path: Path, content: str) -> None:
    file = tmp_path / "tokenizer.json"
    file.write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(InvalidFileError):
        Tokenizer.of(file)
    write(tmp_path)
    (tmp_path / "config.json").write_bytes(content.encode("utf-8", "surrogateescape"))
    if content != '{"model": 3}':
        with pytest.raises(InvalidFileError, match=r"config\.json"):
            Tokenizer.of(tmp_path)


def test_a_bare_vocabulary_encodes_by_longest_match() -> None:
    vocabulary = Vocabulary([b"</s>", b"a", b"ab", b"abc", b"\xc3", b"\xa9", b"a"], eos_ids=[0])
    tokenizer = Tokenizer.of(vocabulary)
    assert tokenizer.encode("abcabaé") == [3, 2, 1, 4, 5]
    assert tokenizer.vocabulary is vocabulary
    assert pickle.loads(pickle.dumps(tokenizer)) == tokenizer
    with pytest.raises(InvalidTokenError, match="byte 1"):
        tokenizer.encode("ax")
    with pytest.raises(InvalidTokenError, match="cannot be encoded"):
        tokenizer.encode("\ud800")
    with pytest.raises(TypeError, match="needs a str"):
        tokenizer.encode(b"a")  # type: ignore[arg-type]  # the mistake under test
