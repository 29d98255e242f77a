"""README and docs: their Python runs, their links lead somewhere."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from .house import PACKAGE, ROOT

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"(<!-- not run: [^>]+-->\n)?^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ENGINE = re.compile(r"from (?:guideway\.(?:engines|integrations)\.)?(\w+)[.\w]* import")
LIBRARIES = {
    "transformers": ["torch", "transformers"],
    "llama_cpp": ["llama_cpp", "gguf"],
    "mlx": ["mlx_lm"],
    "onnx": [],
    "onnx_genai": ["onnxruntime_genai"],
    "vllm": ["vllm"],
}
NOISY = {"vllm"}
"""Libraries that warn of themselves when they are imported."""
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def code_of(page: Path) -> str:
    """The page's Python blocks in order, as one program; `<!-- not run: reason -->` above a block leaves it out."""
    return "\n".join(code for left_out, code in BLOCK.findall(page.read_text("utf-8")) if not left_out)


def marked(page: Path) -> object:
    """The page, with the engines whose folders its code imports from."""
    libraries = {library for engine in ENGINE.findall(code_of(page)) for library in LIBRARIES.get(engine, [])}
    return pytest.param(page, marks=[pytest.mark.engine(*sorted(libraries))] if libraries else [])


@pytest.mark.parametrize("page", [marked(page) for page in PAGES if code_of(page)], ids=name)
def test_code_runs(page: Path, tmp_path: Path) -> None:
    if 'gw.load("tiny")' in code_of(page) and not (PACKAGE / "tiny" / "model.onnx").is_file():
        pytest.skip("the bundled model is not in this tree")
    if "model.gguf" in code_of(page):
        from ..helpers.gguf_models import write_gguf

        write_gguf(PACKAGE / "tiny", tmp_path / "model.gguf")
    if "genai_config.json" in code_of(page):
        from ..helpers.genai_models import genai_folder

        genai_folder(PACKAGE / "tiny", tmp_path / "model")
    program = tmp_path / "page.py"
    program.write_text(code_of(page), "utf-8")
    noisy = NOISY & set(ENGINE.findall(code_of(page)))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "default" if noisy else "error"}
    result = subprocess.run(
        [sys.executable, str(program)], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    links = [link for link in LINK.findall(page.read_text("utf-8")) if "://" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_table_of_keywords_is_that_of_the_code() -> None:
    from guideway.frontends.json_schema.keywords import KEYWORDS

    table = (ROOT / "docs" / "keywords.md").read_text("utf-8")
    assert re.findall(r"^\| `([^`]+)`", table, re.MULTILINE) == list(KEYWORDS)
