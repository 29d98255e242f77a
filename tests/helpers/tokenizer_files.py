"""Real tokenizers, trained here or installed, in the forms of every library that can load them.

`FAMILIES[name]()` returns the forms of one tokenizer by library name: an object or a path for `Tokenizer.of` and, if
the library can compute it, its encoding of a text and its decoding of ids.
"""

from __future__ import annotations

import base64
import functools
import importlib.util
import io
import json
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, trainers

__all__ = ["FAMILIES", "LLAMA3_PATTERN", "Form", "data_of", "trained_sentencepiece"]

CORPUS = [
    "the quick brown fox jumps over the lazy dog", "Ada Lovelace, 36, mathematician from London",
    '{"name": "Zoë", "n": 1, "tags": ["a", "b"]}', "naïve café €5 — Москва, 東京, القاهرة",
    "  two  spaces\n\n\tand tabs",
    "def main(args):\n    return [x ** 2 for x in range(10)]", "=" * 45, "hello world again and again and again",
] * 4  # fmt: skip

LLAMA3_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
FOLDER = Path(tempfile.mkdtemp(prefix="guideway-tokenizers-"))


@dataclass
class Form:
    """One tokenizer as one library has it; `ids` and `text` are the library's own encoding and decoding."""

    source: Any
    ids: Callable[[str], list[int]] | None = None
    text: Callable[[list[int]], str] | None = None


def of_tokenizers(made: tokenizers.Tokenizer) -> Form:
    return Form(made, lambda text: made.encode(text, add_special_tokens=False).ids, lambda ids: made.decode(ids))


def of_folder(made: tokenizers.Tokenizer, name: str) -> Form:
    folder = FOLDER / name
    folder.mkdir(exist_ok=True)
    made.save(str(folder / "tokenizer.json"))
    return Form(folder)


def of_sentencepiece(path: Path) -> Form:
    import sentencepiece

    made = sentencepiece.SentencePieceProcessor(model_file=str(path))
    return Form(made, made.encode, made.decode)


def of_tiktoken(made: Any) -> Form:
    return Form(made, made.encode_ordinary, made.decode)


def of_mistral(made: Any) -> Form:
    from mistral_common.tokens.tokenizers.base import SpecialTokenPolicy

    decode = functools.partial(made.decode, special_token_policy=SpecialTokenPolicy.IGNORE)
    return Form(made, functools.partial(made.encode, bos=False, eos=False), decode)


def data_of(package: str, *parts: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        pytest.skip(f"needs {package}")
    return Path(spec.origin).parent.joinpath(*parts)


# -- trained here -----------------------------------------------------------------------------------------------------


def byte_level() -> dict[str, Form]:
    made = tokenizers.Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=600, special_tokens=["<|endoftext|>"], initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator(CORPUS, trainer)
    forms = {"tokenizers": of_tokenizers(made), "folder": of_folder(made, "byte-level")}
    model = json.loads(made.to_str())["model"]
    names = sorted(model["vocab"], key=model["vocab"].__getitem__)
    kinds = [3 if name == "<|endoftext|>" else 1 for name in names]
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]]
    forms["gguf"] = Form(write_gguf("byte-level", "gpt2", names, kinds, merges=merges, pre="gpt-2", eos=0))
    return forms


def trained_sentencepiece(kind: str, **options: Any) -> Path:
    import sentencepiece

    written = io.BytesIO()
    settings = {
        "model_type": kind, "vocab_size": 460, "byte_fallback": True, "character_coverage": 1.0, "minloglevel": 2,
        "normalization_rule_name": "identity", "remove_extra_whitespaces": False, "hard_vocab_limit": False,
        "user_defined_symbols": ["<tool>"], "pad_id": 3, **options,
    }  # fmt: skip
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(CORPUS), model_writer=written, **settings)
    path = FOLDER / f"{kind}{len(options)}.model"
    path.write_bytes(written.getvalue())
    return path


def unigram() -> dict[str, Form]:
    path = trained_sentencepiece("unigram")
    return {"sentencepiece": of_sentencepiece(path), "path": Form(path), "gguf": Form(gguf_of(path, "t5"))}


def unigram_without_prefix() -> dict[str, Form]:
    path = trained_sentencepiece("unigram", add_dummy_prefix=False)
    forms = {"sentencepiece": of_sentencepiece(path), "path": Form(path)}
    return {**forms, "gguf": Form(gguf_of(path, "t5", space_prefix=False))}


