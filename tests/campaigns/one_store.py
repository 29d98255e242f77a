"""Many constraints through one store: each mask must be that of the same constraint in a fresh store.

    python -m tests.campaigns.one_store [--count 10000] [--seed 0] [--vocabulary llama3]

A store keeps what it has computed for all constraints of its vocabulary. So the constraints come in families that share
states: patterns over similar classes, counts near each other, arrays of unique items, published schemas. Each is
compiled in a shared store and in a fresh one (and sometimes in a store whose caches are small, or one that takes no
shortcuts), and the matchers are moved as one along texts and random legal tokens. Some tokens of each mask, and some
that are not in it, are tried with `validate`.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import guideway as gw
from guideway import _kernel
from tests.helpers.byte_tokens import legal
from tests.oracle import grammars, regular
from tests.property import aimed, keywords, patterns, schemas, wide
from tests.property.checks import Mismatch
from tests.property.grammar_maker import GrammarMaker
from tests.property.grammar_worlds import GrammarCase, Made
from tests.property.spellings import respelled

CORPUS = Path(__file__).parent.parent
CLASSES = {  # with some of their characters
    "[a-z]": "abcxyz", "[0-9]": "012", "[a-z0-9]": "ab01", "[a-z0-9-]": "ab01-",
    "[0-9a-z-]": "ab01-", r"[a-z0-9\-]": "ab01-",
    "[a-zA-Z0-9]": "aB1", "[a-zA-Z0-9_]": "aB1_", "[A-Za-z0-9_.-]": "aB1_.-", "[A-Z]": "ABC",
    r"\w": "aB_1", r"[\w.-]": "ab.-1",
    r"\d": "0123", r"\S": "aB-!", r"[^\s]": "ab-é", ".": "ab é\"", "[^/]": "ab -",
    "[^a-z]": "AB 12", "[a-z ]": "a b", "[ -~]": "aB 1.",
    "[a-f0-9]": "a0f", "[à-ÿa-z]": "aéb", "[一-龥]": "日本語",
}  # fmt: skip
COUNTS = ("", "", "*", "*", "*", "+", "+", "+", "?", "{2}", "{4}", "{8,}",
          "{17,}", "{1,3}", "{0,16}", "{0,30}", "{1,32}",
          "{3,63}", "{4,63}", "{1,64}", "{0,128}", "{2,255}")  # fmt: skip
SEPARATORS = ("", "", "-", r"\.", "/", " ", ":", "_", "@", ", ")
LENGTHS = (0, 1, 2, 3, 4, 5, 8, 10, 16, 17, 20, 32, 40, 50, 63, 64, 100, 128, 255, 256, 2000)
NAMES = ("id", "slug", "name", "NatGatewayId", "tags")
WORDS = ("a", "ab", "abc", "x-1", "nat-12345678", "electronics", "PowerShell", "Power", "a.b.c",
         "www.example.com", "7.2.6", "en-US",
         "A b c", "été", "日本語", "", "2024-01-01",
         "a/b", "user@mail.org", "-", "12", "some words of a text", "http")  # fmt: skip


def vocabulary(name: str) -> gw.Vocabulary:
    """Llama 3's 128,000 tokens (without the special ones, but for one that ends texts), or one of `wide.FILES`."""
    if name != "llama3":
        return wide.vocabulary(name)
    pytest.importorskip("llama_models", reason="needs llama-models, whose package holds the vocabulary of Llama 3")
    lines = (
        (Path(str(import_module("llama_models").__file__)).parent / "llama3" / "tokenizer.model")
        .read_bytes()
        .splitlines()
    )
    tokens = [base64.b64decode(line.split()[0]) for line in lines]  # in the order of their ranks
    return gw.Vocabulary([*tokens, b""], eos_ids=[len(tokens)])


@dataclass(frozen=True)
class Drawn:
    """A constraint and texts to walk along, valid or not."""

    name: str
    source: Any
    texts: tuple[str, ...]


def how(rng: random.Random) -> dict[str, Any]:
    """A profile."""
    return {"profile": "exact"} if rng.random() < 0.75 else aimed.profile(rng)


def of_schema(rng: random.Random, schema: Any, values: Sequence[Any], texts: Sequence[str] = ()) -> Drawn:
    """The schema in some profile, and values as texts, in any spelling now and then."""
    profile = how(rng)
    some = [json.dumps(v, ensure_ascii=False) if rng.random() < 0.8 else respelled(rng, v) for v in values]
    name = f"JsonSchema({json.dumps(schema, ensure_ascii=False)}, **{profile})"
    return Drawn(name, gw.JsonSchema(schema, **profile, unknown_keywords="ignore"), (*some, *texts))


