"""Characters of several bytes: masks compared with a vocabulary for which all optimisations are disabled.

Tokens begin and end inside characters; classes, counts and what follows them begin with the same bytes. Random small
cases contain few of these.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

import guideway as gw

from . import vocabularies, wide
from .checks import Mismatch
from .crowd import Crowd

CHARACTERS = [*'aéxz -ßЖب"\\0\n한글日本😀🏽', "\xa0", "\u2028", "\u3000"]
ATOMS = [
    *(r"\S", r"\s", r"\w", r"\W", r"\d", ".", r"[^\"]", "[^a]", "[a-z]", "[à-ÿ]", "[一-龥]", "[^一-鿿]", "[😀-🙏]"),
    *(r"[^\s\-]", r"[\u0080-\uffff]", "é", "日", "[ก-๛]", "[a-zЀ-ӿ]", "[^日本]", "[가-힣]", r"[\x00-\x7f]"),
    *(r"[^\x00-\x7f]", "x"),
]
COUNTS = ["*", "+", "?", "{2}", "{0,3}", "{1,12}", "{0,99}", "{3,}", "{20}", "{0,40}"]
STEPS = 9


def pieces(count: int) -> list[bytes]:
    """Each byte, and texts of some characters, of which a third is cut off inside one."""
    rng = random.Random(5)
    made = dict.fromkeys(bytes([byte]) for byte in range(256))
    while len(made) < count:
        text = "".join(rng.choices(CHARACTERS, k=rng.randint(1, 6))).encode()
        begin = rng.randrange(len(text)) if rng.random() < 0.3 else 0
        made[text[begin : rng.randint(begin + 1, len(text)) if rng.random() < 0.3 else len(text)]] = None
    return list(made)


def pattern(rng: random.Random, depth: int = 0) -> str:
    kind = rng.random()
    if depth > 3 or kind < 0.35:
        return rng.choice(ATOMS)
    if kind < 0.55:
        return pattern(rng, depth + 1) + pattern(rng, depth + 1)
    if kind < 0.65:
        return f"(?:{pattern(rng, depth + 1)}|{pattern(rng, depth + 1)})"
    return f"(?:{pattern(rng, depth + 1)}){rng.choice(COUNTS)}"


def drawn(rng: random.Random) -> gw.Constraint:
    """Returns a pattern as a whole text, in a JSON string, in an alternative, or as the names of an object."""
    one, kind = pattern(rng) + (pattern(rng) if rng.random() < 0.6 else ""), rng.random()
    whole = {"type": "string", "pattern": f"^(?:{one})$"}
    if kind < 0.4:
        return gw.Regex(one)
    if kind < 0.7:
        return gw.JsonSchema(whole, profile="exact")
    if kind < 0.8:
        return gw.JsonSchema({"type": "string", "pattern": one}, profile="exact")
    if kind < 0.9:
        named = {f"^(?:{one})$": {"type": "integer"}}
        others = {"type": "string"}
        known = {"日本": {}, "aé": {}}
        schema = {"type": "object", "patternProperties": named, "additionalProperties": others, "properties": known}
        return gw.JsonSchema(schema, profile="exact")
    return gw.JsonSchema({"allOf": [whole, {"not": {"pattern": pattern(rng)}}]}, profile="exact")


def compared(tokens: Sequence[bytes], seeds: range) -> int:
    """How many constraints were walked along."""
    empty, done = [i for i, token in enumerate(tokens) if not token], 0
    quick, plain = (gw.Vocabulary(tokens, eos_ids=[0], special_ids=empty) for _ in range(2))
    vocabularies.limited(plain, tuning=vocabularies.PLAIN)
    row = np.zeros((len(tokens) + 31) // 32, np.uint32)
    for seed in seeds:
        rng, taken = random.Random(seed), b""
        try:
            crowd = Crowd.compiled(source := drawn(rng), [quick, plain])
            for _ in range(STEPS):
                crowd.fill_mask(row)
                legal = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))
                some = rng.choices(legal.tolist(), k=6)
                token = max(some, key=lambda one: max(tokens[one], default=0)) if rng.random() < 0.6 else some[0]
                crowd.advance(token)
                taken += tokens[token]
                if crowd.is_finished:
                    break
        except gw.errors.ConstraintError:  # nothing fits it, or it asks for too much
            continue
        except Mismatch as mismatch:
            raise Mismatch(f"seed {seed}, {source} behind {taken!r}: {mismatch}") from mismatch
        done += 1
    return done


def test_masks() -> None:
    assert compared(pieces(3000), range(100, 160)) > 50


@pytest.mark.slow
@pytest.mark.parametrize(("name", "seeds"), [("small", range(160, 3000)), ("tekken", range(300))])
def test_masks_at_length(name: str, seeds: range) -> None:
    tokens = pieces(6000) if name == "small" else wide.tokenizer(name).vocabulary.token_bytes
    done = compared(tokens, seeds)
    print(f"{done} constraints over {len(tokens)} tokens")
    assert done > 0.9 * len(seeds)
