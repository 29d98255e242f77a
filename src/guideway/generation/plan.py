"""Plans of generation calls: checked requests, compiled constraints, and the rows to generate."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

from guideway import background, constraints
from guideway.arguments import integer, short_repr
from guideway.compiler import compile
from guideway.constraints import JsonSchema, PythonType, Regex
from guideway.constraints.base import Literal
from guideway.errors import (
    BudgetTooSmallError,
    ContextOverflowError,
    EmptySequenceError,
    EngineError,
    GuidewayError,
    InvalidTextError,
    InvalidTokenError,
    TruncatedError,
    UnsupportedTokenizerError,
)
from guideway.generation.chat_prompts import prompt_text, with_family
from guideway.generation.deferral import WorkDeferred, bound_work
from guideway.generation.fields import OptionProbability, distribution, options_at, scalars, tokens_between
from guideway.generation.options import (
    BATCH,
    CALL_ONLY,
    VERBATIM_NUM_BEAMS,
    GenerationSettings,
    Options,
    Prompt,
    check_model,
    check_names,
    of_request,
)
from guideway.generation.results import Generation, GenerationState, TokenLimit, Truncation
from guideway.generation.retries import InvalidAttempt, final_error, retried, token_ends
from guideway.generation.scheduler import Row
from guideway.generation.speculation import AssistantDrafter, Drafter, PromptLookup, check_assistant
from guideway.grammar.recognizer import TokenNameError, token_names
from guideway.jsontext.decoder import loads
from guideway.jsontext.pointer import pointer_at
from guideway.sessions import LOGITS_BYTES, ModelBase, Session, feed_all
from guideway.tokenizers import TextStream, Vocabulary

if TYPE_CHECKING:
    from typing_extensions import TypeIs, Unpack

    from guideway.compiler import Automaton
    from guideway.constraints import Constraint
    from guideway.matcher import Matcher

__all__ = ["ANY_TEXT", "GenerationRequest", "Job", "Plan", "is_many"]

T = TypeVar("T")

ANY_TEXT = Regex("(?s:.)*")
_OF_THE_CALL: object = object()
_PROMPTS = "prompt must be a str, a list of messages (dict), a list of token ids or a GenerationRequest"


class GenerationRequest:
    """A prompt with its own output or options, mostly for use in a list of prompts.

        gw.generate(model, [gw.GenerationRequest("a", int, seed=3), "b"], Person)

    Options that the request does not have are those of the call. If the request has a sampling option (`sampler`,
    `temperature`, `top_k`, `top_p`, `min_p`), no sampling option of the call applies to it. A request with its own
    `seed` gives the same result at any place of the list.

    Args:
        prompt: A str, a list of messages or a list of token ids.
        output: A type or a constraint; None: free text. By default the output of the call.
        source_text: The text that the output is extracted from, for `Generation.spans`.
        **options: Generation options, without `batch_size`, `progress` and `return_exceptions`.

    Raises:
        TypeError: The prompt is of another type, or an option is unknown.
        ValueError: An option belongs to the whole call.
    """

    def __init__(
        self,
        prompt: Prompt,
        output: object = _OF_THE_CALL,
        *,
        source_text: str | None = None,
        **options: Unpack[Options],
    ) -> None:
        check_names(options)
        if not isinstance(prompt, (str, list, tuple)):
            raise TypeError(
                f"prompt must be a str, a list of messages (dict) or a list of token ids, got {short_repr(prompt)}"
            )
        if shared := [name for name in CALL_ONLY if name in options]:
            raise ValueError(f"{shared[0]} is an option of the whole call, not of one request")
        self.prompt = prompt
        self.output = output
        self.source_text = source_text
        self.options = options
        self._error: Exception | None = None

    @classmethod
    def _failed(cls, error: Exception) -> GenerationRequest:
        """Return a request that could not be made. A call raises the error as that of its prompt."""
        request = cls("")
        request._error = error
        return request

    def _check(self) -> None:
        """Raise the error of a request that could not be made."""
        if self._error is not None:
            raise self._error

    def __repr__(self) -> str:
        return f"GenerationRequest({self.prompt!r}, …)"


class Plan:
    """What the generation after one prompt needs: the compiled constraint, the sampler and the limits.

    Args:
        model: The model.
        output: A type or a constraint; None: free text.
        options: The generation options, those of a request included.
        sampled: Whether `n` is given, so that the default temperature is 1.
        own: The options that a `GenerationRequest` sets itself; None: there is no request.
        source_text: As in `GenerationRequest`.
    """

    def __init__(
        self,
        model: ModelBase,
        output: object,
        options: Options,
        *,
        sampled: bool = False,
        own: Options | None = None,
        source_text: str | None = None,
    ) -> None:
        self.source_text = source_text
        check_model(model)
        self.model = model
        self.source: Constraint[Any] | None = None
        if output is not None:
            self.source = with_family(constraints.of(output), model.tokenizer)
        self.settings = GenerationSettings.of(options, constrained=output is not None, sampled=sampled, own=own or {})
        _check_ids(self.settings, len(model.vocabulary))
        self._check_drafts()
        self.automaton: Automaton | None = None
        self.limits = self.settings.limits
        if self.settings.distributions and not isinstance(self.source, (JsonSchema, PythonType)):
            raise ValueError(f"distributions=True needs a type or a JsonSchema, got {short_repr(self.source)}")
        if self.source is None:
            # With free text, the only constraint is that the output begins with the healed text. It need not be
            # completed.
            self.limits = replace(self.limits, complete=False)
        else:
            if not model.vocabulary.eos_ids:
                raise UnsupportedTokenizerError(
                    f"the tokenizer of {model.name} has no EOS token; pass Tokenizer.of(..., eos_ids=...)"
                )
            self.automaton = compile(self.source, model.vocabulary)
            if options.get("verbatim_num_beams") is None and _quotes(self.source):
                self.limits = replace(self.limits, verbatim_num_beams=VERBATIM_NUM_BEAMS)

    @classmethod
    def of(
        cls, model: ModelBase, request: GenerationRequest, output: object, options: Options, *, sampled: bool = False
    ) -> Plan:
        """Return the plan of a request.

        Args:
            model: The model.
            request: The request.
            output: The output of the call. It applies if the request has no output.
            options: The options of the call. `of_request` combines them with those of the request.
            sampled: As in `Plan`.
        """
        request._check()
        return cls(
            model,
            output if request.output is _OF_THE_CALL else request.output,
            of_request(options, request.options),
            sampled=sampled,
            own=request.options,
            source_text=request.source_text,
        )

    def prompted(self, prompt: Prompt, session: Session | None = None) -> Prompted:
        """Feed a prompt to a session, and check that the context has room for an output.

        Args:
            prompt: The prompt.
            session: A session that contains the prompt already; `prompt` is then ignored. None: make one.

        Raises:
            TypeError: The prompt is a list that is neither of ids nor of messages.
            ChatTemplateError: As in `Tokenizer.render_chat`, for messages.
            EmptySequenceError: The prompt is empty, and the tokenizer has no BOS token.
            InvalidTokenError: An id is outside the vocabulary, or the text cannot be encoded.
            ContextOverflowError: The prompt fills the context, or is longer.
            BudgetTooSmallError: The shortest output needs more than `max_tokens`, or more than the context has room
                for, and `allow_truncation` is not set.
            ValueError: `session` is given, and the options have `kv_cache` or `kv_hook`.
        """
        # Stored logits are used after rewinding, which is rare without banned strings.
        kept = LOGITS_BYTES if self.settings.limits.bad_words else 0
        settings = self.settings
        if session is not None:
            if settings.kv_cache is not None or settings.kv_hook is not None:
                raise ValueError("kv_cache= and kv_hook= do not apply here: the session of the chat has its KV cache")
            session.seed, session.sampler = settings.seed, settings.sampler
        else:
            session = self.model.session(
                seed=settings.seed,
                sampler=settings.sampler,
                kv_cache=settings.kv_cache,
                kv_hook=settings.kv_hook,
                logits_bytes=kept,
            )
            self._feed(session, prompt)
        if not len(session):
            raise EmptySequenceError("the prompt is empty and the tokenizer has no BOS token, so there are no logits")
        healed = _healed(session) if self.settings.token_healing else ""
        automaton = self.behind(healed)
        room = session.room
        if not room:
            raise ContextOverflowError(
                f"the prompt fills the context of {session.context_size} tokens and leaves no room for output"
            )
        if automaton is not None and self.limits.complete:
            needed, most = _least_tokens(automaton), self.settings.limits.max_tokens
            if needed > min(most, room):
                raise BudgetTooSmallError(
                    f"the shortest output needs {needed} tokens; max_tokens is {most}, and the context has room for {room}"
                    " after the prompt"
                )
        return Prompted(session, automaton, healed)

    def _feed(self, session: Session, prompt: Prompt) -> None:
        if isinstance(prompt, str) or _is_ids(prompt):
            session.feed(prompt)
        elif not all(isinstance(one, Mapping) for one in prompt):
            raise TypeError(f"{_PROMPTS}; got a list that is neither of ids nor of messages")
        else:
            text = prompt_text(self.model.tokenizer, prompt, self.source, self.settings.template_options)
            session.feed(self.model.tokenizer.encode(text))

    def behind(self, healed: str) -> Automaton | None:
        """Return the automaton of `healed` followed by the output.

        None: `healed` is empty, and the output is free text.

        `healed`: the text that token healing removed from the prompt.
        """
        if not healed:
            return self.automaton
        return compile(Literal(healed) + (self.source or ANY_TEXT), self.model.vocabulary)

    def row(self, prompted: Prompted, index: int, matcher: Matcher | None = None) -> Row:
        """Return the row that generates after a prompt.

        `index`: the number that selects its random numbers. `matcher`: a new matcher of `prompted.automaton`; None: it
        is made here.

        Raises:
            ContextOverflowError: The context has no room for `min_tokens`.
        """
        session = prompted.session
        session.row = index
        if prompted.automaton is not None:
            session.constrain(prompted.automaton.matcher() if matcher is None else matcher)
        limits = self.limits
        room = session.room
        if limits.min_tokens > room:
            raise ContextOverflowError(f"min_tokens is {limits.min_tokens}, and the context has room for {room}")
        if limits.max_tokens > room:
            limits = replace(limits, max_tokens=room)
        row = Row(session, limits, healed=prompted.healed, free_after=self.source is None)
        row.drafter = self._drafter()
        return row

    def _drafter(self) -> Drafter | None:
        settings = self.settings
        if settings.assistant_model is not None:
            return AssistantDrafter(settings.assistant_model, settings.num_assistant_tokens)
        return PromptLookup(settings.prompt_lookup_num_tokens) if settings.prompt_lookup_num_tokens else None

    def _check_drafts(self) -> None:
        """Raise an error if speculative decoding is requested and the model or the assistant cannot do it."""
        settings, engine = self.settings, self.model.engine
        if settings.assistant_model is not None:
            check_assistant(self.model, settings.assistant_model)
        elif not settings.prompt_lookup_num_tokens:
            return
        if not engine.supports_rollback or not hasattr(engine, "forward_all"):
            raise EngineError(
                f"speculative decoding needs an engine with rollback and forward_all; {self.model.name} has none"
            )

    def result(self, row: Row) -> Generation[Any]:
        """Return the result of a finished row. Raises the error that ended it, `TruncatedError` or `InvalidTextError`.

        If a validator of a Python type rejects a value and `retries` allows it, the value is excluded, and the text is
        generated again from the beginning of this value.
        """
        rejected: list[InvalidAttempt] = []
        while True:
            found, error = self._checked(row)
            if error is None:
                return found
            again = retried(self, row, found, error, rejected) if len(rejected) < self.settings.retries else None
            if again is None:
                return self._invalid(found, error, rejected)
            row = again

    def _invalid(
        self, found: Generation[Any], error: InvalidTextError, rejected: list[InvalidAttempt]
    ) -> Generation[Any]:
        """Raise the error of a text whose value was rejected.

        If `on_invalid="return"` and the constraint is a Python type, return the result with the error instead; its
        value is the JSON data.
        """
        made = final_error(found, error, rejected)
        if not self.settings.return_invalid or not isinstance(self.source, PythonType):
            raise made from error.__cause__
        return replace(found, value=loads(found.text), invalid=made)

    def _checked(self, row: Row) -> tuple[Generation[Any], InvalidTextError | None]:
        """Return the result of a finished row, and the error of a validator that rejects its value, or None.

        Raises the error that ended the row, and `TruncatedError`.
        """
        if row.error is not None:
            raise row.error
        tokens, session = row.tokens, row.session
        stream = TextStream()
        text = stream.push(row.watch.data)
        truncation = self._truncation(row, tokens)
        value: Any = text
        error: InvalidTextError | None = None
        names: Mapping[int, str] = {}
        if self.source is not None:
            whole = row.finish_reason == "stop"
            try:
                try:
                    value = _value(self.source, text) if whole and not self._refuses(row, truncation) else None
                except TokenNameError:
                    names = _special_names(session.tokenizer.vocabulary)
                    with token_names(names):
                        value = _value(self.source, text)
            except InvalidTextError as problem:
                value, error = None, problem
        ends = token_ends(row, tokens, self.model) if row.steps else ()
        prompt_tokens = len(session) - len(tokens)
        found = Generation(
            value,
            text,
            tuple(tokens),
            prompt_tokens,
            row.forced,
            "stop" if truncation is None else "length",
            row.timings,
            self.state(row, tokens),
            row.watch.stopped_by,
            tuple(row.steps),
            truncation,
            stream.pending,
            row.drafted,
            row.accepted,
            self.source_text,
            ends,
            self._distributions(row, tokens, text, ends) if self.settings.distributions and error is None else {},
            cached_tokens=min(session.counts.cached, prompt_tokens),
            token_names=names,
        )
        if truncation is not None and self._refuses(row, truncation):
            raise TruncatedError(_truncated(truncation, self.settings.limits.max_tokens, session, row.begun), found)
        return found, error

    def _distributions(
        self, row: Row, tokens: list[int], text: str, ends: tuple[int, ...]
    ) -> dict[str, tuple[OptionProbability, ...]]:
        """Return the distributions of the fields whose options the schema lists."""
        made = {}
        data, healed = (row.watch.healed + text).encode(), len(row.watch.healed.encode())
        schema = self.source.schema if isinstance(self.source, (JsonSchema, PythonType)) else {}
        for place, start, _ in scalars(text):
            options = options_at(schema, place) if isinstance(schema, Mapping) else None
            if options is None:
                continue
            low = healed + len(text[:start].encode())
            first, _ = tokens_between(ends, low, low)
            session = row.session.fork()
            session.rewind(len(tokens) - first)
            made[place] = distribution(session, data[ends[first - 1] if first else 0 : low], options)
        return made

    def _refuses(self, row: Row, truncation: Truncation | None) -> bool:
        """Return whether a truncation raises `TruncatedError`. Without `on_truncation="raise"`, none does.

        A divergence that the resumed state already had does not, either.
        """
        if truncation is None or not self.settings.raise_on_truncation:
            return False
        return truncation.kind == "cut" or row.divergence is not row.earlier

    def _truncation(self, row: Row, tokens: list[int]) -> Truncation | None:
        """Return how the limit of tokens changed the text of a finished row; None: it did not."""
        session, found = row.session, row.divergence
        is_halted = row.limits.halt_on_divergence and found is not row.earlier
        is_cut = row.finish_reason != "stop" and not (is_halted and found is not None)
        if found is None and not is_cut:
            return None
        start = len(session) - len(tokens)
        room = session.room + len(tokens)
        by: TokenLimit = "context" if row.limits.max_tokens >= room else "max_tokens"
        table = session.tokenizer.vocabulary
        following: str | None
        if found is None or is_cut:
            index, token_id, data, following = len(tokens), None, row.watch.data, None
        else:
            index, token_id = found.position - start, found.token_id
            skipped = len(row.watch.healed.encode())
            data = table.bytes_of(tokens[:index], special=self.source is not None)[skipped:]
            following = table.bytes_of([token_id]).decode("utf-8", "replace")
        text = TextStream().push(data)
        is_json = isinstance(self.source, (JsonSchema, PythonType))
        place = pointer_at(text, following) if is_json else None
        return Truncation("cut" if is_cut else "completed_early", by, index, token_id, place, len(text))

    def state(self, row: Row, tokens: list[int]) -> GenerationState:
        """Return the state of a row, without its end token. `tokens`: the row's tokens."""
        session = row.session
        start = len(session) - len(tokens)
        if tokens and tokens[-1] in session.tokenizer.eos_ids:
            tokens = tokens[:-1]
        changed = row.earlier or row.divergence  # the first one, also if the row ended before a later one
        return GenerationState(
            tuple(session.tokens[:start]),
            tuple(tokens),
            self.source,
            session.seed,
            session.row,
            tuple(one for one in session.memory if one[0] < start + len(tokens)),
            tuple(row.steps[: len(tokens)]),
            session.kv_cache() if self.settings.return_kv_cache else None,
            row.watch.healed,
            changed if changed is not None and changed.position < start + len(tokens) else None,
        )


