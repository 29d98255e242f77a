"""`Pool`: several models under one memory budget. `scheduling.py` has the rules; this file runs them in threads."""

from __future__ import annotations

import asyncio
import math
import secrets
import shutil
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, TimeoutError as FutureTimeoutError
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from guideway import loading
from guideway.arguments import integer, short_list, short_repr
from guideway.errors import EngineError, InvalidFileError, LeaseTimeoutError
from guideway.generation import Model
from guideway.pool.parking import PooledSession
from guideway.pool.scheduling import Action, Fail, Grant, Load, Scheduler, State, Ticket, Unload
from guideway.pool.sizes import estimated_bytes, parse_bytes, resident_bytes, weight_bytes
from guideway.remote.model import RemoteModel
from guideway.sessions import ModelBase
from guideway.sessions.prefix_cache import PREFIX_BYTES

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Lease", "ModelSpec", "ModelStatus", "Pool"]

AnyModel = Model | RemoteModel


@dataclass(frozen=True)
class ModelSpec:
    """How a pool loads a model.

    Attributes:
        source: A name for `guideway.load`, or a function without arguments that returns a new model.
        options: Options of `guideway.load`, such as `device` and `context_size`. Not used if `source` is a function.
        load: A function that is called instead of `guideway.load`. Not used if `source` is a function.
        bytes: The memory that the model needs, such as "8GB". None: estimated from its files if `source` is a name, and
            measured when it is loaded.
        pinned: Whether the model stays loaded although other models need memory.
        keep: The seconds after which the unused model is unloaded. None: the `keep` of the pool.
    """

    source: str | Callable[[], AnyModel]
    options: Mapping[str, Any] = field(default_factory=dict)
    load: Callable[..., AnyModel] = loading.load
    bytes: str | int | None = None
    pinned: bool = False
    keep: float | None = None


@dataclass(frozen=True)
class ModelStatus:
    """The status of a model in a pool.

    Attributes:
        name: The name of the model in the pool.
        source: The name for `guideway.load`, or the name of the function that loads the model.
        state: "cold" (not loaded), "loading", "ready", or "draining" (it is unloaded when its leases have ended).
        bytes: The memory that the model needs, measured if it was loaded before, else estimated; None: unknown.
        is_remote: Whether the model is served by an API.
        pinned: Whether the model stays loaded although other models need memory.
        leases: The number of requests that use the model.
        waiting: The number of requests that wait for the model.
        loads: The number of times the model was loaded.
        idle_seconds: The seconds since its last lease ended, or since it was loaded if it had none; None: requests use
            the model or wait for it, or it is not loaded.
        error: The error of the last attempt to load or unload the model; "" if there was none.
        context_size: The maximum number of tokens of a session; None: not loaded, or served by an API.
    """

    name: str
    source: str
    state: State
    bytes: int | None
    is_remote: bool
    pinned: bool
    leases: int
    waiting: int
    loads: int
    idle_seconds: float | None
    error: str
    context_size: int | None = None


