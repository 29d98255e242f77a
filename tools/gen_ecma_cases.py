"""Writes tests/conformance/ecma.json: node's verdicts on texts for patterns of ECMA-262.

Patterns have the flag u if it accepts them, else no flag (Annex B). Run the script with node on the path:
`python tools/gen_ecma_cases.py`. It adds random patterns to those below; these are the same in every run.
"""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path

FILE = Path(__file__).parents[1] / "tests/conformance/ecma.json"

NODE = r"""
const cases = JSON.parse(require('fs').readFileSync(0));
const make = p => { try { return new RegExp(p, 'u'); } catch { return new RegExp(p); } };
const made = cases.map(([p, texts]) => {
  const r = make(p), hit = texts.filter(t => r.test(t));
  return { pattern: p, hit, miss: texts.filter(t => !hit.includes(t)) };
});
process.stdout.write(JSON.stringify(made));
"""

TEXTS = [
    "",
    "a",
    "b",
    "ab",
    "ba",
    "aab",
    "abc",
    "a b",
    "a\nb",
    "\n",
    "a\n",
    "-",
    "_",
    "9",
    "A9_",
    "é",
    "ſ",
    "\u2028",
    "a-b",
    "bab",
]
PATTERNS = {
    r"^\d+$": ["1", "12", "\u0663", "1a"],
    r"^\w+$": ["az_AZ09", "é", "ſ", "a-b"],
    r"^\s+$": [" \t\n\v\f\r", "\u00a0\u1680\u2003\u2028\u2029\u202f\u205f\u3000\ufeff", "\u0085", "\u180e", "\u200b"],
    r"^\W\S\D$": ["é1a", "aaa", "- x", "-xx"],
    "^.$": ["\n", "\r", "\u2028", "\u2029", "\u0085", "😀", "a"],
    r"^[^]$": ["\n", "😀", "", "ab"],
    "[]": ["", "a"],
    r"^\u{1F600}\ud83d\ude00\x41\u0042\cA\0$": ["😀😀AB\u0001\u0000", "😀AB"],
    r"^[\u{1F600}-\u{1F602}]$": ["😀", "😂", "😃"],
    r"^[😀-😂]{2}$": ["😀😂", "😀", "😃😀"],
    r"^\p{L}+$": ["aéß日", "a1", "ʰ", "\u0301"],
    r"^\p{Lu}\p{Ll}\P{L}$": ["Aa1", "aA1", "Éé-", "Aaa"],
    r"^\p{Script=Greek}+$": ["αβγ", "abc", "\u1f00"],
    r"^\p{sc=Han}\p{scx=Hira}$": ["日あ", "あ日", "日ー"],
    r"^[\p{Nd}\p{Pc}-]+$": ["1_\u0663-", "a", "Ⅷ"],
    r"^\p{General_Category=Uppercase_Letter}$": ["A", "a", "Ω"],
    r"^\p{Emoji_Presentation}$": ["😀", "a", "1"],
    r"^\p{Alphabetic}\p{White_Space}\p{ASCII}\p{Any}$": ["a a😀", "é \x7fé", "1 aa"],
    r"^[^\p{L}\d]+$": ["-_.", "a", "1", "é"],
    r"^\p{ID_Start}\p{ID_Continue}*$": ["foo", "été9", "9a", "_a"],
    r"^(?<year>\d{4})-(?<month>\d\d)$": ["2024-01", "24-01"],
    r"^a{2}b{1,}c{0,2}d*?e+?f??$": ["aabde", "aabbcce", "abde", "aabcccd"],
    r"^(?=.*\d)(?=.*[a-z]).{4,}$": ["abc1", "abcd", "1234", "a1"],
    r"^(?!.*--)[a-z-]+$": ["a-b", "a--b", "--", "-a-"],
    r"(?<=\$)\d+(?!\d|\.)": ["$12", "12", "$1.5", "$12.5", "a$7b"],
    r"(?<!\d)\d{3}(?!\d)": ["123", "1234", "a123b", "12 345 6"],
    r"\bfoo\b": ["foo", "a foo b", "foobar", "éfoo", "foo_"],
    r"^(?:(?!ab).)*$": ["", "ba", "xaxb", "ab", "cab"],
    r"^(?:[a-z]+(?=,|$),?)+$": ["a,b", "a,,b", "ab,", "a b"],
    r"(?<=^|,)b(?=,|$)": ["b", "a,b", "ab", "a,bc", "a,b,c"],
    r"\Ba\B": ["bab", "ab", "-a-", "ba"],
    r"^a|b$": ["ax", "xb", "xa", "ab", "x"],
    r"^(a|b$)+$": ["aa", "ab", "ba", "aba"],
    "$^": ["", "a"],
    "(?:)": ["", "a"],
    r"^(?:a*)*$": ["", "aaa", "ab"],
    r"\-\_\'\"\@\#\ \,\:\;\<\>\=\!\%\&\~\`": ["-_'\"@# ,:;<>=!%&~`", "-_"],
    r"^[\w-.]+$": ["a-b.c", "a b", "-"],
    r"^[a-\d]+$": ["a-1", "b"],
    r"^[\d-z]+$": ["1-z", "y"],
    r"^{a}{2}}$": ["{a}}}", "{a}"],
    r"^a{,2}$": ["a{,2}", "aa", ""],
    r"^a{x}]$": ["a{x}]", "a"],
    "^]$": ["]", "["],
    "^a{1$": ["a{1", "a"],
    r"^(?=a)*b$": ["b", "ab"],
    r"^[\b\f\n\r\t\v]+$": ["\b\f\n\r\t\v", "b"],
    r"^[^a-z\s]$": ["A", "a", " ", "é"],
    r"^\/\.\*\+\?\^\$\{\}\(\)\[\]\|\\$": ["/.*+?^${}()[]|\\", "/"],
    r"^[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,4}$": ["a.b@c.de", "a@b", "@b.cd", "a@b.cdefg"],
    r"^#(?:[0-9a-fA-F]{3}){1,2}$": ["#fff", "#a1b2c3", "#ffff", "fff"],
    r"^(\([0-9]{3}\))?[0-9]{3}-[0-9]{4}$": ["555-1212", "(888)555-1212", "(888)555-1212 ext. 532", "(800)FLOWERS"],
}
ATOMS = ["a", "b", ".", "[ab]", "[^a]", r"\n", "^", "$", r"\b", r"\B", r"\w", r"\W", "-", "()", "é", r"\p{L}"]
COUNTS = ["*", "+", "?", "{2}", "{0,2}", "{1,}", "*?"]


