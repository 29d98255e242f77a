"""The newest packages of engines have the interfaces that the adapters use. They are read, not imported: no GPU."""

from __future__ import annotations

from typing import Any

import pytest

from ..packaging.repository import PACKAGE
from .opened import WHEELS, need, signatures, toml

CLASSES = toml(__file__, "signatures.toml")["class"]
CHANGEABLE = {"__init__", "begin", "next", "clone"}
"""Methods with additional or renamed parameters in our classes."""


def said(one: dict[str, Any]) -> str:
    return f"{one['wheel']}-{one['file'].rsplit('/', 1)[-1]}-{one['name'] or 'functions'}"


def test_versions_are_those_that_are_pinned() -> None:
    lines = (PACKAGE.parents[1] / "requirements" / "wheels.txt").read_text("utf-8").splitlines()
    pinned = dict(line.split(" ")[0].split("==") for line in lines if "==" in line)
    assert set(pinned) == {one["wheel"] for one in CLASSES}
    for name, version in pinned.items():
        need(name)
        assert list(WHEELS.glob(f"{name}/{name}-{version}.dist-info")), f"{name} in .wheels is not {version}"


@pytest.mark.parametrize("one", CLASSES, ids=said)
def test_engines_offer_what_we_rely_on(one: dict[str, Any]) -> None:
    file = need(one["wheel"]) / one["file"]
    where = f"{one['wheel']}: {one['file']}: {one['name']}"
    assert file.is_file(), f"{one['wheel']}: {one['file']} is gone"
    found = signatures(file, one["name"])
    assert found, f"{where} is gone"
    changed = [
        f"{where}.{method}({', '.join(expected.split())}) is now ({', '.join(found.get(method, ['gone']))})"
        for method, expected in one["methods"].items()
        if found.get(method) != expected.split()
    ]
    assert not changed, "\n".join(changed)


@pytest.mark.parametrize("one", [one for one in CLASSES if "ours" in one], ids=said)
def test_our_classes_override_them(one: dict[str, Any]) -> None:
    file, name = one["ours"]
    ours = signatures(PACKAGE / "integrations" / file, name)
    overridden = set(ours) & set(one["methods"])
    assert len(overridden) >= len(one["methods"]) - 2
    for method in overridden - CHANGEABLE:
        assert ours[method] == one["methods"][method].split(), f"{file}: {name}.{method}"


def test_abstract_methods_are_implemented() -> None:
    """A new abstract method would prevent the instantiation of our class."""
    import ast

    for one in CLASSES:
        if "ours" not in one:
            continue
        tree = ast.parse((need(one["wheel"]) / one["file"]).read_text("utf-8"))
        theirs = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == one["name"])
        abstract = {
            node.name
            for node in theirs.body
            if isinstance(node, ast.FunctionDef)
            and any(isinstance(mark, ast.Name) and mark.id == "abstractmethod" for mark in node.decorator_list)
        }
        file, name = one["ours"]
        missing = abstract - set(signatures(PACKAGE / "integrations" / file, name))
        assert not missing, f"{one['wheel']}: {one['name']} wants {missing} of {name}"


def test_engines_load_the_entry_points() -> None:
    """vLLM and SGLang load the entry-point groups of guideway; vLLM's configuration has the field to widen."""
    project = toml(str(PACKAGE.parent), "pyproject.toml")["project"]
    folders = [need("vllm") / "vllm", need("sglang") / "sglang/srt/plugins"]
    texts = [file.read_text("utf-8") for folder in folders for file in folder.rglob("*.py")]
    for group in project["entry-points"]:
        assert any(f'"{group}"' in text for text in texts), f"no engine looks for the entry points {group}"
    config = (need("vllm") / "vllm/config/structured_outputs.py").read_text("utf-8")
    assert "class StructuredOutputsConfig:" in config
    assert "    backend: StructuredOutputsBackend = " in config
    early = (need("vllm") / "vllm/config/compilation.py").read_text("utf-8")
    assert "\nfrom vllm.platforms import current_platform\n" in early  # so vLLM loads platforms early enough


def test_options_of_the_many_machines_page_exist() -> None:
    import re

    page = (PACKAGE.parents[1] / "docs" / "many-machines.md").read_text("utf-8")
    files = [need("vllm") / "vllm" / name for name in ("engine/arg_utils.py", "entrypoints/common/cli_args.py")]
    known = "".join(file.read_text("utf-8") for file in files)
    for option in set(re.findall(r"(--[a-z-]+)", page)):
        assert f'"{option}"' in known, f"vLLM has no option {option}"


def test_kinds_of_structured_outputs_are_ours() -> None:
    import ast

    from guideway.integrations._common import KINDS

    tree = ast.parse((need("vllm") / "vllm/v1/structured_output/backend_types.py").read_text("utf-8"))
    options = next(
        node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "StructuredOutputOptions"
    )
    names = [one.targets[0].id for one in options.body if isinstance(one, ast.Assign)]  # type: ignore[attr-defined]  # names
    assert sorted(name.lower() for name in names) == sorted(KINDS)


def test_a_change_is_named(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a parameter in a package has another name, the test above reports it."""
    file = tmp_path / "engine" / "a.py"
    file.parent.mkdir()
    file.write_text("class Base:\n    def take(self, token, *, late=None): ...\n", "utf-8")
    assert signatures(file, "Base") == {"take": ["self", "token", "late=!"]}
    monkeypatch.setattr(f"{__name__}.need", lambda name: tmp_path / name)
    with pytest.raises(AssertionError, match=r"Base.take\(self, token_id\) is now \(self, token, late=!\)"):
        test_engines_offer_what_we_rely_on(
            {"wheel": "engine", "file": "a.py", "name": "Base", "methods": {"take": "self token_id"}}
        )
