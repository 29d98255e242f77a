"""Writes the reference pages of the site from the package: the Python API, the errors and the command line."""

from __future__ import annotations

import inspect
from pathlib import Path

import guideway
from guideway import errors

MODULES = {
    "guideway": "Functions and classes of the top level",
    "guideway.types": "Types of arguments and results",
    "guideway.constraints": "Further constraints",
    "guideway.dsl": "Combinators",
    "guideway.sampling": "Samplers",
    "guideway.search": "Search",
    "guideway.compiler": "Compilation",
    "guideway.matcher": "Matchers",
    "guideway.masks": "Masks on arrays",
    "guideway.remote": "Models served by an API",
    "guideway.batch": "Batches",
    "guideway.testing": "Tests for engines and tokenizers",
}
"""The modules with a page, in their order. A name is described on the first page that has it."""

HEADINGS = {"guideway.md": "Functions of the top level", "classes.md": "Classes of the top level"}
"""The headings of pages that are one of several of a module."""


def names_of(module: str) -> list[str]:
    """Returns the public names of a module."""
    found = guideway if module == "guideway" else __import__(module, fromlist=["__all__"])
    return [name for name in found.__all__ if not name.startswith("__")]


def kind_of(value: object) -> int:
    """Returns the group of a name: functions, then classes, then constants."""
    return 0 if inspect.isroutine(value) else 1 if inspect.isclass(value) else 2


def page_of(module: str) -> str:
    """Returns the file name of a module's page."""
    return module.removeprefix("guideway.") + ".md"


def summary_of(value: object) -> str:
    """Returns the first line of a docstring; nothing for constants, whose class has one."""
    if not (inspect.isroutine(value) or inspect.isclass(value)):
        return ""
    text = (inspect.getdoc(value) or "").split("\n\n")[0]
    return " ".join(text.split()).replace("|", "\\|")


def write_api(folder: Path) -> None:
    """Writes a page per public module, and the index of all names."""
    described: dict[int, str] = {}
    index = [
        "# Python API",
        "",
        "Every public name, by module. `guideway.errors` has [a separate page](errors.md).",
        "",
    ]
    for module, title in MODULES.items():
        found = guideway if module == "guideway" else __import__(module, fromlist=["__all__"])
        pages: dict[str, list[str]] = {}
        index += [f"## [{title}]({page_of(module)})", "", "| name | |", "|---|---|"]
        for name in sorted(names_of(module), key=lambda name: (kind_of(getattr(found, name)), name.lower())):
            value = getattr(found, name)
            # The top level has a second page, so that no page is too large.
            page = "classes.md" if module == "guideway" and kind_of(value) > 0 else page_of(module)
            lines = pages.setdefault(page, [f"# {HEADINGS.get(page, title)}", "", f"Names of `{module}`.", ""])
            shared = kind_of(value) < 2  # constants of equal value are not the same name
            path = described.get(id(value)) if shared else None
            if path is None:
                path = f"{module}.{name}"
                if shared:
                    described[id(value)] = path
                lines += [f"::: {path}", ""]
            else:
                lines += [f"- `{name}`: see [`{path}`][{path}]", ""]
            index.append(f"| [`{name}`][{path}] | {summary_of(value)} |")
        index.append("")
        for page, lines in pages.items():
            (folder / page).write_text("\n".join(lines), "utf-8")
    (folder / "index.md").write_text("\n".join(index), "utf-8")


def write_errors(folder: Path) -> None:
    """Writes the page of all error classes, in the order of the tree."""
    intro = inspect.getdoc(errors) or ""
    lines = ["# Errors", "", *intro.splitlines(), ""]
    for name in (name for name in vars(errors) if name in errors.__all__):
        lines += [f"::: guideway.errors.{name}", ""]
    (folder / "errors.md").write_text("\n".join(lines), "utf-8")


def write_cli(folder: Path) -> None:
    """Writes the page of all commands from the typer application."""
    import typer
    from typer.cli import get_docs_for_click
    from typer.main import get_command

    from guideway.cli.app import app

    command = get_command(app)
    with typer.Context(command, info_name="guideway") as context:
        text = get_docs_for_click(obj=command, ctx=context, name="guideway")
    text = text.replace("# `guideway`", "# Options of the commands", 1)
    (folder / "cli.md").write_text(text, "utf-8")


def write(folder: Path) -> None:
    """Writes all reference pages to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    write_api(folder)
    write_errors(folder)
    write_cli(folder)
