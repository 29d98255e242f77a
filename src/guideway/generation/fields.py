"""The fields of a record: their tokens and probabilities, and the distribution over the options of a field."""

from __future__ import annotations

import heapq
import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from guideway import masks
from guideway.errors import ConstraintError, LimitExceededError
from guideway.jsontext.encoder import write_json
from guideway.jsontext.pointer import pointer, target, unescape
from guideway.jsontext.tokens import located
from guideway.sampling import TokenLogprobs
from guideway.sampling.report import log_softmax
from guideway.sessions import Session, feed_all

__all__ = ["Field", "OptionProbability", "distribution", "fields_of", "options_at", "scalars"]

MAX_PASSES = 4096
"""The maximum number of model passes of one distribution."""

_NEGLIGIBLE = 1e-8  # the search ends when unfinished texts have together less than this part of the probability found
_BATCH = 16
_MAX_OPTIONS = 256
_MAX_VISITED = 10_000


class OptionProbability(NamedTuple):
    """One option of a field, and its probability.

    Attributes:
        value: The option, a JSON value.
        probability: Its probability among the options.
    """

    value: Any
    probability: float


@dataclass(frozen=True)
class Field:
    """A string, number, boolean or null of a record.

    Attributes:
        value: The value, as JSON data.
        text_span: The indices of its first character in the text of the generation, and of the one after its last.
        token_span: The indices of the first token that contains a part of it, and of the one after the last such token.
            The first and the last token may also contain other text.
        logprob: The log-probability of these tokens under the model.
        mask_logprob: Their log-probability under the model with the mask, where forced tokens have the probability 1.
        distribution: The options of the field with their probabilities, if `distributions=True` was given and the
            schema lists 2 to 256 values for the field (see `options_at`); else empty.
    """

    value: Any
    text_span: tuple[int, int]
    token_span: tuple[int, int]
    logprob: float
    mask_logprob: float
    distribution: tuple[OptionProbability, ...] = ()


