"""`docs/keywords.md`: what became of each keyword in the official suite, draft by draft; written by `make keywords`.

    python -m tests.suites.keyword_table

A group of the suite counts for every keyword that the contract of its schema lists as enforced or refused; an instance
counts once for each way of writing it.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from guideway.frontends.json_schema.keywords import DIALECTS, KEYWORDS, Dialect

from .verdicts import DRAFTS, Tally, judge_suite

PAGE = Path(__file__).resolve().parents[2] / "docs" / "keywords.md"
NAMES = ["2020-12", "2019-09", "draft-07", "draft-06", "draft-04"]
HEAD = """# Keywords

Every keyword of JSON Schema that asserts something is enforced exactly, or the schema is refused; what a schema says
besides is an annotation. The figures are verdicts on the required tests of the official suite, each instance in four
ways of writing it, by schemas that use the keyword: `profile="exact"`, `formats="annotate"`; of `format` those on its
optional tests, with `formats="known"` (what is left out stands [beside the formats](constraints.md#formats)).

<!-- written by make keywords; tests/suites/test_verdicts.py and tests/packaging/test_documents.py compare it -->

"""


def dialect(name: str) -> Dialect:
    """By its short name."""
    return next(one for one in DIALECTS.values() if one.name == name)


def cell(keyword: str, name: str, tally: Tally) -> str:
    """The verdicts of a keyword in a draft."""
    if keyword in dialect(name).unknown:
        return "annotation"
    right, wrong, refused = (counts[keyword] for counts in (tally.used, tally.missed, tally.unused))
    said = [f"{right} right"] + [f"{wrong} wrong"] * bool(wrong) + [f"{refused} refused"] * bool(refused)
    return ", ".join(said) if right or wrong or refused else "no test"


def format_cell(tally: Tally) -> str:
    """The verdicts on formats."""
    return f"{tally.right} right, {len(tally.wrong)} wrong"


def page(tallies: list[Tally], formats: list[Tally]) -> str:
    """The page of the verdicts of all drafts, newest first, and of those on formats."""
    lines = [f"| keyword | speaks about | {' | '.join(NAMES)} |", "|---" * (len(NAMES) + 2) + "|"]
    for keyword, row in KEYWORDS.items():
        types = "all types" if len(row.types) > 1 else f"{next(iter(row.types))}s"
        cells = [cell(keyword, name, tally) for name, tally in zip(NAMES, tallies, strict=True)]
        cells = [format_cell(tally) for tally in formats] if keyword == "format" else cells
        lines.append(f"| `{keyword}` | {types} | {' | '.join(cells)} |")
    total = sum(tally.right for tally in tallies), sum(len(tally.wrong) for tally in tallies)
    groups = sum(tally.groups for tally in tallies)
    reasons = Counter(reason for tally in tallies for reason in tally.refused.values())
    lines += ["", f"In all {total[0]:,} verdicts right and {total[1]} wrong, on {groups:,} schemas."]
    lines += [f"- refused {count}: {reason}" for reason, count in reasons.items()]
    return HEAD + "\n".join(lines) + "\n"


def judged() -> tuple[list[Tally], list[Tally]]:
    """The verdicts of each draft, and those on formats."""
    formats = [judge_suite(draft, "optional/format/*.json", formats="known") for draft in DRAFTS]
    return [judge_suite(draft) for draft in DRAFTS], formats


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(*judged()), "utf-8")


if __name__ == "__main__":
    main()
