"""A user's program that annotates every public type. `test_user_program.py` checks it with mypy and pyright."""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import guideway as gw
from guideway import errors, types
from guideway.compiler import CompileLimits, acompile
from guideway.errors import (
    BudgetTooSmallError,
    LimitExceededError,
    ModelNotFoundError,
    RejectedTokenError,
    TruncatedError,
)
from guideway.masks import apply, new_rows
from guideway.matcher import advance_and_fill, fill_masks, forced_tokens
from guideway.sampling import Dry, Mirostat
from guideway.search import beam_search, smc


@dataclass
class Person:
    name: str
    age: int


def load(name: str) -> gw.Model | None:
    try:
        return gw.load(name, context_size=512)
    except ModelNotFoundError as error:
        print(error)
        return None


def values(model: gw.Model) -> None:
    text: str = gw.generate(model, "Hello", max_tokens=8)
    person: Person = model.generate("Ada is 36", Person, temperature=0.7, seed=3)
    people: list[Person] = model.generate("Ada is 36", Person, n=3)
    texts: list[str] = gw.generate(model, ["a", "b"], stop="\n")
    nested: list[list[str]] = gw.generate(model, ["a", "b"], gw.Regex("[ab]+"), n=2)
    cut: Person | None = gw.generate(model, "Ada", Person, allow_truncation=True)
    kept: list[Person | Exception | None] = gw.generate(model, ["a", "b"], Person, return_exceptions=True)
    record: Person = gw.extract(model, "Ada is 36", Person)
    records: list[Person] = model.extract(["Ada is 36"], Person)
    print(text, person, people, texts, nested, cut, kept, record, records)


def details(model: gw.Model) -> None:
    result: types.Generation[Person] = gw.complete(model, "Ada", Person, logprobs=2, return_kv_cache=True)
    results: list[types.Generation[str]] = model.complete(["a", "b"])
    samples: list[types.Generation[str | None]] = model.complete("a", gw.Regex("a"), n=2, allow_truncation=True)
    step: types.TokenLogprobs = result.steps[0]
    other: types.TokenAlternative = step.alternatives[0]
    timings: types.Timings = result.timings
    reason: types.FinishReason = result.finish_reason
    truncation: types.Truncation | None = result.truncation
    captures: types.Captures = result.captures
    state: types.GenerationState = result.state
    kv_cache: types.KVCache | None = state.kv_cache
    again = gw.resume(model, state.edited(model, "{"), max_tokens=40)
    view: types.View = types.View(model, result)
    scores: list[types.Score] = gw.score(model, "yes or no?", ["yes", "no"], end=True)
    print(results, samples, other.probability, timings, reason, truncation, captures, kv_cache, again, view, scores)


def streams(model: gw.Model) -> None:
    chunks: types.Stream[str] = gw.stream(model, "a")
    several: types.Stream[types.TextChunk] = model.stream(["a", "b"])
    parts: types.Stream[types.PartialValue[Person]] = gw.stream_values(model, "a", Person)
    extracted: Iterator[types.PartialValue[Person]] = model.stream_extract("Ada is 36", Person)
    last: Person | None = [*extracted][-1].value
    print("".join(chunks), [one.text for one in several], [one.fields for one in parts], last)


async def concurrent(model: gw.Model) -> None:
    person: Person = await gw.agenerate(model, "Ada", Person)
    text: str = await model.agenerate("a")
    result: types.Generation[Person] = await gw.acomplete(model, "Ada", Person)
    records: list[Person] = await gw.aextract(model, ["Ada is 36"], Person)
    chunks: AsyncIterator[str] = gw.astream(model, "a")
    parts: AsyncIterator[types.PartialValue[Person]] = model.astream_values("a", Person)
    automaton: gw.Automaton = await acompile(Person, model, limits=CompileLimits(max_states=100_000))
    print(person, text, result, records, [c async for c in chunks], [p async for p in parts], automaton)


