"""Tokenizers of mistral-common: `MistralTokenizer`, and the tokenizers inside it, Tekken and sentencepiece."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from guideway.arguments import short_repr
from guideway.errors import InvalidFileError, UnsupportedTokenizerError
from guideway.tokenizers import sentencepiece, tiktoken
from guideway.tokenizers.huggingface import MAX_TOKENS
from guideway.tokenizers.kept import Same, Watch
from guideway.tokenizers.special_tokens import by_custom
from guideway.tokenizers.tokenizer import TokenizerBackend, library, package_errors

__all__ = ["backend_of", "of_path", "watch"]


def backend_of(source: object) -> TokenizerBackend | None:
    """Return the backend of a tokenizer of mistral-common; None for other objects."""
    kinds = _kinds(source)
    held: Any = source
    if "MistralTokenizer" in kinds:
        return backend_of(held.instruct_tokenizer)
    if "InstructTokenizer" in kinds or (kinds and hasattr(source, "tokenizer")):
        return backend_of(held.tokenizer)
    if "SentencePieceTokenizer" in kinds:
        return sentencepiece.backend_of(held._model)
    if "Tekkenizer" in kinds:
        named = {token["token_str"]: int(token["rank"]) for token in held._all_special_tokens}
        model = held._model
        specials = by_custom(named)
        if held.eos_id not in specials.eos_ids:
            specials = replace(specials, eos_ids=(held.eos_id,))
        return tiktoken.of_ranks(model._pat_str, model._mergeable_ranks, named, specials, held.num_special_tokens)
    return None


def _kinds(source: object) -> set[str]:
    return {base.__name__ for base in type(source).__mro__ if base.__module__.split(".")[0] == "mistral_common"}


def watch(source: object) -> Watch | None:
    """Return a function that computes the state (see `kept.py`) of a tokenizer of mistral-common.

    None for other objects, and if the state of the tokenizer cannot be computed.
    """
    held, outer = _innermost(source)
    if not outer:
        return None
    if "Tekkenizer" in _kinds(held):
        inner: Watch | None = _tekken_state
    else:
        inner = sentencepiece.watch(getattr(held, "_model", None))
    return None if inner is None else partial(_state, inner)


def _innermost(source: Any) -> tuple[Any, list[Same]]:
    """Return the innermost tokenizer, which has the tokens, and all objects from the outermost one to this one."""
    outer: list[Same] = []
    while kinds := _kinds(source):
        outer.append(Same(source))
        if kinds & {"Tekkenizer", "SentencePieceTokenizer"}:
            break
        source = source.instruct_tokenizer if "MistralTokenizer" in kinds else getattr(source, "tokenizer", None)
    return source, outer


def _state(inner: Watch, source: Any) -> object:
    held, outer = _innermost(source)
    if "SentencePieceTokenizer" in _kinds(held):
        outer.append(Same(held._model))
        held = held._model
    return outer[1:], inner(held)  # without `source` itself, which a state must not keep alive


def _tekken_state(held: Any) -> object:
    model, special = held._model, held._all_special_tokens
    ranks = model._mergeable_ranks
    return Same(model), model._pat_str, Same(ranks), len(ranks), list(special), held.eos_id, held.num_special_tokens


def of_path(path: Path, specials: object) -> TokenizerBackend:
    """Return the backend of a `tekken.json`.

    Args:
        path: The path of the file.
        specials: The field "default_num_special_tokens" of its configuration.

    Raises:
        InvalidFileError: The file cannot be read, or is not a Tekken tokenizer.
        UnsupportedTokenizerError: The installed version of mistral-common is not supported.
        MissingDependencyError: mistral-common is not installed.
    """
    tekken = library("mistral_common.tokens.tokenizers.tekken", "a Tekken file")
    if type(specials) is not int or not 0 <= specials <= MAX_TOKENS:  # the package makes this number of tokens
        raise InvalidFileError(
            f"{path}: default_num_special_tokens must be an integer from 0 to {MAX_TOKENS}, got {short_repr(specials)}"
        )
    with package_errors(InvalidFileError, f"{path} is not a Tekken tokenizer"):
        made = tekken.Tekkenizer.from_file(path)
        ids = sorted(int(token["rank"]) for token in made._all_special_tokens)
    if ids != list(range(len(ids))):
        raise InvalidFileError(f"{path}: the ranks of the special tokens must be 0 to {len(ids) - 1}, each once")
    backend = backend_of(made)
    if backend is None:
        raise UnsupportedTokenizerError(
            f"{path}: this version of mistral-common returned an unknown {type(made).__qualname__}"
        )
    return backend
