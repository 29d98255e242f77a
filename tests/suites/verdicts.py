"""Verdicts of the library on instances in several spellings, compared with the data."""

from __future__ import annotations

import json
import os
import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import guideway as gw
from guideway.constraints.json_schema import explain_schema
from guideway.grammar.recognizer import byte_automaton

DATA = Path(os.environ.get("GUIDEWAY_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
SUITE = DATA / "json-schema-test-suite"
WILD = DATA / "maskbench-dev"
DRAFTS = ["draft2020-12", "draft2019-09", "draft7", "draft6", "draft4"]


@dataclass
class Tally:
    """The number of correct verdicts, the wrong verdicts, and the reasons of refusals.

    `omitted`: valid texts that a format rejects, as its documentation says (see `omission`). By keyword: the correct
    and wrong verdicts of schemas that use it, and the refused schemas that use it.
    """

    right: int = 0
    wrong: list[str] = field(default_factory=list)
    omitted: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    groups: int = 0
    used: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)
    unused: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        reasons = Counter(reason.partition(":")[0] for reason in self.refused.values())
        return (
            f"{self.groups} schemas, {len(self.refused)} refused, {self.right} right verdicts, {len(self.wrong)} wrong"
            + f", {len(self.omitted)} valid texts that the formats omit" * bool(self.omitted)
            + "".join(f"\n  refused {count}: {reason}" for reason, count in reasons.most_common())
        )


def exact(text: str) -> Any:
    """JSON with exact numbers."""
    return json.loads(text, parse_float=Decimal)


def spellings(value: Any, seed: int, *, digits_only: bool = False) -> Iterator[tuple[str, str]]:
    """The value as JSON texts, each with the name of its way of writing.

    `digits_only`: integers keep their digits and other numbers their fraction or exponent, as in draft 4, where `1.0`
    is no integer.
    """
    rng = random.Random(seed)
    yield "compact", _write(value, None, False)
    yield "spaced", _write(value, rng, False, space=True)
    yield "shuffled", _write(value, rng, True)
    yield "spelled", _write(value, rng, True, space=True, spelled=True, digits_only=digits_only)


def _write(
    value: Any,
    rng: random.Random | None,
    shuffled: bool,
    space: bool = False,
    spelled: bool = False,
    digits_only: bool = False,
) -> str:
    def gap() -> str:
        return rng.choice(["", " ", "\n\t", "  "]) if space and rng else ""

    def string(text: str) -> str:
        if not spelled or rng is None:
            return json.dumps(text, ensure_ascii=rng is not None and rng.random() < 0.3)
        return '"' + "".join(_character(char, rng) for char in text) + '"'

    def one(value: Any) -> str:
        if isinstance(value, str):
            return string(value)
        if isinstance(value, dict):
            items = list(value.items())
            if shuffled and rng:
                rng.shuffle(items)
            inner = ("," + gap()).join(
                f"{gap()}{string(key)}{gap()}:{gap()}{one(inner)}{gap()}" for key, inner in items
            )
            return "{" + (inner or gap()) + "}"
        if isinstance(value, list):
            return "[" + (("," + gap()).join(f"{gap()}{one(inner)}{gap()}" for inner in value) or gap()) + "]"
        if isinstance(value, (int, Decimal)) and not isinstance(value, bool):
            if spelled and rng:
                return _number(value, rng, digits_only)
            return str(value)
        return json.dumps(value)

    return gap() + one(value) + gap()


def _character(char: str, rng: random.Random) -> str:
    if rng.random() < 0.6 and char not in '"\\' and ord(char) > 31:
        return char
    if rng.random() < 0.2:
        return json.dumps(char)[1:-1].replace("/", "\\/")
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(
        f"\\u{units[i]:02{rng.choice('xX')}}{units[i + 1]:02{rng.choice('xX')}}" for i in range(0, len(units), 2)
    )


def _number(value: int | Decimal, rng: random.Random, digits_only: bool) -> str:
    if abs(Decimal(value).adjusted()) > 50 or (digits_only and isinstance(value, int)):
        return str(value)
    digits = Decimal(value)
    shift = rng.randrange(-3, 4)
    moved = digits.scaleb(-shift)
    choices = [f"{moved:f}e{shift}", f"{moved:f}E{shift:+d}", f"{digits:f}"]
    if moved == moved.to_integral_value():
        choices.append(f"{int(moved)}.0e{shift:+03d}")
    if digits == 0:
        choices.append("-0")
    if digits_only:
        choices = [text for text in choices if not set(".eE").isdisjoint(text)]
    return rng.choice(choices)


class Recogniser:
    """Judges texts by the automaton of a schema, byte by byte. A schema without instances allows nothing."""

    def __init__(self, schema: Any, **options: Any) -> None:
        source = gw.JsonSchema(schema, **options, unknown_keywords="ignore")
        try:
            self._automaton = byte_automaton(source.grammar())
        except gw.errors.UnsatisfiableError:
            self._automaton = None

    def allows(self, text: str) -> bool:
        if self._automaton is None:
            return False
        ids = [*text.encode("utf-8", "surrogatepass"), 256]
        return bool(self._automaton.matcher().validate(ids) == len(ids))


@cache
def remotes(draft: str) -> dict[str, Any]:
    """The documents that the official suite refers to."""
    folder = SUITE / "remotes"
    found = {}
    for path in sorted(folder.rglob("*.json")):
        name = path.relative_to(folder).as_posix()
        if not name.startswith("draft") or name.startswith(draft):
            found[f"http://localhost:1234/{name}"] = exact(path.read_text("utf-8"))
    return found


def judge_suite(draft: str, pattern: str = "*.json", *, formats: str = "annotate") -> Tally:
    """The official suite of a draft, each instance in four spellings. `dependencies` is tested in all drafts."""
    tally, folder = Tally(), SUITE / "tests" / draft
    paths = sorted(folder.glob(pattern))
    if pattern == "*.json":
        paths += folder.glob("optional/dependencies-compatibility.json")
    groups = [(path.stem, group) for path in paths for group in exact(path.read_text("utf-8"))]
    names = {"draft4": "draft-04", "draft6": "draft-06", "draft7": "draft-07", "draft2019-09": "2019-09"}
    options = {"profile": "exact", "formats": formats, "dialect": names.get(draft, "2020-12")}
    for number, (file, group) in enumerate(groups):
        name = f"{draft}/{file}: {group['description']}"
        tally.groups += 1
        keywords = _keywords_of(group["schema"], draft, **options)
        try:
            recogniser = Recogniser(group["schema"], resources=remotes(draft), **options)
        except gw.GuidewayError as problem:
            tally.refused[name] = f"{type(problem).__name__}: {str(problem)[:160]}"
            tally.unused.update(keywords)
            continue
        right, wrong = tally.right, len(tally.wrong)
        for test in group["tests"]:
            for way, text in spellings(test["data"], number, digits_only=draft == "draft4"):
                what = f"{name}: {test['description']} ({way}: {text[:80]!r})"
                reason = omission(file, test["data"]) if formats == "known" else None
                _count(tally, recogniser, text, test["valid"], what, reason)
        tally.used.update(dict.fromkeys(keywords, tally.right - right))
        tally.missed.update(dict.fromkeys(keywords, len(tally.wrong) - wrong))
    return tally


def omission(file: str, value: object) -> str | None:
    """Return why a format may reject a valid value, as `docs/formats.md` says. None: it must accept the value."""
    if not isinstance(value, str):
        return None
    if file in ("hostname", "idn-hostname") and "xn--" in value.lower():
        return "an A-label, whose validity is not a regular property"
    if file == "idn-hostname" and "\u200c" in value:
        return "a joiner that does not follow a virama"
    if file == "ecmascript-regex" and re.search(r"\(\?<[^=!]|\\k<", value):
        return "a pattern with a named group"
    return None


def _keywords_of(schema: Any, draft: str, **options: Any) -> set[str]:
    """Those that the contract lists as enforced or refused."""
    given = {"resources": remotes(draft), **options}
    try:
        rows = gw.JsonSchema(schema, **given, unknown_keywords="ignore").keyword_report()
    except gw.errors.UnsupportedError:
        rows = explain_schema(
            schema, profile="exact", dialect=options["dialect"], resources=given["resources"]
        ).keyword_report
    return {name for _, name, status in rows if status in ("enforced", "refused")}


def _count(tally: Tally, recogniser: Recogniser, text: str, valid: bool, what: str, omitted: str | None = None) -> None:
    try:
        allowed = recogniser.allows(text)
    except gw.errors.LimitExceededError as problem:
        tally.wrong.append(f"given up ({problem}): {what}")
        return
    if allowed == valid:
        tally.right += 1
    elif valid and omitted:
        tally.omitted.append(f"{omitted}: {what}")
    else:
        tally.wrong.append(f"{'rejected' if valid else 'accepted'}: {what}")


def judge_wild(every: int = 1, start: int = 0, formats: str = "known") -> Tally:
    """Schemas from the wild, with their instances."""
    tally = Tally()
    for number, path in enumerate(sorted(WILD.glob("*.json"))[start::every]):
        found = exact(path.read_text("utf-8"))
        tally.groups += 1
        try:
            recogniser = Recogniser(found["schema"], profile="exact", formats=formats)
        except gw.GuidewayError as problem:
            tally.refused[path.stem] = f"{type(problem).__name__}: {str(problem)[:160]}"
            continue
        draft4 = isinstance(found["schema"], dict) and "draft-04" in str(found["schema"].get("$schema"))
        for i, test in enumerate(found["tests"]):
            for way, text in spellings(test["data"], number, digits_only=draft4):
                _count(tally, recogniser, text, test["valid"], f"{path.stem}[{i}] ({way}: {text[:80]!r})")
    return tally


def main() -> None:
    """Prints the figures of the suites, with the cases that they count."""
    import sys

    what = sys.argv[1:] or ["suite", "format", "wild"]
    for name in what:
        if name == "wild":
            tallies = {"wild": judge_wild()}
        elif name == "format":
            tallies = {one: judge_suite(one, "optional/format/*.json", formats="known") for one in DRAFTS}
        else:
            tallies = {one: judge_suite(one) for one in DRAFTS}
        for title, tally in tallies.items():
            print(f"== {title} {name}: {tally}")
            for line in tally.wrong:
                print("   wrong", line)
            for line in tally.omitted:
                print("   omitted", line)
            for place, reason in tally.refused.items():
                print("   refused", place, "--", reason)


if __name__ == "__main__":
    main()
