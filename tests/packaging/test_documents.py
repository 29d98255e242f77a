"""README and docs: the Python code runs, and the links exist."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..helpers.forked_programs import ForkedPrograms
from .repository import PACKAGE, ROOT

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
"""Libraries that emit warnings when they are imported."""
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
ANCHOR = re.compile(r"\]\(([^)#\s]*)#([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def code_of(page: Path) -> str:
    """Returns the page's Python blocks as one program, except those after `<!-- not run: reason -->`."""
    return "\n".join(code for left_out, code in BLOCK.findall(page.read_text("utf-8")) if not left_out)


def marked(page: Path) -> object:
    """Returns the page, marked with the engines that its code imports."""
    libraries = {library for engine in ENGINE.findall(code_of(page)) for library in LIBRARIES.get(engine, [])}
    return pytest.param(page, marks=[pytest.mark.engine(*sorted(libraries))] if libraries else [])


@pytest.fixture(scope="module")
def programs() -> Iterator[ForkedPrograms]:
    with ForkedPrograms() as made:
        yield made


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.parametrize("page", [marked(page) for page in PAGES if code_of(page)], ids=name)
def test_code_runs(page: Path, tmp_path: Path, programs: ForkedPrograms) -> None:
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
    status, output = programs.run(program, noisy=bool(NOISY & set(ENGINE.findall(code_of(page)))))
    assert status == 0, output


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_exist(page: Path) -> None:
    links = [link for link in LINK.findall(page.read_text("utf-8")) if "://" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []


def anchors(page: Path) -> set[str]:
    """Returns the anchors of a page's headings, as GitHub forms them."""
    headings = HEADING.findall(page.read_text("utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_anchors_exist(page: Path) -> None:
    links = [link for link in ANCHOR.findall(page.read_text("utf-8")) if "://" not in link[0]]
    missing = [link for link in links if link[1] not in anchors(page.parent / link[0] if link[0] else page)]
    assert missing == []


def test_index_lists_every_page() -> None:
    index = (ROOT / "docs" / "index.md").read_text("utf-8")
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"index.md"}
    assert sorted(pages - set(LINK.findall(index))) == []


def test_the_table_of_keywords_is_that_of_the_code() -> None:
    from guideway.frontends.json_schema.keywords import KEYWORDS

    table = (ROOT / "docs" / "keywords.md").read_text("utf-8")
    assert re.findall(r"^\| `([^`]+)`", table, re.MULTILINE) == list(KEYWORDS)


def test_the_limits_are_those_of_the_code() -> None:
    from guideway import cache
    from guideway.compiler import CompileLimits
    from guideway.constraints import exports, wire
    from guideway.frontends.cfg import scanner
    from guideway.frontends.json_schema import dnf, fast_path, one_of, parse, strings
    from guideway.frontends.regex import parser, syntax
    from guideway.generation import MAX_TOKENS, options
    from guideway.integrations._common import step_budget
    from guideway.jsontext import copying
    from guideway.remote import received
    from guideway.tokenizers import huggingface

    table = (ROOT / "docs" / "limits.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| (.+?) \| (.+?) \|", table, re.MULTILINE))
    expected = {
        "automaton states of a constraint": f"{CompileLimits().max_states:,}",
        "work of one call: compiling, one mask, one token": f"{CompileLimits().max_work:,} units",
        "generated tokens": str(MAX_TOKENS),
        "rows that run together": str(options.BATCH),
        "automata in memory": f"{cache.budget_bytes >> 20} MiB",
        "nesting of groups in a pattern": str(parser.MAX_NESTING),
        "count in a pattern, `a{n}`": f"{syntax.MAX_COUNT:,}",
        r"assertions (look-around, `\b`, anchors) in a pattern": str(parser.MAX_ASSERTIONS),
        "nesting of a grammar (GBNF, EBNF, Lark)": f"{scanner.MAX_NESTING:,}",
        "count in a grammar": f"{scanner.MAX_COUNT:,}",
        "values in the document; their nesting": f"{copying.MAX_VALUES:,}; {copying.MAX_DEPTH:,} levels",
        "integers in a schema, such as `minLength`": f"{parse.MAX_COUNT:,}; a larger maximum counts as this number",
        "nesting of choices (`anyOf`, `oneOf`, `if`) in one value": str(dnf.MAX_NESTED),
        "branches of a `oneOf` that no property distinguishes": str(one_of.MAX_PAIRED),
        "patterns for the keys of one object": str(strings.MAX_TESTS),
        "nodes of the grammar of a schema": f"{fast_path.MAX_NODES:,}",
        "alternatives of a schema after normalisation": f"{dnf.MAX_ALTERNATIVES:,}",
        "nesting of `const` and `enum` values": str(parse.MAX_VALUE_DEPTH),
        "work of `to_gbnf`, `to_lark` or `to_regex`": f"{exports.EXPORT_WORK:,} units",
        "text of `to_gbnf` or `to_lark`; of `to_regex`": (
            f"{exports.MAX_CHARACTERS:,}; {exports.MAX_REGEX:,} characters"
        ),
        "document of `to_wire`": f"{wire.MAX_BYTES >> 20} MiB, {wire.MAX_PARTS:,} parts",
        "answer of a model served by an API": (
            f"{received.MAX_ANSWER >> 20} MiB, {received.MAX_EVENTS:,} chunks"
            f" and {received.EVENTS_PER_TOKEN} more for each token of `max_tokens`"
        ),
        "tokens of a vocabulary": f"{huggingface.MAX_TOKENS:,}",
    }
    assert {name: rows.get(name) for name in expected} == expected
    text = " ".join(table.split())
    assert f"{step_budget.STEP_WORK:,} units and of a reserve of {step_budget.RESERVE:,} units" in text


def test_types_that_are_refused_are_named() -> None:
    from pydantic import Base64Str, ConfigDict, FilePath, ImportString, NewPath, SocketPath, create_model
    from pydantic.types import PaymentCardNumber

    from guideway.constraints import PythonType
    from guideway.errors import UnsupportedError

    page = (ROOT / "docs" / "python-types.md").read_text("utf-8")
    refused = {"FilePath": FilePath, "NewPath": NewPath, "SocketPath": SocketPath, "ImportString": ImportString}
    for name, kind in {**refused, "PaymentCardNumber": PaymentCardNumber}.items():
        assert f"`{name}`" in page
        with pytest.raises(UnsupportedError):
            PythonType(kind)
    for option in ("str_to_lower", "str_to_upper"):
        assert f"`{option}`" in page
        with pytest.raises(UnsupportedError):
            PythonType(create_model("Model", __config__=ConfigDict(**{option: True}), text=(Base64Str, ...)))


@pytest.mark.parametrize(
    ("page", "limit"), [("vllm", "max_tokens"), ("sglang", "max_new_tokens"), ("transformers", "max_new_tokens")]
)
def test_pages_of_integrations_say_that_outputs_can_end_incomplete(page: str, limit: str) -> None:
    text = " ".join((ROOT / "docs" / f"{page}.md").read_text("utf-8").split())
    assert f"an output can end at `{limit}` before it is complete" in text


def test_readme_matches_years_in_ascii_digits() -> None:
    code = code_of(ROOT / "README.md")
    assert "(19|20)[0-9][0-9]" in code
    assert r"\d" not in code  # matches every Unicode digit
