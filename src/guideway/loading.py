"""`load`: a model by its name."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, overload

from guideway.engines.base import StepEngine
from guideway.errors import MissingDependencyError, ModelNotFoundError
from guideway.generation import Model
from guideway.remote.model import RemoteModel, remote
from guideway.tokenizers import Tokenizer

__all__ = ["load"]


@overload
def load(
    name: Literal["tiny"],
    *,
    device: str | None = None,
    dtype: str | None = None,
    context_size: int | None = None,
    tokenizer: object = None,
) -> Model: ...
@overload
def load(name: str, *, base_url: str, **remote_options: Any) -> RemoteModel: ...
@overload
def load(
    name: str,
    *,
    device: str | None = None,
    dtype: str | None = None,
    context_size: int | None = None,
    tokenizer: object = None,
    base_url: None = None,
    **remote_options: Any,
) -> Model: ...


def load(
    name: str,
    *,
    device: str | None = None,
    dtype: str | None = None,
    context_size: int | None = None,
    tokenizer: object = None,
    base_url: str | None = None,
    **remote_options: Any,
) -> Any:
    """Load a model by its name.

    Args:
        name: "tiny" (bundled), "onnx:FOLDER" (an ONNX export with its tokenizer.json), "hf:NAME" (transformers, a name
            or folder), "gguf:FILE" (llama.cpp) or "mlx:FOLDER" (MLX, a folder or name). "openai:NAME", "anthropic:NAME",
            "google:NAME" and "mistral:NAME" are models served by an API; the key comes from the environment, as the SDK
            reads it.
        device: A device by the engine's name for it; by default the CPU.
        dtype: The type of the weights, where the engine converts them; for llama.cpp, of the KV cache.
        context_size: The maximum number of tokens of a session; by default that of the model.
        tokenizer: Whatever `Tokenizer.of` takes, to replace the tokenizer of the model's files.
        base_url: The URL of the endpoint, for models served by an API.
        **remote_options: Options of `guideway.remote`, for models served by an API.

    Returns:
        The model. It is a context manager, which closes the engine.

    Raises:
        ModelNotFoundError: There is no such name or file.
        MissingDependencyError: The engine's library is not installed.
        InvalidFileError: The tokenizer's file is damaged.
        EngineError: The model's files are damaged or unsuitable, or the device or type does not exist.
        ValueError: `context_size` is larger than that of the model.
        TypeError: `name` is not a str.
    """
    if not isinstance(name, str):
        raise TypeError(f'name must be a str such as "tiny" or "hf:NAME", got {name!r}')
    kind, _, rest = name.partition(":")
    if kind in _CLIENTS and rest:
        if wrong := [one for one in (device, dtype, context_size, tokenizer) if one is not None]:
            raise ValueError(f"{wrong[0]!r} has no effect on a model served by an API; omit it")
        return remote(_client(kind, base_url), rest, **remote_options)
    if remote_options or base_url is not None:
        named = next(iter(remote_options), "base_url")
        raise TypeError(f"{named}= applies to models served by an API, such as openai:NAME, not to {name!r}")
    if name == "tiny":
        folder = Path(__file__).parent / "tiny"
        if not any(folder.rglob("*.onnx")):
            raise ModelNotFoundError("the bundled model tiny is missing from this installation")
        kind, rest = "onnx", str(folder)
    if kind in _ENGINES and rest:
        options: dict[str, Any] = {"device": device, "dtype": dtype, "context_size": context_size}
        given = {key: value for key, value in options.items() if value is not None}
        engine, found = _ENGINES[kind](rest, given)
        return Model(engine, Tokenizer.of(found() if tokenizer is None else tokenizer), name=name)
    raise ModelNotFoundError(
        f'there is no model {name!r}; known are "tiny" (bundled), "onnx:FOLDER", "hf:NAME", "gguf:FILE", "mlx:FOLDER",'
        ' "openai:NAME", "anthropic:NAME", "google:NAME", "mistral:NAME"'
    )


_Loaded = tuple[StepEngine, Callable[[], object]]  # an engine, and a function that returns its tokenizer


def _load_onnx(rest: str, options: dict[str, Any]) -> _Loaded:
    from guideway.engines.onnx import OnnxEngine

    if "dtype" in options:
        raise ValueError(
            "dtype= is not supported for onnx: models; an ONNX export keeps the types it was exported with"
        )
    path = Path(rest)
    folders = [path] if path.is_dir() else [path.parent, path.parent.parent]
    found = next((folder for folder in folders if (folder / "tokenizer.json").is_file()), folders[0])
    return OnnxEngine(path, **options), lambda: found


def _load_transformers(rest: str, options: dict[str, Any]) -> _Loaded:
    package = _engine("transformers", "transformers", "torch and transformers")
    engine = package.TransformersEngine(rest, **options)
    return engine, lambda: package.tokenizer(rest, engine.eos_ids)


def _load_llama_cpp(rest: str, options: dict[str, Any]) -> _Loaded:
    package = _engine("llama_cpp", "llama-cpp", "llama-cpp-python")
    return package.LlamaCppEngine(rest, **options), lambda: Path(rest)


def _load_mlx(rest: str, options: dict[str, Any]) -> _Loaded:
    package = _engine("mlx", "mlx", "mlx and mlx-lm")
    folder = package.folder_of(rest)
    return package.MlxEngine(folder, **options), lambda: folder


def _engine(folder: str, extra: str, libraries: str) -> Any:
    """The package of an engine. Raises `MissingDependencyError` if its library is not installed."""
    try:
        return importlib.import_module(f"guideway.engines.{folder}")
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            f"this engine needs {libraries}: pip install 'guideway[{extra}]' ({error})"
        ) from error


def _client(kind: str, base_url: str | None) -> Any:
    """Make a client of an SDK, with the key of the environment."""
    library, maker, url = _CLIENTS[kind]
    try:
        module = importlib.import_module(library)
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            f"{kind}: models need the package {library}: pip install 'guideway[{kind}-api]' ({error})"
        ) from error
    options: dict[str, Any] = {} if base_url is None else {url: base_url}
    if kind == "google" and base_url is not None:
        options = {"http_options": {"base_url": base_url}}
    if kind == "mistral":
        options["api_key"] = os.environ.get("MISTRAL_API_KEY", "")
    return getattr(module, maker)(**options)


_CLIENTS = {
    "openai": ("openai", "OpenAI", "base_url"),
    "anthropic": ("anthropic", "Anthropic", "base_url"),
    "google": ("google.genai", "Client", "http_options"),
    "mistral": ("mistralai.client", "Mistral", "server_url"),
}
"""For each provider: the module of its SDK, the class of its client, and the argument for the URL."""

_ENGINES = {"onnx": _load_onnx, "hf": _load_transformers, "gguf": _load_llama_cpp, "mlx": _load_mlx}