class Maker:
    """Draws constraints; for some draws in a row from the same few classes and lengths, so that they share states."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.turn()

    def turn(self) -> None:
        """Other classes and lengths."""
        self.classes = self.rng.sample(list(CLASSES), self.rng.choice((1, 1, 2, 3)))
        self.counts = self.rng.sample(COUNTS, 6)
        self.lengths = sorted(self.rng.sample(LENGTHS, 4))
        self.left = self.rng.randrange(3, 12)

    def word(self) -> str:
        """A text, often of one class, near a length that a schema may name."""
        if self.rng.random() < 0.4:
            return self.rng.choice(WORDS)
        some = CLASSES[self.rng.choice(self.classes)]
        count = self.rng.choice((3, 9, 14, *(min(length, 70) for length in self.lengths))) + self.rng.randrange(-2, 3)
        return "".join(self.rng.choices(some, k=max(0, count)))

    def part(self) -> str:
        """A class with a count."""
        return self.rng.choice(self.classes) + self.rng.choice(self.counts)

    def pattern(self) -> str:
        """Classes with counts, separators and groups; most of them anchored on both sides."""
        rng = self.rng
        if rng.random() < 0.15:
            one, most = rng.choice(self.classes), rng.choice((3, 8, 20, 60))
            count, between = rng.choice(("", "+", "{1,8}")), rng.choice(SEPARATORS[2:])
            made = rf"(?:{one}{count}{between}){{0,{most}}}{self.part()}"
        else:
            made = rng.choice(SEPARATORS).join(self.part() for _ in range(rng.choice((1, 1, 1, 2, 2, 3))))
        if rng.random() < 0.1:
            made = f"(?:{made}|{self.part()})"
        return f"^{made}$" if rng.random() < 0.8 else rng.choice(("^{}", "{}", "{}$")).format(made)

    def string(self) -> dict[str, Any]:
        """A schema of strings."""
        made: dict[str, Any] = {"type": "string"}
        if self.rng.random() < 0.75:
            made["pattern"] = self.pattern()
        if self.rng.random() < 0.4 or len(made) == 1:
            made["maxLength"] = self.rng.choice(self.lengths)
        if self.rng.random() < 0.4:
            made["minLength"] = min(self.rng.choice(self.lengths), made.get("maxLength", 2000))
        return made

    def strings(self) -> Drawn:
        """An object with required strings, as most published schemas hold; or a string alone."""
        names = self.rng.sample(NAMES, self.rng.choice((1, 1, 1, 2)))
        schema: Any = {"type": "object", "properties": {name: self.string() for name in names}, "required": names}
        values: list[Any] = [{name: self.word() for name in names} for _ in range(2)]
        if self.rng.random() < 0.2:
            schema, values = self.string(), [self.word() for _ in range(2)]
        return of_schema(self.rng, schema, values)

    def unique(self) -> Drawn:
        """An array of unique items."""
        rng = self.rng
        few: list[Any] = [self.word() for _ in range(3)]
        items: Any = rng.choice(
            (
                self.string(),
                self.string(),
                {"type": ["string", "null"], "minLength": 1, "maxLength": max(2, self.lengths[-1])},
                {"enum": [*dict.fromkeys(few), 1, None]},
                {"type": "integer"},
                {
                    "type": "object",
                    "properties": {"id": self.string()},
                    "required": ["id"],
                    "additionalProperties": False,
                },
            )
        )
        schema = {"type": "array", "items": items, "uniqueItems": True}
        if rng.random() < 0.7:
            schema["maxItems"] = rng.choice((2, 3, 16))
        values = [
            [rng.choice((*few, few[0], few[0], 1, 10, None)) for _ in range(rng.randrange(1, 5))] for _ in range(2)
        ]
        if "properties" in items:
            values = [[{"id": one} for one in value] for value in values]
        if rng.random() < 0.6:
            return of_schema(rng, {"type": "object", "properties": {"tags": schema}}, [{"tags": v} for v in values])
        return of_schema(rng, schema, values)

    def regexes(self) -> Drawn:
        """A pattern alone."""
        if self.rng.random() < 0.2:
            letters = self.rng.choice((patterns.LETTERS, patterns.WIDE))
            made = patterns.drawn(self.rng, self.rng.randrange(3, 9), letters).text
        elif self.rng.random() < 0.2:
            source, texts = aimed._pattern(self.rng)
            return Drawn(repr(source), source, texts)
        else:
            made = self.pattern().removeprefix("^").removesuffix("$")
        return Drawn(f"Regex({made!r})", gw.Regex(made), (self.word(), self.word()))

    def keys(self) -> Drawn:
        """Objects whose keys fit patterns."""
        rng = self.rng
        schema: dict[str, Any] = {"type": "object", "additionalProperties": rng.choice((False, True, self.string()))}
        schema["patternProperties"] = {
            self.pattern(): rng.choice((self.string(), {"type": "integer"})) for _ in range(2)
        }
        if rng.random() < 0.5:
            schema["properties"] = {name: self.string() for name in rng.sample(NAMES, 2)}
        if rng.random() < 0.3:
            schema["propertyNames"] = rng.choice((self.string(), {"maxLength": 20}))
        return of_schema(rng, schema, [{self.word(): self.word(), self.word(): 1} for _ in range(2)])

    def objects(self) -> Drawn:
        """Objects, strings, formats and lists aimed at where masks take short cuts."""
        schema, texts = aimed._schema(self.rng)
        return of_schema(self.rng, schema, (), texts)

    def schemas(self) -> Drawn:
        """Schemas of the other proofs."""
        if self.rng.random() < 0.5:
            case, texts = schemas.draw(self.rng.randrange(10**9), 2)
            return of_schema(self.rng, case.schema, (), texts[:3])
        document = keywords.Drawer(self.rng).document()
        return of_schema(self.rng, document, keywords.values(self.rng, document, 3))

    def grammars(self) -> Drawn:
        """Patterns before a rule that calls itself; grammars of the IR, of tests/real and of tests/conformance."""
        if self.rng.random() < 0.5:
            first = self.pattern().removeprefix("^").removesuffix("$").replace("/", r"\/")
            one = self.rng.choice(self.classes).replace("/", r"\/")
            text = f'start: /{first}/ tail\ntail: /{one}/ tail "." | "{self.rng.choice(".,;x")}"\n'
            return Drawn(f"Lark({text!r})", gw.Lark(text), (self.word(), self.word()))
        if self.rng.random() < 0.5:
            case = GrammarCase("a drawn grammar", GrammarMaker(self.rng).made())
            texts = [text.decode("utf-8", "ignore") for text in case.texts(self.rng, 2)]
            return Drawn(case.name, Made(case.grammar), tuple(texts))
        name, source, texts = self.rng.choice(corpus())
        return Drawn(name, source, tuple(self.rng.sample(texts, min(2, len(texts)))))

    def published(self) -> Drawn:
        """A published schema along some instances; without the data, one that looks like them."""
        if not published():
            return self.strings()
        name, schema, values = self.rng.choice(published())
        some = self.rng.sample(values, min(2, len(values)))
        texts = [json.dumps(value, ensure_ascii=False)[:1000] for value in some]
        return Drawn(name, gw.JsonSchema(schema, profile="exact", unknown_keywords="ignore"), tuple(texts))

    FAMILIES: ClassVar = {
        strings: 50,
        unique: 14,
        regexes: 12,
        keys: 6,
        objects: 6,
        schemas: 5,
        grammars: 6,
        published: 4,
    }

    def each(self) -> Iterator[tuple[str, Drawn]]:
        """Constraints of all families, without an end; those that are refused are left out."""
        while True:
            self.left -= 1
            if self.left < 0:
                self.turn()
            family = self.rng.choices(list(self.FAMILIES), list(self.FAMILIES.values()))[0]
            try:
                yield family.__name__, family(self)
            except (gw.errors.ConstraintError, gw.errors.LimitExceededError):
                continue
            finally:
                regular.forget()
                grammars.forget()


@cache
def corpus() -> list[tuple[str, Any, list[str]]]:
    """Grammars with texts."""
    tomllib = pytest.importorskip("tomllib", reason="needs tomllib, which Python has from 3.11 on")
    makers = {"gbnf": gw.Gbnf, "ebnf": gw.Ebnf, "lark": gw.Lark}
    found: list[tuple[str, Any, list[str]]] = []
    for path in sorted((CORPUS / "real").glob("*.*")):
        found.append((path.name, makers[path.suffix[1:]](path.read_text("utf-8")), []))
    for name, maker in makers.items():
        given = tomllib.loads((CORPUS / "conformance" / f"{name}.toml").read_text("utf-8"))
        for case in given["case"]:
            found.append((f"{name}: {case['name']}", maker(case["grammar"]), [*case["pass"], *case["miss"]]))
    return found


@cache
def published() -> list[tuple[str, Any, list[Any]]]:
    """Names, schemas and instances of MaskBench; none where the data is not there."""
    home = Path(os.environ.get("GUIDEWAY_DATA") or Path(__file__).parents[3] / "shared" / "data") / "maskbench-dev"
    found = []
    for path in sorted(home.glob("*.json")):
        given = json.loads(path.read_text("utf-8"))
        found.append((path.stem, given["schema"], [test["data"] for test in given["tests"]]))
    return found


@dataclass
class Stores:
    """The shared stores of a vocabulary (as it is, with small caches, without shortcuts), and fresh ones."""

    name: str
    rng: random.Random
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.table = vocabulary(self.name)
        self.tokens = self.table.token_bytes
        self.size, self.eos = len(self.tokens), self.table.eos_ids
        whole = (self.tokens, self.table.eos_ids, self.table.special_ids)
        self.default = self.table.kernel
        self.small = _kernel.KernelVocabulary(*whole, memo_bytes=4 << 20, store_bytes=8 << 20)
        self.plain = _kernel.KernelVocabulary.tuned(*whole, dict.fromkeys(_kernel.KernelVocabulary.mechanisms(), 0))
        self.file = np.frombuffer(self.table.kernel.save(), dtype=np.uint8)
        silent = self.table.unusable()
        self.ids = {text: token for token, text in enumerate(self.tokens) if text and token not in silent}
        self.longest = max(map(len, self.ids))
        self.usable = [token for token in self.ids.values() if token not in silent]

    def fresh(self) -> _kernel.KernelVocabulary:
        """The same vocabulary with nothing computed."""
        return _kernel.KernelVocabulary.load(*self.table._fields(), self.file)

    def cut(self, text: bytes) -> list[int]:
        """Longest tokens first; up to a byte that no token begins with."""
        ids, at = [], 0
        while at < len(text):
            ends = range(min(len(text), at + self.longest), at, -1)
            token = next((self.ids[text[at:end]] for end in ends if text[at:end] in self.ids), None)
            if token is None:
                break
            ids.append(token)
            at += len(self.tokens[token])
        return ids

    def matchers(self, source: Any) -> list[Any]:
        """Returns matchers of the shared store, sometimes of another store, and of a fresh store, in this order."""
        others = self.rng.choices(([], [self.small], [self.plain]), (50, 35, 15))[0]
        made = []
        for kernel in (self.default, *others, self.fresh()):
            object.__setattr__(self.table, "_kernel", kernel)
            made.append(gw.compile(source, self.table, cache=False).matcher())
        return made

    def check(self, one: Drawn, steps: int | None = None) -> None:
        """Walk along the texts of a constraint, then along random legal tokens. Raises `Mismatch`."""
        begun = self.matchers(one.source)
        for text in one.texts:
            Walk(self, one.name, [matcher.fork() for matcher in begun]).along(
                self.cut(text.encode("utf-8", "surrogatepass"))
            )
        Walk(self, one.name, begun).at_random(self.rng.choice((2, 4, 12)) if steps is None else steps)
        self.counts["constraints"] += 1


class Walk:
    """Matchers of one constraint, moved as one."""

    def __init__(self, stores: Stores, name: str, matchers: list[Any]) -> None:
        self.stores, self.name, self.matchers, self.rng = stores, name, matchers, stores.rng
        self.rows = np.zeros((len(matchers), (stores.size + 31) // 32), np.uint32)
        self.taken: list[int] = []
        self.before: list[int] = []  # some tokens of the mask before

    def fault(self, what: str, tokens: Sequence[int]) -> Mismatch:
        """Returns a mismatch with its location."""
        texts = self.stores.tokens
        return Mismatch(
            f"{self.name}, after {[texts[t] for t in self.taken]}: {what}: {[texts[t] for t in tokens[:10]]}"
        )

    def fill(self) -> None:
        """Compare the masks, and sometimes those within a budget."""
        for matcher, row in zip(self.matchers, self.rows, strict=True):
            matcher.fill_mask(row)
        self.compare("masks differ")
        if self.rng.random() < 0.02:
            left = self.matchers[-1].min_tokens_to_complete() + self.rng.randrange(3)
            kept = self.rows.copy()
            for matcher, row in zip(self.matchers, self.rows, strict=True):
                matcher.fill_mask_within(row, left)
            self.compare(f"masks within {left} tokens differ")
            self.rows = kept

    def compare(self, what: str) -> None:
        """Every row is the last."""
        self.stores.counts["masks"] += len(self.rows) - 1
        if (self.rows[:-1] != self.rows[-1]).any():
            wrong = np.bitwise_or.reduce(self.rows[:-1] ^ self.rows[-1], axis=0)
            raise self.fault(what, legal(wrong))

    def holds(self, token: int) -> bool:
        """Whether the mask has the token."""
        return bool(self.rows[-1][token >> 5] >> (token & 31) & 1)

    def sampled(self) -> None:
        """Some tokens of the mask can be taken, some others cannot; most of these were legal a step before."""
        legal = np.flatnonzero(np.unpackbits(self.rows[-1].view(np.uint8), bitorder="little"))
        some = [int(legal[self.rng.randrange(len(legal))]) for _ in range(4)] if len(legal) else []
        others = [*self.rng.sample(self.before, min(3, len(self.before))), *self.rng.choices(self.stores.usable, k=3)]
        for token in (*some, *others):
            self.stores.counts["tokens tried"] += 1
            if (self.matchers[-1].validate([token]) == 1) != self.holds(token):
                raise self.fault("the mask has it" if self.holds(token) else "the mask does not have it", [token])
        self.before = [int(legal[self.rng.randrange(len(legal))]) for _ in range(20)] if len(legal) else []

    def advance(self, token: int) -> bool:
        """Take a token if it is legal; every matcher agrees with its mask."""
        for matcher in self.matchers:
            try:
                matcher.advance(token)
                accepted = True
            except gw.errors.RejectedTokenError:
                accepted = False
            if accepted != self.holds(token):
                raise self.fault(
                    "in the mask, but refused" if self.holds(token) else "not in the mask, but accepted", [token]
                )
        self.taken.append(token)
        return self.holds(token)

    def along(self, tokens: Sequence[int]) -> None:
        """Advances along the tokens until one is refused, and then over the end token."""
        for token in (*tokens, self.stores.eos[0]):
            self.fill()
            if self.rng.random() < 0.1:
                self.sampled()
            if not self.advance(token):
                return

    def at_random(self, count: int) -> None:
        """Tokens of the masks, spread over their first bytes."""
        for _ in range(count):
            self.fill()
            self.sampled()
            if not self.before:
                return
            firsts = {self.stores.tokens[token][:1]: token for token in self.before}
            token = firsts[self.rng.choice(sorted(firsts))]
            self.advance(token)
            if token in self.stores.eos:
                return


def hold(name: str, count: int, seed: int, *, faults: int = 1, says: bool = False) -> Counter[str]:
    """Walks `count` constraints and counts the comparisons; `says` prints progress. Raises the first mismatches."""
    rng = random.Random(seed)
    stores = Stores(name, rng)
    found: list[str] = []
    start = time.process_time()
    for family, one in Maker(rng).each():
        try:
            stores.check(one)
        except Mismatch as error:
            found.append(f"{family}, constraint {stores.counts['constraints']}: {error}")
            stores.counts["constraints"] += 1
        except (gw.errors.ConstraintError, gw.errors.LimitExceededError) as error:
            stores.counts[f"refused: {type(error).__name__}"] += 1
            continue
        stores.counts[family] += 1
        done = stores.counts["constraints"]
        if says and done % 500 == 0:
            print(
                f"{dict(stores.counts)}, {len(found)} mismatches, {time.process_time() - start:.0f} s of CPU time",
                flush=True,
            )
        if done >= count or len(found) >= faults:
            break
    if found:
        raise Mismatch("\n".join(found))
    return stores.counts


def main() -> int:
    """1 where a mask differed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000, help="so many constraints")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--vocabulary", default="llama3", choices=sorted((*wide.FILES, "llama3")))
    parser.add_argument("--faults", type=int, default=10, help="stop after so many mismatches")
    given = parser.parse_args()
    try:
        hold(given.vocabulary, given.count, given.seed, faults=given.faults, says=True)
    except Mismatch as error:
        print(error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
