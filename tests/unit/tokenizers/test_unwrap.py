"""Tokenizers inside other objects and of optional libraries; the caller's object is not changed."""

from __future__ import annotations

import base64
import copy
import pickle
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
import tokenizers
from tokenizers import decoders, models

from guideway.errors import (
    InvalidFileError,
    InvalidTokenError,
    LimitExceededError,
    MissingDependencyError,
    UnsupportedTokenizerError,
)
from guideway.tokenizers import Tokenizer, Vocabulary
from guideway.tokenizers.gguf import of_path as of_gguf, read_header
from tests.helpers.tokenizer_files import FAMILIES, LLAMA3_PATTERN, data_of, trained_sentencepiece

TEXTS = ["hello world", "naïve €5 東京", "two  spaces\n", "def main(args):"]


def fast() -> tokenizers.Tokenizer:
    made: tokenizers.Tokenizer = FAMILIES["byte-level BPE"]()["tokenizers"].source
    return made


def stand_in(module: str, name: str, **attributes: object) -> Any:
    """Returns an object whose class has a given name and library."""
    return type(name, (), {"__module__": module, **attributes})()


def test_holders_are_opened_and_their_ends_of_text_taken_over() -> None:
    made = Tokenizer.of(fast())

    class Engine:
        __module__ = "vllm.entrypoints.llm"

        def get_tokenizer(self) -> object:
            return fast()

    Engine.__name__ = "LLM"
    hub = stand_in("exllamav2.tokenizer.hf", "ExLlamaV2TokenizerHF", hf_tokenizer=fast())
    config = stand_in("exllamav3.model.config", "Config", eos_token_id_list=[5, 7])
    for holder, eos_ids in [
        (stand_in("mlx_lm.tokenizer_utils", "TokenizerWrapper", _tokenizer=fast(), eos_token_ids={7, 5}), (5, 7)),
        (stand_in("exllamav2.tokenizer.tokenizer", "ExLlamaV2Tokenizer", tokenizer_model=hub, eos_token_id=5), (5,)),
        (
            stand_in("exllamav3.tokenizer.tokenizer", "Tokenizer", tokenizer=fast(), config=config, eos_token_id=5),
            (5, 7),
        ),
        (stand_in("llama_cpp.llama_tokenizer", "LlamaHFTokenizer", hf_tokenizer=fast()), (0,)),
        (Engine(), (0,)),
        (stand_in("transformers.processing_utils", "ProcessorMixin", tokenizer=fast()), (0,)),
    ]:
        tokenizer = Tokenizer.of(holder)
        assert tokenizer.eos_ids == eos_ids
        assert tokenizer.vocabulary == Tokenizer.of(made, eos_ids=eos_ids).vocabulary
        assert pickle.loads(pickle.dumps(tokenizer)) == tokenizer


def test_wrapper_of_an_unknown_tokenizer_is_named() -> None:
    holder = stand_in("mlx_lm.tokenizer_utils", "TokenizerWrapper", _tokenizer=object(), eos_token_ids=set())
    with pytest.raises(UnsupportedTokenizerError, match="TokenizerWrapper contains an unsupported tokenizer object"):
        Tokenizer.of(holder)


def test_what_was_given_and_what_is_known_are_named() -> None:
    with pytest.raises(
        UnsupportedTokenizerError,
        match=r"builtins\.dict has no known tokenizer; supported: tokenizers\.Tokenizer.*tiktoken\.Encoding",
    ):
        Tokenizer.of({})
    with pytest.raises(UnsupportedTokenizerError, match=r"builtins\.list"):
        Tokenizer.of(["a", "b"])


def test_slow_sentencepiece_over_exllama() -> None:
    sentencepiece = pytest.importorskip("sentencepiece")
    model = sentencepiece.SentencePieceProcessor(model_file=str(trained_sentencepiece("bpe")))
    spm = stand_in("exllamav2.tokenizer.spm", "ExLlamaV2TokenizerSPM", spm=model)
    holder = stand_in("exllamav2.tokenizer.tokenizer", "ExLlamaV2Tokenizer", tokenizer_model=spm, eos_token_id=2)
    assert Tokenizer.of(holder).vocabulary == Tokenizer.of(model).vocabulary


