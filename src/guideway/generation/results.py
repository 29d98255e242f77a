"""`Generation`: one result, and how it came about; `GenerationState`: what it goes on from."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar

from guideway.errors import InvalidTokenError
from guideway.generation.scheduler import FinishReason, Timings
from guideway.sampling import TokenLogprobs
from guideway.sessions import KVCache, ModelBase

if TYPE_CHECKING:
    from guideway.constraints import Constraint
    from guideway.constraints.captures import Capture, Captures

__all__ = ["Generation", "GenerationState", "Truncation"]

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True)
class GenerationState:
    """All that a generation goes on from, as values: take it apart, change what you like, give it to `resume`.

    `prompt`, `tokens`: ids of the prompt, its opening included, and of the output, its end token left out. `source`:
    the constraint; None: free. `seed`, `row`: the random numbers, which are keyed by these and the place of a token,
    so there is nothing else to save. `memory`: what the sampler remembers, by (place, id, value). `steps`: log-
    probabilities, where they were asked for. `kv`: keys and values of prompt and tokens, where they were asked for;
    None: they run again. `healed`: the end of the prompt's text that the output's tokens begin with once more (token
    healing).
    """

    prompt: tuple[int, ...]
    tokens: tuple[int, ...]
    source: Constraint[Any] | None = None
    seed: int = 0
    row: int = 0
    memory: tuple[tuple[int, int, float], ...] = ()
    steps: tuple[TokenLogprobs, ...] = ()
    kv: KVCache | None = field(default=None, compare=False)
    healed: str = ""

    def text(self, model: ModelBase) -> str:
        """The output so far; an incomplete character at its end is left out."""
        data = model.vocabulary.bytes_of(self.tokens, special=self.source is not None)[len(self.healed.encode()) :]
        return data.decode("utf-8", "ignore")

    def edited(self, model: ModelBase, text: str) -> GenerationState:
        """The state with another output. The tokens that spell its unchanged beginning stay.

        Raises `InvalidTokenError` for a lone surrogate.
        """
        table = model.vocabulary
        try:
            wanted = (self.healed + text).encode()
        except UnicodeEncodeError as error:
            raise InvalidTokenError(f"the text cannot be encoded: {error.reason} at character {error.start}") from None
        ends = [0]
        for token_id in self.tokens:
            piece = table.bytes_of([token_id], special=self.source is not None)
            if not wanted.startswith(piece, ends[-1]):
                break
            ends.append(ends[-1] + len(piece))
        while not _is_text(wanted[ends[-1] :]):  # never begin within a character
            ends.pop()
        kept = len(ends) - 1
        ids = model.tokenizer.encode(wanted[ends[-1] :].decode())
        return replace(self, tokens=(*self.tokens[:kept], *ids), steps=self.steps[:kept])


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


class Truncation(NamedTuple):
    """Where a text was cut.

    `by`: "max_tokens", or "context" where the model has no room for more. `tokens`: behind so many. `characters`: so
    many of the text are whole; what follows them (U+FFFD) is the beginning of another.
    """

    by: Literal["max_tokens", "context"]
    tokens: int
    characters: int


@dataclass(frozen=True)
class Generation(Generic[T_co]):
    """One result, and how it came about.

    `value`: of the type that was asked for; None where `allow_truncation=True` let the text be cut. `tokens`: the ids generated,
    EOS included. `forced`: how many of them had no alternative and were not drawn. `finish_reason`: "stop" at EOS or a
    stop, "length" where `max_tokens` or the context cut the text, and `cut` says where; a constraint is never cut,
    unless `allow_truncation=True`. `stopped_by`: the stop string, which is not in the text. `steps`: a `TokenLogprobs` of each token where
    `logprobs=` was given: probabilities under the model and under the mask, the mass removed. `state`: what `resume`
    goes on from.
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
    cut: Truncation | None = None

    @property
    def captures(self) -> Captures:
        """What the names in the constraint took of the text (`Constraint.captures`), found anew at each call. Raises
        `ValueError` where there was no constraint, `InvalidTextError` (one too) where the text was cut.
        """
        if self.state.source is None:
            raise ValueError("there was no constraint, so there is nothing that could be captured")
        return self.state.source.captures(self.text)

    def token_span(self, capture: Capture, model: ModelBase) -> tuple[int, int]:
        """Which of `tokens` hold something of a capture: from the first to behind the last."""
        data = (self.state.healed + self.text).encode()
        low, high = (place + len(self.state.healed.encode()) for place in capture.byte_span)
        ends = [0]
        for token_id in self.tokens:
            name = model.vocabulary.bytes_of([token_id], special=True)  # in the text where the constraint asked for it
            ends.append(ends[-1] + (len(name) if data.startswith(name, ends[-1]) else 0))
        first = bisect_right(ends, low) - 1
        return first, max(first, bisect_left(ends, high))

    @property
    def sampled(self) -> int:
        """How many tokens were drawn."""
        return len(self.tokens) - self.forced

    @property
    def logprob(self) -> float:
        """The log-probability of the tokens under the model. Raises `ValueError` where `logprobs=` was not given."""
        if len(self.steps) < len(self.tokens):
            raise ValueError("there are no log-probabilities: give logprobs=0, or how many alternatives to keep")
        return sum(step.logprob for step in self.steps)

    @property
    def tokens_per_second(self) -> float:
        """Tokens over the seconds they took, the prompt's left out; 0 where it took no time."""
        seconds = self.timings.model + self.timings.mask + self.timings.sample
        return len(self.tokens) / seconds if seconds > 0 else 0.0
