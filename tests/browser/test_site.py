"""tools/site/look.py finds defects of pages that only a browser shows. `make site-look` runs it over the whole site."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ..packaging.repository import ROOT

sys.path.insert(0, str(ROOT / "tools" / "site"))

import look  # the line above makes it importable

pytestmark = [
    pytest.mark.engine("selenium", "axe_playwright_python"),
    pytest.mark.skipif(
        not (shutil.which("chromium") and shutil.which("chromedriver")),
        reason="needs Chromium: apt-get install chromium chromium-driver, or the like",
    ),
]
PAGE = """<!doctype html><html lang="en"><head><title>A page</title>{head}</head><body data-md-color-scheme="default">
<nav aria-label="pages"><a href="good.html">first</a> <a href="good.html">second</a> <a href="good.html">third</a></nav>
<main><article><h1>A page</h1><p>Enough text to be a page that a reader can read.</p>{body}</article></main></body></html>"""
DEFECTS = {
    "contrast": ("", '<p style="color: #aaa; background: #fff">light grey on white</p>', "color-contrast"),
    "label": ("", "<button></button>", "button-name"),
    "wide": ("", '<div style="width: 600px; height: 5px"></div>', "pixels wider than the screen"),
    "picture": ("", '<img src="none.png" alt="none" width="5" height="5">', "a picture is not shown"),
    "script": ("<script>undefined.name</script>", "", "TypeError"),
    "scripted": (
        "<style>article { display: none }</style>",
        "<script>document.querySelector('article').style.display = 'block'</script>",
        "(without JavaScript): the page shows",
    ),
}


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    with look.browser() as found:
        yield found


def defects(driver: Any, folder: Path, body: str = "", head: str = "") -> list[str]:
    (folder / "page.html").write_text(PAGE.format(head=head, body=body), "utf-8")
    (folder / "favicon.ico").write_bytes(b"")
    with look.served(folder) as address:
        return look.look_at(driver, address, "page.html", look.axe_source(), None)


def test_a_good_page_has_no_defects(driver: Any, tmp_path: Path) -> None:
    assert defects(driver, tmp_path) == []


@pytest.mark.parametrize("name", DEFECTS)
def test_a_planted_defect_is_found(driver: Any, tmp_path: Path, name: str) -> None:
    head, body, expected = DEFECTS[name]
    found = defects(driver, tmp_path, body, head)
    assert any(expected in defect for defect in found), found
