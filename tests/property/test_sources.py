"""The grammar of a constraint has exactly the texts that its oracle accepts, without the kernel."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable

import pytest

import guideway as gw
from guideway.grammar.nodes import Number
from tests.conformance.test_conformance import holds
from tests.conformance.test_notations import masks_agree
from tests.helpers.counts import counts
from tests.oracle import grammars
from tests.oracle.derivations import first_derivation
from tests.oracle.machine import Oracle, Plain
from tests.oracle.spelling import Text

from . import patterns, schemas
from .test_captures import TEXTS, combined
from .worlds import PROFILES

ABC = [b"a", b"b", b"c", b"d"]
WIDE = [b"a", "é".encode(), "日".encode(), b"\xe6", b"b", b"\xff"]
JSON = [bytes([b]) for b in b'{}[]":,.-01259abqnultrefsx\\/ \n'] + ["é".encode(), b"\xc3"]


def differ(one: Oracle, other: Oracle, steps: Iterable[bytes], limit: int) -> str | None:
    """A shortest text (out of these steps) on which two oracles disagree, if there is one within `limit` states."""
    queue, seen = deque([(one.start, other.start, b"")]), {(one.start, other.start)}
    while queue and len(seen) < limit:
        left, right, text = queue.popleft()
        if left.whole != right.whole:
            return f"{text!r} is {'' if left.whole else 'not '}a member, {'' if right.whole else 'not '}by the other"
        for step in steps:
            after, then = one.read(left, step), other.read(right, step)
            if (after is None) != (then is None):
                return f"{text + step!r} is {'not ' * (after is None)}viable, {'not ' * (then is None)}by the other"
            if after is not None and then is not None and (after, then) not in seen:
                seen.add((after, then))
                queue.append((after, then, text + step))
    return None


def test_every_pattern_of_up_to_3_nodes_and_some_larger() -> None:
    rng = random.Random(1)
    worlds = [(p, ABC) for size in (1, 2, 3) for p in patterns.of_size(size)]
    worlds += [(patterns.drawn(rng, rng.randrange(4, 9)), ABC) for _ in range(200)]
    worlds += [(patterns.drawn(rng, rng.randrange(1, 6), patterns.WIDE), WIDE) for _ in range(150)]
    for pattern, steps in worlds:
        lowered = grammars.GrammarWorld(gw.Regex(pattern.text).grammar()).oracle()
        assert differ(pattern.oracle(), lowered, steps, 200) is None, pattern.text
        grammars.forget()


def test_combined_patterns() -> None:
    rng = random.Random(2)
    for _ in range(100):
        one, two = (patterns.drawn(rng, rng.randrange(1, 5)) for _ in range(2))
        left, right = gw.Regex(one.text), gw.Regex(two.text)
        for source, expr in (
            (left & right, grammars.regular.both(one.expr(), two.expr())),
            (left | right, grammars.regular.either(one.expr(), two.expr())),
            (left + right, grammars.regular.cat(one.expr(), two.expr())),
            (~left, grammars.regular.complement(one.expr())),
            (~left & right, grammars.regular.both(grammars.regular.complement(one.expr()), two.expr())),
        ):
            if grammars.regular.alive(expr):
                lowered = grammars.GrammarWorld(source.grammar()).oracle()
                assert differ(Oracle(Plain(), Text(expr)), lowered, ABC, 200) is None, source
        grammars.forget()


@pytest.mark.parametrize("seed", range(40))
def test_masks_of_combinations(seed: int) -> None:
    """Any sources in any: texts as the twin has them, masks as the oracle of the nodes has them, on every setting."""
    source, term = combined(random.Random(seed), 1 + seed % 4)
    drawn = random.Random(-seed).sample(TEXTS, 40)
    passing = [text for text in drawn if first_derivation(term, text) is not None]
    missing = [text for text in drawn if text not in passing][:6]
    holds(source, passing[:6], missing)
    masks_agree(source, f"seed {seed}", passing[:4], missing[:3])
    grammars.forget()


@counts(250, 400)
def test_schemas_in_every_profile(count: int) -> None:
    refused = 0
    for seed in range(count):
        case, _ = schemas.draw(seed, 2)
        ours, theirs = PROFILES[seed % len(PROFILES)]
        try:
            grammar = gw.JsonSchema(case.schema, **theirs).grammar()
            if any(isinstance(node, Number) for node in grammar.nodes):
                continue  # judged by value, in tests/suites
            lowered = grammars.GrammarWorld(grammar).oracle()
        except gw.errors.UnsupportedError:
            refused += 1
            continue
        except gw.errors.UnsatisfiableError:
            assert not case.world(ours).satisfiable("#"), case.schema
            continue
        difference = differ(case.oracle(ours), lowered, JSON, 80)
        assert difference is None, f"{difference}: {case.schema} {theirs}"
        grammars.forget()
    assert refused < 40
