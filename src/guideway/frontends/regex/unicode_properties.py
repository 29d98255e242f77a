"""Unicode properties and simple case folding of ECMA-262.

The data is in unicode.txt, which tools/gen_unicode.py writes. It is read on first use.
"""

from __future__ import annotations

from pathlib import Path

from guideway.caching import cached
from guideway.frontends.regex.character_ranges import Ranges, contains, invert, merge

__all__ = ["fold", "idna", "property_ranges"]

_GROUPS = {
    "C=Other": "Cc Cf Cn Co",
    "L=Letter": "Lu Ll Lt Lm Lo",
    "LC=Cased_Letter": "Lu Ll Lt",
    "M=Mark=Combining_Mark": "Mn Mc Me",
    "N=Number": "Nd Nl No",
    "P=Punctuation=punct": "Pc Pd Ps Pe Pi Pf Po",
    "S=Symbol": "Sm Sc Sk So",
    "Z=Separator": "Zs Zl Zp",
}
_KINDS = {
    "General_Category": "General_Category",
    "gc": "General_Category",
    "Script": "Script",
    "sc": "Script",
    "Script_Extensions": "Script_Extensions",
    "scx": "Script_Extensions",
}


@cached(1)
def _table() -> dict[str, str]:
    """Return the lines of unicode.txt by name, unparsed. The name of a value of a property is "property value"."""
    found = {}
    for line in Path(__file__).with_name("unicode.txt").read_text("utf-8").splitlines():
        if line[0] == "#":
            continue
        names, text = line.split(":")
        kind, space, names = names.rpartition(" ")
        for name in names.split("="):
            found[f"{kind}{space}{name}"] = text
    return found


@cached(256)
def _ranges(name: str) -> Ranges:
    made, at = [], 0
    for word in _table()[name].split():
        skipped, _, more = word.partition(",")
        low = at + int(skipped, 36)
        at = low + (int(more, 36) if more else 0) + 1
        made.append((low, at - 1))
    return tuple(made)


@cached(256, characters=1 << 16, size=len)
def property_ranges(text: str) -> Ranges | None:
    """Return the characters of the Unicode property `\\p{text}`, such as "L" or "Script=Greek"; None: it is unknown."""
    kind, equals, name = text.partition("=")
    if equals:
        return _valued(_KINDS.get(kind, ""), name)
    if text == "Any":
        return invert(())
    if text == "ASCII":
        return ((0, 0x7F),)
    if text == "Assigned":
        return _unassigned(inverted=True)
    known = _valued("General_Category", text)
    return _ranges(text) if known is None and " " not in text and text in _table() and text != "orbits" else known


def _valued(kind: str, name: str) -> Ranges | None:
    if kind == "General_Category":
        if name in ("Cn", "Unassigned"):
            return _unassigned(inverted=False)
        if name in ("Cs", "Surrogate"):
            return ()
        for names, members in _GROUPS.items():
            if name in names.split("="):
                return merge(pair for member in members.split() for pair in _valued(kind, member) or ())
    return _ranges(f"{kind} {name}") if f"{kind} {name}" in _table() else None


def _unassigned(*, inverted: bool) -> Ranges:
    members = " ".join(_GROUPS.values()).split()
    assigned = merge(pair for name in members if name != "Cn" for pair in _valued("General_Category", name) or ())
    return assigned if inverted else invert(assigned)


def idna(name: str) -> Ranges:
    """Return the characters of a class of IDNA 2008, such as "L" or "virama"; tools/gen_unicode.py lists the names."""
    return _ranges(f"idna {name}")


@cached(1)
def _orbits() -> list[tuple[int, ...]]:
    return [tuple(int(code, 36) for code in orbit.split("-")) for orbit in _table()["orbits"].split()]


@cached(256)
def fold(ranges: Ranges) -> Ranges:
    """Return the characters of `ranges`, and all that are equal to one of them under simple case folding."""
    more = [code for orbit in _orbits() if any(contains(ranges, code) for code in orbit) for code in orbit]
    return merge((*ranges, *((code, code) for code in more)))
