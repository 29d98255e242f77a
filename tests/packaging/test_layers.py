"""Import levels: a package imports only lower levels; engine libraries are imported in their own folders."""

from pathlib import Path

import pytest

from .repository import PACKAGE, imports, python_files

LEVELS = {
    1: ["_kernel"],
    2: ["errors", "disk", "arguments", "background", "caching"],
    3: ["masks", "jsontext"],
    4: ["grammar", "tokenizers", "sampling"],
    5: ["frontends", "matcher"],
    6: ["constraints"],
    7: ["compiler", "dsl"],
    8: ["engines", "integrations"],
    9: ["sessions"],
    10: ["generation"],
    11: ["remote", "search", "types"],
    12: ["loading", "testing"],
    13: ["batch", "pool"],
    14: ["server"],
    15: ["cli"],
}
LEVEL_OF = {name: level for level, names in LEVELS.items() for name in names}

# The folder under engines/ and integrations/ that owns each engine's libraries.
ENGINE_LIBRARIES = {
    "onnx": ["onnxruntime", "onnx"],
    "transformers": ["transformers", "torch", "safetensors"],
    "mlx": ["mlx", "mlx_lm"],
    "llama_cpp": ["llama_cpp"],
    "onnx_genai": ["onnxruntime_genai"],
    "vllm": ["vllm"],
    "sglang": ["sglang"],
    "exllamav2": ["exllamav2"],
    "exllamav3": ["exllamav3"],
}
ON_TORCH = {"vllm", "sglang", "exllamav2", "exllamav3"}
"""Engines that are built on torch, in addition to torch itself."""
ENGINE_OF = {library: engine for engine, libraries in ENGINE_LIBRARIES.items() for library in libraries}
ARRAY_LIBRARIES = {"torch", "mlx", "triton"}
TOKENIZER_LIBRARIES = {"tokenizers", "sentencepiece", "tiktoken", "gguf", "mistral_common", "transformers"}


def package_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def test_every_package_has_a_level() -> None:
    found = {package_of(path) for path in python_files()} - {"__init__", "__main__"}
    assert found <= set(LEVEL_OF), f"give these a level here: {found - set(LEVEL_OF)}"


@pytest.mark.parametrize("path", python_files(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_downwards(path: Path) -> None:
    package = package_of(path)
    if package in {"__init__", "__main__"}:
        return
    upward = []
    for name, line, _ in imports(path):
        top, *rest = name.split(".")
        if top != "guideway" or not rest or rest[0] in {package, "__version__"}:
            continue
        target = rest[0]
        if target not in LEVEL_OF:
            upward.append(f"line {line}: {name}: import it from the module that defines it")
        elif LEVEL_OF[target] >= LEVEL_OF[package]:
            upward.append(f"line {line}: {package} (level {LEVEL_OF[package]}) imports {target} ({LEVEL_OF[target]})")
    assert not upward


def may_import(path: Path, library: str, inside_function: bool) -> bool:
    parts = path.relative_to(PACKAGE).parts
    if parts[0] in {"engines", "integrations"} and len(parts) > 2 and parts[1] == ENGINE_OF.get(library):
        return True
    if parts == ("masks", "triton.py") and library in {"torch", "triton"}:
        return True  # Triton compiles functions at the top level of a module; no other module imports this one there
    if library == "torch" and parts[0] == "integrations" and len(parts) > 2 and parts[1] in ON_TORCH:
        return True
    if not inside_function:
        return False
    if parts[0] in {"masks", "sampling"}:
        return library in ARRAY_LIBRARIES
    if parts[0] == "tokenizers":
        return library in TOKENIZER_LIBRARIES
    return parts[0] == "testing"


@pytest.mark.parametrize("path", python_files(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_engine_libraries_stay_in_their_folders(path: Path) -> None:
    astray = []
    for name, line, inside in imports(path):
        library = name.split(".")[0]
        if library in ENGINE_OF.keys() | ARRAY_LIBRARIES | TOKENIZER_LIBRARIES and not may_import(
            path, library, inside
        ):
            astray.append(f"line {line}: {library}{'' if inside else ' (at module level)'}")
    assert not astray
