"""The steps of readers of tokenizer files are linear in the size of the file."""

from __future__ import annotations

import contextlib
import json
import struct
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import guideway as gw
from guideway.tokenizers import Tokenizer
from tests.campaigns.hostile_checks.scanners import check_inputs

__all__ = ["CHECKS"]

LENGTHS = {"tokenizer.json": (20_000, 80_000), "a.gguf": (5_000, 20_000)}  # numbers of repeated parts


def bpe(vocab: dict[str, int], merges: list[Any] | None = None, **parts: Any) -> bytes:
    """Return a tokenizer.json."""
    model = {"type": "BPE", "vocab": vocab, "merges": merges or []}
    return json.dumps(
        {"version": "1.0", "added_tokens": [], "decoder": {"type": "ByteLevel"}, "model": model, **parts}
    ).encode()


def letters(count: int) -> dict[str, int]:
    return {"a" * (number % 60) + f"b{number}": number for number in range(count)}


def added(number: int) -> dict[str, Any]:
    marks = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": number, "content": f"<{number}>", "special": bool(number % 2), **marks}


def replaced(count: int) -> dict[str, Any]:
    return {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "a"}, "content": "b"}] * count}


JSON_FILES: dict[str, Callable[[int], bytes]] = {
    "open arrays": lambda count: b'{"a":[' * count,
    "open objects": lambda count: b'{"a":' * count,
    "closed arrays": lambda count: b'{"a":' + b"[" * count + b"]" * count + b"}",
    "backslashes": lambda count: b'{"a":"' + b"\\\\" * count,
    "escapes": lambda count: b'{"a":"' + b"\\u0041" * count + b'"}',
    "white space": lambda count: b" \n" * count + b"{}",
    "digits": lambda count: b'{"a":' + b"1" * count + b"}",
    "exponents": lambda count: b'{"a":[' + b"1e9," * count + b"1]}",
    "keys": lambda count: b"{" + b",".join(b'"%d":1' % number for number in range(count)) + b"}",
    "equal keys": lambda count: b"{" + b",".join([b'"a":1'] * count) + b"}",
    "tokens": lambda count: bpe(letters(count)),
    "ids with gaps": lambda count: bpe({text: 3 * number for text, number in letters(count).items()}),
    "merges": lambda count: bpe(
        {"a": 0, "b": 1, **{"a" + "b" * number: number + 1 for number in range(1, 60)}}, ["a b"] * count
    ),
    "added tokens": lambda count: bpe({"a": 0}, added_tokens=[added(number) for number in range(1, count)]),
    "replacements": lambda count: bpe({"a": 0}, decoder=replaced(count)),
    "a long token": lambda count: bpe({"a" * (9 * count): 0}),
    "a word piece": lambda count: bpe(
        {}, model={"type": "WordPiece", "unk_token": "b0", "continuing_subword_prefix": "##", "vocab": letters(count)}
    ),
    "a unigram": lambda count: bpe(
        {},
        decoder={"type": "Metaspace"},
        model={"type": "Unigram", "unk_id": 0, "vocab": [[f"a{n}", -1.0] for n in range(count)]},
    ),
}


def field(name: bytes, kind: int, value: bytes) -> bytes:
    return struct.pack("<Q", len(name)) + name + struct.pack("<I", kind) + value


def string(text: bytes) -> bytes:
    return struct.pack("<Q", len(text)) + text


def array(kind: int, items: list[bytes]) -> bytes:
    return struct.pack("<IQ", kind, len(items)) + b"".join(items)


def gguf(*fields: bytes, count: int | None = None) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(fields) if count is None else count) + b"".join(fields)


def table(model: bytes, tokens: list[bytes], *more: bytes) -> bytes:
    """Return a file with a tokenizer."""
    return gguf(
        field(b"tokenizer.ggml.model", 8, string(model)),
        field(b"tokenizer.ggml.tokens", 9, array(8, [string(one) for one in tokens])),
        *more,
    )


def scores(count: int) -> bytes:
    return field(b"tokenizer.ggml.scores", 9, array(6, [struct.pack("<f", -number) for number in range(count)]))


def merges(count: int) -> bytes:
    return field(b"tokenizer.ggml.merges", 9, array(8, [string(b"a b")] * count))


GGUF_FILES: dict[str, Callable[[int], bytes]] = {
    "fields": lambda count: gguf(*[field(b"a%d" % number, 7, b"\x01") for number in range(count)]),
    "equal fields": lambda count: gguf(*[field(b"a", 7, b"\x01")] * count),
    "texts": lambda count: gguf(*[field(b"a%d" % number, 8, string(b"b" * 90)) for number in range(count)]),
    "arrays": lambda count: gguf(*[field(b"a%d" % number, 9, array(4, [])) for number in range(count)]),
    "an array of numbers": lambda count: gguf(field(b"a", 9, array(10, [struct.pack("<Q", 1)] * count))),
    "an array of texts": lambda count: gguf(field(b"a", 9, array(8, [string(b"a")] * count))),
    "a long text": lambda count: gguf(field(b"a", 8, string(b"a" * 90 * count))),
    "a long name": lambda count: gguf(field(b"a" * 90 * count, 7, b"\x01")),
    "too few fields": lambda count: gguf(*[field(b"a", 7, b"\x01")] * count, count=count + 1),
    "templates": lambda count: table(
        b"llama", [b"a"], *[field(b"tokenizer.chat_template.%d" % n, 8, string(b"{{ a }}")) for n in range(count)]
    ),
    "tokens": lambda count: table(b"gpt2", [b"a%d" % number for number in range(count)]),
    "equal tokens": lambda count: table(b"gpt2", [b"a"] * count),
    "tokens that are no text": lambda count: table(b"llama", [b"\xff%d" % number for number in range(count)]),
    "pieces": lambda count: table(
        b"llama", [b"a" * (number % 90) + b"%d" % number for number in range(count)], scores(count)
    ),
    "pieces of a unigram": lambda count: table(b"t5", [b"a%d" % number for number in range(count)], scores(count)),
    "merges": lambda count: table(b"gpt2", [b"a", b"b", b"ab"], merges(count)),
}


def check(name: str, files: dict[str, Callable[[int], bytes]]) -> tuple[bool, str]:
    """Compare the steps for short and long files. A file is read, and then encodes a text."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / name

        def read(data: bytes) -> None:
            file.write_bytes(data)
            with contextlib.suppress(gw.GuidewayError):
                Tokenizer.of(file).encode("ab")

        return check_inputs(read, files.items(), LENGTHS[name])


CHECKS = {
    "scanner, tokenizer.json": lambda seed: check("tokenizer.json", JSON_FILES),
    "scanner, GGUF": lambda seed: check("a.gguf", GGUF_FILES),
}
