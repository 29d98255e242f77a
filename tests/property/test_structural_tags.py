"""Structural tags compared with a recogniser that is written from xgrammar's documentation of the formats."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import guideway as gw
from guideway.integrations._common.requests import requested
from tests.helpers.counts import counts

Format = dict[str, Any]

NAMES = {"§": "<|a|>", "¤": "<|b|>"}
"""Special tokens. A text of a test has one character for each."""

_TOKENS = [*(bytes([byte]) for byte in range(256)), b"", *(name.encode() for name in NAMES.values())]
_TOKENS += [b"ab", b"a<", b"<<", b"bb", b"b<a", b"\xc3\xa9a", b"a\xc3"]
IDS = {char: 257 + index for index, char in enumerate(NAMES)}
TABLE = gw.Vocabulary(_TOKENS, eos_ids=[256], special_ids=[256, *IDS.values()])
PATTERNS = ["a", "a*", "b|ab", "[ab]+", "<a", "a?b", "", "(<|a)*", "é?", "[^a]"]
GRAMMARS = {'root ::= "a" root "b" | "<"': "a{n}<b{n}", 'start: "b" start | "a"': "b{n}a"}
SCHEMAS: list[tuple[object, list[str]]] = [({"enum": [1, "a"]}, ["1", '"a"']), ({"const": []}, ["[]"])]


class Recogniser:
    """Finds where a format can end in a text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.plain = {
            at: next((n for n, c in enumerate(text[at:]) if c in NAMES), len(text) - at) for at in range(len(text) + 1)
        }

    def free(self, at: int, excludes: list[str]) -> list[int]:
        """The ends of free texts from `at` that contain no excluded text and no special token."""
        spans = range(at, at + self.plain[at] + 1)
        return [end for end in spans if not any(one in self.text[at:end] for one in excludes)]

    def ends(self, spec: Format, at: int, tag_ends: list[str]) -> set[int]:
        """The ends of the texts of a format from `at`. `tag_ends`: the ends of the nearest tag around it."""
        return set(getattr(self, "_" + spec["type"])(spec, at, tag_ends))

    def _const_string(self, spec: Format, at: int, tag_ends: list[str]) -> list[int]:
        return [at + len(spec["value"])] if self.text.startswith(spec["value"], at) else []

    def _regex(self, spec: Format, at: int, tag_ends: list[str]) -> list[int]:
        return [end for end in self.free(at, []) if re.fullmatch(spec["pattern"], self.text[at:end])]

    def _grammar(self, spec: Format, at: int, tag_ends: list[str]) -> list[int]:
        shape = GRAMMARS[spec["grammar"]]
        texts = [re.sub(r"(.)\{n\}", lambda found, n=n: found[1] * n, shape) for n in range(len(self.text) + 1)]
        return [at + len(one) for one in texts if self.text.startswith(one, at)]

    def _json_schema(self, spec: Format, at: int, tag_ends: list[str]) -> list[int]:
        texts = next(texts for schema, texts in SCHEMAS if schema == spec["json_schema"])
        return [at + len(one) for one in texts if self.text.startswith(one, at)]

    def _token(self, spec: Format, at: int, tag_ends: list[str]) -> list[int]:
        char = next(char for char in NAMES if spec["token"] in (NAMES[char], IDS[char]))
        return [at + 1] if self.text.startswith(char, at) else []

    def _any_text(self, spec: Format, at: int, tag_ends: list[str]) -> list[int]:
        most = spec.get("max_chars")
        found = self.free(at, [*spec.get("excludes", []), *filter(None, tag_ends)])
        return [end for end in found if most is None or end - at <= most]

    def _sequence(self, spec: Format, at: int, tag_ends: list[str]) -> set[int]:
        reached = {at}
        for one in spec["elements"]:
            reached = {end for start in reached for end in self.ends(one, start, tag_ends)}
        return reached

    def _or(self, spec: Format, at: int, tag_ends: list[str]) -> set[int]:
        return {end for one in spec["elements"] for end in self.ends(one, at, tag_ends)}

    def _times(self, content: Format, least: int, most: int | None, at: int, tag_ends: list[str]) -> set[int]:
        found, reached, count = set(), {at}, 0
        seen: set[tuple[int, frozenset[int]]] = set()
        while reached and (most is None or count <= most):
            if count >= least:
                found |= reached
            key = (min(count, least), frozenset(reached))
            if key in seen:
                break
            seen.add(key)
            reached = {end for start in reached for end in self.ends(content, start, tag_ends)}
            count += 1
        return found

    def _optional(self, spec: Format, at: int, tag_ends: list[str]) -> set[int]:
        return self._times(spec["content"], 0, 1, at, tag_ends)

    def _plus(self, spec: Format, at: int, tag_ends: list[str]) -> set[int]:
        return self._times(spec["content"], 1, None, at, tag_ends)

    def _star(self, spec: Format, at: int, tag_ends: list[str]) -> set[int]:
        return self._times(spec["content"], 0, None, at, tag_ends)

    def _repeat(self, spec: Format, at: int, tag_ends: list[str]) -> set[int]:
        return self._times(spec["content"], spec["min"], None if spec["max"] < 0 else spec["max"], at, tag_ends)

    def _marker(self, given: object, at: int) -> list[int]:
        if isinstance(given, dict):
            return self._token(given, at, [])
        texts = given if isinstance(given, list) else [given]
        return [at + len(one) for one in texts if self.text.startswith(one, at)]

    def _tag(self, spec: Format, at: int, tag_ends: list[str]) -> set[int]:
        return {end for start in self._marker(spec["begin"], at) for end in self._rest(spec, start)}

    def _rest(self, tag: Format, at: int) -> set[int]:
        """The ends of the content and the end of a tag."""
        end = tag["end"]
        inner = end if isinstance(end, list) else [end] if isinstance(end, str) else []
        return {stop for middle in self.ends(tag["content"], at, inner) for stop in self._marker(end, middle)}

    def _tags_with_separator(self, spec: Format, at: int, tag_ends: list[str]) -> set[int]:
        one = {"type": "or", "elements": [{"type": "tag", **tag} for tag in spec["tags"]]}
        found = set() if spec.get("at_least_one") else {at}
        first = self.ends(one, at, tag_ends)
        found |= first
        if not spec.get("stop_after_first"):
            todo, known = list(first), set(first)
            while todo:
                start = todo.pop()
                if self.text.startswith(spec["separator"], start):
                    for end in self.ends(one, start + len(spec["separator"]), tag_ends) - known:
                        known.add(end)
                        todo.append(end)
            found |= known
        return found

    def _dispatched(self, rules: list[tuple[str, Any]], excludes: list[str], loop: bool, at: int) -> set[int]:
        """Reads free text from `at`. `rules`: patterns, each with a function from a place to the ends after it.

        Free text is read character by character. An excluded text is an error; a pattern begins what it demands.
        """
        found: set[int] = set()
        todo, known = [at], {at}
        while todo:
            start = todo.pop()
            end = start
            while True:
                read = self.text[start:end]
                if any(read.endswith(one) for one in excludes):
                    break
                begun = [after for pattern, after in rules if read.endswith(pattern)]
                if begun:
                    reached = {stop for after in begun for stop in after(end)}
                    if not loop:
                        found |= reached
                    else:
                        todo += reached - known
                        known |= reached
                    break
                found.add(end)
                if end == len(self.text) or self.text[end] in NAMES:
                    break
                end += 1
        return found

    def _dispatch(self, spec: Format, at: int, tag_ends: list[str]) -> set[int]:
        rules = [
            (pattern, lambda place, content=content: self.ends(content, place, tag_ends))
            for pattern, content in spec["rules"]
        ]
        return self._dispatched(rules, spec.get("excludes", []), spec.get("loop", True), at)

    def _triggered_tags(self, spec: Format, at: int, tag_ends: list[str]) -> set[int]:
        def after(trigger: str, tag: Format, place: int) -> set[int]:
            rest = tag["begin"][len(trigger) :]
            return self._rest(tag, place + len(rest)) if self.text.startswith(rest, place) else set()

        rules = [
            (trigger, lambda place, trigger=trigger, tag=tag: after(trigger, tag, place))
            for tag in spec["tags"]
            for trigger in spec["triggers"]
            if tag["begin"].startswith(trigger)
        ]
        excludes = [*spec.get("excludes", []), *filter(None, tag_ends)]
        starts = {at}
        if spec.get("at_least_one"):
            starts = {end for tag in spec["tags"] for end in self._tag(tag, at, tag_ends)}
            if spec.get("stop_after_first"):
                return starts
        loop = not spec.get("stop_after_first")
        return {end for start in starts for end in self._dispatched(rules, excludes, loop, start)}

    def fits(self, spec: Format) -> bool:
        return len(self.text) in self.ends(spec, 0, [])


