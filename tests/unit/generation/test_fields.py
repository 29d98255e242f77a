"""Fields of records: probabilities, distributions against brute force, and values that validators reject."""

from __future__ import annotations

import json
import math
import random
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from pydantic import AfterValidator, BaseModel, field_validator, model_validator

import guideway as gw
from guideway.generation import complete
from guideway.generation.fields import options_at
from guideway.testing import ConstantModel, ScriptedModel
from guideway.tokenizers import Vocabulary

BYTES = [bytes([code]) for code in range(256)]
PIECES = [
    b'{"',
    b'": ',
    b'": "',
    b'"}',
    b"ab",
    b"ba",
    b"aa",
    b'"a',
    b'b"',
    b"tr",
    b"ue",
    b"false",
    b"null",
    b"1",
    b"12",
    b"2}",
    b"}",
]


def constant(rng: random.Random) -> tuple[gw.Model, Vocabulary, Any]:
    table = Vocabulary([b"", *BYTES, *rng.sample(PIECES, 10)], eos_ids=[0], special_ids=[0])
    logits = np.array([rng.gauss(0, 2) for _ in range(len(table))], np.float32)
    return ConstantModel(table, logits), table, logits


def brute_force(schema: Any, table: Vocabulary, logits: Any, taken: tuple[int, ...]) -> dict[str, float]:
    """The probability of each record after some tokens: all tokens of all texts are followed to their end."""
    found: dict[str, float] = {}
    values = np.array(logits, np.float64)

    def follow(matcher: Any, tokens: list[int], share: float) -> None:
        mask = np.zeros((len(table) + 31) // 32, np.uint32)
        matcher.fill_mask(mask)
        legal = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
        weights = np.exp(values[legal] - values[legal].max())
        for token, part in zip(legal.tolist(), (weights / weights.sum()).tolist(), strict=True):
            if token == 0:
                text = table.bytes_of(tokens).decode()
                found[text] = found.get(text, 0.0) + share * part
                continue
            matcher.advance(token)
            follow(matcher, [*tokens, token], share * part)
            matcher.rollback(1)

    matcher = gw.compile(schema, table).matcher()
    for token in taken:
        matcher.advance(token)
    follow(matcher, list(taken), 1.0)
    return found


def random_field(rng: random.Random) -> dict[str, Any]:
    kind = rng.randrange(4)
    if kind == 0:
        return {"type": "boolean"}
    texts = {"".join(rng.choices("ab", k=rng.randint(1, 4))) for _ in range(rng.randint(2, 5))}
    if kind == 1 and len(texts) > 1:
        return {"enum": sorted(texts)}
    if kind == 2:
        return {"enum": rng.sample([1, 12, 2, 122, True, None, "a"], 4)}
    return {"anyOf": [{"enum": [*sorted(texts), "x"]}, {"type": "null"}]}


def check_distributions(count: int) -> None:
    for seed in range(count):
        rng = random.Random(seed)
        field = random_field(rng)
        schema = {"type": "object", "properties": {"f": field}, "required": ["f"], "additionalProperties": False}
        model, table, logits = constant(rng)
        one = complete(model, "x", gw.JsonSchema(schema), distributions=True, temperature=1.0, seed=seed)
        made = one.fields["/f"]
        taken = one.tokens[: made.token_span[0]]
        shares: dict[str, float] = {}
        for text, share in brute_force(gw.JsonSchema(schema), table, logits, taken).items():
            value = json.dumps(json.loads(text)["f"])
            shares[value] = shares.get(value, 0.0) + share
        total = sum(shares.values())
        assert {json.dumps(option.value) for option in made.distribution} >= set(shares)
        for option in made.distribution:
            assert option.probability == pytest.approx(shares.get(json.dumps(option.value), 0.0) / total, abs=1e-5), (
                seed
            )


def test_distributions_are_those_of_brute_force() -> None:
    check_distributions(25)


@pytest.mark.slow  # half a minute
def test_distributions_of_two_hundred_types_are_those_of_brute_force() -> None:
    check_distributions(200)


def test_fields_have_values_tokens_and_probabilities() -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"enum": ["ab", "b"]},
            "n": {"type": "array", "items": {"enum": [1, 12]}, "minItems": 2, "maxItems": 2},
        },
        "required": ["a", "n"],
        "additionalProperties": False,
    }
    model, table, _ = constant(random.Random(5))
    one = complete(model, "x", gw.JsonSchema(schema), logprobs=0)
    assert set(one.fields) == {"/a", "/n/0", "/n/1"}
    for field in one.fields.values():
        first, end = field.token_span
        start, stop = field.text_span
        assert json.loads(one.text[start:stop]) == field.value
        written = table.bytes_of(one.tokens[first:end]).decode()
        assert one.text[start:stop] in written
        assert field.logprob == pytest.approx(sum(step.logprob for step in one.steps[first:end]))
        assert field.mask_logprob >= field.logprob - 1e-9
        assert field.distribution == ()
    assert math.isclose(sum(step.logprob for step in one.steps), one.logprob)


def test_fields_need_log_probabilities() -> None:
    model, _, _ = constant(random.Random(1))
    with pytest.raises(ValueError, match="pass logprobs=0, or distributions=True"):
        _ = complete(model, "x", bool).fields
    with pytest.raises(ValueError, match="distributions=True needs a type"):
        complete(model, "x", gw.Regex("a"), distributions=True)
    assert complete(model, "x", bool, distributions=True).fields[""].distribution


