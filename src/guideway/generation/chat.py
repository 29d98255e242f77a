"""`Chat`: a conversation with a model, with tools, on one session."""

from __future__ import annotations

import copy
import threading
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from guideway import constraints
from guideway.arguments import integer, short_repr
from guideway.constraints import Constraint, Reasoning, ToolCalls
from guideway.constraints.base import Literal as LiteralText
from guideway.constraints.tools import Family, Reply, Tool, ToolCall
from guideway.constraints.tools.writing import messages_as_text
from guideway.errors import UnsupportedError
from guideway.generation.chat_prompts import prompt_text
from guideway.generation.chat_steps import (
    CallTool,
    ModelReply,
    RemoteReply,
    Steps,
    adrive,
    apieces,
    drive,
    pieces,
)
from guideway.generation.options import CALL_ONLY, Options, check_names
from guideway.generation.protocol import AnyModel, GeneratingModel
from guideway.generation.results import Generation
from guideway.generation.streams import PartialValue
from guideway.sessions import Counts, ModelBase, Session
from guideway.sessions.prefix_cache import common_length

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["Chat", "ChatStream", "chat"]

T = TypeVar("T")
Content = str | list[dict[str, Any]]
"""The text of a message, or its parts as the OpenAI API writes them."""

_THINK = ("<think>", "</think>")


@dataclass
class _ChatState:
    """The messages, the session after the last reply, the results of the last turn, and the number of tool calls.

    `session`: None before the first reply, and for a model served by an API.
    """

    messages: list[dict[str, Any]]
    session: Session | None = None
    generations: list[Generation[Any]] = field(default_factory=list)
    calls: int = 0

    def copy(self) -> _ChatState:
        return _ChatState(list(self.messages), self.session, [], self.calls)


class ChatStream(Iterator[T]):
    """An iterator over a turn of a `Chat`. The turn is added to the chat when the iterator has ended.

    Attributes:
        value: The value that `Chat.ask` would return; None before the end.
    """

    def __init__(self, items: Generator[T, None, Any]) -> None:
        self._items = items
        self.value: Any = None

    def __next__(self) -> T:
        try:
            return next(self._items)
        except StopIteration as end:
            self.value = end.value if end.value is not None else self.value
            raise StopIteration from None

    def close(self) -> None:
        """End the generation early, without adding the turn to the chat. After the end, it has no effect."""
        self._items.close()


