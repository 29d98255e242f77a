"""The grammars of tests/real in the notations of the peers, and texts of them."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from . import data

REAL = Path(__file__).parents[2] / "tests" / "real"

_JSON = r"""
root ::= ws value
value ::= (object | array | string | number | "true" | "false" | "null") ws
object ::= "{" ws (pair ("," ws pair)*)? "}"
pair ::= string ws ":" ws value
array ::= "[" ws (value ("," ws value)*)? "]"
string ::= "\"" ([^"\\\x00-\x1f] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F] [0-9a-fA-F] [0-9a-fA-F] [0-9a-fA-F]))* "\""
number ::= "-"? ("0" | [1-9] [0-9]*) ("." [0-9]+)? ([eE] [+-]? [0-9]+)?
ws ::= [ \t\n\r]*
"""
_ARITHMETIC = r"""
root ::= ws sum
sum ::= product (("+" | "-") ws product)*
product ::= power (("*" | "//" | "/" | "%") ws power)*
power ::= sign ("**" ws power)?
sign ::= "-" ws sign | atom
atom ::= ("0" | [1-9] [0-9]*) ("." [0-9]+)? ws | [a-z] [0-9]? ws | "(" ws sum ")" ws
ws ::= [ ]*
"""


@dataclass(frozen=True)
class Task:
    """A language: its grammar by notation ("lark", "gbnf": that of xgrammar's EBNF too), and texts."""

    name: str
    grammars: dict[str, str]
    texts: list[str]


def plain_lark(text: str) -> str:
    """Without the template of lists, which llguidance does not take."""
    text = re.sub(r"^_list\{x\}.*\n", "", text, flags=re.MULTILINE)
    return re.sub(r"_list\{(\w+)\}", r'(\1 (", " \1)*)', text)


def read(name: str) -> str:
    """A file of tests/real."""
    return (REAL / name).read_text("utf-8")


def samples(source: Any, count: int) -> list[str]:
    """Masked samples over the bundled vocabulary, each legal token as likely as any other."""
    import guideway as gw

    rng, table = random.Random(count), gw.load("tiny").tokenizer.vocabulary
    automaton, found = gw.compile(source, table), []
    row = np.zeros((len(table) + 31) // 32, dtype=np.uint32)
    while len(found) < count:
        matcher, text = automaton.matcher(), b""
        left = max(rng.randrange(20, 80), matcher.min_tokens_to_complete())
        while not matcher.is_finished:
            matcher.fill_mask_within(row, left)
            token = int(rng.choice(np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))))
            matcher.advance(token)
            text += b"" if matcher.is_finished else table.token_bytes[token]
            left -= 1
        found.append(text.decode())
    return found


def instances(count: int) -> Sequence[str]:
    """JSON as it is written: instances of MaskBench on one line."""
    found = [data.text_of(case.instances[0][0]) for case in data.spread(data.cases(), count) if case.instances]
    return [text for text in found if len(text) < 4000]


def tasks(count: int, only: str) -> Iterator[Task]:
    """Yields the languages whose names contain `only`, with `count` texts each."""
    import guideway as gw

    if only in "JSON":
        yield Task("JSON", {"lark": read("json.lark"), "gbnf": _JSON}, list(instances(count)))
    for name, other in (("arithmetic", {"gbnf": _ARITHMETIC}), ("sql", {}), ("python", {})):
        if only in name:
            text = read(f"{name}.lark")
            yield Task(name, {"lark": plain_lark(text), **other}, samples(gw.Lark(text), count))
    for name in ("chess", "c"):
        if only in name:
            text = read(f"{name}.gbnf")
            yield Task(name, {"gbnf": text}, samples(gw.Gbnf(text), count))