def scalars(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield the JSON Pointer, start and end of each string, number, boolean and null of a JSON text.

    If the text is cut, an unfinished string or word (such as "tru") at its end is left out. Of an unfinished number
    such as "1.", the longest beginning that is a number is yielded.
    """
    try:
        for token, path in located(text):
            if token.kind in ("string", "number", "word"):
                yield pointer("", *path), token.start, token.end
    except (ValueError, ConstraintError):  # the text ends here, because it was cut
        return


def fields_of(
    text: str,
    token_ends: Sequence[int],
    healed: int,
    steps: Sequence[TokenLogprobs],
    distributions: Mapping[str, tuple[OptionProbability, ...]],
) -> dict[str, Field]:
    """Return the fields of a JSON text by JSON Pointer.

    Args:
        text: The text.
        token_ends: For each token, the number of bytes up to its end.
        healed: The number of bytes of healed text, which `token_ends` counts and `text` does not contain.
        steps: The log-probabilities of the tokens.
        distributions: The distributions that were computed.
    """
    found = {}
    for place, start, end in scalars(text):
        low, high = (healed + len(text[:at].encode()) for at in (start, end))
        first, last = tokens_between(token_ends, low, high)
        some = steps[first:last]
        found[place] = Field(
            json.loads(text[start:end]),
            (start, end),
            (first, last),
            sum(one.logprob for one in some),
            sum(one.mask_logprob for one in some),
            distributions.get(place, ()),
        )
    return found


def tokens_between(token_ends: Sequence[int], low: int, high: int) -> tuple[int, int]:
    """Return the tokens that contain bytes from `low` up to `high`: the index of the first, and the one after the last.

    `token_ends`: for each token, the number of bytes up to its end, in ascending order.
    """
    first = bisect_right(token_ends, low)
    return first, max(first, bisect_left(token_ends, high) + 1)


def options_at(schema: Mapping[str, Any], place: str) -> list[Any] | None:
    """Return the values that a schema lists for one place: an enum, a constant, a boolean, null, or a union of those.

    `place` is the JSON Pointer of the place in the instance. Its schemas are found by `properties`,
    `additionalProperties`, `items`, `prefixItems`, `$ref`, `anyOf` and `oneOf`. Other keywords, such as
    `patternProperties`, are ignored, so the schema may refuse some of the values, or allow others. None: no schema is
    found, one of those found lists no values, one cannot be found, or together they list only one value or more than 256.
    """
    here: list[Any] = [schema]
    for name in [unescape(part) for part in place.split("/")[1:]]:
        here = [inner for one in here for inner in _children(schema, one, name)]
    listed: dict[str, Any] = {}
    plain = [one for schemas in here for one in _alternatives(schema, schemas)]
    for one in plain:
        values = _listed(one)
        if values is None:
            return None
        listed.update((write_json(value), value) for value in values)
    return list(listed.values()) if 1 < len(listed) <= _MAX_OPTIONS else None


def _alternatives(document: Mapping[str, Any], schema: Any) -> list[Any]:
    """Return the alternatives of a schema: its references are followed, and its unions (anyOf, oneOf) are split.

    A reference that `target` cannot resolve, such as an anchor, becomes an entry None. So do the schemas after the first
    `_MAX_VISITED`.
    """
    made: list[Any] = []
    todo, visited = [schema], 0
    while todo:
        if (visited := visited + 1) > _MAX_VISITED:
            return [*made, None]
        one = todo.pop()
        if not isinstance(one, Mapping):
            made.append(one)
        elif isinstance(reference := one.get("$ref"), str):
            todo.append(target(document, reference))
        elif isinstance(branches := one.get("anyOf", one.get("oneOf")), list):
            todo += branches
        else:
            made.append(one)
    return made


def _children(document: Mapping[str, Any], schema: Any, name: str) -> list[Any]:
    """Return the schemas of a key or an index in the values of a schema; None for those that are not known."""
    made: list[Any] = []
    for one in _alternatives(document, schema):
        if one is None:
            made.append(None)
        if not isinstance(one, Mapping):
            continue
        properties, prefix = one.get("properties"), one.get("prefixItems", [])
        if isinstance(properties, Mapping) and name in properties:
            made.append(properties[name])
        elif name.isdecimal() and one.get("type") == "array":
            made.append(prefix[int(name)] if int(name) < len(prefix) else one.get("items"))
        elif isinstance(one.get("additionalProperties"), Mapping):
            made.append(one["additionalProperties"])
    return made


def _listed(schema: Any) -> list[Any] | None:
    """Return the values of a schema with a constant, an enum or the type boolean or null; None for other schemas."""
    if not isinstance(schema, Mapping):
        return None
    if "const" in schema:
        return [schema["const"]]
    if isinstance(schema.get("enum"), list):
        return list(schema["enum"])
    kinds: dict[str, list[Any]] = {"boolean": [True, False], "null": [None]}
    return kinds.get(str(schema.get("type")))


def distribution(session: Session, head: bytes, options: Sequence[Any]) -> tuple[OptionProbability, ...]:
    """Return the probability of each option that may come next, under the model with the mask.

    All legal tokenizations of an option count. Sequences of tokens are followed in the order of their probability,
    until the remaining ones have together less than 1e-8 of the probability found.

    Args:
        session: A session with a constraint, before the first token that contains a byte of the value.
        head: The bytes that this token has before the value. Only sequences that begin with these bytes count.
        options: The options, as JSON values.

    Returns:
        An entry for each option, in their order; the probabilities sum to 1. Empty: none of the options is possible.

    Raises:
        LimitExceededError: This takes more than `MAX_PASSES` passes of the model.
    """
    texts = [head + write_json(option).encode() for option in options]
    search = _PathSearch(session, texts)
    search.run()
    total = sum(search.found)
    if total <= 0:
        return ()
    return tuple(OptionProbability(option, share / total) for option, share in zip(options, search.found, strict=True))


class _PathSearch:
    """The search of `distribution`. `found`: the probability of each of the texts, not normalised."""

    def __init__(self, session: Session, texts: list[bytes]) -> None:
        self._texts = texts
        # Whether each option is a proper prefix of another one, as 1 is of 12. Such an option is complete when the text
        # ends, or when a byte follows that does not continue a longer option.
        self._longer = [any(other != text and other.startswith(text) for other in texts) for text in texts]
        self._order = count()
        self._open: list[tuple[float, int, Session, bytes]] = [(-1.0, next(self._order), session, b"")]
        self.found = [0.0] * len(texts)

    def run(self) -> None:
        passes = 0
        while self._open and -sum(entry[0] for entry in self._open) > _NEGLIGIBLE * max(sum(self.found), 1e-300):
            some = [heapq.heappop(self._open) for _ in range(min(_BATCH, len(self._open)))]
            passes += len(some)
            if passes > MAX_PASSES:
                raise LimitExceededError(
                    f"a distribution takes more than {MAX_PASSES} passes of the model; give the field shorter options"
                )
            feed_all([entry[2] for entry in some])
            for share, _, session, done in some:
                self._follow(session, done, -share)

    def _follow(self, session: Session, done: bytes, share: float) -> None:
        table = session.tokenizer.vocabulary
        session.only_legal()
        logits = np.array(session.shared_logits(), np.float64)[: len(table)]
        legal = np.arange(len(table)) if session.mask is None else masks.ids(session.mask, len(table))
        shares = np.exp(log_softmax(logits[legal])) * share
        for token_id, probability in zip(legal.tolist(), shares.tolist(), strict=True):
            if token_id in table.eos_ids:
                for number, text in enumerate(self._texts):
                    if text == done:
                        self.found[number] += probability
                continue
            text = done + table.bytes_of([token_id])
            if (chosen := self._complete(text)) is not None:
                self.found[chosen] += probability
            elif any(one.startswith(text) for one in self._texts):
                after = session.fork()
                after.feed([token_id])
                heapq.heappush(self._open, (-probability, next(self._order), after, text))

    def _complete(self, text: bytes) -> int | None:
        """Return the index of the longest option that is a prefix of `text`.

        None: there is none, or `text` can still become another option.
        """
        best = None
        for number, one in enumerate(self._texts):
            decided = text.startswith(one) and (not self._longer[number] or len(text) > len(one))
            if decided and (best is None or len(one) > len(self._texts[best])):
                best = number
        if best is None:
            return None
        undecided = any(one.startswith(text) for number, one in enumerate(self._texts) if number != best)
        return None if undecided else best