def _truncated(truncation: Truncation, most: int, session: Session, begun: int) -> str:
    """Return the message of `TruncatedError`. `begun`: the number of tokens with which the text was resumed."""
    limit = f"max_tokens={most}" + (f" (after {begun} tokens of the state)" if begun else "")
    if truncation.by == "context":
        limit = f"the context of {session.context_size} tokens"
    place = "" if truncation.place is None else f", in the value at {truncation.place!r}"
    after = f"after {truncation.token_index} tokens and {truncation.characters} characters{place}"
    if truncation.token_id is None:
        return f"{limit} cuts the text {after}"
    token = session.tokenizer.vocabulary.bytes_of([truncation.token_id], special=True)
    return f"{limit} shortens the text {after}, where the next token would be {token!r} (id {truncation.token_id})"


def _quotes(source: Constraint[Any]) -> bool:
    """Return whether a constraint has a JSON Schema with verbatim strings whose source text is known."""
    return isinstance(source, (JsonSchema, PythonType)) and source.quoted is not None and source.is_verbatim


def _special_names(vocabulary: Vocabulary) -> dict[int, str]:
    """Return the names of the special tokens by id."""
    ids = (*vocabulary.special_ids, *vocabulary.eos_ids)
    return {one: vocabulary.bytes_of([one], special=True).decode("utf-8", "replace") for one in ids}