def lower_level(model: gw.Model, constraint: gw.Constraint[str]) -> None:
    tokenizer: gw.Tokenizer = model.tokenizer
    vocabulary: gw.Vocabulary = tokenizer.vocabulary
    sampler = gw.Sampler(temperature=0.8, top_p=0.9, dry=Dry(), mirostat=None)
    adaptive: types.Sampler = gw.Sampler(temperature=1.0, mirostat=Mirostat())
    opened: types.Session = model.session(seed=1, sampler=sampler)
    with opened as session:
        ids: list[int] = session.feed("Hello")
        change: types.Change = session.set_text("Hello, ")
        session.constrain(constraint)
        made: list[int] = session.complete(max_tokens=20)
        divergence: types.Divergence | None = session.divergence
        counts: types.Counts = session.counts
        start: types.KVCache = session.kv_cache()
        logits: NDArray[np.float32] = session.logits()
    matcher: gw.Matcher = gw.compile(constraint, vocabulary).matcher()
    needed: int = matcher.min_tokens_to_complete()
    rows = new_rows(1, len(vocabulary))
    fill_masks([matcher], rows)
    any_left: bool = apply(logits, rows[0])
    fit: types.Fit = matcher.fill_masks_within(rows[0], rows[0].copy(), needed)
    try:
        advance_and_fill([matcher], forced_tokens(matcher, tokenizer), rows)
    except (RejectedTokenError, LimitExceededError) as error:
        print(error)
    print(ids, change, made, divergence, counts, start.nbytes, needed, any_left, fit, adaptive)


def conversation(model: gw.Model) -> None:
    chat: gw.Chat = model.chat(system="Be brief.", tools=[])
    person: Person = chat.ask("Who was Ada Lovelace?", Person)
    stream: types.ChatStream[str] = chat.fork().stream("And then?")
    print(person, "".join(stream), stream.value, chat.messages, chat.counts.run)


def several_models(pool: gw.Pool) -> None:
    with pool.lease("small", timeout=5.0) as model:
        number: int = model.generate("A number:", int)
    with pool.session("small", seed=1) as session:
        print(number, session.text, pool.status()[0].state)


def search(model: gw.Model) -> None:
    best: list[types.Generation[Person]] = beam_search(model, "Ada", Person, width=2)
    posterior: types.Posterior = smc(model, "Ada", Person, particles=4)
    weights: NDArray[np.float64] = posterior.weights
    probabilities: Mapping[str, float] = posterior.probabilities()
    print(best, weights, probabilities)


def tools(model: gw.Model) -> None:
    calls = gw.ToolCalls([gw.Tool("weather", {"type": "object"})], family="hermes")
    requests: list[gw.GenerationRequest] = [gw.GenerationRequest("a", calls, top_k=3, temperature=1.0)]
    try:
        reply: types.Reply = gw.generate(model, "a", calls)
        found: list[types.ToolCall] = list(reply.calls)
        print(found, gw.generate(model, requests))
    except (BudgetTooSmallError, TruncatedError) as error:
        print(error)


def constraints(vocabulary: types.Vocabulary) -> list[gw.Constraint[object]]:
    of_schema: gw.JsonSchema = gw.JsonSchema({"type": "integer"})
    of_type: types.PythonType[Person] = types.PythonType(Person)
    grammars: tuple[gw.Lark, gw.Gbnf, gw.Ebnf] = (gw.Lark('start: "a"'), gw.Gbnf('root ::= "a"'), gw.Ebnf('a ::= "b"'))
    choice: gw.Choice = gw.Choice(["yes", "no"])
    date: gw.Format = gw.Format("date")
    tags: gw.Tags = gw.Tags([gw.Tag("<b>", choice, "</b>")])
    thought: gw.Reasoning[str] = gw.Reasoning(choice, end="</think>")
    automaton: types.Automaton = gw.compile(of_schema, vocabulary)
    matcher: types.Matcher = automaton.matcher()
    print(gw.__version__, matcher.position)
    return [of_schema, of_type, *grammars, choice, date, tags, thought]


