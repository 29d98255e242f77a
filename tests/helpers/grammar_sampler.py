"""Random texts of a grammar, so that other validators (`jsonschema`, `re`) can check the lowering.

An intersection is sampled from one operand; the sample is kept if the reference implementation accepts it.
"""

from __future__ import annotations

import json
import random
from decimal import Decimal

from guideway.grammar.nodes import (
    Alternative,
    Array,
    Grammar,
    Leaf,
    Number,
    Object,
    Property,
    Sequence,
    Value,
)
from guideway.grammar.regular import (
    Chars,
    Complement,
    Concat,
    Intersection,
    JsonEscaped,
    Literals,
    Regular,
    Repeat,
    Union,
)
from tests.helpers.reference_grammar import fits, matches
from tests.oracle.readings import readings


class NoSample(Exception):
    """Nothing was found here; try again, or there is nothing."""


class Sampler:
    def __init__(self, grammar: Grammar, seed: int = 0, depth: int = 6) -> None:
        self.grammar = grammar
        self.random = random.Random(seed)
        self.depth = depth

    def sample(self, tries: int = 50) -> str | None:
        for _ in range(tries):
            try:
                return self.node(self.grammar.root, self.depth)
            except NoSample:
                continue
        return None

    def node(self, number: int, depth: int) -> str:
        node = self.grammar.nodes[number]
        if isinstance(node, Leaf):
            return self.regular(node.text)
        if depth < 0:
            raise NoSample
        if isinstance(node, Sequence):
            return "".join(self.node(part, depth) for part in node.parts)
        if isinstance(node, Alternative):
            for part in self.random.sample(node.parts, len(node.parts)):
                try:
                    return self.node(part, depth - 1)
                except NoSample:
                    continue
            raise NoSample
        if isinstance(node, Object):
            return self.object(node, depth - 1)
        if isinstance(node, Number):
            return self.number(node)
        assert isinstance(node, Array)
        return self.array(node, depth - 1)

    def number(self, node: Number) -> str:
        cell = self.random.choice(node.cells)
        step = cell.multiple_of[0] if cell.multiple_of else Decimal("0.5")
        start = cell.low if cell.low is not None else cell.high if cell.high is not None else Decimal(0)
        for _ in range(20):
            text = f"{(start // step + self.random.randint(-3, 3)) * step:f}"
            grammar = Grammar()
            grammar.root = grammar.add(node)
            if fits(grammar, text):
                return text
        raise NoSample

    def value(self, value: Value, depth: int) -> str:
        return self.node(self.random.choice(readings(value)).node, depth)

    def array(self, node: Array, depth: int) -> str:
        most = node.minimum + 2 if node.maximum is None else min(node.maximum, node.minimum + 2)
        items: list[str] = []
        for i in range(self.random.randint(node.minimum, most)):
            item = node.prefix[i] if i < len(node.prefix) else node.rest
            if item is None:
                break
            try:
                items.append(self.value(item, depth))
            except NoSample:
                break
        if len(items) < node.minimum:
            raise NoSample
        return node.punctuation.open + node.punctuation.comma.join(items) + node.punctuation.close

    def object(self, node: Object, depth: int) -> str:
        entries: list[str] = []
        chosen = [entry for entry in node.properties if entry.required or self.random.random() < 0.5]
        chosen += [entry for entry in node.open if self.random.random() < 0.4]
        if not node.ordered:
            self.random.shuffle(chosen)
        for entry in chosen:
            try:
                entries.append(self.entry(entry, node.punctuation.colon, depth))
            except NoSample:
                if entry.required:
                    raise
        return node.punctuation.open + node.punctuation.comma.join(entries) + node.punctuation.close

    def entry(self, entry: Property, colon: str, depth: int) -> str:
        return self.regular(entry.key) + colon + self.value(entry.value, depth)

    def regular(self, part: Regular) -> str:
        if isinstance(part, Chars):
            low, high = self.random.choice(part.ranges)
            high = min(high, low + 200)
            code = self.random.randint(low, high)
            return "a" if 0xD800 <= code <= 0xDFFF else chr(code)
        if isinstance(part, Literals):
            return self.random.choice(part.texts)
        if isinstance(part, Concat):
            return "".join(map(self.regular, part.parts))
        if isinstance(part, Union):
            if not part.parts:
                raise NoSample
            for one in self.random.sample(part.parts, len(part.parts)):
                try:
                    return self.regular(one)
                except NoSample:
                    continue
            raise NoSample
        if isinstance(part, Repeat):
            most = part.minimum + 3 if part.maximum is None else min(part.maximum, part.minimum + 3)
            return "".join(self.regular(part.part) for _ in range(self.random.randint(part.minimum, most)))
        if isinstance(part, Intersection):
            return self.both(part)
        if isinstance(part, JsonEscaped):
            text = json.dumps(self.regular(part.part), ensure_ascii=False)[1:-1]
            if part.spelling == "json-any" and self.random.random() < 0.5:
                text = json.dumps(json.loads(f'"{text}"'))[1:-1].replace("/", "\\/")
            return text
        assert isinstance(part, Complement)
        text = "".join(self.random.choice("abé1 /") for _ in range(self.random.randint(0, 4)))
        if not matches(part, text):
            raise NoSample
        return text

    def both(self, part: Intersection) -> str:
        for _ in range(60):
            text = self.regular(self.random.choice(part.parts))
            if matches(part, text):
                return text
        raise NoSample