def _value(source: Constraint[Any], text: str) -> Any:
    """Return the value of a text.

    An exception of the type's validators becomes an `InvalidTextError`, unless it is a `GuidewayError`.
    """
    try:
        return source.read(text)
    except GuidewayError:
        raise
    except Exception as error:
        raise InvalidTextError(
            f"the type's own validation failed: {type(error).__name__}: {error}", text=text
        ) from error


@dataclass(frozen=True)
class Prompted:
    """A session after its prompt.

    Attributes:
        session: The session.
        automaton: As `Plan.behind` returns it.
        healed: The text that token healing removed from the end of the prompt.
    """

    session: Session
    automaton: Automaton | None
    healed: str


# The maximum kernel work, in units of about 10 ns, that `_least_tokens` does before it waits for a slot (`background`).
_QUICK_WORK = 100_000
_MOST_DELAYS = 3  # after this number of attempts in another thread, a matcher is made without a limit


def _within(work: int, function: Callable[[], T]) -> T | None:
    """Return the result of a function; None: it needs more than `work` units of kernel work."""
    before = bound_work(work)
    try:
        return function()
    except WorkDeferred:
        return None
    finally:
        bound_work(before)


_LEAST: WeakKeyDictionary[Automaton, int] = WeakKeyDictionary()


