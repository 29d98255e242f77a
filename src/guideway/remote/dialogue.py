"""`Dialogue`: the requests that lead to one result.

It performs no input or output, so the same code serves threads and event loops.

Until `request()` returns None, a caller repeats: open a stream for the request, pass its events to `take`, close the
stream early if `take` returns True, and call `ended`, with the error if the stream failed. Then `outcome()` returns the
result or raises the error.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

from guideway.constraints import Constraint
from guideway.errors import (
    BudgetTooSmallError,
    ConnectionLostError,
    ContextOverflowError,
    GuidewayError,
    InvalidTextError,
    LimitExceededError,
    RefusalError,
    RemoteError,
    TruncatedError,
)
from guideway.remote.adapters import Event, Request
from guideway.remote.adapters.base import late_error, text_of
from guideway.remote.answer_text import VisibleText
from guideway.remote.check import StreamCheck, automaton_of
from guideway.remote.first_tokens import most_probable
from guideway.remote.fragments import schema_in
from guideway.remote.plan import RemotePlan
from guideway.remote.received import MAX_QUOTED, ReceivedAnswer
from guideway.remote.repair import repaired
from guideway.remote.sizes import heaviest
from guideway.remote.usage import Prices, Usage

__all__ = ["Attempt", "Dialogue", "FailureSettings"]

_DRAFT_SIZES = (4000, 1000, 250)
"""Maximum numbers of characters of the last message and of the wrong answer that `FailureSettings.formatter` gets.

