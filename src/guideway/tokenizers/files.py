"""Tokenizers in files and folders: what a path leads to is told by what stands in it, not by its name."""

from __future__ import annotations

import json
import re
from pathlib import Path

from guideway.errors import InvalidFileError, ModelNotFoundError, UnsupportedTokenizerError
from guideway.tokenizers import gguf, huggingface, mistral, sentencepiece
from guideway.tokenizers.tokenizer import TokenizerBackend

__all__ = ["backend_of"]

_EXPECTED = "expected a tokenizer.json, a tekken.json, a sentencepiece model or a GGUF file, or a folder with one"
_RANKS = re.compile(rb"[A-Za-z0-9+/]+={0,2} \d+\r?\n")


def backend_of(source: object) -> TokenizerBackend | None:
    """The backend of the tokenizer at a path (str or Path); None for anything else.

    Raises `ModelNotFoundError` for a path without a tokenizer, `UnsupportedTokenizerError` for an
    unknown kind, `InvalidFileError` for a file that cannot be read.
    """
    if not isinstance(source, (str, Path)):
        return None
    path = Path(source)
    file = _inside(path) if path.is_dir() else path
    if file is None or not file.is_file():
        raise ModelNotFoundError(f"no tokenizer at {path}: {_EXPECTED}")
    if file.name == "tokenizer.json":
        return huggingface.of_file(file)
    try:
        with open(file, "rb") as opened:
            start = opened.read(4096)
    except OSError as error:
        raise InvalidFileError(f"cannot read {file}: {error}") from error
    if start.startswith(gguf.MAGIC):
        return gguf.of_path(file)
    if _RANKS.match(start):
        raise UnsupportedTokenizerError(
            f"{file} is a bare list of ranks: it says neither how text is split nor which tokens are special;"
            " pass the tiktoken.Encoding that is made of it"
        )
    if start.lstrip()[:1] in (b"{", b"["):
        return mistral.of_path(file) if _is_tekken(file) else huggingface.of_file(file)
    if start.startswith(b"\n"):  # field 1 of the model: its pieces
        return sentencepiece.of_path(file)
    if file.suffix == ".json":
        return huggingface.of_file(file)
    raise UnsupportedTokenizerError(f"{file} is no known kind of tokenizer: {_EXPECTED}")


def _inside(folder: Path) -> Path | None:
    """The tokenizer's file in a folder; the one that says most, where there are several."""
    for pattern in (
        "tokenizer.json",
        "tekken.json",
        "tokenizer.model",
        "tekken*.json",
        "*.model",
        "*.model.v*",
        "*.gguf",
    ):
        found = sorted(folder.glob(pattern))
        if len(found) > 1:
            raise UnsupportedTokenizerError(
                f"{folder} holds several tokenizers ({', '.join(p.name for p in found)}); name one"
            )
        if found:
            return found[0]
    return None


def _is_tekken(file: Path) -> bool:
    try:
        document = json.loads(huggingface.read_text(file))
    except (ValueError, RecursionError):
        return False  # the reader of tokenizer.json says what is wrong with it
    return isinstance(document, dict) and isinstance(document.get("config"), dict) and "pattern" in document["config"]