class Lease:
    """The right to use a model of a pool. `Pool.lease` makes one, which is not held yet.

    `with`, `async with`, `acquire` or `aacquire` waits for the model and begins the lease. While a lease is held, its
    model stays loaded. Hold only one lease at a time: a program that waits for a second model while it holds the first
    can deadlock if both do not fit into the memory.

    Attributes:
        name: The name of the model.
    """

    def __init__(self, pool: Pool, name: str, timeout: float | None) -> None:
        self.name = name
        self._pool = pool
        self._timeout = timeout
        self._ticket: Ticket | None = None
        self._model: AnyModel | None = None

    @property
    def model(self) -> AnyModel:
        """The model. Raises `EngineError` while the lease is not held."""
        if self._model is None:
            raise EngineError(f"the lease of {short_repr(self.name)} is not held; use it in a with block")
        return self._model

    def acquire(self) -> AnyModel:
        """Wait until the model is loaded and may be used, and return it.

        Raises:
            ModelNotFoundError: There is no such model, or no such file.
            ModelTooLargeError: The model is larger than the memory budget.
            LeaseTimeoutError: The model was not available within the timeout.
            EngineError: The pool is closed, or the lease is held already.
            Exception: The error of the function that loads the model.
        """
        self._ticket, future = self._pool._request(self)
        try:
            self._model = future.result(self._timeout)
        except BaseException as error:
            raise self._given_up(error, future) from None
        return self._model

    async def aacquire(self) -> AnyModel:
        """Do the same as `acquire` in an event loop. Cancelling the task ends the wait."""
        self._ticket, future = self._pool._request(self)
        try:
            if future.done():  # the usual case: the model is loaded
                self._model = future.result()
            else:
                self._model = await asyncio.wait_for(asyncio.wrap_future(future), self._timeout)
        except BaseException as error:
            raise self._given_up(error, future) from None
        return self._model

    def release(self) -> None:
        """End the lease. A second call does nothing."""
        ticket, self._ticket, self._model = self._ticket, None, None
        if ticket is not None:
            self._pool._end(ticket)

    def _given_up(self, error: BaseException, future: Future[AnyModel]) -> BaseException:
        self.release()
        timeouts = (TimeoutError, asyncio.TimeoutError, FutureTimeoutError)
        is_result = future.done() and not future.cancelled() and future.exception() is error
        if isinstance(error, timeouts) and not is_result:
            return LeaseTimeoutError(
                f"the model {short_repr(self.name)} did not become free within {self._timeout} seconds"
            )
        return error

    def __enter__(self) -> AnyModel:
        return self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    async def __aenter__(self) -> AnyModel:
        return await self.aacquire()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def __repr__(self) -> str:
        return f"Lease({self.name!r}, {'held' if self._model is not None else 'not held'})"


