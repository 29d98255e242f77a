"""Objects that contain a tokenizer of another library: MLX, vLLM, ExLlamaV2 and V3, llama.cpp, transformers.

Objects are recognised by class name and package, so none of these packages is imported. If the outer object defines EOS
ids, they replace those of the tokenizer inside it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from guideway.errors import UnsupportedTokenizerError
from guideway.tokenizers.kept import Same, Watch
from guideway.tokenizers.special_tokens import ids_of
from guideway.tokenizers.tokenizer import TokenizerBackend, find_backend, watch_of

__all__ = ["backend_of", "watch"]


def backend_of(source: object) -> TokenizerBackend | None:
    """Return the backend of the tokenizer inside an object of a class in `_HOLDERS`; None for other objects.

    Raises:
        UnsupportedTokenizerError: No adapter supports the tokenizer inside it.
    """
    for base in type(source).__mro__:
        opened = _HOLDERS.get((base.__module__.split(".")[0], base.__name__))
        if opened is not None:
            inner, eos_ids = opened(source)
            backend = find_backend(inner)
            if backend is None:
                raise UnsupportedTokenizerError(
                    f"{type(source).__qualname__} contains an unsupported tokenizer {type(inner).__qualname__}"
                )
            if not eos_ids:
                return backend
            changed: Any = backend  # all backends that can occur here are dataclasses with the field `specials`
            made: TokenizerBackend = replace(changed, specials=replace(backend.specials, eos_ids=eos_ids))
            return made
    return None


def watch(source: object) -> Watch | None:
    """Return a function that computes the state (see `kept.py`) of the tokenizer inside an object in `_HOLDERS`.

    None for other objects, and if the state of the tokenizer cannot be computed.
    """
    for base in type(source).__mro__:
        opened = _HOLDERS.get((base.__module__.split(".")[0], base.__name__))
        if opened is not None:
            inner, _ = opened(source)
            seen = watch_of(inner)
            return None if seen is None else partial(_state, opened, seen)
    return None


def _state(opened: Callable[[Any], _Opened], seen: Watch, source: Any) -> object:
    inner, eos_ids = opened(source)
    return str(inner) if isinstance(inner, Path) else Same(inner), eos_ids, seen(inner)


_Opened = tuple[object, tuple[int, ...]]


def _mlx(held: Any) -> _Opened:
    return held._tokenizer, ids_of(held.eos_token_ids)


def _vllm_engine(held: Any) -> _Opened:
    return held.get_tokenizer(), ()


def _tokenizer_inside(held: Any) -> _Opened:
    return held.tokenizer, ()


def _exllama_v2(held: Any) -> _Opened:
    model = held.tokenizer_model
    return getattr(model, "hf_tokenizer", None) or model.spm, ids_of(held.eos_token_id)


def _exllama_v3(held: Any) -> _Opened:
    listed = ids_of(getattr(held.config, "eos_token_id_list", None))
    return held.tokenizer, tuple(sorted({*listed, *ids_of(held.eos_token_id)}))


def _llama_cpp(held: Any) -> _Opened:
    return Path(held.model_path), ()


def _llama_cpp_internal(held: Any) -> _Opened:
    return Path(held._model.path_model), ()


def _llama_cpp_hub(held: Any) -> _Opened:
    return held.hf_tokenizer, ()


def _llama_models(held: Any) -> _Opened:
    return held.model, ids_of(held.stop_tokens)


_HOLDERS: dict[tuple[str, str], Callable[[Any], _Opened]] = {
    ("mlx_lm", "TokenizerWrapper"): _mlx,
    ("vllm", "LLM"): _vllm_engine,
    ("vllm", "MistralTokenizer"): _tokenizer_inside,
    ("exllamav2", "ExLlamaV2Tokenizer"): _exllama_v2,
    ("exllamav3", "Tokenizer"): _exllama_v3,
    ("llama_cpp", "Llama"): _llama_cpp,
    ("llama_cpp", "LlamaTokenizer"): _llama_cpp_internal,
    ("llama_cpp", "LlamaHFTokenizer"): _llama_cpp_hub,
    ("llama_models", "Tokenizer"): _llama_models,
    ("transformers", "MistralCommonBackend"): _tokenizer_inside,
    ("transformers", "MistralCommonTokenizer"): _tokenizer_inside,
    ("transformers", "ProcessorMixin"): _tokenizer_inside,
}
