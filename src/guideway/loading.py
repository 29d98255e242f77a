"""`load`: a model by its name."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from guideway.engines.base import StepEngine
from guideway.errors import MissingDependencyError, ModelNotFoundError
from guideway.generation import Model
from guideway.tokenizers import Tokenizer

__all__ = ["load"]


def load(
    name: str,
    *,
    device: str | None = None,
    dtype: str | None = None,
    context_size: int | None = None,
    tokenizer: object = None,
) -> Model:
    """Load a model by its name.

    Args:
        name: "tiny" (bundled), "onnx:FOLDER" (an ONNX export with its tokenizer.json), "hf:NAME" (transformers, a name
            or folder), "gguf:FILE" (llama.cpp) or "mlx:FOLDER" (MLX, a folder or name).
        device: A device by the engine's name for it; by default the CPU.
        dtype: The type of the weights, where the engine converts them; for llama.cpp, of the KV cache.
        context_size: The maximum number of tokens of a session; by default that of the model.
        tokenizer: Whatever `Tokenizer.of` takes, to replace the tokenizer of the model's files.

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
        f'there is no model {name!r}; known are "tiny" (bundled), "onnx:FOLDER", "hf:NAME", "gguf:FILE", "mlx:FOLDER"'
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


_ENGINES = {"onnx": _load_onnx, "hf": _load_transformers, "gguf": _load_llama_cpp, "mlx": _load_mlx}
