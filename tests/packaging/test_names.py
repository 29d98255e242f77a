"""Snapshot of the public names. A change here is visible to users and belongs in CHANGELOG.md."""

import importlib.metadata
from pathlib import Path

import pytest

import guideway
from guideway import errors

NAMES = {
    *("load", "extract", "generate", "stream", "compile", "stream_values", "agenerate", "astream", "resume"),
    *("score", "beam_search", "smc"),
    *("GenerationRequest", "GenerationState", "Sampler", "Dry", "Mirostat"),
    *("fill_masks", "advance_and_fill", "forced_tokens"),
    *("load", "extract", "generate", "stream", "compile", "fill_masks"),
    *("acompile", "compile_many", "acompile_many", "CompileLimits", "cache"),
    *("JsonSchema", "Regex", "Format", "Choice", "Lark", "Gbnf", "Ebnf"),
    *("SpecialToken", "Substring", "Tag", "Tags", "Reasoning", "Tool", "ToolCalls"),
    *("Vocabulary", "Tokenizer", "Automaton", "Matcher", "Session", "Model"),
    *errors.__all__,
    "__version__",
}


def test_public_names() -> None:
    assert set(guideway.__all__) == NAMES
    assert set(dir(guideway)) == NAMES


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_public_name_loads(name: str) -> None:
    assert getattr(guideway, name) is not None


def test_unknown_name() -> None:
    with pytest.raises(AttributeError, match="generate"):
        _ = guideway.generat  # type: ignore[attr-defined]  # the slip is the test


def test_errors_are_listed_and_documented() -> None:
    defined = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.GuidewayError) and value.__module__ == errors.__name__
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
