"""Errors about files that cannot be read."""

from collections.abc import Callable
from pathlib import Path

import pytest

from guideway.batch.files import open_input
from guideway.batch.result_file import ResultFile, entries_of
from guideway.cli.inputs import read_file
from guideway.errors import InvalidFileError
from guideway.remote import Probe
from guideway.server import read_keys
from guideway.sessions import snapshot
from guideway.tokenizers import sentencepiece
from guideway.tokenizers.huggingface import read_text

READERS: dict[str, Callable[[Path], object]] = {
    "batch": lambda path: open_input(path).__enter__(),
    "results": lambda path: list(entries_of(path)),
    "result file": lambda path: ResultFile(path, lambda *_: True),
    "command line": read_file,
    "probe": Probe.load,
    "keys": read_keys,
    "snapshot": snapshot._opened,
    "sentencepiece": sentencepiece.of_path,
    "tokenizer": read_text,
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


def test_reasons_of_errors_about_files() -> None:
    made = InvalidFileError.of("read", "a", FileNotFoundError(2, "No such file", "a"))
    assert str(made) == "cannot read a: No such file"
    assert str(InvalidFileError.of("write", "b", OSError("full"), "; go on")) == "cannot write b: full; go on"
    assert (
        str(InvalidFileError.of("read", "c", ValueError("embedded null byte"))) == "cannot read c: embedded null byte"
    )