def test_options_of_places() -> None:
    schema = {
        "$defs": {"K": {"enum": ["a", "b"]}},
        "properties": {
            "k": {"$ref": "#/$defs/K"},
            "l": {"type": "array", "prefixItems": [{"type": "boolean"}]},
            "s": {"type": "string"},
        },
        "additionalProperties": {"anyOf": [{"const": 1}, {"type": "null"}]},
    }
    assert options_at(schema, "/k") == ["a", "b"]
    assert options_at(schema, "/l/0") == [True, False]
    assert options_at(schema, "/s") is None
    assert sorted(map(str, options_at(schema, "/other") or [])) == ["1", "None"]
    assert options_at({"$ref": "#"}, "/x") is None


def test_options_are_unknown_if_a_schema_has_too_many_branches() -> None:
    branches = [{"const": i % 2} for i in range(10_000)]
    assert options_at({"properties": {"k": {"anyOf": branches[1:]}}}, "/k") == [1, 0]
    assert options_at({"properties": {"k": {"anyOf": branches}}}, "/k") is None
    above = [{"properties": {"k": branch}} for branch in branches]
    assert options_at({"anyOf": above[1:]}, "/k") == [1, 0]
    assert options_at({"anyOf": above}, "/k") is None


def test_an_anchor_is_not_the_whole_schema() -> None:
    schema = {
        "properties": {"k": {"$ref": "#kind"}, "l": {"$ref": "#/$defs/a%20b"}},
        "additionalProperties": {"type": "boolean"},
        "$defs": {"K": {"$anchor": "kind", "properties": {"x": {"type": "string"}}}, "a b": {"enum": [1, 2]}},
    }
    assert options_at(schema, "/k/x") is None
    assert options_at(schema, "/l") == [1, 2]


class Mood(BaseModel):
    before: Literal["a", "b"]
    mood: Literal["ab", "ba", "aa", "bb"]
    after: bool

    @field_validator("mood")
    @classmethod
    def one_of_four(cls, value: str) -> str:
        if value != wanted:
            raise ValueError(f"must be {wanted}")
        return value


wanted = "ab"


def test_a_validator_of_one_in_four_options_is_met_within_four_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    prompt = "x" * 200  # no forced text is encoded together with all of it
    for seed in range(8):
        model, _, _ = constant(random.Random(seed))
        encoded: list[str] = []
        real = type(model.tokenizer).encode
        monkeypatch.setattr(
            type(model.tokenizer),
            "encode",
            lambda self, text, real=real, seen=encoded: seen.append(text) or real(self, text),
        )
        for option in ("ab", "ba", "aa", "bb"):
            monkeypatch.setattr(f"{__name__}.wanted", option)
            encoded.clear()
            one = complete(model, prompt, Mood, retries=3, max_tokens=2000, seed=seed, temperature=1.0)
            assert one.value.mood == option
            assert [text for text in encoded if prompt in text] == [prompt], "no retry encodes the prompt again"
        monkeypatch.undo()


def test_what_remains_invalid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.wanted", "none of them")
    model, _, _ = constant(random.Random(3))
    with pytest.raises(gw.errors.InvalidTextError, match="after 2 attempts") as caught:
        complete(model, "x", Mood, retries=1, logprobs=0, max_tokens=2000)
    error = caught.value
    assert error.place == "/mood"
    assert [one.place for one in error.attempts] == ["/mood", "/mood"]
    assert error.value == error.attempts[1].value != error.attempts[0].value
    assert "must be none of them" in error.attempts[0].message
    assert len(error.generation.steps) == len(error.generation.tokens)
    assert error.generation.value is None
    with pytest.raises(gw.errors.InvalidTextError, match="after 4 attempts"):
        complete(model, "x", Mood, retries=9, max_tokens=2000)
    kept = complete(model, "x", Mood, on_invalid="return", max_tokens=2000)
    assert kept.value["mood"] == json.loads(kept.text)["mood"]
    assert isinstance(kept.invalid, gw.errors.InvalidTextError)
    with pytest.raises(gw.errors.InvalidTextError, match="after 3 attempts"):
        complete(model, "x", Mood, on_invalid="retry", max_tokens=2000)
    with pytest.raises(ValueError, match="on_invalid must be"):
        complete(model, "x", Mood, on_invalid="maybe")  # type: ignore[call-overload]  # what is tested


class Pair(BaseModel):
    items: list[Literal["a", "b"]]
    total: Literal[1, 2, 12]

    @model_validator(mode="after")
    def of_all(self) -> Pair:
        if self.total != 12:
            raise ValueError("total must be 12")
        return self


def test_a_validator_of_the_whole_record() -> None:
    model, _, _ = constant(random.Random(4))
    one = complete(model, "x", Pair, retries=40, max_tokens=60)
    assert one.value.total == 12


def not_seven(value: int) -> int:
    if value == 7:
        raise ValueError("must not be 7")
    return value


class Shelf(BaseModel):
    counts: dict[str, Annotated[int, AfterValidator(not_seven)]]


def test_a_value_after_keys_that_the_schema_does_not_list() -> None:
    model = ScriptedModel(Vocabulary([b"", *BYTES], eos_ids=[0], special_ids=[0]), ['{"counts": {"z": 1, "a": 7}}'])
    found = complete(model, "x", Shelf, retries=1, max_tokens=60).value.counts
    assert found.pop("a", 7) != 7
    assert found.pop("z") == 1