class Pool:
    """Several models under one memory budget.

    A model is loaded when it is needed, and unloaded when others need memory.

    A model is loaded once for all requests that wait for it. Only models without leases are unloaded; of idle models,
    the least recently used is unloaded first. Requests for one model are served in the order in which they came. If two
    models do not fit into the memory together, a loaded model keeps its memory for a minimum time, called its turn, so
    that models are not loaded again for each request. Leaving a `with` block closes the pool.

    Args:
        budget: The memory for all models, such as "24GB" or a number of bytes; None: no limit. It covers weights and
            prefix caches; leave room for the KV caches of running requests.
        models: For each name a name for `guideway.load`, a `ModelSpec`, or a function that returns a new model.
        keep: The seconds after which a model is unloaded when nothing uses it; None: no limit.
        turn_requests: The number of requests after which the turn of a loaded model ends.
        turn_seconds: The number of seconds after which the turn of a loaded model ends, if it has not ended before.
        linger: The seconds for which a model without requests keeps its memory within its turn although another model
            needs it.
        directory: A folder for sessions of unloaded models, which the first session creates if it does not exist; by
            default a temporary folder, which `close` deletes.

    Raises:
        ModelTooLargeError: A model is larger than the memory budget without the pinned models.
        ValueError: A size or a time is not valid.
        TypeError: A value of `models` is none of the above.
    """

    def __init__(
        self,
        budget: str | int | None,
        models: Mapping[str, str | ModelSpec | Callable[[], AnyModel]],
        *,
        keep: float | None = 600.0,
        turn_requests: int = 16,
        turn_seconds: float = 30.0,
        linger: float = 0.1,
        directory: str | Path | None = None,
    ) -> None:
        self.budget = None if budget is None else parse_bytes(budget)
        self._keep = None if keep is None else _seconds("keep", keep)
        self._rules = Scheduler(
            math.inf if self.budget is None else self.budget,
            time.monotonic,
            turn_requests=integer("turn_requests", turn_requests, 1),
            turn_seconds=_seconds("turn_seconds", turn_seconds),
            linger=_seconds("linger", linger),
        )
        self._directory = None if directory is None else Path(directory)
        self._temporary: Path | None = None
        lock = threading.Lock()  # held while the fields below and the rules are changed
        self._changed = threading.Condition(lock)  # notified when a model was unloaded or could not be loaded
        self._alarm = threading.Condition(lock)  # notified when the timer must wake earlier
        self._alarm_at: float | None = None  # when the timer wakes; None: there is no timer
        self._specs: dict[str, ModelSpec] = {}
        self._models: dict[str, AnyModel] = {}
        self._errors: dict[str, str] = {}
        self._waiting: dict[Ticket, Future[AnyModel]] = {}
        self._sessions: weakref.WeakSet[PooledSession] = weakref.WeakSet()
        for name, spec in models.items():
            self.add(name, spec)

    # -- models

    def add(self, name: str, spec: str | ModelSpec | Callable[[], AnyModel]) -> None:
        """Add a model. The first request for the model loads it.

        Args:
            name: The name of the model in the pool.
            spec: A value as in the argument `models` of `Pool`.

        Raises:
            ModelTooLargeError: The model needs more than the memory budget minus the memory of the pinned models.
            ValueError: The pool has a model with this name, or a size or a time in `spec` is not valid.
            TypeError: `spec` is no such value.
        """
        made = spec if isinstance(spec, ModelSpec) else ModelSpec(spec)
        if not isinstance(made.source, str) and not callable(made.source):
            raise TypeError(
                f"the model {short_repr(name)} must be a name for guideway.load, a ModelSpec or a function that returns a model,"
                f" got {short_repr(made.source)}"
            )
        size = (
            parse_bytes(made.bytes, "bytes")
            if made.bytes is not None
            else estimated_bytes(made.source)
            if isinstance(made.source, str)
            else None
        )
        keep = self._keep if made.keep is None else _seconds("keep", made.keep)
        with self._changed:
            if name in self._specs:
                raise ValueError(f"the pool has a model {short_repr(name)} already")
            self._rules.add(name, size, pinned=made.pinned, keep=keep)
            self._specs[name] = made

    @property
    def names(self) -> list[str]:
        """The names of the models, in the order in which they were added."""
        return list(self._specs)

    def status(self) -> list[ModelStatus]:
        """Return the state of each model."""
        with self._changed:
            return [self._status(name) for name in self._specs]

    def _status(self, name: str) -> ModelStatus:
        entry, source = self._rules.entries[name], self._specs[name].source
        shown = source if isinstance(source, str) else getattr(source, "__name__", "function")
        idle = time.monotonic() - entry.last_used if entry.is_idle else None
        model = self._models.get(name)
        context = model.context_size if isinstance(model, ModelBase) and entry.phase == "ready" else None
        return ModelStatus(
            name,
            shown,
            entry.state,
            entry.known,
            isinstance(source, str) and loading.is_remote(source),
            entry.pinned,
            entry.leases,
            len(entry.waiting),
            entry.loads,
            idle,
            self._errors.get(name, ""),
            context,
        )

    # -- requests

    def lease(self, name: str, *, timeout: float | None = None) -> Lease:
        """Return a lease, for `with pool.lease(name) as model:` or `async with`.

        Args:
            name: The name of the model in the pool.
            timeout: The seconds to wait; None: no limit.

        Returns:
            The lease, which is not yet held.

        Raises:
            ModelNotFoundError: The pool has no such model.
            ValueError: `timeout` is negative or not a finite number.
        """
        self._rules.entry(name)
        return Lease(self, name, None if timeout is None else _seconds("timeout", timeout))

    def preload(self, *names: str, timeout: float | None = None) -> None:
        """Load models, and wait until they are loaded.

        Args:
            *names: The names of the models. Without names, all models are loaded.
            timeout: The seconds to wait for each; None: no limit.

        Raises:
            Exception: The errors of `Lease.acquire`.
        """
        for name in names or self.names:
            with self.lease(name, timeout=timeout):
                pass

    def unload(self, name: str) -> ModelStatus:
        """Unload a model when its leases have ended, also a pinned one. A request after that loads it again.

        Args:
            name: The name of the model in the pool.

        Returns:
            The state of the model.

        Raises:
            ModelNotFoundError: The pool has no such model.
        """
        with self._changed:
            actions = self._rules.unload(name)
            status = self._status(name)
        self._carry_out(actions)
        return status

    def session(self, name: str, **options: Any) -> PooledSession:
        """Return a session that can be continued after its model was unloaded.

        Use: `with pool.session(name) as session:`.

        Args:
            name: The name of the model in the pool.
            **options: Arguments of `Model.session`, such as `seed` and `sampler`.

        Returns:
            The session. The first `with` block makes it.

        Raises:
            ModelNotFoundError: The pool has no such model.
            InvalidFileError: The `directory` of the pool cannot be created.
        """
        self._rules.entry(name)
        with self._changed:
            if self._directory is None:
                self._temporary = self._directory = Path(tempfile.mkdtemp(prefix="guideway-"))
                weakref.finalize(self, shutil.rmtree, self._temporary, ignore_errors=True)
            elif self._temporary is None:
                try:
                    self._directory.mkdir(parents=True, exist_ok=True)
                except (OSError, ValueError) as error:  # ValueError: the path has a NUL character
                    raise InvalidFileError.of("create", self._directory, error) from error
            file = self._directory / f"{secrets.token_hex(16)}.session"
            made = PooledSession(self, name, file, options)
            self._sessions.add(made)
        return made

    def close(self, timeout: float | None = None) -> None:
        """Refuse further requests, wait until all leases have ended, and close the models.

        Args:
            timeout: The seconds to wait; None: no limit.

        Raises:
            LeaseTimeoutError: Within `timeout`, a lease has not ended, or a model is still being loaded or unloaded.
                The models are closed later, when nothing uses them.
        """
        self._close(timeout, lambda: False)

    async def aclose(self, timeout: float | None = None) -> None:
        """Do the same as `close` in an event loop. Cancelling the task ends the wait."""
        is_cancelled = threading.Event()
        try:
            await asyncio.to_thread(self._close, timeout, is_cancelled.is_set)
        except asyncio.CancelledError:
            is_cancelled.set()
            with self._changed:
                self._changed.notify_all()
            raise

    def _close(self, timeout: float | None, is_cancelled: Callable[[], bool]) -> None:
        with self._changed:
            actions = self._rules.close()
        self._carry_out(actions)
        with self._changed:
            done = self._changed.wait_for(
                lambda: is_cancelled() or all(entry.phase == "cold" for entry in self._rules.entries.values()), timeout
            )
            if is_cancelled():
                return
            in_use = [entry.name for entry in self._rules.entries.values() if entry.leases]
            sessions = list(self._sessions)
        if not done:
            what = f"leases of {short_list(in_use)} have not ended" if in_use else "the models were not unloaded"
            raise LeaseTimeoutError(f"{what} within {timeout} seconds")
        for session in sessions:
            session.close()
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        states = ", ".join(f"{one.name}: {one.state}" for one in self.status())
        return f"Pool({self.budget}, {{{states}}})"

    # -- the rules in threads

    def _request(self, lease: Lease) -> tuple[Ticket, Future[AnyModel]]:
        if lease._ticket is not None:
            raise EngineError(f"the lease of {short_repr(lease.name)} is held already")
        future: Future[AnyModel] = Future()
        with self._changed:
            ticket, actions = self._rules.request(lease.name)
            self._waiting[ticket] = future
        self._carry_out(actions)
        return ticket, future

    def _end(self, ticket: Ticket) -> None:
        with self._changed:
            self._waiting.pop(ticket, None)
            actions = self._rules.end(ticket)
        self._carry_out(actions)

    def _carry_out(self, actions: Iterable[Action]) -> None:
        """Start loads and unloads, and answer requests, as the actions say. Call it without holding the lock."""
        for action in actions:
            if isinstance(action, Load):
                try:
                    threading.Thread(
                        target=self._load, args=(action.name,), name=f"load {action.name}", daemon=True
                    ).start()
                except RuntimeError as error:  # no further thread can be started
                    self._failed(action.name, EngineError(f"cannot load {short_repr(action.name)}: {error}"))
            elif isinstance(action, Unload):
                try:
                    threading.Thread(
                        target=self._unload, args=(action.name,), name=f"unload {action.name}", daemon=True
                    ).start()
                except RuntimeError:
                    self._unload(action.name)
            else:
                self._answer(action)
        with self._changed:
            at = self._rules.wake_at()
            if at is None:
                return
            if self._alarm_at is None:
                with suppress(RuntimeError):  # the next action tries again
                    threading.Thread(target=_run_timer, args=(weakref.ref(self),), name="pool", daemon=True).start()
                    self._alarm_at = at
            elif at < self._alarm_at:
                self._alarm.notify()

    def _answer(self, action: Grant | Fail) -> None:
        with self._changed:
            future = self._waiting.pop(action.ticket, None)
            model = self._models.get(action.ticket.name)
        if future is None or not future.set_running_or_notify_cancel():
            return  # the caller no longer waits, and ends the request itself
        if isinstance(action, Fail):
            future.set_exception(action.error)
        elif model is not None:
            future.set_result(model)

    def _load(self, name: str) -> None:
        spec = self._specs[name]
        try:
            model, measured = _loaded(spec)
        except BaseException as error:
            shown = error if isinstance(error, Exception) else EngineError(f"loading {name} was interrupted: {error!r}")
            self._failed(name, shown)
            return
        with self._changed:
            self._models[name] = model
            self._errors.pop(name, None)
            actions = self._rules.loaded(name, measured)
        self._carry_out(actions)

    def _failed(self, name: str, error: Exception) -> None:
        """Store the error of a model that could not be loaded, and answer its waiting requests with it."""
        with self._changed:
            self._errors[name] = f"{type(error).__name__}: {error}"
            actions = self._rules.failed(name, error)
            self._changed.notify_all()
        self._carry_out(actions)

    def _unload(self, name: str) -> None:
        with self._changed:
            model = self._models.pop(name)
            parked = [session for session in self._sessions if session.name == name]
        try:
            with ExitStack() as stack:  # an error of one does not keep the others
                if isinstance(model, ModelBase):
                    stack.callback(model.close)
                for session in parked:
                    stack.callback(session.park)
        except Exception as error:  # the model counts as unloaded in any case
            with self._changed:
                self._errors[name] = f"{type(error).__name__}: {error}"
        finally:
            del model
            with self._changed:
                actions = self._rules.unloaded(name)
                self._changed.notify_all()
            self._carry_out(actions)

    def _wait(self) -> bool:
        """Wait until the next time at which a rule applies, at most `_LONGEST_WAIT`. Then apply the rules.

        Returns False, without waiting, if there is no such time. A notification ends the wait, and True is returned
        without applying the rules.
        """
        with self._alarm:
            self._alarm_at = self._rules.wake_at()
            if self._alarm_at is None:
                return False
            wait = min(max(0.0, self._alarm_at - time.monotonic()), _LONGEST_WAIT)
            if self._alarm.wait(wait):
                return True
            actions = self._rules.step()
        self._carry_out(actions)
        return True


