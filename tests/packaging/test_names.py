"""Snapshot of the public names. A change here is visible to users and belongs in CHANGELOG.md."""

import importlib
import importlib.metadata
import re
from pathlib import Path

import pytest

import guideway
from guideway import errors

from .repository import PACKAGE, python_files

NAMES = {
    *("load", "compile", "cache", "resume", "score", "plan"),
    *("generate", "complete", "extract", "stream", "stream_values", "to_wire", "from_wire"),
    *("agenerate", "acomplete", "aextract", "astream", "astream_values"),
    *("GenerationRequest", "Sampler"),
    *("Constraint", "JsonSchema", "Regex", "Format", "Choice", "Lark", "Gbnf", "Ebnf"),
    *("Tag", "Tags", "Reasoning", "Tool", "ToolCalls", "Verbatim"),
    *("Vocabulary", "Tokenizer", "Automaton", "Matcher", "Model", "Pool", "Chat"),
    *("GuidewayError", "SchemaWarning", "__version__"),
}
MODULES = {
    "batch",
    "compiler",
    "constraints",
    "dsl",
    "errors",
    "masks",
    "matcher",
    "remote",
    "sampling",
    "search",
    "types",
}


def test_public_names() -> None:
    assert set(guideway.__all__) == NAMES
    assert set(dir(guideway)) == NAMES | MODULES
    assert len(NAMES) <= 44


@pytest.mark.parametrize("name", sorted(NAMES | MODULES))
def test_every_public_name_loads(name: str) -> None:
    assert getattr(guideway, name) is not None


@pytest.mark.parametrize("module", sorted(MODULES))
def test_every_name_of_a_public_module_loads(module: str) -> None:
    found = importlib.import_module(f"guideway.{module}")
    assert found.__all__
    assert all(hasattr(found, name) for name in found.__all__)


def test_unknown_name() -> None:
    with pytest.raises(AttributeError, match="generate"):
        _ = guideway.generat  # type: ignore[attr-defined]  # the slip is the test


def test_errors_are_listed_and_documented() -> None:
    defined = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, Exception) and value.__module__ == errors.__name__
    }
    assert defined == set(errors.__all__)
    told = (Path(__file__).parents[2] / "docs" / "start.md").read_text("utf-8")
    for name in defined:
        assert getattr(errors, name).__doc__
        assert f"| `{name}`" in told, f"{name} is not in the table of docs/start.md"
        assert name in (errors.__doc__ or ""), f"{name} is not in the tree that errors.py draws"
        bases = getattr(errors, name).__mro__
        assert name in {"GuidewayError", "ConstraintError"} or any(
            base.__module__ == "builtins" and base not in {Exception, BaseException, object} for base in bases
        ), f"{name} has no built-in base that a Python programmer would catch"


def test_version_is_that_of_the_package() -> None:
    assert importlib.metadata.version("guideway") == guideway.__version__


# Classes with one name in several modules: each implements a protocol of another library.
SAME_NAMES = {
    "ConstrainedLogits": {"transformers", "mlx", "llama_cpp", "exllamav2", "onnx_genai"},
    "ConstraintFilter": {"exllamav2", "exllamav3"},
    "GuidewayBackend": {"vllm", "sglang"},
    "GuidewayGrammar": {"vllm", "sglang"},
}


def test_class_names_are_unique() -> None:
    found: dict[str, list[Path]] = {}
    for path in [*python_files(), PACKAGE / "_kernel.pyi"]:
        for name in re.findall(r"^class (\w+)", path.read_text("utf-8"), re.M):
            found.setdefault(name, []).append(path.relative_to(PACKAGE))
    assert len(found) > 300
    repeated = {name: paths for name, paths in found.items() if len(paths) > 1}
    other = {name: [str(path) for path in paths] for name, paths in repeated.items() if name not in SAME_NAMES}
    assert not other, "rename these classes: the name has one meaning"
    assert all(path.parts[0] == "integrations" for paths in repeated.values() for path in paths)
    assert {name: {path.parts[1] for path in paths} for name, paths in repeated.items()} == SAME_NAMES
