"""Hostile tokenizer files: a typed error in bounded time, also in threads with small stacks."""

from __future__ import annotations

import json
import struct
import threading
import time
from base64 import b64encode
from pathlib import Path

import pytest

import guideway as gw
from guideway.tokenizers import Tokenizer

LEAD = '{"version": "1.0", "added_tokens": [], "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}, "decoder": '
BYTES = '{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}'

FILES: dict[str, str] = {
    "arrays": "[" * 100_000 + "]" * 100_000,
    "open arrays": "[" * 100_000,
    "objects": '{"a":' * 100_000,
    "sequences": LEAD + '{"type": "Sequence", "decoders": [' * 60 + "]}" * 60 + "}",
    "open strings": "[" * 200 + '"' + '\\"' * 100_000,
    "escapes": '{"a": "' + "\\" * 100_001,
    "quotes": '"' * 100_000,
    "digits": "[" + "1" * 100_000,
    "exponents": "[1e" + "9" * 100_000 + "]",
    "white space": "{" + " \n" * 50_000 + "?",
    "words": "[" + "true," * 30_000,
}


def run_in_small_stack(file: Path) -> tuple[float, BaseException | None]:
    found: list[tuple[float, BaseException | None]] = []

    def run() -> None:
        start, raised = time.thread_time(), None
        try:
            Tokenizer.of(file)
        except BaseException as error:
            raised = error
        found.append((time.thread_time() - start, raised))

    before = threading.stack_size(128 << 10)
    try:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    return found[0]


@pytest.mark.parametrize("file_name", ["tokenizer.json", "other.json"])
@pytest.mark.parametrize("name", FILES)
def test_hostile_json_is_refused(name: str, file_name: str, tmp_path: Path) -> None:
    (tmp_path / file_name).write_text(FILES[name], "utf-8")
    seconds, raised = run_in_small_stack(tmp_path / file_name)
    assert isinstance(raised, (gw.errors.InvalidFileError, gw.errors.UnsupportedTokenizerError)), raised
    assert seconds < 1


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json", "generation_config.json"])
def test_deep_files_in_the_folder_are_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(LEAD + BYTES + "}", "utf-8")
    (tmp_path / name).write_text('{"a":' * 5_000 + "1" + "}" * 5_000, "utf-8")
    _, raised = run_in_small_stack(tmp_path / "tokenizer.json")
    assert isinstance(raised, gw.errors.InvalidFileError), raised
    assert "nested deeper" in str(raised)


def gguf(fields: bytes, count: int = 1) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", 3, 0, count) + fields


def string(text: bytes) -> bytes:
    return struct.pack("<Q", len(text)) + text


HEADERS: dict[str, bytes] = {
    "nested arrays": gguf(string(b"a") + struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 50_000),
    "a huge array": gguf(string(b"a") + struct.pack("<IIQ", 9, 4, 2**62)),
    "a huge string": gguf(struct.pack("<Q", 2**62)),
    "huge counts": gguf(b"", 2**62),
    "many fields": gguf(b"".join(string(b"%d" % n) + struct.pack("<IB", 7, 1) for n in range(50_000)), 50_000),
    "empty strings": gguf(string(b"a") + struct.pack("<IIQ", 9, 8, 50_000) + bytes(8 * 50_000)),
    "empty arrays": gguf(string(b"a") + struct.pack("<IIQ", 9, 9, 50_000) + struct.pack("<IQ", 4, 0) * 50_000),
    "an unknown type": gguf(string(b"a") + struct.pack("<I", 99)),
    "the end in a field": gguf(string(b"a") + struct.pack("<I", 10) + b"\0"),
    "names that repeat": gguf((string(b"a") + struct.pack("<IB", 7, 1)) * 50_000, 50_000),
}


@pytest.mark.parametrize("name", HEADERS)
def test_hostile_gguf_headers_are_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "a.gguf").write_bytes(HEADERS[name])
    seconds, raised = run_in_small_stack(tmp_path / "a.gguf")
    assert isinstance(raised, (gw.errors.InvalidFileError, gw.errors.UnsupportedTokenizerError)), raised
    assert seconds < 1


# -- files that the packages refuse late, or with a `PanicException`, which is not an `Exception` ----------------------


