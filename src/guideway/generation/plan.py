"""What a call asks for, checked and compiled; and its rows, generated."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, TypedDict

from guideway import sources
from guideway.compiler import compile
from guideway.errors import BudgetTooSmall, ContextOverflow, EngineError
from guideway.generation.results import Generation
from guideway.sampling import Sampler
from guideway.sessions import Model, Row, Session, decode, feed_all

if TYPE_CHECKING:
    from guideway.compiler import Automaton
    from guideway.sources import Source

__all__ = ["MAX_TOKENS", "Messages", "Options", "Plan", "run"]

Messages = list[dict[str, Any]]

MAX_TOKENS = 512
"""How many tokens a generation takes at most, unless told; never more than the context holds."""


BATCH = 16
"""How many rows go on at once: each holds its KV cache, so a list of any length needs no more memory than these."""


class Options(TypedDict, total=False):
    """What every generating function takes by name; `generate` says what each means."""

    max_tokens: int
    temperature: float | None
    top_k: int
    top_p: float
    min_p: float
    seed: int


class Plan:
    """One call: the constraint compiled, the sampler made, the limits known."""

    def __init__(self, model: Model, output: object, options: Options, *, samples: int | None = None) -> None:
        self.model = model
        self.source: Source[object] | None = None if output is None else sources.of(output)
        if unknown := sorted(options.keys() - Options.__annotations__.keys()):
            raise TypeError(f"unknown options: {', '.join(unknown)}; known are {', '.join(Options.__annotations__)}")
        self.max_tokens = operator.index(options.get("max_tokens", MAX_TOKENS))
        if self.max_tokens < 1:
            raise ValueError(f"max_tokens must be at least 1, got {self.max_tokens}")
        if samples is not None and samples < 1:
            raise ValueError(f"samples must be at least 1, got {samples}")
        temperature = options.get("temperature")
        if temperature is None:
            temperature = 0.0 if samples is None else 1.0
        self.seed = operator.index(options.get("seed", 0))
        self.sampler = Sampler(
            temperature, options.get("top_k", 0), options.get("top_p", 1.0), options.get("min_p", 0.0)
        )
        self.automaton: Automaton | None = None
        if self.source is not None:
            if not model.vocabulary.eos_ids:
                raise EngineError(f"the tokenizer of {model.name} names no token that ends a text; give it eos_ids")
            self.automaton = compile(self.source, model.vocabulary)

    def prompted(self, prompt: str | Messages) -> Session:
        """A session that was fed the prompt, and has room for an answer."""
        session = self.model.session(seed=self.seed, sampler=self.sampler)
        if isinstance(prompt, str):
            session.feed(prompt)
        else:
            session.feed(self.model.tokenizer.encode(self.model.tokenizer.render_chat(prompt)))
        room = session.context_size - len(session)
        if not room:
            raise ContextOverflow(f"the prompt fills the context of {session.context_size} tokens: no room to answer")
        if self.automaton is not None:
            needed = self.automaton.matcher().tokens_to_finish()
            if needed > min(self.max_tokens, room):
                raise BudgetTooSmall(
                    f"the shortest output needs {needed} tokens; max_tokens is {self.max_tokens}, and the context"
                    f" has room for {room} behind the prompt"
                )
        return session

    def row(self, session: Session, index: int) -> Row:
        session.row = index
        if self.automaton is not None:
            session.constrain(self.automaton.matcher())
        return Row(session, min(self.max_tokens, session.context_size - len(session)))

    def result(self, row: Row) -> Generation[Any]:
        tokens = row.tokens
        text = self.model.vocabulary.bytes_of(tokens).decode("utf-8", "replace")
        value = text if self.source is None else self.source.parse(text)
        prompt_tokens = len(row.session) - len(tokens)
        reason = row.finish_reason or "length"
        return Generation(value, text, tuple(tokens), prompt_tokens, row.forced, reason, row.timings)


def run(model: Model, prompt: Any, output: object, samples: int | None, options: Options) -> Any:
    plan = Plan(model, output, options, samples=samples)
    many = _is_many(prompt)
    sessions = [plan.prompted(one) for one in (prompt if many else [prompt])]
    results: list[list[Generation[Any]]] = [[] for _ in sessions]
    waiting = _rows(plan, sessions, samples)
    while batch := list(islice(waiting, BATCH)):
        decode([row for _, row in batch])
        for index, row in batch:
            results[index].append(plan.result(row))
    shaped: list[Any] = [group if samples is not None else group[0] for group in results]
    return shaped if many else shaped[0]


def _rows(plan: Plan, sessions: list[Session], samples: int | None) -> Iterator[tuple[int, Row]]:
    """The rows to generate, each with the number of its prompt; a session is let go after its last row."""
    for index in range(len(sessions)):
        session = sessions.pop(0)
        if samples is None:
            yield index, plan.row(session, index)
            continue
        feed_all([session])  # once for all samples: they share the prompt's cache
        for sample in range(samples):
            yield index, plan.row(session.fork(), index * samples + sample)


def _is_many(prompt: object) -> bool:
    """Whether it is a list of prompts. Raises `TypeError` for what is neither a prompt nor a list of them."""
    if isinstance(prompt, str):
        return False
    if isinstance(prompt, (list, tuple)):
        if all(isinstance(one, (str, list, tuple)) for one in prompt):
            return True
        if all(isinstance(one, dict) for one in prompt):
            return False
    raise TypeError(f"a prompt is a str or a list of messages (dicts), or a list of those; got {type(prompt).__name__}")
