"""`PooledSession`: a session that is saved to disk while its model is not loaded."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
import weakref
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from guideway.arguments import short_repr
from guideway.errors import EngineError
from guideway.matcher import Matcher
from guideway.sessions import ModelBase, Session

if TYPE_CHECKING:
    from guideway.pool.pool import Lease, Pool

__all__ = ["PooledSession"]


class PooledSession:
    """A session of a model of a pool. `Pool.session` makes one.

    A `with` block (or `async with`) leases the model and yields the `Session`. Between two blocks the pool may unload
    the model: the session is then saved to a file, and the next block restores it. Two blocks must not use it at the
    same time.

    Attributes:
        name: The name of the model.
    """

    def __init__(self, pool: Pool, name: str, file: Path, options: dict[str, Any]) -> None:
        self.name = name
        self._pool = pool
        self._file = file
        self._options = options
        self._session: Session | None = None
        self._matcher: Matcher | None = None  # the matcher of a saved session
        self._unsaved: Session | None = None  # if saving failed: its tokens are kept, not its KV cache
        self._use: _Use | None = None  # by the block that is entered or waits for its lease
        self._entering = threading.Lock()  # held while `_use` is compared and set
        self._restoring = threading.Lock()  # held while the session is restored, so that it is restored once
        self._is_closed = False
        self._cleanup = weakref.finalize(self, _remove, file)

    @property
    def is_parked(self) -> bool:
        """Whether the model was unloaded since the last block, so that the next block restores the session."""
        return self._session is None and (self._unsaved is not None or self._file.exists())

    def __enter__(self) -> Session:
        use = self._new_use()
        try:
            return self._opened(use.lease.acquire())
        except BaseException:
            self._leave(use)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._use is not None:
            self._leave(self._use)

    async def __aenter__(self) -> Session:
        use = self._new_use()
        try:
            model = await use.lease.aacquire()
            if self._session is not None:
                return self._opened(model)
            return await self._opened_in_thread(use, model)
        except BaseException:  # `__aexit__` is not called
            self._leave(use)
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)

    def close(self) -> None:
        """Close the session, and delete its file. It cannot be used again."""
        self._is_closed = True
        session, self._session, self._unsaved = self._session, None, None
        if session is not None:
            session.close()
        self._cleanup()

    def park(self) -> None:
        """Save the session, and release its memory. The pool calls this before it unloads the model.

        If the session cannot be saved, its tokens stay in memory, and the model runs them again in the next `with`
        block.
        """
        session, self._session = self._session, None
        if session is None:
            return
        self._matcher = session.matcher  # stays in memory, because a file has no constraint
        session.constrain(None)
        try:
            session.save(self._file)
        except Exception:  # of the file system, or any error of the engine: only the KV cache is lost
            self._unsaved = session
        session.close()
        if self._is_closed:  # meanwhile, by another thread
            self._unsaved = None
            _remove(self._file)

    def _new_use(self) -> _Use:
        with self._entering:
            if self._is_closed:
                raise EngineError("the session is closed")
            if self._use is not None:
                raise EngineError("the session is in use by another block")
            self._use = use = _Use(self._pool.lease(self.name))
        return use

    def _leave(self, use: _Use) -> None:
        with self._entering:
            if self._use is use:
                self._use = None
        use.end()

    def _opened(self, model: Any) -> Session:
        with self._restoring:
            session = self._session
            if session is None and not self._is_closed:
                self._session = session = self._restored(model)
        if session is None or self._is_closed:  # by another thread, or by the caller of a task that was cancelled
            self.close()
            if session is not None:
                session.close()
            raise EngineError("the session is closed")
        return session

    async def _opened_in_thread(self, use: _Use, model: Any) -> Session:
        """Return the session when a thread has restored it.

        If the task is cancelled, the thread continues, and holds the lease until it ends. The next block uses the
        session that it restores.
        """

        def opened() -> Session:
            try:
                return self._opened(model)
            finally:
                use.end()

        def ended(entering: asyncio.Future[Session]) -> None:
            if entering.cancelled():  # by its executor, so that `opened` is not called
                use.end()
            else:
                entering.exception()  # an error that is not read is logged

        use.share()
        try:
            entering = asyncio.get_running_loop().run_in_executor(None, contextvars.copy_context().run, opened)
        except BaseException:  # the event loop starts no further threads
            use.end()
            raise
        entering.add_done_callback(ended)
        return await asyncio.shield(entering)

    def _restored(self, model: Any) -> Session:
        if not isinstance(model, ModelBase):
            raise EngineError(f"{short_repr(self.name)} is served by an API, so it has no sessions")
        if not self.is_parked:
            return model.session(**self._options)
        old = self._unsaved
        if old is None:
            session = model.load_session(self._file)
        else:
            session = Session(model, seed=old.seed, row=old.row, sampler=old.sampler, tokens=old.tokens)
            session.memory, session.divergence = old.memory, old.divergence
        session.constrain(self._matcher)
        self._matcher = self._unsaved = None
        _remove(self._file)
        return session


class _Use:
    """A lease that a block holds, and a thread that restores the session for the block. It ends when both ended it."""

    def __init__(self, lease: Lease) -> None:
        self.lease = lease
        self._holders = 1
        self._lock = threading.Lock()

    def share(self) -> None:
        """Add a holder, which also calls `end`."""
        with self._lock:
            self._holders += 1

    def end(self) -> None:
        with self._lock:
            self._holders -= 1
            is_last = self._holders == 0
        if is_last:
            self.lease.release()


def _remove(file: Path) -> None:
    with contextlib.suppress(OSError):
        file.unlink(missing_ok=True)