def test_mistral_common_inside_transformers_and_vllm() -> None:
    tokenizer = pytest.importorskip("mistral_common.tokens.tokenizers.mistral")
    path = data_of("mistral_common", "data", "mistral_instruct_tokenizer_240323.model.v3")
    held = tokenizer.MistralTokenizer.from_file(str(path))
    backend = stand_in("transformers.tokenization_mistral_common", "MistralCommonBackend", tokenizer=held)
    inner = held.instruct_tokenizer.tokenizer
    for holder in (backend, stand_in("vllm.tokenizers.mistral", "MistralTokenizer", tokenizer=inner)):
        assert Tokenizer.of(holder) == Tokenizer.of(path)


def test_llama_models_own_class() -> None:
    module = pytest.importorskip("llama_models.llama3.tokenizer")
    theirs = module.Tokenizer(data_of("llama_models", "llama3", "tokenizer.model"))
    tokenizer = Tokenizer.of(theirs)
    assert tokenizer.eos_ids == tuple(sorted(theirs.stop_tokens))
    assert (tokenizer.bos_id, tokenizer.pad_id) == (theirs.bos_id, theirs.pad_id)
    assert len(tokenizer.vocabulary) == theirs.n_words
    for text in TEXTS:
        assert tokenizer.encode(text, special=True) == theirs.encode(text, bos=True, eos=False)
    with pytest.raises(UnsupportedTokenizerError, match="list of tiktoken ranks"):
        Tokenizer.of(data_of("llama_models", "llama3", "tokenizer.model"))