def merged_pieces() -> dict[str, Form]:
    path = trained_sentencepiece("bpe")
    return {
        "sentencepiece": of_sentencepiece(path), "path": Form(path), "gguf": Form(gguf_of(path, "llama")),
        "tokenizers": of_tokenizers(tokenizers_of(path)),
    }  # fmt: skip


def tokenizers_of(path: Path) -> tokenizers.Tokenizer:
    """A sentencepiece BPE model as the library `tokenizers` has it (Llama 2's layout)."""
    import sentencepiece

    model = sentencepiece.SentencePieceProcessor(model_file=str(path))
    count = range(model.get_piece_size())
    pieces = [model.id_to_piece(i) for i in count]
    ids = {piece: i for i, piece in reversed(list(enumerate(pieces)))}
    usable = [i for i in count if not (model.is_control(i) or model.is_unknown(i) or model.is_byte(i))]
    merges = []
    for i in usable:
        cuts = [(pieces[i][:at], pieces[i][at:]) for at in range(1, len(pieces[i]))]
        found = sorted((ids[a], ids[b], a, b) for a, b in cuts if a in ids and b in ids)
        merges += [(-model.get_score(i), a, b) for _, _, a, b in found]
    pairs = [(a, b) for _, a, b in sorted(merges, key=lambda merge: merge[0])]
    made = tokenizers.Tokenizer(models.BPE(ids, pairs, unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    made.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    made.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    special = [pieces[i] for i in count if model.is_control(i) or model.is_unknown(i)]
    made.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in special])
    return made


# -- installed --------------------------------------------------------------------------------------------------------


@functools.cache
def llama3_ranks(version: str = "llama3") -> dict[bytes, int]:
    text = data_of("llama_models", version, "tokenizer.model").read_text("utf-8")
    return {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in text.splitlines())}


def llama3() -> dict[str, Form]:
    import tiktoken

    ranks = llama3_ranks()
    names = ["<|begin_of_text|>", "<|end_of_text|>", "<|eom_id|>", "<|eot_id|>", "<|finetune_right_pad_id|>"]
    special = {name: len(ranks) + i for i, name in enumerate(names)}
    encoding = tiktoken.Encoding("llama3", pat_str=LLAMA3_PATTERN, mergeable_ranks=ranks, special_tokens=special)
    spelled, merges = spelled_ranks(ranks)
    made = tokenizers_of_ranks(spelled, merges, LLAMA3_PATTERN, special)
    all_names = [*spelled, *special]
    kinds = [1] * len(spelled) + [3] * len(special)
    file = write_gguf(
        "llama3", "gpt2", all_names, kinds, merges=[" ".join(m) for m in merges], pre="llama-bpe",
        bos=special["<|begin_of_text|>"], eos=special["<|end_of_text|>"],
    )  # fmt: skip
    return {"tiktoken": of_tiktoken(encoding), "tokenizers": of_tokenizers(made), "gguf": Form(file)}


def llama4() -> dict[str, Form]:
    import tiktoken

    ranks = llama3_ranks("llama4")
    special = {"<|begin_of_text|>": len(ranks), "<|end_of_text|>": len(ranks) + 1, "<|eot|>": len(ranks) + 2}
    encoding = tiktoken.Encoding("llama4", pat_str=LLAMA3_PATTERN, mergeable_ranks=ranks, special_tokens=special)
    return {"tiktoken": of_tiktoken(encoding)}


def tekken(name: str) -> dict[str, Form]:
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    path = data_of("mistral_common", "data", name)
    made = Tekkenizer.from_file(path)
    return {
        "mistral-common": of_mistral(made),
        "path": Form(path),
    }


def mistral_sentencepiece(name: str) -> dict[str, Form]:
    from mistral_common.tokens.tokenizers.mistral import MistralTokenizer
    from mistral_common.tokens.tokenizers.sentencepiece import SentencePieceTokenizer

    path = data_of("mistral_common", "data", name)
    made = SentencePieceTokenizer(path)
    return {
        "sentencepiece": of_sentencepiece(path), "path": Form(path), "gguf": Form(gguf_of(path, "llama")),
        "mistral-common": of_mistral(made),
        "mistral-common, whole": Form(MistralTokenizer.from_file(str(path))),
    }  # fmt: skip


def tiny() -> dict[str, Form]:
    folder = data_of("guideway", "tiny")
    return {
        "folder": Form(folder),
        "tokenizers": of_tokenizers(tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))),
    }


def plain_bytes() -> dict[str, Form]:
    table = [bytes([byte]) for byte in range(256)] + [b"the", b" the", b"the", b"\xf0\x9f\x98", b"=" * 45]
    return {"list": Form(table), "tuple": Form(tuple(table))}