class Chat:
    """A conversation with a model.

    A turn continues the session of the turn before it, so the model does not run these tokens again. If the chat
    template now renders earlier messages differently, for example without their reasoning, the session is rewound to
    the end of a token before the first different byte. Up to there, replies keep the tokens that the model generated.

    A method that raises does not change the messages. A chat answers one question at a time; `fork` makes another chat.

    Args:
        model: A model from `guideway.load` or `guideway.remote`.
        system: The system message.
        tools: What `Tool.of` accepts: Python functions, `Tool` objects, or dicts as the OpenAI API writes them.
        messages: Earlier messages, after the system message.
        tool_choice: As `choice` of `ToolCalls`. In `run`, it applies to the first reply only.
        parallel: Whether a reply may have several calls. None: as in `ToolCalls`.
        family: The notation of tool calls, as for `ToolCalls`. None: that of the chat template.
        tool_errors: "return": `run` gives the message of an exception of a function to the model. "raise": it raises
            the exception.
        max_reasoning_tokens: The maximum number of tokens of reasoning before each reply, in addition to `max_tokens`.
            0: none. None: the model decides, and `max_tokens` includes it.
        **options: Generation options, see `guideway.generation.OPTIONS`. They apply to every reply.

    Raises:
        ConstraintError: A tool is not valid; the message names it.
        TypeError: An argument has a wrong type, or an option is unknown, or is `batch_size`, `progress` or
            `return_exceptions`.
        UnsupportedError: `max_reasoning_tokens` is given for a model served by an API.
        ValueError: `tool_errors` has another value, or `max_reasoning_tokens` is negative.
    """

    def __init__(
        self,
        model: AnyModel,
        *,
        system: str | None = None,
        tools: Iterable[Tool | Mapping[str, Any] | Callable[..., Any]] = (),
        messages: Sequence[Mapping[str, Any]] = (),
        tool_choice: str | Mapping[str, Any] = "auto",
        parallel: bool | None = None,
        family: str | Family | None = None,
        tool_errors: Literal["return", "raise"] = "return",
        max_reasoning_tokens: int | None = None,
        **options: Unpack[Options],
    ) -> None:
        if not isinstance(model, (ModelBase, GeneratingModel)):
            raise TypeError(
                f"model must be a guideway.Model (from guideway.load), got {type(model).__name__} {short_repr(model)}"
            )
        if system is not None and not isinstance(system, str):
            raise TypeError(f"system must be a str, got {type(system).__name__}")
        if tool_errors not in ("return", "raise"):
            raise ValueError(f'tool_errors must be "return" or "raise", got {short_repr(tool_errors)}')
        self.model = model
        self._options = _checked_options(options)
        self._tool_errors = tool_errors
        self._most_reasoning = _reasoning_limit(max_reasoning_tokens, model)
        given = _listed(tools)
        self._calls = ToolCalls(given, family=family, choice=tool_choice if given else "none", parallel=parallel)
        if isinstance(model, ModelBase):
            self._calls = self._calls.for_tokenizer(model.tokenizer)
        self._by_choice: dict[tuple[str, bool], ToolCalls] = {(self._calls.choice, True): self._calls}
        start = [{"role": "system", "content": system}] if system is not None else []
        self._state = _ChatState([*start, *_checked_messages(messages)])
        self._lock = threading.Lock()
        self._warns = True

    # -- the conversation

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages, as a copy."""
        return copy.deepcopy(self._state.messages)

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools."""
        return self._calls.tools

    @property
    def generations(self) -> list[Generation[Any]]:
        """The results of the last turn: one for each generated reply, in order.

        A reply that `run` discarded is included. The list is empty before the first turn, after `rewind` and in a fork.
        """
        return list(self._state.generations)

    @property
    def counts(self) -> Counts:
        """How many tokens the model ran for the session of this chat.

        All are 0 before the first reply, and for a model served by an API.
        """
        return Counts() if self._state.session is None else self._state.session.counts

    @property
    def turns(self) -> int:
        """The number of messages of the user."""
        return len(self._starts())

    def _starts(self) -> list[int]:
        return [at for at, message in enumerate(self._state.messages) if message.get("role") == "user"]

    def append(self, *messages: Mapping[str, Any]) -> None:
        """Append messages, for example results of tools. `reply` answers them.

        Args:
            *messages: Dicts with the keys "role" and "content".

        Raises:
            TypeError: A message is not a dict, or its role is not a str.
            RuntimeError: As in `ask`.
        """
        with self._changing() as state:
            state.messages += _checked_messages(messages)
            state.generations = self._state.generations

    def rewind(self, turns: int = 1) -> list[dict[str, Any]]:
        """Remove the last turns: messages of the user with all that follows.

        Args:
            turns: The number of messages of the user to remove.

        Returns:
            The removed messages.

        Raises:
            ValueError: There are fewer turns, or `turns` is negative.
            RuntimeError: As in `ask`.
        """
        starts = self._starts()
        if not 0 <= integer("turns", turns, 0) <= len(starts):
            raise ValueError(f"cannot rewind {turns} turns: the chat has {len(starts)}")
        with self._changing() as state:
            at = starts[len(starts) - turns] if turns else len(state.messages)
            removed = state.messages[at:]
            del state.messages[at:]
        return removed

    def fork(self) -> Chat:
        """Return an independent chat with the same messages and options. The KV cache is shared, not copied."""
        other = object.__new__(Chat)
        other.__dict__.update(self.__dict__)
        other._state = self._state.copy()
        other._lock = threading.Lock()
        return other

    # -- replies

    @overload
    def ask(self, text: Content, output: type[T] | Constraint[T], **options: Unpack[Options]) -> T: ...
    @overload
    def ask(self, text: Content, output: object = None, **options: Unpack[Options]) -> Any: ...
    def ask(self, text: Content, output: object = None, **options: Any) -> Any:
        """Send a message of the user, and return the reply.

        Args:
            text: The text, or a list of parts.
            output: A type or a constraint that the reply must fit. None: text, or text and tool calls.
            **options: Generation options for this reply, and `max_reasoning_tokens`.

        Returns:
            The value of `output`. Without it, a `Reply` if the chat has tools, else a str.

        Raises:
            GuidewayError: As in `generate`.
            RuntimeError: Another method of the chat is running, or a stream of it has begun and not ended.
        """
        with self._changing() as state:
            return drive(self._asked(state, text, output, options))

    async def aask(self, text: Content, output: object = None, **options: Any) -> Any:
        """The async variant of `ask`."""
        with self._changing() as state:
            return await adrive(self._asked(state, text, output, options))

    def reply(self, output: object = None, **options: Any) -> Any:
        """Generate a reply to the messages, and return it as `ask` does. No message of the user is added."""
        with self._changing() as state:
            return drive(self._replied(state, output, options))

    async def areply(self, output: object = None, **options: Any) -> Any:
        """The async variant of `reply`."""
        with self._changing() as state:
            return await adrive(self._replied(state, output, options))

    def edit(self, text: Content, output: object = None, *, turn: int = -1, **options: Any) -> Any:
        """Replace a message of the user, remove all that follows, and return the new reply.

        Args:
            text: The new text.
            output: As in `ask`.
            turn: The index of the message among those of the user; -1 is the last one.
            **options: As in `ask`.

        Returns:
            As `ask`.

        Raises:
            IndexError: There is no such message.
            GuidewayError: As in `ask`.
            RuntimeError: As in `ask`.
        """
        starts = self._starts()
        if not -len(starts) <= turn < len(starts):
            raise IndexError(f"the chat has {len(starts)} messages of the user, and none of them is number {turn}")
        at = starts[turn]
        with self._changing() as state:
            del state.messages[at:]
            return drive(self._asked(state, text, output, options))

    def stream(self, text: Content, output: object = None, **options: Any) -> ChatStream[str]:
        """As `ask`, but return a stream that yields the text of the reply in chunks.

        When the stream has ended, its attribute `value` is what `ask` returns. The stream does not contain reasoning
        that `max_reasoning_tokens` limits.
        """
        return ChatStream(self._streamed(text, output, options, values=False))

    def stream_values(self, text: Content, output: object = None, **options: Any) -> ChatStream[PartialValue[Any]]:
        """As `stream`, but the stream yields a `PartialValue` each time that the value changes.

        It raises `TypeError` for a model served by an API.
        """
        return ChatStream(self._streamed(text, output, options, values=True))

    def _streamed(self, text: Content, output: object, options: Any, *, values: bool) -> Generator[Any, None, Any]:
        with self._changing() as state:
            found = yield from pieces(self._asked(state, text, output, options), values=values)
        return found

    async def astream(self, text: Content, output: object = None, **options: Any) -> AsyncIterator[str]:
        """The async variant of `stream`: an async generator, so it has no attribute `value`.

        For a model served by an API, the whole text is one chunk.
        """
        with self._changing() as state:
            async for item in apieces(self._asked(state, text, output, options)):
                yield item

    async def astream_values(
        self, text: Content, output: object = None, **options: Any
    ) -> AsyncIterator[PartialValue[Any]]:
        """The async variant of `stream_values`: an async generator, so it has no attribute `value`."""
        with self._changing() as state:
            async for item in apieces(self._asked(state, text, output, options), values=True):
                yield item

    def run(self, text: Content, output: object = None, *, max_rounds: int = 8, **options: Any) -> Any:
        """Send a message of the user, execute the functions that the model calls, and return its last reply.

        The results of the functions are messages of the role "tool". Without `output`, the turn ends with the first
        reply that has no calls.

        Args:
            text: The text, or a list of parts.
            output: A type or a constraint of the last reply. If the chat has tools, the first reply without calls is
                discarded, and the last reply is generated under this constraint in its place. None: text.
            max_rounds: The maximum number of replies with calls. The reply after them has no calls.
            **options: As in `ask`.

        Returns:
            The value of `output`; without it a str.

        Raises:
            GuidewayError: As in `generate`.
            RuntimeError: As in `ask`.
            ValueError: A tool has no function, or `max_rounds` is negative.
            Exception: The exception of a function, with `tool_errors="raise"`.
        """
        with self._changing() as state:
            return drive(self._rounds(state, text, output, max_rounds, options))

    async def arun(self, text: Content, output: object = None, *, max_rounds: int = 8, **options: Any) -> Any:
        """The async variant of `run`. Functions may be async; others run in threads."""
        with self._changing() as state:
            return await adrive(self._rounds(state, text, output, max_rounds, options))

    # -- steps

    @contextmanager
    def _changing(self) -> Iterator[_ChatState]:
        """A context that yields a copy of the state. The copy becomes the state if the block raises nothing.

        Raises `RuntimeError` if such a block is running.
        """
        if not self._lock.acquire(blocking=False):
            raise RuntimeError(
                "the chat is answering another question: wait for it, close its stream, or use chat.fork()"
            )
        try:
            state = self._state.copy()
            yield state
            self._state = state
        finally:
            self._lock.release()

    def _asked(self, state: _ChatState, text: Content, output: object, options: Any) -> Steps[Any]:
        _add_user(state, text)
        return (yield from self._replied(state, output, options))

    def _replied(self, state: _ChatState, output: object, options: Any) -> Steps[Any]:
        source = self._with_choice(self._calls.choice) if output is None and self.tools else None
        found = yield from self._answer(state, output if source is None else source, options)
        return found

    def _rounds(self, state: _ChatState, text: Content, output: object, most: int, options: Any) -> Steps[Any]:
        integer("max_rounds", most, 0)
        if missing := [tool.name for tool in self.tools if tool.function is None]:
            raise ValueError(
                f"run needs the functions of all tools; {short_repr(missing[0])} has none: pass Tool(…, function=…)"
            )
        _add_user(state, text)
        choice = self._calls.choice
        for number in range(most + 1 if self.tools else 0):
            if number == most:
                choice = "none"
            before = state.copy()
            reply = yield from self._answer(state, self._with_choice(choice), options)
            if not reply.calls:
                if output is None:
                    return reply.text
                state.messages, state.session = before.messages, before.session
                break
            for call in reply.calls:
                names = self._special_names
                content = yield CallTool(self._calls, call, raises=self._tool_errors == "raise", special=names)
                state.messages.append({"role": "tool", "tool_call_id": call.id, "name": call.name, "content": content})
            choice = "auto"
        found = yield from self._answer(state, output, options)
        return found

    def _answer(self, state: _ChatState, output: object, options: Mapping[str, Any]) -> Steps[Any]:
        """Generate one reply, and append its message to the state. Returns the value of the reply."""
        given = {**self._options, **_checked_options(options)}
        most = _reasoning_limit(given.pop("max_reasoning_tokens", self._most_reasoning), self.model)
        if isinstance(self.model, GeneratingModel):
            return (yield from self._remote_answer(state, output, given))
        source = None if output is None else constraints.of(output)
        text = self._prompt(state.messages, source, given)
        session = self._session_after(state.session, text)
        begin, _ = self._markers
        is_open = bool(begin) and text.rstrip().endswith(begin)
        reasoning = ""
        if most is not None:
            reasoning = yield from self._think(session, most, is_open, given)
            source = self._without_thoughts(source)
        elif source is None and self._calls.family.answer:
            source = self._with_choice("none")
        shared = {key: value for key, value in given.items() if key != "chat_template_kwargs"}
        found = yield ModelReply(self.model, session, source, shared)
        state.generations.append(found)
        state.session = session
        return self._taken(state, found, source, output, reasoning, begin if is_open and most is None else "")

    def _taken(
        self,
        state: _ChatState,
        found: Generation[Any],
        source: Constraint[Any] | None,
        output: object,
        reasoning: str,
        opened: str,
    ) -> Any:
        """Append the message of a reply to the state. Returns the value; for a `Reply` without `output`, its text.

        `source`: the constraint of the generation. `output`: the constraint that was requested, or None. `opened`: the
        marker that begins the reasoning, if the prompt ends with it and the generation continues it; else "".
        """
        value, text = found.value, found.text
        if isinstance(value, Reply):
            value = self._with_ids(state, value, reasoning)
            state.messages.append(value.as_message())
            return value if output is not None else value.text
        if isinstance(source, Reasoning) and isinstance(value, tuple):
            reasoning = value[0]
            text = text[text.find(source.end) + len(source.end) :].lstrip("\n") if reasoning else text
        elif source is None and not reasoning:
            reply = self._split(opened + text)
            reasoning, text = reply.reasoning, reply.text
            value = text
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if reasoning:
            message["reasoning_content"] = reasoning
        state.messages.append(message)
        return value

    def _think(self, session: Session, most: int, is_open: bool, options: Mapping[str, Any]) -> Steps[str]:
        """Generate reasoning of at most `most` tokens after the tokens of the session, and return the reasoning.

        The session then ends with the marker after the reasoning. If `most` is 0, nothing is generated, and that marker
        is appended only if the prompt ends with the marker before the reasoning (`is_open`).
        """
        begin, end = self._markers
        encode = session.tokenizer.encode
        if not most:
            session.feed(encode(end) if is_open else [])
            return ""
        special = self._calls.family.special if self._calls.family.thoughts is not None else None
        output = Reasoning(LiteralText(""), begin="" if is_open else begin, end=end, special=special)
        marks = len(encode(end)) + (0 if is_open else len(encode(begin)))
        own = {name: options[name] for name in _OF_REASONING if name in options}
        found = yield ModelReply(session.model, session, output, {**own, "max_tokens": most + marks + 1}, shown=False)
        session.constrain(None)
        if session.tokens[-1] in session.tokenizer.eos_ids:
            session.rewind(1)
        value: str = found.value[0]
        return value

    def _remote_answer(self, state: _ChatState, output: object, options: dict[str, Any]) -> Steps[Any]:
        model = self.model
        if not isinstance(model, GeneratingModel):
            raise TypeError("the model runs here")
        messages = messages_as_text(state.messages, self.tools, self._calls.family)
        plain: list[dict[str, Any]] = [
            {key: message[key] for key in ("role", "content") if key in message} for message in messages
        ]
        found = yield RemoteReply(model, plain, output, options)
        state.generations.append(found)
        source = None if output is None else constraints.of(output)
        return self._taken(state, found, source, output, getattr(found, "reasoning", ""), "")

    # -- parts of a reply

    @property
    def _markers(self) -> tuple[str, str]:
        """The markers before and after the reasoning in replies of this model."""
        return self._calls.family.thoughts or _THINK

    @property
    def _special_names(self) -> tuple[str, ...]:
        """The texts that a template uses as markers, the longest first. Empty for a model served by an API.

        They are the special tokens, and the markers of calls and of reasoning, which are ordinary tokens in some
        vocabularies.
        """
        if not isinstance(self.model, ModelBase):
            return ()
        names = {name for name in (*self.model.vocabulary.special_tokens, *self._calls.family.special) if name.strip()}
        return tuple(sorted(names, key=len, reverse=True))

    def _with_choice(self, choice: str) -> ToolCalls:
        """Return the `ToolCalls` of the chat with another `choice`."""
        return self._variant(choice, thoughts=True)

    def _variant(self, choice: str, *, thoughts: bool) -> ToolCalls:
        known = self._by_choice.get((choice, thoughts))
        if known is None:
            family = self._calls.family if thoughts else replace(self._calls.family, thoughts=None)
            parallel = self._calls.parallel
            known = ToolCalls(self.tools, family=family, choice=choice, parallel=parallel)
            self._by_choice[choice, thoughts] = known
        return known

    def _without_thoughts(self, source: Constraint[Any] | None) -> Constraint[Any] | None:
        """Return the constraint of the rest of a reply whose reasoning was already generated.

        `source`: the constraint of the whole reply. The result can be a constraint although `source` is None.
        """
        if isinstance(source, ToolCalls):
            return self._variant(source.choice, thoughts=False) if source.tools == self.tools else source
        if source is None and self._calls.family.answer:
            return self._variant("none", thoughts=False)
        return source

    def _split(self, text: str) -> Reply:
        """Separate the reasoning and the text of a reply without a constraint. A reply may have no reasoning."""
        begin, end = self._markers
        start = len(text) - len(text.lstrip())
        if not text.startswith(begin, start) or (at := text.find(end, start)) < 0:
            return Reply(text)
        return Reply(text[at + len(end) :].lstrip("\n"), (), text[start + len(begin) : at])

    def _with_ids(self, state: _ChatState, reply: Reply, reasoning: str) -> Reply:
        """Return a reply whose calls all have an id.

        A call without an id gets one of nine letters and digits, as Mistral's templates require. `reasoning` replaces
        that of the reply, unless it is empty.
        """
        calls: list[ToolCall] = []
        for call in reply.calls:
            state.calls += 1
            calls.append(call if call.id else replace(call, id=f"call{state.calls:05d}"))
        return Reply(reply.text, tuple(calls), reasoning or reply.reasoning)

    # -- prompts

    def _prompt(
        self, messages: list[dict[str, Any]], source: Constraint[Any] | None, options: Mapping[str, Any]
    ) -> str:
        if not isinstance(self.model, ModelBase):
            raise TypeError("the model has no chat template here")
        shown = source if isinstance(source, ToolCalls) else self._calls
        given: Mapping[str, Any] | None = options.get("chat_template_kwargs")
        text = prompt_text(self.model.tokenizer, messages, shown, given, warn=self._warns)
        self._warns = False
        return text

    def _session_after(self, before: Session | None, text: str) -> Session:
        """Return a session that contains `text`, after the BOS ids.

        If the beginnings of `text` and of the session `before` have equal bytes, the tokens of `before` are kept there.
        """
        if not isinstance(self.model, ModelBase):
            raise TypeError("the model has no session here")
        model = self.model
        ids = model.tokenizer.encode(text)
        opening = list(model.bos_ids)
        if ids[: len(opening)] != opening:
            ids = [*opening, *ids]
        if before is None:
            session = model.session()
            session.feed(ids)
            return session
        session = before.fork()
        session.constrain(None)
        tokens = session.tokens
        kept, same = _common_beginning(tokens, ids, lambda one: model.vocabulary.piece(one, special=True))
        session.rewind(len(tokens) - kept, release=True)
        session.feed(ids[same:])
        return session

    def __repr__(self) -> str:
        tools = f", {len(self.tools)} tools" if self.tools else ""
        return f"Chat({self.model.name!r}, {len(self._state.messages)} messages{tools})"