def _least_tokens(automaton: Automaton) -> int:
    """Return the result of `Matcher.min_tokens_to_complete` at the beginning of a text, with the same errors.

    The result is stored, because a background thread that calls the kernel may have to wait for the round of a
    generation loop.
    """

    def least() -> int:
        return automaton.matcher().min_tokens_to_complete()

    if (known := _LEAST.get(automaton)) is not None:
        return known
    if (found := _within(_QUICK_WORK, least)) is None:
        with background.Turn():
            found = background.call(least)
    _LEAST[automaton] = found
    return found


def _healed(session: Session) -> str:
    """Remove the prompt's last token, and further ones until whole characters are removed. Returns the removed text.

    The first token and the BOS ids stay, and so do tokens without text (special tokens) and the tokens before them. If
    the other tokens do not end with whole characters, or the session cannot rewind, nothing is removed.
    """
    table = session.tokenizer.vocabulary
    removed: list[int] = []
    while session.max_rewind and len(session) > 1 and table.bytes_of(session.tokens[-1:]):
        removed = [*session.rewind(1), *removed]
        try:
            return table.bytes_of(removed).decode()
        except UnicodeDecodeError:
            continue
    session.feed(removed)
    return ""


def _check_ids(settings: GenerationSettings, size: int) -> None:
    """Raise `InvalidTokenError` for ids outside the vocabulary, which would have no effect."""
    for name, ids in (
        ("stop_token_ids", settings.limits.stop_token_ids),
        ("logit_bias", (token_id for token_id, _ in settings.sampler.biases)),
    ):
        if (wrong := next((one for one in ids if not 0 <= one < size), None)) is not None:
            raise InvalidTokenError(f"{name} has the token id {wrong}, and the vocabulary has {size} tokens")