class Maker:
    """Draws formats."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def text(self, *lengths: int) -> str:
        return "".join(self.rng.choices("ab<é", [4, 4, 4, 1], k=self.rng.choice(lengths)))

    def flags(self, *names: str) -> dict[str, bool]:
        return {name: self.rng.random() < 0.6 for name in names if self.rng.random() < 0.5}

    def excludes(self) -> dict[str, list[str]]:
        return (
            {"excludes": [self.text(1, 2, 2, 3) for _ in range(self.rng.randint(0, 2))]}
            if self.rng.random() < 0.4
            else {}
        )

    def token(self) -> Format:
        char = self.rng.choice(list(NAMES))
        return {"type": "token", "token": self.rng.choice([NAMES[char], IDS[char]])}

    def end(self) -> object:
        drawn = self.rng.random()
        if drawn < 0.15:
            return self.token()
        return [self.text(0, 1, 2) for _ in range(self.rng.randint(1, 3))] if drawn < 0.35 else self.text(0, 1, 1, 2)

    def tag(self, depth: int, begin: str = "") -> Format:
        made = {"begin": begin or self.text(1, 2), "content": self.format(depth - 1), "end": self.end()}
        return {"type": "tag", **made} if self.rng.random() < 0.7 else made

    def format(self, depth: int) -> Format:
        simple = ["const_string", "regex", "any_text", "any_text", "token", "grammar", "json_schema"]
        nested = ["sequence", "or", "optional", "plus", "star", "repeat", "tag", "tag"]
        nested += ["triggered_tags", "triggered_tags", "tags_with_separator", "dispatch"]
        kind = self.rng.choice(simple if depth <= 0 or self.rng.random() < 0.25 else nested)
        return {"type": kind, **getattr(self, "_" + kind)(depth)}

    def _const_string(self, depth: int) -> Format:
        return {"value": self.text(0, 1, 2, 3)}

    def _regex(self, depth: int) -> Format:
        return {"pattern": self.rng.choice(PATTERNS)}

    def _grammar(self, depth: int) -> Format:
        return {"grammar": self.rng.choice(list(GRAMMARS))}

    def _json_schema(self, depth: int) -> Format:
        return {"json_schema": self.rng.choice(SCHEMAS)[0]}

    def _any_text(self, depth: int) -> Format:
        return {**self.excludes(), **({"max_chars": self.rng.randint(0, 3)} if self.rng.random() < 0.3 else {})}

    def _token(self, depth: int) -> Format:
        return self.token()

    def _elements(self, depth: int) -> Format:
        return {"elements": [self.format(depth - 1) for _ in range(self.rng.randint(1, 3))]}

    _sequence = _or = _elements

    def _content(self, depth: int) -> Format:
        return {"content": self.format(depth - 1)}

    _optional = _plus = _star = _content

    def _repeat(self, depth: int) -> Format:
        least = self.rng.randint(0, 2)
        return {"min": least, "max": self.rng.choice([-1, least, least + 1]), **self._content(depth)}

    def _tag(self, depth: int) -> Format:
        made = {"type": "tag", **self.tag(depth)}
        return {**made, "begin": self.token() if self.rng.random() < 0.2 else self.text(0, 1, 2)}

    def _tags_with_separator(self, depth: int) -> Format:
        tags = [self.tag(depth) for _ in range(self.rng.randint(1, 2))]
        return {"tags": tags, "separator": self.text(0, 1, 2), **self.flags("at_least_one", "stop_after_first")}

    def _triggered_tags(self, depth: int) -> Format:
        triggers = list({self.text(1, 1, 2) for _ in range(self.rng.randint(1, 2))})
        begins = [one + self.text(0, 0, 1) for one in triggers for _ in range(self.rng.choice([1, 1, 2]))]
        tags = [{**self.tag(depth), "begin": begin} for begin in begins]
        return {"triggers": triggers, "tags": tags, **self.flags("at_least_one", "stop_after_first"), **self.excludes()}

    def _dispatch(self, depth: int) -> Format:
        rules = [[self.text(1, 1, 2), self.format(depth - 1)] for _ in range(self.rng.randint(1, 3))]
        return {"rules": rules, **self.flags("loop"), **self.excludes()}

    def derived(self, spec: Format, left: int) -> str:
        """A text that the format may accept."""
        kind = spec.get("type", "tag")
        if kind == "const_string":
            return spec["value"]
        if kind == "regex":
            return self.rng.choice(["", "a", "b", "ab", "<", "<a", "aa", "é"])
        if kind == "grammar":
            return self.rng.choice(["<", "a<b", "aa<bb", "a", "ba"])
        if kind == "json_schema":
            return self.rng.choice(next(texts for schema, texts in SCHEMAS if schema == spec["json_schema"]))
        if kind == "any_text":
            return self.text(0, 1, 2, 3)
        if kind == "token":
            return self.marker(spec)
        if kind == "sequence":
            return "".join(self.derived(one, left - 1) for one in spec["elements"])
        if kind == "or":
            return self.derived(self.rng.choice(spec["elements"]), left - 1)
        if kind in ("optional", "plus", "star", "repeat"):
            return "".join(self.derived(spec["content"], left - 1) for _ in range(self.rng.choice([0, 1, 1, 2, 3])))
        if kind == "tag":
            return self.marker(spec["begin"]) + self.derived(spec["content"], left - 1) + self.marker(spec["end"])
        if kind == "dispatch":
            parts = [(pattern, content) for pattern, content in spec["rules"]]
            made = [
                pattern + self.derived(content, left - 1)
                for pattern, content in self.rng.choices(parts, k=self.rng.choice([0, 1, 1, 2]))
            ]
            return "".join(self.text(0, 0, 1, 2) + one for one in made) + self.text(0, 0, 1)
        made = [
            self.derived(one, left - 1) for one in self.rng.choices(spec["tags"], k=self.rng.choice([0, 1, 1, 2, 3]))
        ]
        if kind == "tags_with_separator":
            return spec["separator"].join(made)
        return "".join(self.text(0, 0, 0, 1) + one for one in made) + self.text(0, 0, 1)

    def marker(self, given: Any) -> str:
        if isinstance(given, dict):
            return next(char for char in NAMES if given["token"] in (NAMES[char], IDS[char]))
        return str(self.rng.choice(given) if isinstance(given, list) else given)

    def changed(self, text: str) -> str:
        """A text that differs in one character."""
        at = self.rng.randint(0, len(text))
        new = self.rng.choice([*"ab<é", *NAMES, ""])
        return text[:at] + new + text[at + self.rng.randint(0, 1) :]


def tokens(text: str, rng: random.Random) -> list[int]:
    """One of the ways to write a text in tokens."""
    made: list[int] = []
    for part in re.split("([" + "".join(NAMES) + "])", text):
        if part in IDS:
            made.append(IDS[part])
            continue
        data = part.encode()
        while data:
            fitting = [index for index, one in enumerate(_TOKENS[259:], 259) if data.startswith(one)]
            token = rng.choice([data[0], *fitting])
            made.append(token)
            data = data[len(_TOKENS[token]) :]
    return made


def compare(seed: int, count: int) -> bool:
    """Whether the format is accepted; raises where a verdict differs."""
    maker = Maker(seed)
    spec = maker.format(maker.rng.choice([1, 2, 2, 3]))
    texts = {maker.text(0, 1, 2, 3) for _ in range(count // 4)}
    while len(texts) < count:
        texts.add(maker.derived(spec, 5))
        texts.add(maker.changed(maker.derived(spec, 5)))
        count -= 1
    texts = {text for text in texts if len(text) < 16}
    wanted = {text: Recogniser(text).fits(spec) for text in texts}
    try:
        automaton = gw.compile(requested("structural_tag", json.dumps({"format": spec})), TABLE)
    except gw.errors.UnsatisfiableError:
        assert not any(wanted.values()), (spec, [text for text in texts if wanted[text]])
        return True
    except gw.errors.InvalidConstraintError as problem:
        if not re.search("contained in|contains the excluded|exactly one trigger", str(problem)):
            raise
        return False
    for text in sorted(texts):
        written = [*tokens(text, maker.rng), 256]
        assert (automaton.matcher().validate(written) == len(written)) == wanted[text], (spec, text, wanted[text])
    return True


@counts(250, 10_000)
def test_random_formats(count: int) -> None:
    assert sum(compare(seed, 40) for seed in range(count)) > count // 2
