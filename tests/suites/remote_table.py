"""Writes the table of endpoints in docs/remote.md from the data files of guideway.remote.

python -m tests.suites.remote_table
"""

from __future__ import annotations

from pathlib import Path

from guideway.remote import dialects

PAGE = Path(__file__).parents[2] / "docs" / "remote.md"
BEGIN, END = "<!-- table -->\n", "<!-- end -->\n"


def table() -> str:
    """Return the table in Markdown."""
    lines = [
        "| dialect | endpoint | routes, best first | enforced keywords | limits | continues a text | `score` | data of |"
    ]
    lines.append("|---|---|---|---|---|---|---|---|")
    for one in dialects().values():
        keywords = ", ".join(sorted(one.subset.keywords)) if "json_schema" in one.routes else ""
        limits = ", ".join(f"{name} {most:,}" for name, most in one.limits.items())
        routes = ", ".join(f"`{route}`" for route in one.routes)
        scores = {"prompt": "any option", "top": "first tokens"}.get(one.logprobs, "")
        cells = [
            f"`{one.name}`",
            one.title,
            routes,
            keywords,
            limits,
            "yes" if one.continues else "",
            scores,
            one.updated,
        ]
        lines.append("| " + " | ".join(cell or "-" for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def page(text: str) -> str:
    """Return the page with the table of now."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + table() + END + after


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")
