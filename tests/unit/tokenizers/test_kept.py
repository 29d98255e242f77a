"""A tokenizer is read once per object. Changes of the object are noticed, and the object is not kept alive."""

from __future__ import annotations

import gc
import json
import os
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from tokenizers import decoders, models

from guideway.tokenizers import Tokenizer, huggingface, kept, tokenizer as reading
from tests.helpers.tokenizer_files import FAMILIES
from tests.unit.tokenizers.test_unwrap import stand_in

SOURCES = [
    ("byte-level BPE", "tokenizers"),
    ("byte-level BPE", "folder"),
    ("byte-level BPE", "gguf"),
    ("unigram", "sentencepiece"),
    ("unigram", "path"),
    ("sentencepiece BPE", "tokenizers"),
    ("Llama 4", "tiktoken"),
    ("Tekken 240911", "mistral-common"),
    ("Mistral v3", "mistral-common"),
    ("Mistral v3", "mistral-common, whole"),
]


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The objects that adapters read during the test."""
    found: list[object] = []
    read = reading.find_backend

    def counted(source: object) -> object:
        found.append(source)
        return read(source)

    monkeypatch.setattr(reading, "find_backend", counted)
    kept._clear()
    return found


def fast() -> tokenizers.Tokenizer:
    """A new object for each call."""
    made = FAMILIES["byte-level BPE"]()["tokenizers"].source
    return tokenizers.Tokenizer.from_str(made.to_str())


class Fast:
    """A fast tokenizer of transformers, as the adapter sees it."""

    def __init__(self) -> None:
        self.backend_tokenizer = fast()
        self.bos_token_id = self.pad_token_id = None
        self.eos_token_id = 0
        self.chat_template: str | None = None
        self._special_tokens_map: dict[str, str] = {"eos_token": "<|end|>"}

    @property
    def special_tokens_map(self) -> dict[str, str]:
        return self._special_tokens_map


@pytest.mark.parametrize(("family", "library"), SOURCES)
def test_second_call_reads_nothing(family: str, library: str, reads: list[object]) -> None:
    if "mistral" in library or family == "Llama 4":
        pytest.importorskip("mistral_common" if "mistral" in library else "tiktoken")
    if family not in ("byte-level BPE",):
        pytest.importorskip("sentencepiece")
    source = FAMILIES[family]()[library].source
    first = Tokenizer.of(source)
    assert Tokenizer.of(source) is first
    other = Tokenizer.of(source, eos_ids=[5])
    assert other.eos_ids == (5,)
    assert Tokenizer.of(source, eos_ids=[5]) is other
    assert len(reads) == 1


def test_adapters_of_engines_read_once(reads: list[object]) -> None:
    from guideway.integrations._common import Processor

    llama = stand_in("llama_cpp.llama", "Llama", model_path=str(FAMILIES["byte-level BPE"]()["gguf"].source))
    mlx = stand_in("mlx_lm.tokenizer_utils", "TokenizerWrapper", _tokenizer=fast(), eos_token_ids={0})
    for source in (llama, mlx, Fast()):
        before = len(reads)
        Processor([None], source)
        once = len(reads)
        Processor([None], source)
        assert once > before
        assert len(reads) == once


def add(made: Any) -> None:
    made.add_tokens(["<tool>"])


def promote(made: Any) -> None:
    made.add_special_tokens([made.id_to_token(300)])


def redecode(made: Any) -> None:
    made.decoder = decoders.Sequence([decoders.ByteLevel()])


def reverse(made: Any) -> None:
    names = made.get_vocab(with_added_tokens=False)
    made.model = models.BPE({name: len(names) - 1 - i for name, i in names.items()}, [])


@pytest.mark.parametrize("change", [add, promote, redecode, reverse])
def test_changed_hugging_face_tokenizer_is_noticed(change: Callable[[Any], None], reads: list[object]) -> None:
    source, wrapper = fast(), Fast()
    for one, rust in ((source, source), (wrapper, wrapper.backend_tokenizer)):
        before = Tokenizer.of(one)
        change(rust)
        after = Tokenizer.of(one)
        assert after is not before
        kept._clear()
        assert after == Tokenizer.of(one)
        if change is not redecode:
            assert after.vocabulary != before.vocabulary


def test_changed_wrapper_is_noticed(reads: list[object]) -> None:
    wrapper = Fast()
    before = Tokenizer.of(wrapper)
    wrapper.eos_token_id, wrapper._special_tokens_map["eos_token"] = 5, "x"
    assert Tokenizer.of(wrapper).eos_ids == (5,) != before.eos_ids
    wrapper.chat_template = "{{ messages }}"
    assert Tokenizer.of(wrapper).chat_template == "{{ messages }}"
    wrapper.backend_tokenizer = tokenizers.Tokenizer.from_str(fast().to_str())
    count = len(reads)
    Tokenizer.of(wrapper)
    assert len(reads) == count + 1


def test_promoted_token_among_many_added_ones_is_noticed_in_time() -> None:
    source = fast()
    source.add_tokens([f"<{number}>" for number in range(huggingface._LISTED + 1)])
    before = Tokenizer.of(source)
    promote(source)
    assert any(Tokenizer.of(source) is not before for _ in range(huggingface._PERIOD))
    assert 300 in Tokenizer.of(source).vocabulary.special_ids
    declared = next(i for i, token in source.get_added_tokens_decoder().items() if not token.special)
    before = Tokenizer.of(source)
    source.add_special_tokens([source.id_to_token(declared)])
    assert Tokenizer.of(source) is not before
    assert declared in Tokenizer.of(source).vocabulary.special_ids


def test_changes_have_no_effect_on_what_was_read() -> None:
    source = fast()
    before = Tokenizer.of(source)
    text, ids = before.decode(before.encode("hello <tool> world")), before.encode("hello <tool> world")
    add(source)
    source.normalizer = tokenizers.normalizers.Lowercase()
    source.decoder = decoders.ByteFallback()
    source.enable_truncation(1)
    assert before.encode("hello <tool> world") == ids
    assert before.decode(ids) == text


def test_changed_inner_objects_are_noticed() -> None:
    class Holder:
        __module__ = "mlx_lm.tokenizer_utils"

        def __init__(self) -> None:
            self._tokenizer, self.eos_token_ids = fast(), {0}

    Holder.__name__ = "TokenizerWrapper"
    source = Holder()
    before = Tokenizer.of(source)
    source.eos_token_ids = {0, 7}
    assert Tokenizer.of(source).eos_ids == (0, 7) != before.eos_ids
    add(source._tokenizer)
    assert b"<tool>" in Tokenizer.of(source).vocabulary.token_bytes


def test_changed_tiktoken_and_sentencepiece_are_noticed() -> None:
    """The objects are new, because other tests use those of `FAMILIES`."""
    tiktoken = pytest.importorskip("tiktoken")
    sentencepiece = pytest.importorskip("sentencepiece")
    ranks = {bytes([byte]): byte for byte in range(256)}
    encoding = tiktoken.Encoding("made", pat_str=".", mergeable_ranks=ranks, special_tokens={"<end>": 256})
    before = Tokenizer.of(encoding)
    encoding._special_tokens = {**encoding._special_tokens, "<new>": len(before.vocabulary)}
    assert len(Tokenizer.of(encoding).vocabulary) == len(before.vocabulary) + 1
    unigram, merges = (str(FAMILIES[name]()["path"].source) for name in ("unigram", "sentencepiece BPE"))
    processor = sentencepiece.SentencePieceProcessor(model_file=unigram)
    before = Tokenizer.of(processor)
    processor.Load(merges)
    assert Tokenizer.of(processor).vocabulary != before.vocabulary


def test_changed_file_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    made = fast()
    made.save(str(file))
    for source in (file, tmp_path, str(file)):
        before = Tokenizer.of(source)
        assert Tokenizer.of(source) is before
        made.add_tokens([f"<{len(before.vocabulary)}>"])
        made.save(str(file))
        assert len(Tokenizer.of(source).vocabulary) == len(before.vocabulary) + 1
        (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [len(before.vocabulary)]}))
        assert Tokenizer.of(source).eos_ids == (len(before.vocabulary),)
        os.remove(tmp_path / "generation_config.json")


def test_object_is_not_kept_alive(reads: list[object]) -> None:
    for make in (fast, Fast):
        source = make()
        Tokenizer.of(source)
        reference, key = weakref.ref(source), id(source)
        assert key in kept._entries
        reads.clear()
        del source
        gc.collect()
        assert reference() is None
        assert key not in kept._entries
    kept._clear()


def test_other_object_at_the_same_address_is_read() -> None:
    source = fast()
    first = Tokenizer.of(source)
    entry = kept._entries[id(source)]
    other = fast()
    add(other)
    kept._entries[id(other)] = entry
    assert Tokenizer.of(other) != first


@pytest.mark.parametrize("ids", [{"a": 0, "b": 1, "Ġa": 2}, {"a": 0, "b": 1, "Ġa": 5}, {"a": 7, "é b": 1, "Ċ": 2}])
def test_bytes_of_ids_with_gaps_and_of_texts_outside_the_alphabet(ids: dict[str, int]) -> None:
    made = tokenizers.Tokenizer(models.BPE(ids, []))
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(["<end>"])
    table = Tokenizer.of(made).vocabulary.token_bytes
    for text, token_id in ids.items():
        assert table[token_id] == huggingface.byte_level(text)
    assert table[made.token_to_id("<end>")] == b"<end>"
