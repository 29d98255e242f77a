"""`Generation`: a result with its tokens and timings; `GenerationState`: the input of `resume`; `Truncation`."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar

from guideway.arguments import short_repr
from guideway.constraints import JsonSchema, PythonType
from guideway.errors import InvalidTextError
from guideway.generation.fields import Field, OptionProbability, fields_of
from guideway.generation.scheduler import FinishReason, Timings
from guideway.generation.spans import Span, spans_of
from guideway.grammar.recognizer import token_names
from guideway.sampling import TokenLogprobs
from guideway.sessions import Divergence, KVCache, ModelBase

if TYPE_CHECKING:
    from guideway.constraints import Constraint
    from guideway.constraints.captures import Capture, Captures

__all__ = ["Generation", "GenerationState", "TokenLimit", "Truncation"]

T_co = TypeVar("T_co", covariant=True)

MAX_SHOWN = 80
"""The maximum number of characters of the value in the repr of a `Generation`."""


@dataclass(frozen=True, repr=False)
class GenerationState:
    """The state of a generation. `resume` continues it, also after changes by `dataclasses.replace`.

    Attributes:
        prompt: The ids of the prompt, BOS included.
        tokens: The ids of the output, without its end token.
        source: The constraint; None: free text.
        seed: The seed of the random numbers.
        row: The number of the sequence, by which sequences with the same seed get different random numbers.
        memory: The state of the Mirostat sampler after draws, as (position, id, value); empty if no draw used Mirostat.
        steps: The log-probabilities, if `logprobs` was given.
        kv_cache: The KV cache of prompt and output, if `return_kv_cache` was given; None: the model runs
            the tokens again.
        healed: The text that token healing removed from the end of the prompt. The output's tokens begin with it.
        divergence: The first token that a token budget changed; None: there is none, or it is not known. Its position
            counts the tokens of the prompt, too.
    """

    prompt: tuple[int, ...]
    tokens: tuple[int, ...]
    source: Constraint[Any] | None = None
    seed: int = 0
    row: int = 0
    memory: tuple[tuple[int, int, float], ...] = ()
    steps: tuple[TokenLogprobs, ...] = ()
    kv_cache: KVCache | None = field(default=None, compare=False)
    healed: str = ""
    divergence: Divergence | None = None

    def __repr__(self) -> str:
        parts = [f"{len(self.prompt)} tokens of prompt", f"{len(self.tokens)} tokens of output", f"seed={self.seed}"]
        return f"GenerationState({', '.join(parts)}{'' if self.source is None else f', {self.source!r}'})"

    def text(self, model: ModelBase) -> str:
        """Return the text of the output, without bytes that are not UTF-8, such as an incomplete character at the end.

        A stop string that ended the text is included.

        Args:
            model: The model that generated it.

        Returns:
            The text.
        """
        data = model.vocabulary.bytes_of(self.tokens, special=self.source is not None)[len(self.healed.encode()) :]
        return data.decode("utf-8", "ignore")

    def edited(self, model: ModelBase, text: str) -> GenerationState:
        """Return a state with another output text. Tokens at the beginning that the new text has, too, are kept.

        Args:
            model: The model that generated it.
            text: The new text of the output.

        Returns:
            The new state.

        Raises:
            InvalidTextError: The text has a lone surrogate.
        """
        table = model.vocabulary
        try:
            wanted = (self.healed + text).encode()
        except UnicodeEncodeError as error:
            raise InvalidTextError(
                f"the text cannot be encoded: {error.reason} at character {error.start}", text=text
            ) from None
        ends = [0]
        for token_id in self.tokens:
            piece = table.bytes_of([token_id], special=self.source is not None)
            if not wanted.startswith(piece, ends[-1]):
                break
            ends.append(ends[-1] + len(piece))
        while not _is_text(wanted[ends[-1] :]):  # do not cut within a character
            ends.pop()
        kept = len(ends) - 1
        ids = model.tokenizer.encode(wanted[ends[-1] :].decode())
        divergence = self.divergence
        if divergence is not None and divergence.position >= len(self.prompt) + kept:
            divergence = None
        return replace(self, tokens=(*self.tokens[:kept], *ids), steps=self.steps[:kept], divergence=divergence)


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


TokenLimit = Literal["max_tokens", "context"]


class Truncation(NamedTuple):
    """How `max_tokens` or the context changed a text: the first token that would be different without the limit.

    Attributes:
        kind: "cut": the text ends before it is complete. "completed_early": the text fits its constraint, but the
            limit removed tokens from a mask, and without the limit a different token would have been drawn with the
            same random number.
        by: "max_tokens", or "context" if the model's context is the limit.
        token_index: The index of the first such token in `Generation.tokens`; for a text that was cut, the number of
            its tokens.
        token_id: The token without the limit; None for a text that was cut.
        place: The JSON Pointer of the value in which the token would be ("" is the whole text); None if the constraint
            is neither a `JsonSchema` nor a Python type.
        characters: The number of whole characters before the token.
    """

    kind: Literal["cut", "completed_early"]
    by: TokenLimit
    token_index: int
    token_id: int | None
    place: str | None
    characters: int


@dataclass(frozen=True, repr=False)
class Generation(Generic[T_co]):
    """One result.

    Attributes:
        value: The text as a value of the output type; None if `allow_truncation=True` let the text be cut, and in the
            `generation` of an error. With `on_invalid="return"`, the JSON data if a validator rejected the value.
        text: The text, without an incomplete character at its end.
        tokens: The generated ids, EOS included; for a resumed text, those of the state, too.
        prompt_tokens: The number of tokens of the prompt.
        forced: How many of the tokens had no alternative, and were not drawn. Those of a resumed state do not count.
        finish_reason: "length" if `max_tokens` or the context cut or shortened the text; else "stop".
        timings: Where the time was spent, in seconds.
        state: The state from which `resume` continues.
        stopped_by: The stop string that ended the text; it is not in the text. None: no stop string did.
        steps: The log-probabilities of each token, if `logprobs` or `distributions=True` was given; else empty.
        truncation: How `max_tokens` or the context cut or shortened the text; None if they did not.
        incomplete_bytes: The bytes of an incomplete character at the end of the output; usually empty.
        drafted: The number of tokens that speculative decoding proposed.
        accepted: The number of proposed tokens that became part of the text.
        source_text: The text that a record was extracted from; None for other generations.
        token_ends: For each token, the number of bytes up to its end, `state.healed` included; empty if there are no
            `steps`.
        distributions: `Field.distribution` of the fields by JSON Pointer, if `distributions=True` was given.
        invalid: The error of the validator that rejected the value, with `on_invalid="return"`; else None.
        cached_tokens: How many tokens of the prompt the model did not run, because the prefix cache had them.
        token_names: The names of the special tokens by id, if the constraint gives special tokens by their ids and the
            text is whole; else empty.
    """

    value: T_co
    text: str
    tokens: tuple[int, ...]
    prompt_tokens: int
    forced: int
    finish_reason: FinishReason
    timings: Timings
    state: GenerationState
    stopped_by: str | None = None
    steps: tuple[TokenLogprobs, ...] = ()
    truncation: Truncation | None = None
    incomplete_bytes: bytes = b""
    drafted: int = 0
    accepted: int = 0
    source_text: str | None = None
    token_ends: tuple[int, ...] = ()
    distributions: Mapping[str, tuple[OptionProbability, ...]] = field(default_factory=dict)
    invalid: InvalidTextError | None = field(default=None, compare=False)
    cached_tokens: int = field(default=0, compare=False)
    token_names: Mapping[int, str] = field(default_factory=dict, compare=False)

    def __repr__(self) -> str:
        name, value = ("text", self.text) if self.value is None else ("value", self.value)
        parts = [
            f"{name}={short_repr(value, MAX_SHOWN)}",
            f"{len(self.tokens)} tokens",
            f"finish_reason={self.finish_reason!r}",
        ]
        if self.truncation is not None:
            parts.append(f"truncation={self.truncation.kind!r}")
        return f"Generation({', '.join(parts)})"

    @property
    def captures(self) -> Captures:
        """The captures of the text by their names in the constraint. They are found anew at each access.

        Raises:
            ValueError: There was no constraint.
            InvalidTextError: The text does not fit the constraint, for example because it was cut.
        """
        if self.state.source is None:
            raise ValueError("captures need a constraint, and this text was generated without one")
        with token_names(self.token_names) if self.token_names else nullcontext():
            return self.state.source.captures(self.text)

    @property
    def spans(self) -> dict[str, tuple[Span, ...]]:
        """Where the strings and numbers of a record occur in `source_text`: ranges of characters by JSON Pointer.

        A value that does not occur there has no entry. The spans are computed at each access.

        Raises:
            ValueError: `source_text` is None. Use `complete_extract` or `GenerationRequest(source_text=...)`.
        """
        if self.source_text is None:
            raise ValueError("spans need a source text: use complete_extract, or GenerationRequest(source_text=...)")
        source = self.state.source
        ways = source.quoted_sources if isinstance(source, (JsonSchema, PythonType)) else ()
        return spans_of(self.text, self.source_text, ways)

    @property
    def fields(self) -> dict[str, Field]:
        """The strings, numbers, booleans and nulls of a JSON text by JSON Pointer, with their tokens and probabilities.

        The dict is computed at each access. For a text that was cut, it has the values before the cut.

        Raises:
            ValueError: A token has no log-probability, because neither `logprobs` nor `distributions=True` was given
                (for a resumed text: from its beginning).
        """
        if len(self.token_ends) < len(self.tokens) or len(self.steps) < len(self.tokens):
            raise ValueError("fields need log-probabilities: pass logprobs=0, or distributions=True")
        return fields_of(self.text, self.token_ends, len(self.state.healed.encode()), self.steps, self.distributions)

    def token_span(self, capture: Capture, model: ModelBase) -> tuple[int, int]:
        """Return the range of tokens that contain at least one byte of a capture.

        Args:
            capture: The capture, from `captures`.
            model: The model that generated the text.

        Returns:
            The index of the first of `tokens`, and the index after the last.
        """
        data = (self.state.healed + self.text).encode()
        low, high = (place + len(self.state.healed.encode()) for place in capture.byte_span)
        ends = [0]
        for token_id in self.tokens:
            # The name of a special token is in the text if the constraint requires it.
            name = model.vocabulary.bytes_of([token_id], special=True)
            ends.append(ends[-1] + (len(name) if data.startswith(name, ends[-1]) else 0))
        first = bisect_right(ends, low) - 1
        return first, max(first, bisect_left(ends, high))

    @property
    def sampled(self) -> int:
        """The number of tokens that were drawn. All tokens of a resumed state count as drawn."""
        return len(self.tokens) - self.forced

    @property
    def logprob(self) -> float:
        """The log-probability of all tokens together under the model.

        Raises `ValueError` if a token has no log-probability, see `steps`.
        """
        if len(self.steps) < len(self.tokens):
            raise ValueError("this generation has no log-probabilities: pass logprobs=0, or the number of alternatives")
        return sum(step.logprob for step in self.steps)

    @property
    def tokens_per_second(self) -> float:
        """Generated tokens per second, without the time of the prompt; 0 if no time was measured."""
        seconds = self.timings.model + self.timings.mask + self.timings.sample
        return len(self.tokens) / seconds if seconds > 0 else 0.0