_OF_REASONING = ("temperature", "top_k", "top_p", "min_p", "sampler", "seed", "bad_words")


def chat(model: AnyModel, **options: Any) -> Chat:
    """Return a conversation with the model.

    Args:
        model: The model.
        **options: The arguments of `guideway.Chat`: `system`, `tools`, generation options, and others.
    """
    return Chat(model, **options)


def _common_beginning(tokens: list[int], ids: list[int], piece: Callable[[int], bytes]) -> tuple[int, int]:
    """Return how many tokens of each sequence belong to the longest common beginning of their bytes.

    The beginning must end with a whole token in both sequences. Their tokens may differ, because a model may write a
    text with other tokens than the tokenizer. `piece` returns the bytes of a token.
    """
    start = common_length(tokens, ids)
    at, other = start, start
    found = start, start
    left = right = b""
    while at < len(tokens) and other < len(ids):
        # `left` and `right`: the bytes after the last common boundary; one of them is a prefix of the other
        if len(left) <= len(right):
            left += piece(tokens[at])
            at += 1
        else:
            right += piece(ids[other])
            other += 1
        size = min(len(left), len(right))
        if left[:size] != right[:size]:
            break
        if left and len(left) == len(right):
            left = right = b""
            found = at, other
    return found


def _add_user(state: _ChatState, text: Content) -> None:
    if not isinstance(text, (str, list)):
        raise TypeError(f"text must be a str or a list of parts, got {type(text).__name__}")
    for number, part in enumerate(text, 1) if isinstance(text, list) else ():
        if not isinstance(part, (str, Mapping)):
            raise TypeError(f"part {number} of the text must be a dict or a str, got {short_repr(part, 200)}")
    state.messages.append({"role": "user", "content": text})


def _checked_messages(messages: Iterable[object]) -> list[dict[str, Any]]:
    found = []
    for number, message in enumerate(messages, 1):
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise TypeError(
                f'message {number} must be a dict with "role" and "content", got {short_repr(message, 200)}'
            )
        found.append(dict(message))
    return found


def _checked_options(options: Mapping[str, Any]) -> dict[str, Any]:
    check_names({name: value for name, value in options.items() if name != "max_reasoning_tokens"})
    if wrong := [name for name in CALL_ONLY if name in options]:
        raise TypeError(f"{wrong[0]} does not apply to a chat, which generates one reply at a time")
    return dict(options)


def _listed(tools: object) -> tuple[Any, ...]:
    if not isinstance(tools, Iterable) or isinstance(tools, (str, bytes, Mapping)):
        raise TypeError(f"tools must be a list of functions, tools or dicts, got {type(tools).__name__}")
    return tuple(tools)


def _reasoning_limit(most: int | None, model: object) -> int | None:
    if most is None:
        return None
    if isinstance(model, GeneratingModel):
        raise UnsupportedError("max_reasoning_tokens does not apply to a model served by an API")
    return integer("max_reasoning_tokens", most, 0)
