"""Assembles the sources of the documentation site in build/site/docs.

    python tools/site/assemble.py

Copies `docs/`, ARCHITECTURE.md, CHANGELOG.md and CONTRIBUTING.md, adapts the links that leave `docs/`, and writes the
generated pages: the Python API, the errors, the command line, the list of decision records, llms.txt and llms-full.txt.
"""

from __future__ import annotations

import html
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tools" / "site")]

import reference  # noqa: E402  # the line above makes it importable
import yaml  # noqa: E402

DOCS = ROOT / "docs"
OUT = ROOT / "build" / "site" / "docs"
ROOT_PAGES = {
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
}
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")


def adapted(text: str, source: Path, target: Path) -> str:
    """Returns the text of a page with links that hold in the site.

    Args:
        text: Markdown with links relative to `source`.
        source: the file in the repository.
        target: the page, relative to the folder of the site.

    Returns:
        The text. A link to a page leads to the page. A link to a folder of pages leads to its index. A link to another
        file of the repository becomes its path in code style, since the repository has no public address.
    """
    up = "../" * (len(target.parts) - 1)

    def replaced(match: re.Match[str]) -> str:
        label, link = match.groups()
        path, _, anchor = link.partition("#")
        if "://" in link or link.startswith("mailto:") or not path:
            return match.group(0)
        file = (source.parent / path).resolve()
        if file.name in ROOT_PAGES and file.parent == ROOT:
            page = ROOT_PAGES[file.name]
        elif file.is_relative_to(DOCS):
            page = file.relative_to(DOCS).as_posix() + ("/index.md" if file.is_dir() else "")
        else:
            shown = file.relative_to(ROOT).as_posix()
            return f"{label} (`{shown}`)" if label.strip("`") != shown else f"`{shown}`"
        return f"[{label}]({up}{page}{'#' + anchor if anchor else ''})"

    return LINK.sub(replaced, text)


def converted(text: str) -> str:
    """Returns GitHub's Markdown in the form of Python-Markdown.

    A list that follows a line of text needs an empty line before it. In a cell of a table, `\\|` within code would be shown
    with its backslash.
    """
    lines: list[str] = []
    in_code = False
    for line in text.split("\n"):
        in_code ^= line.startswith("```")
        before = lines[-1] if lines else ""
        if not in_code and line.startswith("- ") and before.strip() and not re.match(r"- |\s|#|\|", before):
            lines.append("")
        lines.append(re.sub(r"`([^`]*\\\|[^`]*)`", _code_cell, line) if not in_code and line.startswith("|") else line)
    return "\n".join(lines)


def _code_cell(match: re.Match[str]) -> str:
    return "<code>" + html.escape(match[1].replace("\\|", "|"), quote=False).replace("|", "&#124;") + "</code>"


def copy_pages() -> None:
    """Copies all pages, with adapted links, and all other files of `docs/`."""
    for file in sorted(DOCS.rglob("*")):
        target = file.relative_to(DOCS)
        if file.is_dir():
            continue
        (OUT / target).parent.mkdir(parents=True, exist_ok=True)
        if file.suffix == ".md":
            (OUT / target).write_text(converted(adapted(file.read_text("utf-8"), file, target)), "utf-8")
        else:
            shutil.copyfile(file, OUT / target)
    for name, page in ROOT_PAGES.items():
        (OUT / page).write_text(converted(adapted((ROOT / name).read_text("utf-8"), ROOT / name, Path(page))), "utf-8")


def title_of(page: Path) -> str:
    """Returns the first heading of a page."""
    found = re.search(r"^# (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return found.group(1) if found else page.stem


def summary_of(page: Path) -> str:
    """Returns the first sentences of a page on one line, without code, tables and lists."""
    text = re.sub(r"```.*?```|<!--.*?-->", "", page.read_text("utf-8"), flags=re.DOTALL)
    for block in re.split(r"\n[ \t]*\n", text):
        block = block.strip("\n")
        if block and block[0] not in "#|-*:!<" and not block.startswith("    "):
            words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(block.split()))
            sentences = re.split(r"(?<=[.!?]) (?=[A-Z`])", words)
            return next((found for n in (3, 2) if len(found := " ".join(sentences[:n])) <= 300), sentences[0])
    return ""


def write_decisions() -> None:
    """Writes the list of decision records."""
    rows = [f"- [{title_of(page)}]({page.name})" for page in sorted((OUT / "decisions").glob("0*.md"))]
    text = "# Decision records\n\nOne page for each design decision: context, decision, consequences, alternatives. Figures were measured "
    text += "when the decision was made; `benchmarks/record/` has the notes.\n\n"
    (OUT / "decisions" / "index.md").write_text(text + "\n".join(rows) + "\n", "utf-8")


def pages_of(nav: list[dict[str, object]]) -> list[tuple[str, str]]:
    """Returns the title and the file of every page of the navigation, in its order."""
    found: list[tuple[str, str]] = []
    waiting = list(reversed(nav))
    while waiting:
        [(title, content)] = waiting.pop().items()
        if isinstance(content, list):
            waiting.extend(reversed(content))
        else:
            found.append((title, str(content)))
    return found


def write_llms(nav: list[dict[str, object]]) -> None:
    """Writes llms.txt (a list of the pages with summaries) and llms-full.txt (the text of all pages)."""
    pages = [(title, name) for title, name in pages_of(nav) if not name.startswith("reference/index")]
    lines = [f"- [{title}]({name}): {summary_of(OUT / name)}".rstrip(": ") for title, name in pages]
    intro = summary_of(ROOT / "README.md")
    (OUT / "llms.txt").write_text(f"# Guideway\n\n> {intro}\n\n## Pages\n\n" + "\n".join(lines) + "\n", "utf-8")
    texts = [(OUT / name).read_text("utf-8").rstrip() for _, name in pages]
    (OUT / "llms-full.txt").write_text("\n\n".join(texts) + "\n", "utf-8")


def main() -> None:
    """Builds build/site/docs from scratch."""
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    copy_pages()
    write_decisions()
    reference.write(OUT / "reference")
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))["nav"]
    write_llms(nav)
    print(f"{len(list(OUT.rglob('*.md')))} pages in {OUT.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