def drawn(rng: random.Random, size: int) -> str:
    """Returns a random pattern of `size` parts."""
    if size <= 1:
        return rng.choice(ATOMS)
    left = rng.randrange(1, size)
    kind = rng.randrange(6)
    if kind < 2:
        return drawn(rng, left) + drawn(rng, size - left)
    if kind == 2:
        return f"(?:{drawn(rng, left)}|{drawn(rng, size - left)})"
    if kind == 3:
        return f"(?:{drawn(rng, size - 1)}){rng.choice(COUNTS)}"
    return f"(?{rng.choice(['=', '!', '<=', '<!'])}{drawn(rng, size - 1)})"


def main() -> None:
    """Write the file."""
    rng = random.Random(4)
    cases = list(PATTERNS.items())
    known = set(PATTERNS)
    while len(cases) < len(PATTERNS) + 400:
        pattern = drawn(rng, rng.randrange(2, 9))
        if pattern not in known:
            known.add(pattern)
            cases.append((pattern, TEXTS))
    output = subprocess.run(["node", "-e", NODE], input=json.dumps(cases), capture_output=True, text=True, check=True)
    lines = [json.dumps(case, ensure_ascii=True, sort_keys=True) for case in json.loads(output.stdout)]
    FILE.write_text("[\n" + ",\n".join(lines) + "\n]\n", "utf-8")


if __name__ == "__main__":
    main()