class Job:
    """A call of a generating function: its prompts, each with a plan, and their results.

    `rows` yields the rows to run, `finish` stores the result of one, and `shaped` returns all results in the shape of
    the prompts. For a list of prompts, the message of a `GuidewayError`, `TypeError` or `ValueError` names the prompt.
    With `return_exceptions`, the exception replaces the result, and the other prompts continue.

    Args:
        model: The model.
        prompt: A prompt or a list of prompts, as in `generate`.
        output: As in `generate`.
        n: As in `generate`.
        options: The generation options.
        session: A session that contains the only prompt already; `prompt` is then ignored. None: the job makes
            sessions.
    """

    def __init__(
        self,
        model: ModelBase,
        prompt: Any,
        output: object,
        n: int | None,
        options: Options,
        *,
        session: Session | None = None,
    ) -> None:
        check_names(options)
        self.model = model
        self.n = None if n is None else integer("n", n, 1)
        self.many = is_many(prompt)
        self.width = integer("batch_size", options.get("batch_size", BATCH), 1)
        self.progress = bool(options.get("progress", False))
        self._keep_errors = bool(options.get("return_exceptions", False))
        # The place of an ended row in a batch is used again only when no session has its cache. Also, the traceback of
        # an error refers to the rows that ran with it, and a caller may store the error for long.
        self._closes_sessions = session is None
        prompts = prompt if self.many else [prompt]
        self.positions: Sequence[int] = range(len(prompts))
        """For each prompt, its index. It determines the random numbers of a prompt whose request has no `seed`.

        A caller that runs a part of a longer list sets the indices in that list.
        """
        self.place: dict[Row, tuple[int, int]] = {}  # of rows without a result: the indices of prompt and sample
        self.results: list[list[Generation[Any] | Exception | None]] = [[None] * (self.n or 1) for _ in prompts]
        shared: dict[str, Plan] = {}
        self.plans: list[Plan | None] = []  # None: it could not be made, and the exception is in the results
        self._prompted: list[Prompted | None] = []  # of the prompts without rows so far; None: it failed
        for number, one in enumerate(prompts):
            plan = prompted = None
            try:
                plan = _plan_of(model, one, output, options, n is not None, shared)
                prompted = plan.prompted(one.prompt if isinstance(one, GenerationRequest) else one, session)
            except Exception as error:
                self._failed(error, number)
            self.plans.append(plan)
            self._prompted.append(prompted)

    @property
    def count(self) -> int:
        """The number of results."""
        return len(self.plans) * (self.n or 1)

    @property
    def prepared(self) -> list[tuple[Plan, Session]]:
        """The plan and the session of each prompt that has not failed and whose rows have not been started."""
        plans = self.plans[len(self.plans) - len(self._prompted) :]
        return [
            (plan, one.session)
            for plan, one in zip(plans, self._prompted, strict=True)
            if plan is not None and one is not None
        ]

    @property
    def sessions(self) -> list[Session]:
        """The sessions of the prompts in `prepared`."""
        return [session for _, session in self.prepared]

    def rows(self) -> Iterator[Row]:
        """Return an iterator over the rows to generate. Each row is made when it is requested.

        Call it once: as soon as the rows of a prompt begin, its session is removed from `prepared`.
        """
        return (one for one in self.starts(None) if isinstance(one, Row))

    def starts(self, work: int | None) -> Generator[Row | Automaton, None, None]:
        """Yield the rows to generate, as `rows` does, and the automata whose matchers take too much work.

        `work`: the maximum kernel work for the matcher of a row; None: no maximum. If a matcher needs more, because the
        automaton must be compiled again, the automaton is yielded instead of the row. The caller must make a matcher of
        it in another thread before it takes the next item. If that fails, it must throw the error into the generator.
        """
        for number, plan in enumerate(self.plans):
            prompted = self._prompted.pop(0)
            if plan is None or prompted is None:
                continue
            own = plan.settings.own_seed
            if self.n is not None:
                feed_all([prompted.session])  # once for all samples, which share the prompt's cache
            for sample in range(self.n or 1):
                one = replace(prompted, session=prompted.session.fork()) if self.n is not None else prompted
                try:
                    matcher = None
                    if work is not None and one.automaton is not None:
                        for _ in range(_MOST_DELAYS):
                            if (matcher := _within(work, one.automaton.matcher)) is not None:
                                break
                            yield one.automaton
                    row = plan.row(one, sample if own else self.positions[number] * (self.n or 1) + sample, matcher)
                except Exception as error:
                    self._failed(error, number, sample)
                    continue
                self.place[row] = number, sample
                yield row

    def finish(self, row: Row) -> None:
        """Store the result of a finished row. Raises the errors of `Plan.result`, unless `return_exceptions` is set."""
        number, sample = self.place.pop(row)
        plan = self.plans[number]
        try:
            self.results[number][sample] = None if plan is None else plan.result(row)
        except Exception as error:
            self._failed(error, number, sample)
        finally:
            if self._closes_sessions:
                row.close()

    def has_values(self, row: Row) -> bool:
        """Return whether the result of a row is the value of a constraint, which may be made in another thread.

        With `retries`, it may not: the row may have to run again.
        """
        plan = self.plans[self.place[row][0]]
        return plan is not None and plan.source is not None and not plan.settings.retries

    def finish_all(self, moved: Iterable[Row]) -> tuple[()]:
        """Call `finish` for each row that has ended. Returns (), so that `rounds_of` accepts this method as `read`."""
        for row in moved:
            if row.is_over:
                self.finish(row)
        return ()

    def states(self) -> list[GenerationState]:
        """The states of the rows that have begun and not ended."""
        going = ((self.plans[number], row) for row, (number, _) in self.place.items())
        return [plan.state(row, row.tokens) for plan, row in going if plan is not None]

    def _failed(self, error: Exception, number: int, sample: int | None = None) -> None:
        """Store an error as the result of a sample; with `sample` None, of all samples of the prompt.

        Without `return_exceptions`, the error is raised instead.
        """
        if self.many and isinstance(error, (GuidewayError, ValueError, TypeError)) and error.args:
            error.args = (f"prompt {number + 1} of {len(self.results)}: {error.args[0]}", *error.args[1:])
        if not self._keep_errors:
            raise error
        group = self.results[number]
        for place in range(len(group)) if sample is None else (sample,):
            group[place] = error

    def shaped(self) -> Any:
        """Return the results: one, a list, or a list of lists. The result of a row that has not ended is None.

        With `return_exceptions`, a result may be an exception.
        """
        shaped: list[Any] = [group if self.n is not None else group[0] for group in self.results]
        return shaped if self.many else shaped[0]


