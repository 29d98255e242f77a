"""Tokenizers in files and folders.

The content of a file determines its kind. Its name decides only for tokenizer.json, and for other .json files whose
content is of no known kind.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from guideway.arguments import shortened
from guideway.errors import InvalidFileError, ModelNotFoundError, UnsupportedTokenizerError
from guideway.tokenizers import gguf, huggingface, kept, mistral, sentencepiece
from guideway.tokenizers.tokenizer import TokenizerBackend

__all__ = ["backend_of", "watch"]

_EXPECTED = "expected a tokenizer.json, a tekken.json, a sentencepiece model or a GGUF file, or a folder with one"
_RANKS = re.compile(rb"[A-Za-z0-9+/]+={0,2} \d+\r?\n")


def backend_of(source: object) -> TokenizerBackend | None:
    """Return the backend of the tokenizer at a path (str or Path); None for other objects.

    Raises:
        ModelNotFoundError: There is no tokenizer file at the path or in the folder.
        UnsupportedTokenizerError: The kind of tokenizer is not supported.
        InvalidFileError: The file cannot be read or is malformed.
    """
    if not isinstance(source, (str, Path)):
        return None
    path = Path(source)
    file = _inside(path) if os.path.isdir(path) else path
    if file is None or not os.path.isfile(file):  # unlike `Path.is_file`, False for a path that is too long
        raise ModelNotFoundError(f"no tokenizer at {shortened(str(path))}: {_EXPECTED}")
    if file.name == "tokenizer.json":
        return huggingface.of_file(file)
    try:
        with open(file, "rb") as opened:
            start = opened.read(4096)
    except OSError as error:
        raise InvalidFileError.of("read", file, error) from error
    if start.startswith(gguf.MAGIC):
        return gguf.of_path(file)
    if _RANKS.match(start):
        raise UnsupportedTokenizerError(
            f"{file} is a list of tiktoken ranks without the split pattern and the special tokens;"
            " pass the tiktoken.Encoding that uses it"
        )
    if start.lstrip()[:1] in (b"{", b"["):
        config = _tekken_config(file)
        if config is None:
            return huggingface.of_file(file)
        return mistral.of_path(file, config.get("default_num_special_tokens"))
    if start.startswith(b"\n"):  # a sentencepiece model: the tag of protobuf field 1
        return sentencepiece.of_path(file)
    if file.suffix == ".json":
        return huggingface.of_file(file)
    raise UnsupportedTokenizerError(f"{file} is not a supported tokenizer: {_EXPECTED}")


def watch(source: object) -> kept.Watch | None:
    """Return `kept.state_of_file` for the path of a file or folder; None for other objects and missing files."""
    return kept.state_of_file if isinstance(source, (str, Path)) and os.path.exists(source) else None


def _inside(folder: Path) -> Path | None:
    """Return the tokenizer file in a folder, by a fixed order of preference; None if there is none.

    Raises:
        UnsupportedTokenizerError: Several files match the first pattern that matches any.
    """
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
                f"{folder} has several tokenizers ({', '.join(p.name for p in found)}); pass the path of one"
            )
        if found:
            return found[0]
    return None


def _tekken_config(file: Path) -> dict[str, Any] | None:
    """Return the object "config" of a Tekken file; None if the file is of another kind or is not JSON."""
    try:
        document = json.loads(huggingface.read_json(file))
    except (ValueError, RecursionError):
        return None  # the file is then read as a tokenizer.json, which raises the error
    config = document.get("config") if isinstance(document, dict) else None
    return config if isinstance(config, dict) and "pattern" in config else None
