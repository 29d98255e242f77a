"""`check(constraint, tokenizer, model)` checks the masks of a constraint with a tokenizer, and optionally an engine.

Soundness: texts that the masks allow fit the constraint. Completeness: texts that fit are allowed, in the tokenization
of the tokenizer and in a random one. The masks for the tokenizer are compared with an automaton of the same constraint
whose tokens are single bytes. Whole texts are checked with `Constraint.parse`, and for JSON Schemas also with
`jsonschema` if it is installed.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from time import perf_counter
from typing import Any

import numpy as np

from guideway import constraints, masks
from guideway._kernel import Automaton as ByteAutomaton
from guideway.compiler import compile
from guideway.constraints.base import Constraint
from guideway.constraints.json_schema import JsonSchema
from guideway.constraints.python_types import PythonType
from guideway.errors import GuidewayError, InvalidTextError
from guideway.grammar.recognizer import byte_automaton
from guideway.sampling import Sampler
from guideway.sessions import ModelBase
from guideway.testing.engines import step_engine_contract
from guideway.testing.respelling import respelled
from guideway.tokenizers import Tokenizer

__all__ = ["CheckReport", "Finding", "check"]

BYTES_END = 256
MOST_TOLD = 5
"""The maximum number of failures of one kind that are described."""
MOST_TOKENS = 3000
"""If the vocabulary has more tokens than this number, a random sample of about this number is checked in each mask.