def _plan_of(
    model: ModelBase,
    one: object,
    output: object,
    options: Options,
    sampled: bool,
    shared: dict[str, Plan] | None = None,
) -> Plan:
    """Return the plan of one prompt. Prompts that are no `GenerationRequest` share one plan, which `shared` stores."""
    if isinstance(one, GenerationRequest):
        return Plan.of(model, one, output, options, sampled=sampled)
    shared = {} if shared is None else shared
    if "plain" not in shared:
        shared["plain"] = Plan(model, output, options, sampled=sampled)
    return shared["plain"]


def _is_ids(prompt: object) -> TypeIs[list[int]]:
    """Return whether this is a prompt of token ids."""
    if not isinstance(prompt, (list, tuple)) or not prompt:
        return False
    return all(type(one) is int or (isinstance(one, Integral) and not isinstance(one, bool)) for one in prompt)


def is_many(prompt: object) -> bool:
    """Return whether this is a list of prompts.

    Raises `TypeError` for anything but a prompt or a list of prompts. The content of an inner list is not checked.
    """
    if isinstance(prompt, (str, GenerationRequest)):
        return False
    if isinstance(prompt, (list, tuple)):
        if _is_ids(prompt):
            return False
        if all(isinstance(one, (str, list, tuple, GenerationRequest)) for one in prompt):
            return True
        if all(isinstance(one, dict) for one in prompt):
            return False
        for number, one in enumerate(prompt, 1):
            if not isinstance(one, (str, list, tuple, GenerationRequest)):
                raise TypeError(f"prompt {number} of {len(prompt)}: {_PROMPTS}; got {type(one).__name__}")
    raise TypeError(f"{_PROMPTS}, or a list of those; got {type(prompt).__name__}")