_LONGEST_WAIT = 10.0
"""Maximum number of seconds that the timer waits before it checks whether its pool still exists."""


def _run_timer(pool: weakref.ref[Pool]) -> None:
    while (found := pool()) is not None and found._wait():
        del found


def _loaded(spec: ModelSpec) -> tuple[AnyModel, int | None]:
    """Load a model. Returns it, and the bytes that it needs; None: not measured.

    The measure is `PREFIX_BYTES` and the memory that the engine reports, else the growth of this process, but at least
    the size of its weights.
    """
    before = resident_bytes()
    source = spec.source
    if not isinstance(source, str):
        model = source()
    else:
        model = spec.load(source, **spec.options)
    if not isinstance(model, (Model, RemoteModel)):
        raise EngineError(f"the function {short_repr(source)} must return a guideway.Model, got {short_repr(model)}")
    if spec.bytes is not None or not isinstance(model, ModelBase):
        return model, None
    own: int | None = getattr(model.engine, "memory_bytes", None)  # engines on a device report it
    if own is None and before is not None and (after := resident_bytes()) is not None:
        weights = weight_bytes(source) if isinstance(source, str) else None
        own = max(after - before, weights or 0)  # memory-mapped files are read into memory later
    return model, None if own is None else own + PREFIX_BYTES


def _seconds(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
        raise ValueError(f"{name} must be a number of seconds that is not negative, got {short_repr(value)}")
    return float(value)