At most half of the sample is drawn from the legal tokens, the rest from all tokens. End tokens and some special tokens
are added.
"""


@dataclass(frozen=True)
class Finding:
    """The result of the checks of one kind: what was checked, the number of cases and the number of failures.

    `told` has descriptions of the first failures, and remarks. `seconds` is the time that the checks took. `skipped` is
    the reason for which there were no cases; "": there were cases.
    """

    what: str
    cases: int = 0
    failed: int = 0
    told: tuple[str, ...] = ()
    seconds: float = 0.0
    skipped: str = ""


@dataclass(frozen=True)
class CheckReport:
    """The result of `check`. `ok`: nothing failed."""

    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        return not any(finding.failed for finding in self.findings)


def check(
    constraint: object,
    tokenizer: object,
    model: ModelBase | None = None,
    *,
    walks: int = 20,
    max_tokens: int = 200,
    valid: Sequence[str] = (),
    invalid: Sequence[str] = (),
    prompt: str = "The ",
    seed: int = 0,
) -> CheckReport:
    """Check the masks of a constraint with a tokenizer, and optionally a model. The same seed gives the same cases.

    Args:
        constraint: A constraint or a Python type.
        tokenizer: A value that `Tokenizer.of` accepts.
        model: A model whose engine is checked with `step_engine_contract`, and which generates under the constraint.
            None: no engine is checked.
        walks: The number of random texts of each kind.
        max_tokens: The maximum number of tokens of each text.
        valid: Texts that must be accepted.
        invalid: Texts that must be rejected.
        prompt: The prompt for the model.
        seed: The seed of the random numbers.

    Returns:
        A `Finding` for each kind of check.

    Raises:
        ConstraintError: As in `guideway.compile`.
    """
    checks = _ConstraintChecks(constraint, Tokenizer.of(tokenizer), walks, max_tokens, seed)
    every: list[tuple[str, Callable[[], Iterator[str | None]]]] = [
        ("soundness: texts drawn under the masks fit", checks.drawn_texts),
        ("both: tokens of masks, compared with the constraint over bytes", checks.masks_against_bytes),
        ("completeness: texts that fit, encoded by the tokenizer", lambda: checks.spelled(valid, own=True)),
        ("completeness: texts that fit, in random tokenizations", lambda: checks.spelled(valid, own=False)),
        ("soundness: texts that do not fit", lambda: checks.spoiled(invalid)),
    ]
    found = [_finding(what, cases) for what, cases in every]
    if model is None:
        found.append(Finding("engine", skipped="no model was given"))
    else:
        found.append(_finding("engine: the contract of engines", lambda: _engine(model, checks)))
        found.append(_finding("engine: generated texts fit", lambda: checks.written(model, prompt)))
    return CheckReport(tuple(found))


class _Note(str):
    """A remark about a case that is not a failure."""


def _finding(what: str, cases: Callable[[], Iterator[str | None]]) -> Finding:
    """Run the checks of one kind, and count them.

    `cases` yields None for a success, a `_Note` for a remark, and another str that describes a failure.
    """
    start, count, wrong, notes = perf_counter(), 0, list[str](), list[str]()
    for case in cases():
        if isinstance(case, _Note):
            notes.append(case)
            continue
        count += 1
        if case is not None:
            wrong.append(case)
    seconds = perf_counter() - start
    told = (*wrong[:MOST_TOLD], *notes)
    if not count:
        return Finding(what, 0, 0, told, seconds, "no text of this kind was found within the bounds")
    return Finding(what, count, len(wrong), told, seconds)


def _engine(model: ModelBase, checks: _ConstraintChecks) -> Iterator[str | None]:
    ids = list(dict.fromkeys(i for i in checks.long_tokens if i < model.engine.vocab_size))[:8]
    try:
        step_engine_contract(model.engine, ids)
    except (AssertionError, GuidewayError, ValueError) as error:
        yield str(error)
    else:
        yield None


class _ConstraintChecks:
    def __init__(self, constraint: object, table: Tokenizer, walks: int, max_tokens: int, seed: int) -> None:
        self.source: Constraint[Any] = constraints.of(constraint)
        self.table, self.vocabulary = table, table.vocabulary
        self.automaton = compile(self.source, self.vocabulary)
        self.automaton.matcher().min_tokens_to_complete()  # raises if no tokens spell the shortest complete text
        self.bytes: ByteAutomaton = byte_automaton(self.source.grammar())
        self.walks, self.max_tokens, self.chance = walks, max_tokens, random.Random(seed)
        self.tokens = self.vocabulary.token_bytes
        self.by_bytes: dict[bytes, list[int]] = {}
        for token_id, token in enumerate(self.tokens):
            if token and token_id not in self.vocabulary.special_ids:
                self.by_bytes.setdefault(token, []).append(token_id)
        self.longest = max(map(len, self.by_bytes), default=1)
        self.validator = _json_validator(self.source)

    @property
    def long_tokens(self) -> list[int]:
        return [ids[0] for _, ids in sorted(self.by_bytes.items(), key=lambda item: (-len(item[0]), item[0]))]

    def judged(self, text: bytes) -> str | None:
        """Return why a text does not fit, according to the checks that use no masks; None: it fits."""
        try:
            written = text.decode()
        except UnicodeDecodeError:
            return f"{text!r} is not UTF-8"
        if not self.fits(text):
            return f"{written!r} does not fit the constraint over bytes"
        try:
            self.source.parse(written)
        except InvalidTextError as error:
            return f"{written!r} cannot be parsed: {error}"
        if self.validator is not None and not self.validator(written):
            return f"{written!r} is invalid according to jsonschema"
        return None

    def fits(self, text: bytes) -> bool:
        matcher = self.bytes.matcher()
        return matcher.validate([*text, BYTES_END]) == len(text) + 1

    def drawn_texts(self) -> Iterator[str | None]:
        for _ in range(self.walks):
            yield self.judged(b"".join(self.tokens[i] for i in self.walk()))

    def walk(self) -> list[int]:
        """Return random tokens that the masks allow, without the end token.

        Of two drawn tokens the longer one is taken.
        """
        matcher, row, ids = self.automaton.matcher(), masks.new_rows(1, len(self.tokens))[0], list[int]()
        most = max(self.max_tokens, matcher.min_tokens_to_complete())
        while True:
            matcher.fill_mask_within(row, most - len(ids))
            legal = masks.ids(row, len(self.tokens)).tolist()
            some = self.chance.choices(legal, k=2)
            token_id = max(some, key=lambda i: len(self.tokens[i]))
            matcher.advance(token_id)
            if matcher.is_finished:
                return ids
            ids.append(token_id)

    def masks_against_bytes(self) -> Iterator[str | None]:
        """Check at positions of random texts that masks allow exactly the tokens whose bytes are allowed one by one."""
        for _ in range(min(self.walks, 8)):
            ids = self.walk()
            cut = self.chance.randint(0, len(ids))
            matcher, plain = self.automaton.matcher(), self.bytes.matcher()
            before = b"".join(self.tokens[i] for i in ids[:cut])
            if plain.validate(list(before)) < len(before):
                yield f"{before!r} was drawn under the masks, but no text that fits begins with it"
                continue
            for token_id in ids[:cut]:
                matcher.advance(token_id)
            for byte in before:
                plain.advance(byte)
            row = masks.new_rows(1, len(self.tokens))[0]
            matcher.fill_mask(row)
            bits = masks.unpack(row, len(self.tokens))
            for token_id in self._looked_at(bits):
                wanted = self._can_come(token_id, plain)
                took = matcher.validate([token_id]) == 1
                if wanted == bool(bits[token_id]) == took:
                    yield None
                else:
                    token = self.tokens[token_id]
                    allowed = f"by the mask {bool(bits[token_id])}, by validate {took}, over bytes {wanted}"
                    yield f"after {before!r}, token {token_id} ({token!r}) is allowed: {allowed}"

    def _looked_at(self, bits: Any) -> list[int]:
        if len(self.tokens) <= MOST_TOKENS:
            return list(range(len(self.tokens)))
        legal = np.flatnonzero(bits).tolist()
        some = self.chance.sample(legal, min(len(legal), MOST_TOKENS // 2))
        others = self.chance.sample(range(len(self.tokens)), MOST_TOKENS - len(some))
        return sorted({*some, *others, *self.vocabulary.eos_ids, *list(self.vocabulary.special_ids)[:50]})

    def _can_come(self, token_id: int, plain: Any) -> bool:
        if token_id in self.vocabulary.eos_ids:
            return bool(plain.is_accepting)
        token = self.tokens[token_id]
        if not token or token_id in self.vocabulary.special_ids:
            return False
        return bool(plain.validate(list(token)) == len(token))

    def texts(self) -> Iterator[bytes]:
        """Yield random texts that fit, drawn byte by byte without the tokenizer."""
        row = masks.new_rows(1, BYTES_END + 1)[0]
        for _ in range(self.walks):
            matcher, text = self.bytes.matcher(), bytearray()
            most = max(4 * self.max_tokens, matcher.min_tokens_to_complete())
            while True:
                matcher.fill_mask_within(row, most - len(text))
                byte = self.chance.choice(masks.ids(row, BYTES_END + 1).tolist())
                if byte == BYTES_END:
                    break
                matcher.advance(byte)
                text.append(byte)
            yield bytes(text)

    def spelled(self, valid: Sequence[str], *, own: bool) -> Iterator[str | None]:
        given = list[bytes]()
        for one in valid:
            other = None if self.fits(one.encode()) else self.other_spelling(one)
            if other is not None and own:  # only once, not again for the random tokenization
                yield _Note(
                    f"{one!r} was given as valid: the value fits; it is written {other!r} under this profile"
                    if other
                    else f"{one!r} was given as valid: the value fits; it is written otherwise under this profile"
                )
            if other != "":
                given.append((one if other is None else other).encode())
        for text in [*given, *self.texts()]:
            ids = self.table.encode(text.decode()) if own else self._cut(text)
            if ids is None or self.vocabulary.bytes_of(ids) != text:
                continue  # the tokenizer changes this text, or has no token for a part of it
            if not self.fits(text):
                yield f"{text!r} was given as valid, and does not fit the constraint"
                continue
            matcher = self.automaton.matcher()
            count = matcher.validate(ids)
            if count < len(ids):
                refused = f"token {ids[count]} ({self.tokens[ids[count]]!r}), number {count},"
                yield f"{text!r} fits, but {refused} is not allowed"
                continue
            for token_id in ids:
                matcher.advance(token_id)
            yield None if matcher.is_accepting else f"{text!r} fits, but its end is not allowed"

    def other_spelling(self, text: str) -> str | None:
        """Return another spelling for a text that does not fit although its JSON value is valid.

        Returns:
            The spelling; "" if it was not found within the bounds; None if the value is not valid either.
        """
        if not isinstance(self.source, (JsonSchema, PythonType)):
            return None
        try:
            self.source.parse(text)
            value = json.loads(text, parse_float=Decimal)
        except (InvalidTextError, ValueError, RecursionError):
            return None
        return respelled(value, lambda start: self._begins(start.encode()), lambda whole: self.fits(whole.encode()))

    def _begins(self, text: bytes) -> bool:
        matcher = self.bytes.matcher()
        return matcher.validate([*text]) == len(text)

    def _cut(self, text: bytes) -> list[int] | None:
        """Return a random tokenization of a text; None: at some position, no token continues it."""
        ids, at = list[int](), 0
        while at < len(text):
            ends = [
                end for end in range(at + 1, min(len(text), at + self.longest) + 1) if text[at:end] in self.by_bytes
            ]
            if not ends:
                return None
            end = self.chance.choice(ends)
            ids.append(self.chance.choice(self.by_bytes[text[at:end]]))
            at = end
        return ids

    def spoiled(self, invalid: Sequence[str]) -> Iterator[str | None]:
        """Check that masks refuse invalid texts. Yields a description of each failure, and None for each success.

        The texts are `invalid`, and random texts that fit, with one character deleted, doubled or replaced. Changed
        texts that still fit (`judged`), and texts for which `_cut` finds no tokens, are not checked.
        """
        made = list(invalid)
        for text in self.texts():
            written = text.decode()
            at = self.chance.randrange(len(written) + 1)
            other = self.chance.choice([written[at : at + 1] * 2, "", self.chance.choice('0aZ"{}[],:é ')])
            made.append(written[:at] + other + written[at + 1 :])
        for index, written in enumerate(made):
            if self.judged(written.encode()) is None:
                if index < len(invalid):
                    yield f"{written!r} was given as invalid, and fits the constraint"
                continue
            ids = self._cut(written.encode())
            if ids is None:
                continue
            matcher = self.automaton.matcher()
            taken = matcher.validate(ids) == len(ids)
            for token_id in ids if taken else []:
                matcher.advance(token_id)
            yield f"{written!r} does not fit, but the masks allow it" if taken and matcher.is_accepting else None

    def written(self, model: ModelBase, prompt: str) -> Iterator[str | None]:
        """Check texts that the model generates under the constraint.

        Yields a description of each failure, and None for each success.

        The greedy text is generated twice; both results must be equal.
        """
        texts = list[bytes]()
        for number in range(max(2, min(self.walks, 6))):
            session = model.session(seed=number, sampler=Sampler(0.0 if number < 2 else 1.0))
            session.feed(prompt)
            session.constrain(compile(self.source, model.tokenizer.vocabulary).matcher())
            start, matcher = len(session), session.matcher
            most = max(self.max_tokens, 0 if matcher is None else matcher.min_tokens_to_complete())
            while matcher is not None and not matcher.is_finished:
                session.infer(tokens_left=most - (len(session) - start))
            texts.append(b"".join(model.tokenizer.vocabulary.token_bytes[i] for i in session.tokens[start:-1]))
            yield self.judged(texts[-1])
        yield None if texts[0] == texts[1] else f"two greedy texts differ: {texts[0]!r} and {texts[1]!r}"


def _json_validator(source: Constraint[Any]) -> Callable[[str], bool] | None:
    """Return a validator by `jsonschema` if it is installed and the constraint is a JSON Schema; else None.

    Numbers are read as `Decimal`: `jsonschema` divides floats for `multipleOf`, so 0.3 would not be a multiple of 0.1.
    """
    if not isinstance(source, JsonSchema):
        return None
    try:
        from jsonschema import ValidationError
        from jsonschema.validators import extend, validator_for
    except ImportError:
        return None
    schema = json.loads(source._text, parse_float=Decimal)
    plain: Any = validator_for(schema)

    def multiple_of(_: Any, divisor: Any, value: Any, __: Any) -> Iterator[Any]:
        if isinstance(value, (int, Decimal)) and not isinstance(value, bool) and Fraction(value) % Fraction(divisor):
            yield ValidationError(f"{value} is not a multiple of {divisor}")

    def is_integer(_: Any, value: object) -> bool:
        whole = isinstance(value, Decimal) and value == value.to_integral_value()
        return whole or (isinstance(value, int) and not isinstance(value, bool))

    kinds = plain.TYPE_CHECKER.redefine("integer", is_integer)
    made = extend(plain, {"multipleOf": multiple_of}, type_checker=kinds)(schema)

    def valid(text: str) -> bool:
        try:
            return bool(made.is_valid(json.loads(text, parse_float=Decimal)))
        except ValueError:
            return False

    return valid
