"""The format `regex`: patterns of ECMA-262."""

from __future__ import annotations

from guideway.frontends.formats.rules import spelled
from guideway.grammar.regular import EMPTY, Regular, cat, chars, either, literal, optional, repeat

__all__ = ["regex"]

_DEPTH = 6
_RANGES = (("0", "9"), ("A", "Z"), ("a", "z"))


def regex() -> Regular:
    """Return a regular subset of the patterns that are valid with the flag u.

    Groups nest at most 6 deep and have no names. There are no back-references. The properties (`\\p{...}`) are the
    general categories, some binary properties and the most common scripts. Counts have at most two digits; in `{m,n}`,
    m is at most 9. A range in a class is within the digits, the lower-case letters or the upper-case letters.
    """
    escape = cat(
        "\\",
        either(
            [
                spelled(
                    r"[dDwWsSfnrtv^$\\.*+?()\[\]{}|/]|0|c[A-Za-z]|x[0-9A-Fa-f]{2}|u[0-9A-Ca-cE-Fe-f][0-9A-Fa-f]{3}"
                ),
                spelled(r"u\{0{0,2}([0-9A-Fa-f]{1,5}|10[0-9A-Fa-f]{4})\}"),
                cat(chars("pp", "PP"), "{", spelled(_PROPERTIES), "}"),
            ]
        ),
    )
    plain = spelled(r"[^\^$\\.*+?()\[\]{}|]|[.]")
    atom = either([plain, escape, _class(escape)])
    lazy = optional(literal("?"))
    number = spelled("[1-9]?[0-9]")
    counts = [
        cat(number, optional(literal(","))),
        spelled("[0-9],[1-9][0-9]|" + "|".join(f"{n},[{n}-9]" for n in range(10))),
    ]
    times = either([chars("**", "++", "??"), cat("{", either(counts), "}")])
    quantifier = optional(cat(times, lazy))
    anchor = either([chars("^^", "$$"), cat("\\", chars("bb", "BB"))])
    inside: Regular = EMPTY
    for _ in range(_DEPTH + 1):
        group = cat("(", optional(literal("?:")), inside, ")")
        look = cat(literal("(?=", "(?!", "(?<=", "(?<!"), inside, ")")
        groups = [] if inside is EMPTY else [cat(group, quantifier), look]
        term = either([cat(atom, quantifier), anchor, *groups])
        terms = repeat(term)
        inside = cat(terms, repeat(cat("|", terms)))
    return inside


_PROPERTIES = (
    "L[ultmo]?|N[dlo]?|P[cdseifo]?|S[mcko]?|Z[slp]?|C[cf]?|M[nce]?|"
    "Letter|Number|Punctuation|Symbol|Alphabetic|Uppercase|Lowercase|White_Space|Emoji|"
    "(Script|sc)=(Latin|Greek|Cyrillic|Han|Hiragana|Katakana|Arabic|Hebrew|Hangul|Thai|Devanagari)"
)


def _class(escape: Regular) -> Regular:
    """Return classes `[...]`. A hyphen is first, last, escaped, or in a range of digits or of letters of one case."""
    ranges: list[Regular] = []
    for low, high in _RANGES:
        for code in range(ord(low), ord(high) + 1):
            ranges.append(cat(chr(code), "-", chars((code, ord(high)))))
    item = either([spelled(r"[^\\\]\-]"), cat("\\", chars("--", "bb")), escape, *ranges])
    dash = optional(literal("-"))
    return cat("[", optional(literal("^")), dash, repeat(item), dash, "]")