They are tried in this order until both texts fit into the context of the formatter.
"""

MAX_CONTINUED = 1 << 20
"""Maximum number of characters of the valid beginning of an answer that is sent to the endpoint to be continued."""


@dataclass(frozen=True)
class FailureSettings:
    """What happens when an answer does not fit the constraint.

    Attributes:
        attempts: Maximum number of requests for one result.
        resume: Let the endpoint continue the longest valid beginning, if it can continue a text. If it enforces the
            constraint and no text was shown, a request is repeated instead, after its connection was lost.
        repair: Repair errors that can be repaired in exactly one way.
        ask_again: Send the model the valid beginning and what may follow it, or the error, and request the whole answer
            again.
        formatter: A local model that writes the wrong answer again under the constraint; None: no model does.
        prices: The prices by which the cost of the attempts is computed for `max_cost`.
        max_cost: No further request begins when the attempts have cost this much; None: no limit.
        max_tokens: "double": an answer that is truncated at `max_tokens` is continued or requested again, once, with
            twice as many tokens. "fixed": it is not.
        timeout: Seconds for one result, with all attempts and with waiting for rate limits; None: no limit.
    """

    attempts: int = 2
    resume: bool = True
    repair: bool = True
    ask_again: bool = True
    formatter: Any = None
    prices: Prices | None = None
    max_cost: float | None = None
    max_tokens: Literal["fixed", "double"] = "fixed"
    timeout: float | None = None

    def steps(self) -> tuple[str, ...]:
        """Describe for a plan the steps that these settings allow, in the order in which they are tried."""
        more = self.attempts - 1
        found = []
        if self.resume and more > 0:
            found.append(f"resume (at most {more} requests)")
        if self.repair:
            found.append("repair (no request)")
        if self.ask_again and more > 0:
            found.append(f"ask again (at most {more} requests)")
        if self.formatter is not None:
            found.append("formatter (no request)")
        return (*found, "InvalidTextError")


@dataclass(frozen=True)
class Attempt:
    """One request and its answer.

    Attributes:
        kind: "first", "resume", "again", "ask again", "other route", "more tokens" or "formatter".
        text: The text of the answer with the beginning that it continues, truncated after 4,000 characters.
        usage: The tokens of the request and the answer.
        problem: Why the answer did not lead to the result; "" for the attempt that did.
        request_id: The id that the endpoint gave the answer; None if it gave none.
    """

    kind: str
    text: str
    usage: Usage
    problem: str = ""
    request_id: str | None = None


@dataclass
class Result:
    """The result of a `Dialogue`.

    `finish_reason` is "stop", or "length" for a truncated answer. The value of a truncated answer is None under a
    constraint and the text of the answer if there is no constraint.
    """

    value: Any
    text: str
    finish_reason: str
    repairs: tuple[str, ...] = ()
    reasoning: str = ""


class Dialogue:
    """The requests for one result.

    Args:
        request: The first request, without a constraint.
        constraint: The constraint; None: free text.
        plan: How the constraint is sent; None for free text.
        settings: What happens on failure.
        continues: Whether the endpoint can continue the beginning of an answer (a prefill).
        enforces: Whether the endpoint enforces every constraint that it takes.
        provider: The name of the endpoint, for errors.
        size_errors: Texts that occur in the endpoint's error messages for a schema that is too large.
        whole_routes: Routes whose answers the endpoint does not stream.
        next_plan: Returns a plan by a later route than that of the given plan; None if there is none.
        allow_truncation: Whether, under a constraint, an answer that is truncated at `max_tokens` is a result, without
            a value, and not an error. Truncated free text is always a result.
        streaming: Whether valid text is given to the caller while it arrives (`shown`). Such text cannot be replaced.
        scrubbed: Removes the keys of the client from a message.

    Attributes:
        attempts: The attempts that have ended, in their order.
        result: The result; None before the end and after a failure.
        source_text: The text from which a record is extracted; None for other calls.
    """

    def __init__(
        self,
        request: Request,
        constraint: Constraint[Any] | None,
        plan: RemotePlan | None,
        settings: FailureSettings,
        *,
        continues: bool = False,
        enforces: bool = False,
        provider: str = "",
        size_errors: tuple[str, ...] = (),
        whole_routes: tuple[str, ...] = (),
        next_plan: Callable[[RemotePlan], RemotePlan | None] = lambda _: None,
        allow_truncation: bool = False,
        streaming: bool = False,
        scrubbed: Callable[[str], str] = str,
    ) -> None:
        self._base, self.constraint, self.plan, self._settings = request, constraint, plan, settings
        self._continues, self._enforces = continues, enforces
        self._provider, self._size_errors = provider, size_errors
        self._whole_routes, self._scrubbed = whole_routes, scrubbed
        self._ends = None if settings.timeout is None else time.monotonic() + settings.timeout
        self._next_plan, self._allow_truncation, self._streaming = next_plan, allow_truncation, streaming
        self.attempts: list[Attempt] = []
        self.result: Result | None = None
        self.source_text: str | None = None  # set by `RemoteModel`
        self._error: Exception | None = None
        self._shown = 0  # number of characters that `shown` has returned
        self._longest = -1  # number of characters of the longest prefill so far; -1: there was none
        self._doubled = False
        self._begin("first", self._first_messages(), "")

    # -- requests

    def _first_messages(self, words: str | None = None) -> tuple[Any, ...]:
        """Return the messages, the last one extended by `words`. None: by the instructions of the plan."""
        if words is None:
            words = "" if self.plan is None else self.plan.instructions
        if not words:
            return self._base.messages
        *before, last = self._base.messages
        content = last["content"]
        if isinstance(content, (list, tuple)):
            return (*before, {**last, "content": [*content, {"type": "text", "text": words}]})
        return (*before, {**last, "content": f"{content}\n\n{words}"})

    def _begin(self, kind: str, messages: tuple[Any, ...], prefill: str) -> None:
        """Prepare a request. `kind` is that of its `Attempt`; `prefill` is the beginning of the answer or ""."""
        self._kind = kind
        # An endpoint applies a constraint to the new text only, so a request with a prefill is sent without a
        # constraint.
        fragment = self._base.fragment if self.plan is None else {} if prefill else dict(self.plan.sent)
        streamed = self.plan is None or not fragment or self.plan.route not in self._whole_routes
        self._request = replace(self._base, messages=messages, fragment=fragment, prefill=prefill, streamed=streamed)
        reader = None if self.plan is None else self.plan._reader
        if reader is not None and reader.options:
            self._request = replace(self._request, max_tokens=1, temperature=1.0)
        text = None if reader is None else reader.streamed
        shell = reader is not None and reader.shell
        self._visible = VisibleText(shell) if self._streaming else None
        self._answer = ReceivedAnswer(
            StreamCheck(None if text is None else automaton_of(text)),
            prefill=prefill,
            max_tokens=self._base.max_tokens,
            visible=self._visible,
            shown=self._shown,
            reads_on=(self._settings.repair and shell and not self._streaming) or self.has_formatter,
            from_tool="tools" in fragment,
        )
        self._waiting = True

    def request(self) -> Request | None:
        """Return the next request; None if the dialogue has a result or an error, or was cancelled."""
        if not self._waiting or self.result is not None or self._error is not None:
            return None
        return self._request if self._ends is None else replace(self._request, timeout=self._seconds_left())

    def _seconds_left(self) -> float:
        return math.inf if self._ends is None else max(self._ends - time.monotonic(), 0.001)

    @property
    def ends(self) -> float | None:
        """The time (`time.monotonic`) at which the result must be there; None: no limit."""
        return self._ends

    def is_late(self) -> bool:
        """Return whether the time `ends` has passed."""
        return self._ends is not None and time.monotonic() >= self._ends

    @property
    def usage(self) -> Usage:
        """The usage of all attempts."""
        return sum((one.usage for one in self.attempts), Usage())

    # -- answers

    def take(self, events: Iterable[Event]) -> bool:
        """Take the events of one chunk of the current answer.

        Returns True if the caller must close the stream now: the time `ends` has passed, or `ReceivedAnswer.take`
        returned True.
        """
        if self.is_late():
            return self._answer.stop(late_error(self._provider))
        return self._answer.take(events)

    @property
    def has_formatter(self) -> bool:
        """Whether a local model rewrites an answer that does not fit the constraint."""
        return self._settings.formatter is not None

    def shown(self) -> str:
        """Return the valid text since the last call, for a stream. It is final; no later step replaces it.

        Before the end, "" if not `streaming`, or if the plan allows only the whole result to be shown.
        """
        if self.result is not None:
            new = self.result.text[self._shown :]
        elif self._visible is None or (self.plan is not None and self.plan._reader.is_whole):
            return ""
        else:
            new = self._visible.taken()
        self._shown += len(new)
        return new

    # -- the end of a request

    def ended(self, error: Exception | None = None) -> None:
        """End the current request: its stream ended, was closed, or failed with `error`.

        Prepares the next request, or sets the result or the error of the dialogue.
        """
        self._waiting = False
        answer = self._answer
        answer.end()
        text = answer.text
        if error is not None:
            self._after_error(error)
            return
        if answer.error is not None:
            self._fail(answer.error)
            return
        if answer.refusal or answer.finish == "refusal":
            words = answer.refusal or text
            refusal = RefusalError(
                f"the model of {self._provider} refused to answer: {words[:500]}", provider=self._provider
            )
            refusal.text = words
            self._fail(refusal)
            return
        if answer.finish is None and not answer.check.failed and not answer.usage.aborted:
            lost = ConnectionLostError(
                f"the answer of {self._provider} ended without a finish reason", provider=self._provider, retryable=True
            )
            self._after_error(lost)
            return
        if self.plan is not None and (options := self.plan._reader.options):
            self._choose(self.plan, options)
            return
        space = self.plan is not None and self.plan._reader.allows_space
        if answer.finish == "length" and not answer.check.failed and not answer.is_complete(space):
            self._truncated(text)
            return
        if self.plan is None:
            self._succeed(text, text, ())
            return
        self._judge(text)

    def _choose(self, plan: RemotePlan, options: tuple[str, ...]) -> None:
        """Take the most probable option as the result.

        If the first tokens do not determine it, use the next route, or else the formatter.
        """
        option = most_probable(self._answer.first_tokens, options)
        if option is not None:
            self._succeed(option, option, ())
            return
        problem = InvalidTextError(
            f"the first tokens that {self._provider} gave do not determine the most probable option",
            text=self._answer.text,
        )
        self._note(str(problem))
        if self._on_other_route(plan) or self._formatted(self._answer.text):
            return
        problem.attempts, problem.usage = tuple(self.attempts), self.usage
        self._error = problem

    def _on_other_route(self, plan: RemotePlan, refused: Any = None) -> bool:
        """Prepare the request by the next route.

        Returns False if there is no such route, if no further request is allowed, or if text was shown to the caller.

        `refused`: a schema that the endpoint refused; routes that would send it again are skipped. None: no route is
        skipped.
        """
        if self._shown:
            return False
        other = self._next_plan(plan)
        while other is not None and refused is not None and schema_in(other.sent) == refused:
            other = self._next_plan(other)
        if other is None or not self._may_ask():
            return False
        self.plan = other
        self._begin("other route", self._first_messages(), "")
        return True

    def _judge(self, text: str) -> None:
        """Read the whole text as the result. If it does not fit the constraint, try the steps of `FailureSettings`."""
        reader = self.plan._reader if self.plan is not None else None
        if reader is None:
            raise TypeError("free text is not judged")
        problem: InvalidTextError | None = None
        answer = self._answer
        if not answer.check.failed:
            try:
                self._succeed(reader.value(text), reader.original(text), ())
                return
            except InvalidTextError as found:
                problem = found
        if problem is None:
            valid = answer.valid()
            problem = InvalidTextError(
                f"the answer of {self._provider} is not valid after {len(valid)} characters: found"
                f" {text[len(valid) : len(valid) + 40]!r}, expected {answer.check.expected()}",
                text=text,
            )
        self._note(str(problem))
        if self._resumed() or self._repaired(text) or self._asked_again(problem) or self._formatted(text):
            return
        problem.attempts, problem.usage = tuple(self.attempts), self.usage
        self._error = problem

    def _note(self, problem: str) -> None:
        self.attempts.append(
            Attempt(
                self._kind,
                self._answer.text[:MAX_QUOTED],
                self._answer.usage,
                self._scrubbed(problem),
                None if self._answer.request_id is None else self._scrubbed(self._answer.request_id),
            )
        )

    def _succeed(self, value: Any, text: str, repairs: tuple[str, ...]) -> None:
        self._note("")
        self.result = Result(value, text, "stop", repairs, self._answer.reasoning)

    def _fail(self, error: Exception) -> None:
        self._note(str(error))
        if isinstance(error, (RemoteError, InvalidTextError, TruncatedError)):
            error.attempts, error.usage = tuple(self.attempts), self.usage
        self._error = error

    def _truncated(self, text: str) -> None:
        if self.plan is None or self._allow_truncation:
            self._note("")
            value = text if self.plan is None else None
            self.result = Result(value, text, "length", (), self._answer.reasoning)
            return
        if self._with_more_tokens():
            return
        error = TruncatedError(
            f"the answer was cut at max_tokens={self._base.max_tokens}; pass a larger max_tokens, or"
            " allow_truncation=True"
        )
        error.text = text
        self._fail(error)

    def _with_more_tokens(self) -> bool:
        """Prepare one more request with twice as many tokens. It continues the answer if `_resumed` allows that.

        Returns False if that is not allowed, or if text was shown to the caller and cannot be continued.
        """
        if self._settings.max_tokens != "double" or self._doubled or not self._may_ask():
            return False
        if self._shown and not (self._continues and self._settings.resume):
            return False
        self._doubled = True
        self._note(f"cut at max_tokens={self._base.max_tokens}")
        before, self._base = self._base, replace(self._base, max_tokens=2 * self._base.max_tokens)
        if not self._resumed():
            if self._shown:
                self._base = before
                self.attempts.pop()
                return False
            self._begin("more tokens", self._first_messages(), "")
        return True

    def _after_error(self, error: Exception) -> None:
        message = str(error).lower()
        too_large = (
            isinstance(error, RemoteError)
            and error.status is not None
            and 400 <= error.status < 600
            and any(one.lower() in message for one in self._size_errors)
        )
        if too_large and self.plan is not None and self.plan.sent:
            self._note(str(error))
            schema = schema_in(self.plan.sent)
            if self._on_other_route(self.plan, schema):
                return
            self._error = LimitExceededError(f"{error}{heaviest(schema)}")
            return
        lost = isinstance(error, ConnectionLostError)
        if lost and self._answer.data and self._answer.check.taken:
            self._note(str(error))
            if self._resumed() or self._repeated():
                return
            self.attempts.pop()
        self._fail(error)

    # -- the steps after a failure

    def _may_ask(self) -> bool:
        asked = sum(one.kind != "formatter" for one in self.attempts)
        settings = self._settings
        if asked >= settings.attempts or self.is_late():
            return False
        if settings.max_cost is not None and settings.prices is not None:
            return settings.prices.cost(self.usage) < settings.max_cost
        return True

    def _resumed(self) -> bool:
        """Prepare a request that continues the longest valid beginning, with the text that must follow it.

        Returns False if that is not allowed or not possible, or if the beginning is not longer than that of the last
        continuation.
        """
        if not (self._settings.resume and self._continues and self._may_ask()):
            return False
        if self._has_guarantee() and not self._shown:
            return False  # a request for a new answer contains the constraint, one for a continuation does not
        check = self._answer.check
        data = self._answer.data[: check.taken]
        if not check.failed:
            data += check.forced()
        prefix = data.decode("utf-8", "ignore")
        if not self._longest < len(prefix) <= MAX_CONTINUED or not prefix:
            return False
        self._longest = len(prefix)
        words = None if self.plan is None else self.plan.instructions or self.plan._reader.in_words()
        self._begin("resume", self._first_messages(words), prefix)
        return True

    def _has_guarantee(self) -> bool:
        """Return whether the endpoint enforces the constraint of the current request."""
        if self.plan is None or self.plan.route == "json_object":  # it only enforces that the answer is an object
            return False
        return self._enforces and bool(self._request.fragment)

    def _repeated(self) -> bool:
        """Prepare the first request again after its connection was lost. Returns False if that is not allowed.

        It is allowed if `resume` is set, the endpoint can continue texts, `_may_ask` returns True, and no text of the
        answer was shown to the caller.
        """
        if not (self._settings.resume and self._continues and self._may_ask()) or self._shown:
            return False
        self._begin("again", self._first_messages(), "")
        return True

    def _repaired(self, text: str) -> bool:
        if not self._settings.repair or self.plan is None or self._answer.usage.aborted or self._shown:
            return False
        fixed, repairs = repaired(text)
        reader = self.plan._reader
        try:
            original, more = reader.repaired(reader.original(fixed))
            repairs += more
            if not repairs:
                return False
            value = reader.constraint.parse(original)
        except InvalidTextError:
            return False
        last = self.attempts.pop()
        self.attempts.append(replace(last, problem=""))
        self.result = Result(value, original, "stop", repairs, self._answer.reasoning)
        return True

    def _asked_again(self, problem: InvalidTextError) -> bool:
        if not self._settings.ask_again or self._shown or not self._may_ask():
            return False
        answer = self._answer
        valid = answer.valid() if answer.check.failed else ""
        where = f" at {problem.place}" if problem.place else ""
        words = "Your answer did not fit"
        if valid:
            words += f". It was valid up to here:\n{valid[-MAX_QUOTED:]}\nAfter that, only this may come: {answer.check.expected()}"
        else:
            words += f"{where}: {str(problem)[:1000]}"
        words += "\nWrite the whole answer again, correctly and without other text."
        again = {"role": "user", "content": words}
        self._begin("ask again", (*self._first_messages(), {"role": "assistant", "content": valid or "…"}, again), "")
        return True

    def _formatted(self, text: str) -> bool:
        """Let the local model `formatter` write the answer again under the constraint. Returns whether it succeeded."""
        if self._settings.formatter is None or self._shown or self.constraint is None:
            return False
        from guideway.generation import complete

        asked = text_of(self._base.messages[-1]["content"], skip=True)[-MAX_QUOTED:]
        made, failure = None, ""
        for size in _DRAFT_SIZES:
            prompt = f"{asked[-size:]}\nDraft: {text[:size]}\nAnswer:\n"
            try:
                made = complete(self._settings.formatter, prompt, self.constraint, max_tokens=self._base.max_tokens)
                break
            except (ContextOverflowError, BudgetTooSmallError) as problem:
                failure = str(problem)  # the context of the model is too small: quote less
            except GuidewayError as problem:
                failure = str(problem)
                break
        if made is None:
            self.attempts.append(Attempt("formatter", "", Usage(), failure))
            return False
        self.attempts.append(Attempt("formatter", made.text[:MAX_QUOTED], Usage()))
        self.result = Result(made.value, made.text, "stop", ("formatter",), self._answer.reasoning)
        return True

    # -- the outcome

    def outcome(self) -> Result:
        """Return the result, or raise the error, without secrets in its message. `RuntimeError`: it has not ended."""
        if self._error is not None:
            if isinstance(self._error, GuidewayError) and self._error.args:
                self._error.args = (self._scrubbed(str(self._error.args[0])), *self._error.args[1:])
            raise self._error
        if self.result is None:
            raise RuntimeError("the dialogue has not ended")
        return self.result

    def cancelled(self) -> None:
        """Record the current request, if it has not ended, as an attempt that the caller cancelled."""
        if self._waiting:
            self._waiting = False
            self._answer.stop()
            self._note("cancelled")
