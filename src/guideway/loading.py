"""`load`: a model by its name."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, overload

from guideway.arguments import short_repr, shortened
from guideway.engines.base import StepEngine
from guideway.errors import AuthenticationError, EngineError, MissingDependencyError, ModelNotFoundError, RemoteError
from guideway.generation import Model
from guideway.remote.model import RemoteModel, remote
from guideway.tokenizers import Tokenizer

__all__ = ["is_remote", "load", "sdk_client"]


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
def load(name: str, *, base_url: str, **options: Any) -> RemoteModel: ...
@overload
def load(
    name: str,
    *,
    device: str | None = None,
    dtype: str | None = None,
    context_size: int | None = None,
    tokenizer: object = None,
    base_url: None = None,
    **options: Any,
) -> Model: ...
@overload
def load(name: object, *, tokenizer: object = None, context_size: int | None = None) -> Model: ...


def load(
    name: object,
    *,
    device: str | None = None,
    dtype: str | None = None,
    context_size: int | None = None,
    tokenizer: object = None,
    base_url: str | None = None,
    **options: Any,
) -> Any:
    """Load a model by its name, or use a model object that is loaded already.

    Args:
        name: "tiny" (bundled), "onnx:FOLDER" (an ONNX export with its tokenizer.json), "hf:NAME" (transformers, a name
            or folder), "gguf:FILE" (llama.cpp) or "mlx:FOLDER" (MLX, a folder or name). "openai:NAME",
            "anthropic:NAME", "google:NAME" and "mistral:NAME" are models served by an API; the key comes from the
            environment, as the SDK reads it. `name` may also be a model object: of transformers, of mlx-lm, a
            `llama_cpp.Llama`, or an `onnxruntime.InferenceSession` of a file in the folder of its config.json. For a
            model object, `tokenizer` is required (except for a `Llama`, which has one), and `device`, `dtype`,
            `base_url` and `options` must not be given.
        device: The device, with the name that the engine uses for it; None: the engine chooses, usually the CPU.
        dtype: The type to which transformers and MLX convert the weights; for llama.cpp, the type of the KV cache.
            None: the engine's default.
        context_size: The maximum number of tokens of a session; None: the context size of the model.
        tokenizer: Whatever `Tokenizer.of` takes. It replaces the tokenizer of the model's files.
        base_url: The URL of the endpoint, for models served by an API.
        **options: For "hf:NAME", arguments of `from_pretrained`, such as `device_map`, `quantization_config`,
            `revision` and `trust_remote_code`. For "gguf:FILE", `kv_cache_tokens`, `rows` and `kv_unified` of
            `LlamaCppEngine`. For models served by an API, options of `guideway.remote`.

    Returns:
        The model. A local model is a context manager, which closes the engine.

    Raises:
        ModelNotFoundError: There is no such name or file.
        MissingDependencyError: The engine's library is not installed.
        InvalidFileError: The tokenizer's file is damaged.
        UnsupportedTokenizerError: The tokenizer is of an unsupported kind.
        EngineError: The model's files are damaged or unsuitable, or the device or type does not exist.
        ValueError: `context_size` is larger than the context size of the model, or an option has no effect on this kind
            of model.
        TypeError: `name` is neither a str nor a supported model object, or an option does not apply.
        AuthenticationError: No API key is set, for a model served by an API.
        GuidewayError: Other errors of `guideway.remote`, for a model served by an API.
    """
    if not isinstance(name, str):
        others = {"device": device, "dtype": dtype, "base_url": base_url, **options}
        return _of_object(name, tokenizer, context_size, [key for key, value in others.items() if value is not None])
    kind, _, rest = name.partition(":")
    if kind in _CLIENTS and rest:
        without_effect = {"device": device, "dtype": dtype, "context_size": context_size, "tokenizer": tokenizer}
        if wrong := [key for key, value in without_effect.items() if value is not None]:
            raise ValueError(f"{wrong[0]}= has no effect on a model served by an API; omit it")
        return remote(_client(kind, base_url), rest, **options)
    if base_url is not None:
        raise TypeError(f"base_url= applies to models served by an API, such as openai:NAME, not to {short_repr(name)}")
    if kind != "hf" and (wrong := [key for key in options if kind != "gguf" or key not in _LLAMA_CPP_OPTIONS]):
        raise TypeError(f"{shortened(wrong[0])}= does not apply to {short_repr(name)}")
    if name == "tiny":
        folder = Path(__file__).parent / "tiny"
        if not any(folder.rglob("*.onnx")):
            raise ModelNotFoundError("the bundled model tiny is missing from this installation")
        kind, rest = "onnx", str(folder)
    if kind in _ENGINES and rest:
        named_options = {"device": device, "dtype": dtype, "context_size": context_size, "options": options or None}
        given = {key: value for key, value in named_options.items() if value is not None}
        engine, found = _ENGINES[kind](rest, given)
        return Model(engine, Tokenizer.of(found() if tokenizer is None else tokenizer), name=name)
    raise ModelNotFoundError(
        f'there is no model {short_repr(name)}; known are "tiny" (bundled), "onnx:FOLDER", "hf:NAME", "gguf:FILE", "mlx:FOLDER",'
        ' "openai:NAME", "anthropic:NAME", "google:NAME", "mistral:NAME"'
    )


def is_remote(name: str) -> bool:
    """Return whether `load(name)` returns a model served by an API. Nothing is loaded."""
    kind, _, rest = name.partition(":")
    return kind in _CLIENTS and bool(rest)


def _of_object(source: Any, tokenizer: object, context_size: int | None, wrong: list[str]) -> Model:
    """Return the `Model` of a loaded model object. `wrong`: the names of options that were given but do not apply."""
    kinds = {(base.__module__.partition(".")[0], base.__name__) for base in type(source).__mro__}
    wrap = next((wrap for kind, wrap in _OBJECTS.items() if kind in kinds), None)
    if wrap is None:
        raise TypeError(
            'name must be a str such as "tiny" or "hf:NAME", a model of transformers or mlx-lm, a llama_cpp.Llama or an'
            f" onnxruntime.InferenceSession, got {short_repr(source)}"
        )
    if wrong:
        raise TypeError(f"{shortened(wrong[0])}= does not apply to a model object; set it where the object is made")
    if tokenizer is None and wrap is _of_llama_cpp:
        tokenizer = source
    if tokenizer is None:
        raise TypeError("a model object needs tokenizer=: whatever Tokenizer.of takes")
    engine, name = wrap(source, context_size)
    table = Tokenizer.of(tokenizer)
    ends = getattr(engine, "eos_ids", ())
    missing = [one for one in ends if one not in table.eos_ids and one < len(table.vocabulary)]
    if missing:
        table = Tokenizer.of(table, eos_ids=[*table.eos_ids, *missing])
    return Model(engine, table, name=name or type(source).__name__)


def _of_transformers(source: Any, context_size: int | None) -> tuple[StepEngine, str]:
    package = _engine("transformers", "transformers", "torch and transformers")
    return package.TransformersEngine(source, context_size=context_size), source.config.name_or_path


def _of_onnx(source: Any, context_size: int | None) -> tuple[StepEngine, str]:
    from guideway.engines.onnx import OnnxEngine

    path = getattr(source, "_model_path", None)
    if not path:
        raise EngineError("the session was made from bytes; make it from a file that lies next to its config.json")
    return OnnxEngine(path, context_size=context_size, session=source), str(path)


def _of_llama_cpp(source: Any, context_size: int | None) -> tuple[StepEngine, str]:
    package = _engine("llama_cpp", "llama-cpp", "llama-cpp-python")
    return package.LlamaCppEngine(source, context_size=context_size), Path(source.model_path).name


def _of_mlx(source: Any, context_size: int | None) -> tuple[StepEngine, str]:
    package = _engine("mlx", "mlx", "mlx and mlx-lm")
    return package.MlxEngine(source, context_size=context_size), type(source).__module__.rpartition(".")[2]


_OBJECTS: dict[tuple[str, str], Callable[[Any, int | None], tuple[StepEngine, str]]] = {
    ("transformers", "PreTrainedModel"): _of_transformers,
    ("onnxruntime", "InferenceSession"): _of_onnx,
    ("llama_cpp", "Llama"): _of_llama_cpp,
    ("mlx", "Module"): _of_mlx,
}
"""For each class of model objects (package, name): a function that returns the engine and the name of such an object.
"""

_Loaded = tuple[StepEngine, Callable[[], object]]  # an engine, and a function that returns its tokenizer


def _load_onnx(rest: str, options: dict[str, Any]) -> _Loaded:
    from guideway.engines.onnx import OnnxEngine

    if "dtype" in options:
        raise ValueError(
            "dtype= is not supported for onnx: models; an ONNX export keeps the types it was exported with"
        )
    path = Path(rest)
    folders = [path] if os.path.isdir(path) else [path.parent, path.parent.parent]
    found = next((folder for folder in folders if os.path.isfile(folder / "tokenizer.json")), folders[0])
    return OnnxEngine(path, **options), lambda: found


def _load_transformers(rest: str, options: dict[str, Any]) -> _Loaded:
    package = _engine("transformers", "transformers", "torch and transformers")
    engine = package.TransformersEngine(rest, **options)
    return engine, lambda: package.tokenizer(rest, engine.eos_ids, options.get("options"))


_LLAMA_CPP_OPTIONS = frozenset({"kv_cache_tokens", "rows", "kv_unified"})


def _load_llama_cpp(rest: str, options: dict[str, Any]) -> _Loaded:
    package = _engine("llama_cpp", "llama-cpp", "llama-cpp-python")
    own = options.pop("options", {})
    return package.LlamaCppEngine(rest, **options, **own), lambda: Path(rest)


def _load_mlx(rest: str, options: dict[str, Any]) -> _Loaded:
    package = _engine("mlx", "mlx", "mlx and mlx-lm")
    folder = package.folder_of(rest)
    return package.MlxEngine(folder, **options), lambda: folder


def _engine(folder: str, extra: str, libraries: str) -> Any:
    """Import the package of an engine. Raises `MissingDependencyError` if the libraries are not installed.

    `extra`, `libraries`: the pip extra and the libraries, for the message.
    """
    try:
        return importlib.import_module(f"guideway.engines.{folder}")
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            f"this engine needs {libraries}: pip install 'guideway[{extra}]' ({error})"
        ) from error


def _client(kind: str, base_url: str | None) -> Any:
    """Return a new client of a provider's SDK. `kind`: a key of `_CLIENTS`. `base_url`: None: the default of the SDK.

    The API key comes from the environment: the SDK reads it; for Mistral, this function reads MISTRAL_API_KEY.

    Raises:
        MissingDependencyError: The SDK is not installed.
        AuthenticationError, RemoteError: See `sdk_client`.
    """
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
    return sdk_client(kind, lambda: getattr(module, maker)(**options))


def sdk_client(provider: str, make: Callable[[], Any]) -> Any:
    """Return the client of an SDK that `make` makes.

    Raises:
        AuthenticationError: The message of the SDK names an API key or credentials; usually none is set.
        RemoteError: The SDK raised another error, for example because of the URL or a proxy.
    """
    try:
        return make()
    except Exception as error:  # the SDKs raise different classes
        if _NO_KEY.search(str(error)):
            raise AuthenticationError(
                f"no client for {provider} can be made; probably no API key is set: {error}", provider=provider
            ) from error
        raise RemoteError(f"no client for {provider} can be made: {error}", provider=provider) from error


_NO_KEY = re.compile(r"api.?key|credentials|missing key", re.IGNORECASE)
"""What the messages of the SDKs about a missing API key contain."""

_CLIENTS = {
    "openai": ("openai", "OpenAI", "base_url"),
    "anthropic": ("anthropic", "Anthropic", "base_url"),
    "google": ("google.genai", "Client", "http_options"),
    "mistral": ("mistralai.client", "Mistral", "server_url"),
}
"""For each provider: the module of its SDK, the class of its client, and the argument for the URL."""

_ENGINES = {"onnx": _load_onnx, "hf": _load_transformers, "gguf": _load_llama_cpp, "mlx": _load_mlx}