def statistics(model: types.Model) -> None:
    automata: types.AutomatonCache = gw.cache
    prefixes: types.PrefixCache = model.prefixes
    held: types.PrefixStatistics = prefixes.statistics
    print(automata.hits, held.hits)


def served(client: object) -> gw.Constraint[Any]:
    model = gw.remote(client, "name")
    print(gw.plan(model, int).guarantee, gw.plan("openai", Person).to_json())
    return gw.from_wire(gw.to_wire(Person), types=[Person])


def prompts(model: types.Model, options: types.Options) -> None:
    messages: types.Messages = [{"role": "user", "content": "Hello"}]
    prompt: types.Prompt = messages
    several: types.Prompts = ["a", "b"]
    batch: types.Batch = model.tokenizer.encode_batch(["a", "bc"])
    result: types.Generation[str] = gw.complete(model, prompt, gw.Regex("(?P<x>a)"), **options)
    spans: tuple[types.Capture, ...] = result.captures.spans
    print(gw.generate(model, several), batch.ids.shape, spans)
    parts: dict[str, types.Field] = gw.complete(model, prompt, bool, distributions=True).fields
    shares: tuple[types.OptionProbability, ...] = parts[""].distribution
    attempt: types.InvalidAttempt | None = None
    print(shares, attempt)
    request = gw.GenerationRequest("Ada", gw.Regex("a"), source_text="Ada")
    places: dict[str, tuple[types.Span, ...]] = gw.complete(model, request).spans
    print(places, gw.Verbatim(ignore_case=True).format)


def sharpened(ids: object, logits: NDArray[np.float64]) -> NDArray[np.float64]:
    return logits * 2


def engine(runner: types.StepEngine, several: types.MultiStepEngine) -> None:
    stage: types.Stage = sharpened
    logits: types.EngineLogits
    caches: list[types.Cache]
    logits, [*caches] = runner.forward([[1, 2]], [None])
    row: types.Logits = np.zeros(runner.vocab_size, np.float32)
    print(stage, logits, caches, row, several.supports_rollback)


def without_slips(schema: dict[str, object]) -> gw.JsonSchema | None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", gw.SchemaWarning)
        try:
            return gw.JsonSchema(schema, max_integer_digits=6)
        except gw.SchemaWarning:
            return None


def exit_code(error: gw.GuidewayError) -> int:
    wrong_input: tuple[type[gw.GuidewayError], ...] = (
        *(errors.ConstraintError, errors.InvalidConstraintError, errors.UnsupportedError, errors.UnsatisfiableError),
        *(errors.InvalidTextError, errors.InvalidTokenError, errors.InvalidFileError, errors.ContextOverflowError),
        errors.InvalidRequestError,
        *(errors.EmptySequenceError, errors.ChatTemplateError, errors.SnapshotError, errors.CacheError),
    )
    wrong_setup: tuple[type[gw.GuidewayError], ...] = (
        *(errors.MissingDependencyError, errors.UnsupportedTokenizerError, errors.ProcessorError),
        *(errors.ProcessorReuseError, errors.EngineError, errors.KVCacheFullError, errors.InvalidLogitsError),
        *(errors.ModelTooLargeError, errors.LeaseTimeoutError),
        *(errors.NoAllowedTokenError, errors.AuthenticationError),
    )
    later = (errors.RateLimitError, errors.OverloadedError, errors.ConnectionLostError)
    endpoint: tuple[type[errors.RemoteError], ...] = (
        errors.RemoteError,
        errors.RemoteNotFoundError,
        *later,
        errors.RefusalError,
    )
    if isinstance(error, endpoint):
        return 4
    return 2 if isinstance(error, wrong_input) else 3 if isinstance(error, wrong_setup) else 1
