"""All small objects and arrays: counts, required entries, unique items, open keys, and numbers by value.

The cases are grouped by vocabulary of eight tokens, so that later cases use the caches of earlier ones. Each case is
walked with every cache setting at once, and each group by several threads.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import partial
from itertools import product

from guideway.grammar import nodes as ir, regular as written
from tests.oracle import grammars
from tests.oracle.matcher import Tokens

from . import vocabularies
from .checks import Tally
from .grammar_worlds import LETTERS, GrammarCase, together

OBJECT, ARRAY = ir.Punctuation("{", ",", ":", "}"), ir.Punctuation("[", ",", ":", "]")
SPACED = ir.Punctuation("{", ",", ":", "}", space=True)
LIMITS = ((0, None), (1, None), (2, None), (0, 1), (1, 2), (2, 2), (3, 3))
GROUP = 8

Build = Callable[[ir.Grammar], int]
Marking = Callable[[ir.Grammar, int], ir.Value]
Limits = tuple[int, int | None]
Names = tuple[tuple[str, bool], ...]
Counts = tuple[Limits, ...]


def quoted(inner: written.Regular, spelling: written.Spelling = "json") -> written.Regular:
    """A JSON string of some characters."""
    return written.cat('"', written.JsonEscaped(inner, spelling), '"')


def cell(low: str | None, high: str | None, multiple: str | None = None, other: str | None = None) -> ir.Cell:
    """Numbers between bounds; `<` before a bound leaves it out."""
    bounds = [None if b is None else Decimal(b.lstrip("<")) for b in (low, high)]
    opened = [b is not None and b.startswith("<") for b in (low, high)]
    divisors = [() if d is None else (Decimal(d),) for d in (multiple, other)]
    return ir.Cell(bounds[0], bounds[1], opened[0], opened[1], divisors[0], divisors[1])


SMALL = ir.Number((cell("0", "2", "1"),))
ANY = ir.Number((cell("0.5", None),))
LETTER = ir.Leaf(quoted(written.repeat(written.chars("ab"), 0, 1)))
WORDS = ir.Leaf(quoted(written.literal("a", "ab", "é"), "json-any"))
ONE = ir.Leaf(written.literal("1"))


def leaf(node: ir.Node) -> Build:
    """A node without others below it."""
    return lambda grammar: grammar.add(node)


def marked(*ways: tuple[int, Build]) -> Marking:
    """Returns a value with several readings, each with those of its marks that are requested."""
    return lambda grammar, asked: tuple(ir.Marked(marks & asked, build(grammar)) for marks, build in ways)


def objects(value: Build) -> Iterator[Build]:
    """Some names (one the beginning of the other), open keys, an order or none, counts."""
    opens = (None, written.repeat(written.chars("ac"), 2, 2), written.repeat(written.chars("cc"), 0, None))
    names = ((), (("a", False),), (("a", True),), (("ab", False), ("a", True)), (("ab", True), ("a", False)))
    return (partial(_object, value, *each) for each in product(names, opens, (True, False), LIMITS))


def _object(
    value: Build, given: Names, more: written.Regular | None, ordered: bool, limits: Limits, grammar: ir.Grammar
) -> int:
    fixed = tuple(ir.Property(quoted(written.literal(name)), value(grammar), needed) for name, needed in given)
    others = written.both(more, written.Complement(written.literal("a", "ab"))) if more else written.NEVER
    rest = (ir.Property(quoted(others), grammar.add(ONE), False),) if more else ()
    return grammar.add(ir.Object(OBJECT, fixed, rest, ordered, *limits))


def demanding() -> Iterator[Build]:
    """Objects some of whose entries must be of a kind; open keys in any spelling."""
    one, letter, empty = leaf(ONE), leaf(LETTER), leaf(ir.Leaf(written.literal("[]")))
    ways = (
        marked((1, one), (0, letter)),
        marked((1, one), (2, letter), (0, empty)),
        marked((3, one), (0, letter)),
        marked((1, letter), (2, letter)),
    )
    limits = ((0, None), (2, None), (0, 1), (1, 2))
    choices = product((None, *ways), (None, *ways), (1, 3), (True, False), limits)
    return (partial(_demanding, *each) for each in choices)


def _demanding(
    first: Marking | None, rest: Marking | None, demands: int, ordered: bool, limits: Limits, grammar: ir.Grammar
) -> int:
    name = written.literal("a")
    keys = written.both(written.repeat(written.chars("ab"), 1, 2), written.Complement(name))
    named, more = (
        (ir.Property(quoted(key, "json-any"), value(grammar, demands), False),) if value else ()
        for key, value in ((name, first), (keys, rest))
    )
    marks = SPACED if limits[0] == 2 else OBJECT
    return grammar.add(ir.Object(marks, named, more, ordered, *limits, demands))


def tallied() -> Iterator[Build]:
    """Objects that limit the number of marks from below and above, with marks of keys that are missing."""
    one, letter, empty = leaf(ONE), leaf(LETTER), leaf(ir.Leaf(written.literal("[]")))
    ways = (
        marked((1, one), (0, letter)),
        marked((2, one), (4, letter), (0, empty)),
        marked((1 << 40, one), (3, letter)),
    )
    lacking = (0, 1, 4 | 1 << 40)
    limits = ((0, None), (1, None), (0, 2), (2, 2))
    numbers = ((2, 2), (0, 1), (1, 2), (3, None))
    choices = product(product(ways, lacking), product(ways, lacking), (None, ways[0]), numbers, limits)
    for n, each in enumerate(choices):
        if n % 5 == 0:
            yield partial(_tallied, *each, bool(n % 3))


def _tallied(
    first: tuple[Marking, int],
    second: tuple[Marking, int],
    rest: Marking | None,
    numbers: tuple[int, int | None],
    limits: Limits,
    ordered: bool,
    grammar: ir.Grammar,
) -> int:
    demands = 7 | 1 << 40
    named = tuple(
        ir.Property(
            quoted(written.literal(name)), value(grammar, demands), limits == (1, None) and name == "b", missing
        )
        for name, (value, missing) in (("a", first), ("b", second))
    )
    keys = quoted(written.both(written.repeat(written.chars("ab"), 2, 2), written.Complement(written.literal("a"))))
    more = (ir.Property(keys, rest(grammar, demands), False),) if rest else ()
    return grammar.add(ir.Object(OBJECT, named, more, ordered, *limits, demands, *numbers))


def arrays(value: Build) -> Iterator[Build]:
    """A prefix, a rest, counts of items and of items of a kind."""
    counts = ((), ((1, None),), ((0, 1),), ((1, 2), (0, 1)), ((2, None), (1, 1)))
    choices = product(range(3), (None, 0, 1), counts, LIMITS)
    return (partial(_array, value, *each) for each in choices)


def _array(value: Build, prefix: int, rest: int | None, counts: Counts, limits: Limits, grammar: ir.Grammar) -> int:
    ways = marked((1, leaf(ONE)), (0, value)), marked((1, leaf(ONE)), (2, value))

    def item(kind: int) -> ir.Value:
        return ways[kind](grammar, (1 << len(counts)) - 1) if counts else value(grammar)

    first = tuple(item(n % 2) for n in range(prefix))
    return grammar.add(ir.Array(ARRAY, first, None if rest is None else item(rest), *limits, False, counts))


def different() -> Iterator[Build]:
    """Arrays without equal items: of numbers, of strings in any spelling, of both."""
    pairs = ((SMALL, WORDS), (LETTER, WORDS), (ONE, LETTER))
    kinds = ((SMALL,), (ANY,), (LETTER,), (WORDS,), *pairs)
    return (partial(_different, *each) for each in product((None, *kinds), kinds, (*LIMITS, (0, 3), (4, None))))


def _different(
    prefix: tuple[ir.Node, ...] | None, rest: tuple[ir.Node, ...], limits: Limits, grammar: ir.Grammar
) -> int:
    def item(nodes: tuple[ir.Node, ...]) -> int:
        return grammar.add(ir.Alternative(tuple(grammar.add(node) for node in nodes)))

    return grammar.add(ir.Array(ARRAY, () if prefix is None else (item(prefix),), item(rest), *limits, True))


def numbers() -> Iterator[Build]:
    """Yields numbers between bounds, by divisor, in both spellings, alone or with other numbers."""
    lows, highs = (None, "-1", "<0", "0.5", "10"), (None, "<0", "2", "<10", "12.5")
    for low, high, multiple, other in product(lows, highs, (None, "1", "0.5", "3"), (None, "2", "1.5")):
        yield leaf(ir.Number((cell(low, high, multiple, other),)))
        yield leaf(ir.Number((cell(low, high, multiple, other),), "plain"))
        yield leaf(ir.Number((cell(low, high, multiple, other), cell("1", "1"))))


def every() -> Iterator[Build]:
    """Yields all frames: with leaves, and nested to three levels."""
    small, letter = leaf(SMALL), leaf(LETTER)
    simple = [*objects(small), *arrays(letter), *demanding(), *tallied(), *different()]
    yield from numbers()
    yield from simple
    yield from objects(letter)
    for n, inner in enumerate(simple[::4]):
        outer = list(objects(inner))[n % 14 :: 53] + list(arrays(inner))[n % 12 :: 71]
        yield from outer
        yield from list(arrays(outer[0]))[n % 9 :: 113]


def hold(chosen: range, seed: int) -> tuple[Tally, int]:
    """Walks the worlds of these frames; also returns the number of masks that were computed in several threads."""
    tally, rng, threaded, group = Tally(), random.Random(seed), 0, list[GrammarCase]()
    wanted = set(chosen)
    for number, build in enumerate(every()):
        if number not in wanted:
            continue
        grammar = ir.Grammar()
        grammar.root = build(grammar)
        group.append(GrammarCase(f"frame {number}:", grammar))
        if len(group) == GROUP or number == chosen[-1]:
            threaded += _group_holds(group, rng, tally)
            group.clear()
            grammars.forget()
    return tally, threaded


def budgets_hold(chosen: range, seed: int) -> Tally:
    """Walk them over tokens that can spell every text: promises of how many tokens are enough must be kept."""
    tally, rng, wanted = Tally(), random.Random(seed), set(chosen)
    for number, build in enumerate(every()):
        if number in wanted:
            grammar = ir.Grammar()
            grammar.root = build(grammar)
            case = GrammarCase(f"frame {number}:", grammar)
            texts = [*case.texts(rng, 4), b'",', b"],", b',"']
            pieces = vocabularies.cut(rng, texts, 7)
            more = [letter for letter in (*LETTERS, b"\xc3", b"\xa9") if letter not in pieces.texts]
            tokens = Tokens((*pieces.texts, *more), pieces.eos)
            case.walk([vocabularies.kernel(tokens)], tokens, rng, tally, depth=6, nodes=8, budgets=6)
            grammars.forget()
    return tally


def _group_holds(group: list[GrammarCase], rng: random.Random, tally: Tally) -> int:
    fitting = [case for case in group if case.world.satisfiable(case.grammar.root)]
    texts = [text for case in fitting for text in case.texts(rng, 3)] or [b"a"]
    tokens = vocabularies.cut(rng, texts, 7)
    tables = [vocabularies.kernel(tokens), *(vocabularies.kernel(tokens, **each) for each in vocabularies.SETTINGS)]
    walked = [(case, case.walk(tables, tokens, rng, tally, depth=4, nodes=10)) for case in group]
    kept = [(case, slow) for case, slow in walked if slow is not None]
    return together(kept, tokens, rng) if kept else 0


COUNT = sum(1 for _ in every())
