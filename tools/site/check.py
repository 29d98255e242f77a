"""Checks the built site in build/site/html: links, anchors, headings, pictures, page weight, requests to other hosts.

    python tools/site/check.py

Ends with status 1 and one line for each defect.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

HTML = Path(__file__).resolve().parents[2] / "build" / "site" / "html"
MAX_BYTES = 1_000_000
"""The maximum size of a page with its scripts and style sheets, without pictures."""


class Page(HTMLParser):
    """The links, anchors, headings and resources of one page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.headings: list[int] = []
        self.resources: list[str] = []
        self.defects: list[str] = []
        self.language = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors.update(values[name] for name in ("id", "name") if name in values)
        if tag == "html":
            self.language = values.get("lang", "")
        elif tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif tag in {"script", "img", "iframe"} and "src" in values:
            self.resources.append(values["src"])
        elif tag == "link" and values.get("rel") in {"stylesheet", "icon"}:
            self.resources.append(values["href"])
        elif tag in {"h1", "h2", "h3", "h4", "h5", "h6"}:
            self.headings.append(int(tag[1]))
        if tag == "img" and not values.get("alt"):
            self.defects.append(f"a picture has no alternative text: {values.get('src')}")


def read_pages() -> dict[Path, Page]:
    """Parses all pages of the site."""
    pages = {}
    for path in sorted(HTML.rglob("*.html")):
        page = Page()
        page.feed(path.read_text("utf-8"))
        pages[path] = page
    return pages


def link_defects(path: Path, page: Page, pages: dict[Path, Page]) -> list[str]:
    """Returns the links of a page whose file or anchor does not exist."""
    found = []
    for link in page.links:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc or path.name == "404.html":
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        if target.is_dir():
            target = target / "index.html"
        if not target.exists():
            found.append(f"the link {link} leads nowhere")
        elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
            found.append(f"the anchor of {link} does not exist")
    return found


def weight(path: Path, page: Page) -> int:
    """Returns the bytes of a page with its scripts and style sheets."""
    files = {(path.parent / urlsplit(name).path).resolve() for name in page.resources if not urlsplit(name).netloc}
    return path.stat().st_size + sum(
        file.stat().st_size for file in files if file.suffix in {".js", ".css"} and file.exists()
    )


def defects_of(path: Path, page: Page, pages: dict[Path, Page]) -> list[str]:
    """Returns the defects of one page."""
    found = page.defects + link_defects(path, page, pages)
    if not page.language:
        found.append("the page has no language")
    if page.headings.count(1) != 1:
        found.append(f"the page has {page.headings.count(1)} headings of the first level")
    for before, after in zip(page.headings, page.headings[1:], strict=False):
        if after > before + 1:
            found.append(f"a heading of level {after} follows one of level {before}")
    found += [f"the page loads {name} from another host" for name in page.resources if urlsplit(name).netloc]
    if (size := weight(path, page)) > MAX_BYTES:
        found.append(f"the page weighs {size:,} bytes without pictures; at most {MAX_BYTES:,} are allowed")
    return found


def main() -> int:
    """Prints all defects and returns the exit status."""
    pages = read_pages()
    lines = [
        f"{path.relative_to(HTML)}: {defect}"
        for path, page in pages.items()
        for defect in defects_of(path, page, pages)
    ]
    print(*lines[:200], sep="\n")
    print(f"{len(pages)} pages, {sum(len(page.links) for page in pages.values()):,} links, {len(lines)} defects")
    return 1 if lines or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