def document(model: dict[str, object] | None = None, **parts: object) -> str:
    """Return a tokenizer.json of single characters and "ab", with changed parts of the model and of the document."""
    model = {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]], **(model or {})}
    whole = {"version": "1.0", "added_tokens": [], "decoder": json.loads(BYTES), "model": model, **parts}
    return json.dumps(whole)


@pytest.mark.parametrize(
    "text",
    [
        document(normalizer={"type": "Precompiled", "precompiled_charsmap": 5}),
        document(model={"continuing_subword_prefix": "##########"}),
    ],
)
def test_a_panic_of_the_package_is_an_invalid_file(text: str, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(text, "utf-8")
    with pytest.raises(gw.errors.InvalidFileError, match="is not a tokenizer"):
        Tokenizer.of(tmp_path / "tokenizer.json")


def test_a_text_that_the_package_cannot_encode(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(document(model={"unk_token": "<unk>"}), "utf-8")
    tokenizer = Tokenizer.of(tmp_path / "tokenizer.json")
    assert tokenizer.encode("ab") == [2]
    with pytest.raises(gw.errors.InvalidTokenError, match="cannot be encoded"):
        tokenizer.encode("c")


def texts(name: bytes, items: list[bytes]) -> bytes:
    """Return a field of a GGUF header with an array of texts."""
    return string(name) + struct.pack("<IIQ", 9, 8, len(items)) + b"".join(map(string, items))


def test_byte_tokens_for_a_part_of_the_bytes(tmp_path: Path) -> None:
    kinds = [2, 1, 6]
    fields = (
        string(b"tokenizer.ggml.model") + struct.pack("<I", 8) + string(b"t5"),
        texts(b"tokenizer.ggml.tokens", [b"<unk>", b"a", b"<0x42>"]),
        string(b"tokenizer.ggml.token_type") + struct.pack("<IIQ3i", 9, 5, 3, *kinds),
        string(b"tokenizer.ggml.add_space_prefix") + struct.pack("<IB", 7, 0),
    )
    (tmp_path / "a.gguf").write_bytes(gguf(b"".join(fields), len(fields)))
    tokenizer = Tokenizer.of(tmp_path / "a.gguf")
    assert tokenizer.encode("aB") == [1, 2]
    assert tokenizer.encode("aBC") == [1, 0]  # the package joins unknown characters; the byte of C has no token


def tekken(ranks: list[int], **config: object) -> str:
    """Return a tekken.json of single bytes. `ranks`: the ranks of its special tokens."""
    table = [{"rank": n, "token_bytes": b64encode(bytes([n])).decode(), "token_str": None} for n in range(256)]
    names = zip(ranks, ("<unk>", "<s>", "</s>"), strict=True)
    special = [{"rank": rank, "token_str": name, "is_control": True} for rank, name in names]
    sizes = {"num_vocab_tokens": 256, "default_vocab_size": 259, "default_num_special_tokens": 3}
    whole = {"pattern": ".", **sizes, "version": "v3", **config}
    return json.dumps({"vocab": table, "special_tokens": special, "config": whole, "type": "Tekken", "version": 1})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (tekken([0, 1, 2], default_num_special_tokens=2**40), "default_num_special_tokens"),
        (tekken([0, 1, 2], default_num_special_tokens="3"), "default_num_special_tokens"),
        (tekken([0, 1, 2**40]), "ranks of the special tokens"),
        (tekken([0, 1, -1]), "ranks of the special tokens"),
        (tekken([0, 1, 100]), "ranks of the special tokens"),
        (tekken([0, 1, 1]), "ranks of the special tokens"),
    ],
)
def test_hostile_tekken_files_are_refused(text: str, reason: str, tmp_path: Path) -> None:
    pytest.importorskip("mistral_common")
    (tmp_path / "tekken.json").write_text(tekken([0, 1, 2]), "utf-8")
    assert Tokenizer.of(tmp_path / "tekken.json").encode("a") == [100]
    (tmp_path / "other.json").write_text(text, "utf-8")
    with pytest.raises(gw.errors.InvalidFileError, match=reason):
        Tokenizer.of(tmp_path / "other.json")
