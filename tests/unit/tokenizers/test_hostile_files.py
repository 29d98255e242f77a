"""Hostile tokenizer files: a typed error in bounded time, also in threads with small stacks."""

from __future__ import annotations

import struct
import threading
import time
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