def test_missing_libraries_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sentencepiece")
    path = trained_sentencepiece("bpe")
    monkeypatch.setitem(__import__("sys").modules, "sentencepiece", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'guideway\[sentencepiece\]'"):
        Tokenizer.of(path)


@pytest.mark.parametrize("family", ["byte-level BPE", "sentencepiece BPE", "Llama 4", "Mistral v3"])
def test_the_callers_object_is_never_touched(family: str) -> None:
    for module in ("gguf", "sentencepiece", "tiktoken", "mistral_common"):
        pytest.importorskip(module)
    for form in FAMILIES[family]().values():
        if isinstance(form.source, (str, Path)):
            continue
        before = state(form.source)
        tokenizer = Tokenizer.of(form.source)
        tokenizer.decode(tokenizer.encode("hello", special=True))
        assert tokenizer.vocabulary.report()
        assert state(form.source) == before


def state(source: Any) -> object:
    """Returns a copy of all observable state of a library's tokenizer."""
    if hasattr(source, "to_str"):
        return source.to_str()
    if hasattr(source, "serialized_model_proto"):
        return source.serialized_model_proto()
    seen = vars(source)
    return {
        name: state(value) if type(value).__module__.split(".")[0] in ("tiktoken", "sentencepiece") else repr(value)
        for name, value in copy.copy(seen).items()
        if "CoreBPE" not in repr(type(value))
    }


def test_cloudpickle_takes_a_tokenizer_inside_a_function() -> None:
    tokenizer = Tokenizer.of(fast())
    tokenizer.encode("warm")
    length = cloudpickle.loads(cloudpickle.dumps(lambda text: (tokenizer.encode(text), tokenizer.vocabulary)))
    ids, vocabulary = length("hello")
    assert ids == tokenizer.encode("hello")
    assert vocabulary == tokenizer.vocabulary


@pytest.mark.parametrize("cut", [0, 3, 10, 40, 200, 3000])
def test_damaged_gguf_files_are_engine_errors(tmp_path: Path, cut: int) -> None:
    pytest.importorskip("gguf")
    whole = FAMILIES["byte-level BPE"]()["gguf"].source.read_bytes()
    path = tmp_path / "cut.gguf"
    path.write_bytes(whole[:cut])
    if cut >= 4:
        with pytest.raises(InvalidFileError, match=r"cut\.gguf"):
            Tokenizer.of(path)
    path.write_bytes(whole[:8] + b"\xff" * 16 + whole[24:])
    with pytest.raises(InvalidFileError, match="are supported"):
        read_header(path)


GOOD_FIELDS: dict[str, object] = {
    "model": "llama",
    "tokens": [b"<unk>", b"<s>", b"</s>", b"<0x0A>", b"a"],
    "token_type": [2, 3, 3, 6, 1],
    "scores": [0.0, 0.0, 0.0, 0.0, -1.0],
    "eos_token_id": 2,
}


@pytest.mark.parametrize(
    "wrong",
    [
        {"token_type": [2, 3, 3, 6, 999]}, {"token_type": [2, 3, 3, 6, -1]}, {"token_type": [2.0, 3.0, 3.0, 6.0, 1.0]},
        {"token_type": 1 << 40}, {"token_type": 5}, {"token_type": "kinds"}, {"token_type": [2, 3, 3, 6, 6]},
        {"scores": 1.0}, {"scores": [b"x"] * 5}, {"tokens": [1, 2, 3, 4, 5]}, {"tokens": 3}, {"tokens": [b"a"]},
        {"merges": [1]}, {"merges": 1}, {"model": "gpt2", "tokens": [b"\xff\xfe"] * 5},
    ],
)  # fmt: skip
def test_gguf_fields_of_the_wrong_kind_are_engine_errors(
    wrong: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(_: Path) -> dict[str, object]:
        return {f"tokenizer.ggml.{name}": value for name, value in {**GOOD_FIELDS, **wrong}.items()}

    monkeypatch.setattr("guideway.tokenizers.gguf.read_header", read)
    with pytest.raises(InvalidFileError, match=r"x\.gguf"):
        of_gguf(Path("x.gguf"))


@pytest.mark.parametrize("merges", [[b"a zz"], [b"ab"], [b""]])
def test_gguf_merges_of_no_tokens_are_engine_errors(merges: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = {**GOOD_FIELDS, "model": "gpt2", "pre": "gpt-2", "token_type": [1] * 5, "merges": merges}
    monkeypatch.setattr(
        "guideway.tokenizers.gguf.read_header", lambda _: {f"tokenizer.ggml.{k}": v for k, v in wrong.items()}
    )
    with pytest.raises(InvalidFileError, match="are inconsistent"):
        of_gguf(Path("x.gguf")).encode("a", special=False)


@pytest.mark.parametrize("model", ["llama", "gpt2"])
def test_gguf_text_that_no_token_spells_is_not_lost(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fields = {
        "model": model,
        "pre": "gpt-2",
        "tokens": [b"z", b"</s>"],
        "token_type": [1, 3],
        "add_space_prefix": False,
    }
    monkeypatch.setattr(
        "guideway.tokenizers.gguf.read_header", lambda _: {f"tokenizer.ggml.{k}": v for k, v in fields.items()}
    )
    backend = of_gguf(Path("x.gguf"))
    assert backend.encode("zz", special=False) == [0, 0]
    with pytest.raises(InvalidTokenError, match="no tokens for 'zzé'"):
        backend.encode("zzé", special=False)


def test_decoders_that_ask_for_any_number_of_bytes() -> None:
    made = tokenizers.Tokenizer(models.BPE({"a": 0, "b": 1}, []))
    made.decoder = decoders.Sequence([decoders.Replace("a", "aa") for _ in range(40)])
    with pytest.raises(InvalidFileError, match="more than 60,000 bytes of the token 'aaa"):
        Tokenizer.of(made)
    made.decoder = decoders.Replace("b", "b" * 59_999)
    assert len(Tokenizer.of(made).vocabulary.token_bytes[1]) == 59_999


@pytest.mark.parametrize(
    "more", [{"eos_token_id": [2]}, {"eos_token_id": True, "eot_token_id": 2}, {"bos_token_id": "a"}]
)
def test_gguf_roles_that_are_no_ids_say_nothing(more: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    fields = {f"tokenizer.ggml.{name}": value for name, value in {**GOOD_FIELDS, **more}.items()}
    monkeypatch.setattr("guideway.tokenizers.gguf.read_header", lambda _: fields)
    assert of_gguf(Path("x.gguf")).specials.eos_ids == (2,)
    monkeypatch.setattr("guideway.tokenizers.gguf.read_header", lambda _: {**fields, "tokenizer.ggml.pre": [1]})
    with pytest.raises(UnsupportedTokenizerError):
        of_gguf(Path("x.gguf"))


def test_objects_that_raise_on_attribute_access() -> None:
    class Hostile:
        def __getattr__(self, name: str) -> object:
            raise ValueError("not for you")

    with pytest.raises(UnsupportedTokenizerError, match="Hostile: not for you"):
        Tokenizer.of(Hostile())
    with pytest.raises(UnsupportedTokenizerError, match="list"):
        Tokenizer.of([b"a", "b", None])


def test_a_token_too_long_for_the_kernel_is_an_error_by_type() -> None:
    with pytest.raises(LimitExceededError, match="60,000 bytes"):
        _ = Tokenizer.of([b"a" * 60_001]).vocabulary.kernel


def test_damaged_sentencepiece_models_are_engine_errors(tmp_path: Path) -> None:
    pytest.importorskip("sentencepiece")
    path = tmp_path / "tokenizer.model"
    path.write_bytes(b"\n\x05hello")
    with pytest.raises(InvalidFileError, match="not a sentencepiece model"):
        Tokenizer.of(tmp_path)


def test_folders_with_several_tokenizers_are_refused(tmp_path: Path) -> None:
    for name in ("a.gguf", "b.gguf"):
        (tmp_path / name).write_bytes(b"GGUF")
    with pytest.raises(UnsupportedTokenizerError, match="several tokenizers"):
        Tokenizer.of(tmp_path)


def test_report() -> None:
    vocabulary = Vocabulary([b"</s>", b"a", b"", b"a", b"\xc3", b"x" * 33, b"<s>"], eos_ids=[0], special_ids=[6])
    found = vocabulary.report()
    assert (found.size, found.eos, found.special, found.empty) == (7, (0,), (6,), (2,))
    assert (found.duplicates, found.incomplete, found.long) == (((1, 3),), (4,), (5,))
    assert len(found.missing_bytes) == 254
    assert "7 ids, 4 of them usable" in str(found)
    assert "with the bytes of another id: 1 (3)" in str(found)


def test_batches_are_padded() -> None:
    tokenizer = Tokenizer.of([b"a", b"b", b"</s>"], eos_ids=[2])
    ids, mask = tokenizer.encode_batch(["ab", "a", ""])
    assert ids.tolist() == [[0, 1], [2, 0], [2, 2]]
    assert mask.tolist() == [[1, 1], [0, 1], [0, 0]]
    right = tokenizer.encode_batch(["ab", "a"], side="right", pad_id=1)
    assert right.ids.tolist() == [[0, 1], [0, 1]]
    assert right.attention_mask.tolist() == [[1, 1], [1, 0]]
    assert tokenizer.encode_batch([]).ids.shape == (0, 0)
    bare = Tokenizer.of([b"a", b"b"])
    assert bare.encode_batch(["ab", "ba"]).ids.tolist() == [[0, 1], [1, 0]]
    with pytest.raises(UnsupportedTokenizerError, match="pad_id"):
        bare.encode_batch(["ab", "a"])
    with pytest.raises(LookupError):
        bare.encode_batch(["ab", "a"], pad_id=7)
    with pytest.raises(TypeError, match="list of texts"):
        bare.encode_batch("ab")
    with pytest.raises(ValueError, match="side"):
        bare.encode_batch(["a"], side="up")  # type: ignore[arg-type]  # the mistake under test


# -- optional libraries themselves ------------------------------------------------------------------------------------


@pytest.mark.engine("transformers")
def test_slow_tokenizers_of_transformers(tmp_path: Path) -> None:
    sentencepiece_backend = pytest.importorskip("transformers.tokenization_utils_sentencepiece")
    path = trained_sentencepiece("bpe")
    slow = sentencepiece_backend.SentencePieceBackend(
        vocab_file=str(path), bos_token="<s>", eos_token="</s>", unk_token="<unk>", pad_token="<pad>"
    )
    slow.add_tokens(["<extra>"])
    before = (dict(slow.get_vocab()), slow.sp_model.serialized_model_proto(), repr(slow.added_tokens_decoder))
    tokenizer = Tokenizer.of(slow)
    assert (dict(slow.get_vocab()), slow.sp_model.serialized_model_proto(), repr(slow.added_tokens_decoder)) == before
    plain = Tokenizer.of(path).vocabulary.token_bytes
    assert tokenizer.vocabulary.token_bytes == (*plain, b"<extra>")
    assert (tokenizer.bos_id, tokenizer.eos_ids) == (1, (2,))
    for text in [*TEXTS, "a<extra>b"]:
        assert tokenizer.decode(tokenizer.encode(text)) == text
    assert pickle.loads(pickle.dumps(tokenizer)) == tokenizer


@pytest.mark.engine("mlx")
@pytest.mark.parametrize("family", ["byte-level BPE", "sentencepiece BPE"])
def test_the_wrapper_of_mlx_lm(tmp_path: Path, family: str) -> None:
    utils = pytest.importorskip("mlx_lm.tokenizer_utils")
    transformers = pytest.importorskip("transformers")
    source = FAMILIES[family]()["tokenizers"].source
    names = {"eos_token": "<|endoftext|>"} if family == "byte-level BPE" else {"eos_token": "</s>", "bos_token": "<s>"}
    transformers.PreTrainedTokenizerFast(tokenizer_object=source, **names).save_pretrained(tmp_path)
    wrapper = utils.load(tmp_path, eos_token_ids=[4, 5])
    assert type(wrapper).__name__ == "TokenizerWrapper"
    before = (wrapper._tokenizer.backend_tokenizer.to_str(), set(wrapper.eos_token_ids), sorted(vars(wrapper)))
    tokenizer = Tokenizer.of(wrapper)
    assert (wrapper._tokenizer.backend_tokenizer.to_str(), set(wrapper.eos_token_ids), sorted(vars(wrapper))) == before
    assert tokenizer.eos_ids == tuple(sorted(wrapper.eos_token_ids))
    assert {4, 5} <= set(tokenizer.eos_ids)
    assert tokenizer.vocabulary == Tokenizer.of(source, eos_ids=wrapper.eos_token_ids).vocabulary
    for text in TEXTS:
        assert tokenizer.encode(text) == wrapper.encode(text, add_special_tokens=False)
        assert tokenizer.decode(tokenizer.encode(text)) == text
    detokenizer = wrapper.detokenizer
    for token_id in tokenizer.encode(TEXTS[1]):
        detokenizer.add_token(token_id)
    detokenizer.finalize()
    assert detokenizer.text.removeprefix(" ") == TEXTS[1]
    assert pickle.loads(pickle.dumps(tokenizer)) == tokenizer


@pytest.mark.engine("transformers")
def test_byt5_and_what_is_refused() -> None:
    transformers = pytest.importorskip("transformers")
    tokenizer = Tokenizer.of(transformers.ByT5Tokenizer())
    for text in TEXTS:
        assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokenizer.encode("a") == transformers.ByT5Tokenizer().encode("a", add_special_tokens=False)
    with pytest.raises(UnsupportedTokenizerError, match="slow tokenizer CanineTokenizer"):
        Tokenizer.of(transformers.CanineTokenizer())


@pytest.mark.engine("transformers")
def test_ranks_made_fast_by_transformers_have_the_same_bytes(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    converter = pytest.importorskip("transformers.convert_slow_tokenizer")
    import tiktoken

    ranks = dict(list(FAMILIES["Llama 3"]()["tiktoken"].source._mergeable_ranks.items())[:2000])
    file = tmp_path / "ranks"
    file.write_bytes(b"".join(base64.b64encode(token) + b" %d\n" % rank for token, rank in ranks.items()))
    made = converter.TikTokenConverter(vocab_file=str(file), extra_special_tokens=["<|end_of_text|>"]).converted()
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<|end_of_text|>")
    named = {"<|end_of_text|>": 2000}
    theirs = tiktoken.Encoding("x", pat_str=LLAMA3_PATTERN, mergeable_ranks=ranks, special_tokens=named)
    assert Tokenizer.of(fast).vocabulary == Tokenizer.of(theirs).vocabulary


@pytest.mark.engine("llama_cpp")
@pytest.mark.parametrize("family", ["byte-level BPE", "sentencepiece BPE", "Llama 3", "Mistral v3"])
def test_gguf_files_are_read_as_llama_cpp_reads_them(family: str) -> None:
    llama_cpp = pytest.importorskip("llama_cpp")
    path = FAMILIES[family]()["gguf"].source
    llama = llama_cpp.Llama(model_path=str(path), vocab_only=True, verbose=False)
    tokenizer = Tokenizer.of(llama)
    vocabulary = llama_cpp.llama_model_get_vocab(llama.model)
    buffer = (__import__("ctypes").c_char * 512)()
    unusable = tokenizer.vocabulary.unusable()
    for token_id, data in enumerate(tokenizer.vocabulary.token_bytes):
        if token_id in unusable:
            continue
        size = llama_cpp.llama_token_to_piece(vocabulary, token_id, buffer, 512, 0, True)
        assert buffer.raw[:size] == data, token_id
    ends = {i for i in range(len(tokenizer.vocabulary)) if llama_cpp.llama_vocab_is_eog(vocabulary, i)}
    assert set(tokenizer.eos_ids) == ends
    for text in TEXTS:
        assert tokenizer.encode(text) == llama.tokenize(text.encode(), add_bos=False, special=False), text
    assert pickle.loads(pickle.dumps(tokenizer)) == tokenizer
