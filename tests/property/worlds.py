"""A constraint, a vocabulary, the matcher and the oracle, advanced together."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import guideway as gw
from tests.oracle import regular
from tests.oracle.matcher import Tokens
from tests.oracle.schemas import Profile

from . import schemas, vocabularies
from .checks import Lockstep, Mismatch, Tally
from .crowd import Crowd
from .patterns import Pattern
from .schemas import Case

PROFILES: tuple[tuple[Profile, dict[str, Any]], ...] = (
    (Profile(), {}),
    (Profile(key_order="any"), {"key_order": "any"}),
    (Profile(whitespace="compact"), {"whitespace": "compact"}),
    (Profile(whitespace="any"), {"whitespace": "any"}),
    (Profile(escapes="any"), {"escapes": "any"}),
    (
        Profile(key_order="any", whitespace="any", escapes="any"),
        {"key_order": "any", "whitespace": "any", "escapes": "any"},
    ),
    (
        Profile(key_order="any", whitespace="any", escapes="any", closed=False, exact=True),
        {"profile": "exact"},
    ),
)
SPELLING = [bytes([b]) for b in b'{}[]":, -.0123456789abqtruefalsn\\/x'] + ["é".encode(), b"\n"]


def patterns_hold(made: Iterable[tuple[Pattern, Tokens]], seed: int, *, depth: int, nodes: int) -> Tally:
    """Walk a world for each pattern with its vocabulary."""
    rng, tally = random.Random(seed), Tally()
    kernels: dict[int, vocabularies.Kernels] = {}
    for pattern, tokens in made:
        if id(tokens) not in kernels:
            kernels[id(tokens)] = vocabularies.Kernels(tokens)
        matcher = Crowd.compiled(gw.Regex(pattern.text), kernels[id(tokens)]())
        budgets = 1000 if pattern.spellable else 0
        Lockstep(f"Regex({pattern.text!r})", matcher, pattern.oracle(), tokens, rng, tally, budgets).walk(depth, nodes)
        tally.worlds += 1
        regular.forget()
    return tally


def schema_holds(case: Case, tokens: Tokens, profile: int, rng: random.Random, tally: Tally, **limits: int) -> bool:
    """Walks a schema's world; False if the library refuses it. `UnsatisfiableError` must agree with the oracle."""
    ours, theirs = PROFILES[profile]
    name = f"JsonSchema({case.schema!r}, **{theirs})"
    fits = case.world(ours).satisfiable("#")
    try:
        tables = [vocabularies.kernel(tokens), vocabularies.kernel(tokens, **rng.choice(vocabularies.SETTINGS))]
        matcher = Crowd.compiled(gw.JsonSchema(case.schema, **theirs), tables)
    except gw.errors.UnsatisfiableError as error:
        if fits:
            raise Mismatch(f"refused as unsatisfiable, but it is not: {name}: {error}") from error
        return True
    except gw.errors.UnsupportedError:
        return False
    if not fits:
        raise Mismatch(f"unsatisfiable, but compiled: {name}")
    budgets = limits.get("budgets", 0) if all(p.spellable for p in case.patterns.values()) else 0
    pair = Lockstep(name, matcher, case.oracle(ours), tokens, rng, tally, budgets, searched=False)
    pair.walk(limits.get("depth", 4), limits.get("nodes", 30))
    tally.worlds += 1
    return True


def schemas_hold(seeds: Iterable[int], *, levels: int, spelling: bool, **limits: int) -> tuple[Tally, int]:
    """Walk the worlds of these seeds; how many schemas were refused. `spelling`: tokens that can spell every text."""
    tally, refused = Tally(), 0
    for seed in seeds:
        rng = random.Random(seed)
        case, texts = schemas.draw(seed, levels)
        tokens = vocabularies.cut(rng, [text.encode() for text in texts], 7)
        if spelling:
            more = [text for text in dict.fromkeys(SPELLING) if text not in tokens.texts]
            tokens = Tokens((*tokens.texts, *more), tokens.eos)
        refused += not schema_holds(case, tokens, seed % len(PROFILES), rng, tally, **limits)
        regular.forget()
    return tally, refused
