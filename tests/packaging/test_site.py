"""The documentation site: pictures, recorded runs and figures are those of their sources; every page is listed."""

import importlib
import inspect
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from .repository import ROOT

sys.path.insert(0, str(ROOT / "tools" / "site"))

import assemble  # the line above makes them importable
import check
import cited
import look
import pictures
import reference
import steps

import records

DOCS = ROOT / "docs"
GENERATED = re.compile(r"^(reference/|decisions/index|architecture|changelog|contributing)")


def pages_of_nav() -> set[str]:
    return set(re.findall(r": ([\w./-]+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE))


def test_the_navigation_lists_every_page() -> None:
    pages = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
    listed = {page for page in pages_of_nav() if not GENERATED.match(page)}
    assert listed == {page for page in pages if not page.startswith("decisions/")}


@pytest.mark.parametrize("name", pictures.PICTURES)
def test_pictures_are_up_to_date(name: str) -> None:
    assert (pictures.ASSETS / name).read_text("utf-8") == pictures.PICTURES[name](), "run python tools/site/pictures.py"


def test_figures_are_those_of_the_records() -> None:
    text = (DOCS / "which-library.md").read_text("utf-8")
    assert text == records.filled(text), "run python tools/site/records.py"
    readme = (ROOT / "README.md").read_text("utf-8")
    assert readme == records.filled_readme(readme), "run python tools/site/records.py"
    assert all(row in readme for row in records.readme_rows())
    assert records.LLGUIDANCE in readme
    assert records.XGRAMMAR in readme


def test_sentences_with_figures_are_those_of_the_records() -> None:
    assert cited.missing() == [], "run python tools/site/cited.py"


@pytest.mark.parametrize("page", cited.pages(), ids=lambda page: page.stem)
def test_every_figure_on_a_page_has_a_source(page: Path) -> None:
    assert cited.figures_without_source(page) == [], "add the sentence to tools/site/cited.py"


def test_figures_without_a_source_are_found(monkeypatch: Any) -> None:
    text = "It takes\n2 ms (`record`). Another takes 3.5 µs. | 12 MB | 3 times as fast | 4 % more, 7 of 9, 2x `5 ms`"
    monkeypatch.setattr(cited, "cited", lambda: {"docs/page.md": ["takes 2 ms (`record`)"]})
    monkeypatch.setattr(Path, "read_text", lambda *_: text)
    found = [one.split()[-2:] for one in cited.figures_without_source(DOCS / "page.md")]
    assert found == [["3.5", "µs"], ["12", "MB"], ["3", "times"], ["4", "%"], ["of", "9"], ["9,", "2x"]]


def test_figures_that_differ_from_their_source_are_found(monkeypatch: Any) -> None:
    monkeypatch.setattr(cited, "cited", dict)
    monkeypatch.setattr(cited, "DEFINED", {})
    page = "docs/decisions/0009-context-free-grammars.md"
    monkeypatch.setattr(
        cited, "QUOTED", {page: [("14 of 1,196 schemas", cited.EXPERIMENTS, "13 of 1,196 real schemas")]}
    )
    monkeypatch.setattr(cited, "CONSTANTS", {"docs/pool.md": [("1.25 times their size", "disk.py", "_DEFAULT_BYTES")]})
    found = cited.missing()
    assert len(found) == 3, found  # no such sentence in the record, another number, another constant


def test_docstrings_of_the_reference_have_no_measured_times() -> None:
    measured = re.compile(r"\d ?(?:µs|us|ms|ns|%)(?!\w)|\d times (?:as|fast|slow|more|less)")
    found = []
    for module in reference.MODULES:
        values = importlib.import_module(module)
        for name in reference.names_of(module):
            value = getattr(values, name)
            members = [value, *(vars(value).values() if inspect.isclass(value) else ())]
            texts = [inspect.getdoc(one) or "" for one in members if inspect.isroutine(one) or inspect.isclass(one)]
            found += [f"{module}.{name}: {text}" for text in texts if measured.search(text)]
    assert found == [], "docstrings are on the site, and no record is named in them"


def rows_of(text: str) -> list[list[str]]:
    """Returns the step, the token, the kind and the number of legal tokens of all rows."""
    return [row[:4] for row in re.findall(r"^\| (\d+) \| (.+?) \| (\w+) \| ([\d,]+) \|", text, re.MULTILINE)]


def test_recorded_runs_are_up_to_date() -> None:
    # Probabilities are not compared, since they differ in the last digit between processors.
    assert rows_of(steps.PAGE.read_text("utf-8")) == rows_of(steps.recorded()), "run python tools/site/steps.py"


def test_the_check_of_the_site_finds_defects(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(check, "HTML", tmp_path)
    (tmp_path / "good.html").write_text('<html lang="en"><h1 id="a">A</h1><a href="#a">up</a></html>', "utf-8")
    assert check.main() == 0
    bad = '<html><h1>A</h1><h3>B</h3><a href="none.html">x</a><a href="good.html#b">y</a><img src="https://x.test/a.png"></html>'
    (tmp_path / "bad.html").write_text(bad, "utf-8")
    assert check.main() == 1
    pages = check.read_pages()
    path = tmp_path / "bad.html"
    found = check.defects_of(path, pages[path], pages)
    assert len(found) == 6  # alternative text, two links, language, heading, other host


@pytest.mark.parametrize(
    ("html", "defect"),
    [
        ('<html lang="en"><p>no heading</p></html>', "the page has 0 headings of the first level"),
        ('<html lang="en"><h1>A</h1><h1>B</h1></html>', "the page has 2 headings of the first level"),
        ('<html lang="en"><h1>A</h1><script src="big.js"></script></html>', "the page weighs"),
        ('<html lang="en"><h1>A</h1><a href="sub/">x</a></html>', "the link sub/ leads nowhere"),
    ],
)
def test_the_check_of_the_site_names_the_defect(tmp_path: Path, monkeypatch: Any, html: str, defect: str) -> None:
    monkeypatch.setattr(check, "HTML", tmp_path)
    (tmp_path / "big.js").write_bytes(b" " * check.MAX_BYTES)
    path = tmp_path / "page.html"
    path.write_text(html, "utf-8")
    pages = check.read_pages()
    [found] = check.defects_of(path, pages[path], pages)
    assert found.startswith(defect)


def test_a_part_of_the_pages() -> None:
    pages = list(range(10))
    assert [pages[look.part_of(text)] for text in (":", "2:4", ":3", "8:")] == [pages, [2, 3], [0, 1, 2], [8, 9]]
    with pytest.raises(SystemExit, match="a range such as 0:40"):
        look.part_of("-1:3")


def test_markdown_is_converted_for_the_site() -> None:
    source = "Names\n- a\n  b\n- c\n\n| `a \\| b` | `<x>` |\n```\nx\n- y\n```"
    assert assemble.converted(source) == (
        "Names\n\n- a\n  b\n- c\n\n| <code>a &#124; b</code> | `<x>` |\n```\nx\n- y\n```"
    )