FAMILIES: dict[str, Callable[[], dict[str, Form]]] = {
    name: functools.cache(make)
    for name, make in {
        "byte-level BPE": byte_level, "unigram": unigram, "unigram without prefix": unigram_without_prefix,
        "sentencepiece BPE": merged_pieces, "Llama 3": llama3, "Llama 4": llama4, "tiny": tiny, "bytes": plain_bytes,
        "Tekken 240718": functools.partial(tekken, "tekken_240718.json"),
        "Tekken 240911": functools.partial(tekken, "tekken_240911.json"),
        "Mistral v1": functools.partial(mistral_sentencepiece, "tokenizer.model.v1"),
        "Mistral v2": functools.partial(mistral_sentencepiece, "mistral_instruct_tokenizer_240216.model.v2"),
        "Mistral v3": functools.partial(mistral_sentencepiece, "mistral_instruct_tokenizer_240323.model.v3"),
        "Mistral v7": functools.partial(mistral_sentencepiece, "mistral_instruct_tokenizer_241114.model.v7"),
    }.items()
}  # fmt: skip


# -- from one library's form to another's -----------------------------------------------------------------------------


def spelled_ranks(ranks: dict[bytes, int]) -> tuple[list[str], list[tuple[str, str]]]:
    """Ranks in GPT-2's alphabet, and the merges that they amount to."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [byte for byte in range(256) if byte not in set(printable)]
    letter = {**{b: chr(b) for b in printable}, **{b: chr(0x100 + n) for n, b in enumerate(rest)}}

    def spell(token: bytes) -> str:
        return "".join(letter[byte] for byte in token)

    merges = []
    for token in sorted(ranks, key=ranks.__getitem__):
        cuts = [(token[:at], token[at:]) for at in range(1, len(token))]
        found = sorted((ranks[a], ranks[b], a, b) for a, b in cuts if a in ranks and b in ranks)
        merges += [(spell(a), spell(b)) for _, _, a, b in found]
    return [spell(token) for token in sorted(ranks, key=ranks.__getitem__)], merges


def tokenizers_of_ranks(
    names: list[str], merges: list[tuple[str, str]], pattern: str, special: dict[str, int]
) -> tokenizers.Tokenizer:
    ids = {name: i for i, name in enumerate(names)}
    made = tokenizers.Tokenizer(models.BPE(ids, merges, ignore_merges=True))
    split = pre_tokenizers.Split(Regex(pattern), "isolated")
    made.pre_tokenizer = pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(False, use_regex=False)])
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in special])
    return made


def gguf_of(path: Path, kind: str, *, space_prefix: bool = True) -> Path:
    """A sentencepiece model as a GGUF file."""
    import sentencepiece

    model = sentencepiece.SentencePieceProcessor(model_file=str(path))
    count = range(model.get_piece_size())

    def kind_of(i: int) -> int:
        told = (model.is_unknown(i), model.is_control(i), model.id_to_piece(i) == "<tool>", model.is_unused(i))
        return next((k for k, is_it in zip((2, 3, 4, 5), told, strict=True) if is_it), 6 if model.is_byte(i) else 1)

    return write_gguf(
        f"{path.name}-{kind}", kind, [model.id_to_piece(i) for i in count], [kind_of(i) for i in count],
        scores=[model.get_score(i) for i in count], bos=model.bos_id(), eos=model.eos_id(),
        pad=model.pad_id() if model.pad_id() >= 0 else None, space_prefix=space_prefix,
    )  # fmt: skip


def write_gguf(
    name: str, model: str, names: Iterable[str], kinds: list[int], *, merges: list[str] | None = None,
    scores: list[float] | None = None, pre: str | None = None, bos: int | None = None, eos: int | None = None,
    pad: int | None = None, space_prefix: bool | None = None,
) -> Path:  # fmt: skip
    import gguf

    path = FOLDER / f"{name}.gguf"
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_tokenizer_model(model)
    writer.add_token_list(list(names))
    writer.add_token_types(kinds)
    if scores is not None:
        writer.add_token_scores(scores)
    if merges is not None:
        writer.add_token_merges(merges)
    if pre is not None:
        writer.add_tokenizer_pre(pre)
    if space_prefix is not None:
        writer.add_add_space_prefix(space_prefix)
    for value, add in ((bos, writer.add_bos_token_id), (eos, writer.add_eos_token_id), (pad, writer.add_pad_token_id)):
        if value is not None:
            add(value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
