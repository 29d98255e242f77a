"""Errors about files that cannot be read."""

from collections.abc import Callable
from pathlib import Path

import pytest

from guideway.batch.files import open_input
from guideway.batch.result_file import ResultFile, entries_of
from guideway.cli.inputs import read_file
from guideway.errors import InvalidFileError
from guideway.remote import Probe, Usage
from guideway.server import read_keys
from guideway.sessions import snapshot
from guideway.tokenizers import huggingface, sentencepiece

READERS: dict[str, Callable[[Path], object]] = {
    "batch": lambda path: open_input(path).__enter__(),
    "results": lambda path: list(entries_of(path)),
    "result file": lambda path: ResultFile(path, lambda *_: True),
    "command line": read_file,
    "probe": Probe.load,
    "keys": read_keys,
    "snapshot": snapshot._opened,
    "sentencepiece": sentencepiece.of_path,
    "tokenizer": huggingface.read_text,
}


@pytest.mark.parametrize("name", READERS)
def test_a_file_that_cannot_be_read_is_named_once(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "folder.json"
    folder.mkdir()
    with pytest.raises(InvalidFileError) as caught:
        READERS[name](folder)
    assert "Is a directory" in str(caught.value)
    assert "Errno" not in str(caught.value)
    assert str(caught.value).count(str(folder)) == 1


WRITERS: dict[str, Callable[[Path], object]] = {
    **READERS,
    "saved probe": Probe("http://localhost", "m", "2026-01-01", (), Usage()).save,
}


@pytest.mark.parametrize(("path", "reason"), [("a\0b", "null byte"), ("a\ud800", "surrogates not allowed")])
@pytest.mark.parametrize("name", WRITERS)
def test_a_path_that_no_file_can_have(name: str, path: str, reason: str) -> None:
    with pytest.raises(InvalidFileError, match=reason) as caught:
        WRITERS[name](Path(path))
    assert str(caught.value).startswith("cannot ")


def test_a_file_of_a_tokenizer_that_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface, "_MAX_JSON_BYTES", 3)
    file = tmp_path / "tokenizer.json"
    file.write_text("abc")
    assert huggingface.read_text(file) == "abc"
    file.write_text("abcd")
    with pytest.raises(InvalidFileError) as caught:
        huggingface.read_text(file)
    assert str(caught.value) == f"{file} has more than 3 bytes"


def test_reasons_of_errors_about_files() -> None:
    made = InvalidFileError.of("read", "a", FileNotFoundError(2, "No such file", "a"))
    assert str(made) == "cannot read a: No such file"
    assert str(InvalidFileError.of("write", "b", OSError("full"), "; go on")) == "cannot write b: full; go on"
    assert (
        str(InvalidFileError.of("read", "c", ValueError("embedded null byte"))) == "cannot read c: embedded null byte"
    )
    assert str(InvalidFileError.of("read", "d", OSError())) == "cannot read d: OSError"
