"""Random small grammars in the IR: overlapping alternatives, recursion, unusual punctuation."""

from __future__ import annotations

import random

from guideway.grammar import nodes as ir, regular as written

FRAMES = (
    (ir.Punctuation("{", ",", ":", "}"), ir.Punctuation("[", ",", ":", "]")),
    (ir.Punctuation("{", ", ", ": ", "}"), ir.Punctuation("[", ", ", ":", "]")),
    (ir.Punctuation("<", ";", "=", ">"), ir.Punctuation("((", "a", ":", "))")),
    (ir.Punctuation("{", ",", ":", "}", space=True), ir.Punctuation("[", ",", ":", "]", space=True)),
)
KEYS = ("a", "b", "ab", "é")


class GrammarMaker:
    """Draws grammars over the letters a, b, c."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.grammar = rng, ir.Grammar()
        self.object_marks, self.array_marks = rng.choice(FRAMES)
        self.named: list[int] = []

    def made(self) -> ir.Grammar:
        """A grammar; now and then with a node that it refers to from inside itself."""
        if self.rng.random() < 0.5:
            number = self.grammar.reserve()
            self.named.append(number)
            inner = self.guarded(2)
            base = self.grammar.add(ir.Leaf(self.regular(2)))
            self.grammar.define(number, ir.Alternative((base, inner)))
        self.grammar.root = self.named[0] if self.named and self.rng.random() < 0.5 else self.node(3)
        return self.grammar

    def guarded(self, levels: int) -> int:
        """A node that reads something before it comes back to itself."""
        if self.rng.random() < 0.5:
            return self.object(levels) if self.rng.random() < 0.5 else self.array(levels)
        opening = self.grammar.add(ir.Leaf(written.literal(self.rng.choice("abc("))))
        parts = [opening, self.node(levels)]
        if self.rng.random() < 0.5:
            parts.append(self.grammar.add(ir.Leaf(written.literal(self.rng.choice("abc)")))))
        return self.grammar.add(ir.Sequence(tuple(parts)))

    def node(self, levels: int) -> int:
        """Any node."""
        if self.named and self.rng.random() < 0.35:
            return self.rng.choice(self.named)
        kinds = ["leaf"] * 3 + (["sequence", "alternative", "object", "array"] if levels > 0 else [])
        match self.rng.choice(kinds):
            case "leaf":
                return self.grammar.add(ir.Leaf(self.leaf()))
            case "sequence":
                return self.grammar.add(ir.Sequence(tuple(self.node(levels - 1) for _ in range(self.rng.randrange(3)))))
            case "alternative":
                count = self.rng.randrange(1, 4)
                return self.grammar.add(ir.Alternative(tuple(self.node(levels - 1) for _ in range(count))))
            case "object":
                return self.object(levels)
        return self.array(levels)

    def leaf(self) -> written.Regular:
        """Plain text, or text in quotes."""
        if self.rng.random() < 0.6:
            return self.regular(3)
        spelling: written.Spelling = self.rng.choice(("json", "json-any"))
        inner = written.both(self.regular(2), written.repeat(written.ANY_CHAR, 0, self.rng.choice((1, 3, None))))
        return written.cat('"', written.JsonEscaped(inner, spelling), '"')

    def regular(self, levels: int) -> written.Regular:
        """A regular expression."""
        r = self.rng
        if levels == 0 or r.random() < 0.25:
            leaves = (
                written.literal("a"),
                written.literal("b", "ab", "abc"),
                written.chars("ac"),
                written.chars("az"),
                written.literal("", "c"),
                written.literal("é", '"', "n" if self.object_marks.space else "\n"),
                written.EMPTY,
            )
            return r.choice(leaves)
        match r.randrange(6):
            case 0:
                low = r.randrange(3)
                return written.repeat(self.regular(levels - 1), low, r.choice((None, low, low + 1, low + 2)))
            case 1 | 2:
                return written.cat(self.regular(levels - 1), self.regular(levels - 1))
            case 3:
                return written.either([self.regular(levels - 1), self.regular(levels - 1)])
            case 4:
                return written.both(self.regular(levels - 1), written.Complement(self.regular(levels - 1)))
        return written.both(self.regular(levels - 1), written.repeat(written.chars("az"), 0, r.choice((None, 2, 4))))

    def object(self, levels: int) -> int:
        """A frame of keyed entries."""
        r = self.rng
        names = r.sample(KEYS, r.randrange(4))
        plain = r.random() < 0.5
        demands = r.choice((0, 0, 0, 1, 3))
        entries = tuple(
            ir.Property(self.key(written.literal(name), plain), self.value(levels, demands), r.random() < 0.4)
            for name in names
        )
        more: tuple[ir.Property, ...] = ()
        if r.random() < 0.4:
            least = r.randrange(2)
            short = written.repeat(written.chars("ac"), least, r.choice((1, 2, None)))
            other = written.both(short, written.Complement(written.literal(*KEYS)))
            more = (ir.Property(self.key(other, least > 0 and r.random() < 0.3), self.value(levels, demands), False),)
        low, high = r.choice(((0, None), (0, None), (1, None), (2, None), (0, 1), (1, 2), (2, 2), (3, 4)))
        return self.grammar.add(ir.Object(self.object_marks, entries, more, r.random() < 0.5, low, high, demands))

    def value(self, levels: int, marks: int) -> ir.Value:
        """Returns a value; if marks are possible, it sometimes has several readings."""
        if not marks or self.rng.random() < 0.3:
            return self.node(levels - 1)
        ways = range(self.rng.randrange(1, 3))
        return tuple(ir.Marked(self.rng.randrange(marks + 1) & marks, self.node(levels - 1)) for _ in ways)

    def key(self, name: written.Regular, plain: bool) -> written.Regular:
        """A key as it is written."""
        return name if plain else written.cat('"', written.JsonEscaped(name, "json"), '"')

    def array(self, levels: int) -> int:
        """A frame of items."""
        r = self.rng
        low = r.choice((0, 0, 1, 2, 3))
        high = r.choice((None, None, low, low + 1, low + 3))
        if r.random() < 0.25:
            leaves = tuple(self.grammar.add(ir.Leaf(self.leaf())) for _ in range(r.randrange(1, 3)))
            return self.grammar.add(
                ir.Array(self.array_marks, (), self.grammar.add(ir.Alternative(leaves)), low, high, True)
            )
        counts = r.choice(((), (), (), ((1, None),), ((0, 1),), ((1, 2), (0, 1)), ((2, None), (1, None))))
        marks = (1 << len(counts)) - 1
        prefix = tuple(self.value(levels, marks) for _ in range(r.choice((0, 0, 1, 2))))
        rest = self.value(levels, marks) if r.random() < 0.8 else None
        return self.grammar.add(ir.Array(self.array_marks, prefix, rest, low, high, False, counts))
