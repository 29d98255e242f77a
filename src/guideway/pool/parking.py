"""`PooledSession`: a session that is saved to disk while its model is not loaded."""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from guideway.errors import EngineError, GuidewayError
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
        self._lease: Lease | None = None
        self._is_closed = False
        self._cleanup = weakref.finalize(self, _remove, file)

    @property
    def is_parked(self) -> bool:
        """Whether the model was unloaded since the last block, so that the next block restores the session."""
        return self._session is None and (self._unsaved is not None or self._file.exists())

    def __enter__(self) -> Session:
        lease = self._new_lease()
        lease.acquire()
        return self._entered(lease)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        lease, self._lease = self._lease, None
        if lease is not None:
            lease.release()

    async def __aenter__(self) -> Session:
        lease = self._new_lease()
        await lease.aacquire()
        if self._session is not None:
            return self._entered(lease)
        entering = asyncio.ensure_future(asyncio.to_thread(self._entered, lease))
        try:
            return await asyncio.shield(entering)
        except asyncio.CancelledError:  # the thread continues, and `__aexit__` is not called
            entering.add_done_callback(self._entered_in_vain)
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
        except (GuidewayError, OSError):  # saving failed: only the KV cache is lost
            self._unsaved = session
        session.close()

    def _new_lease(self) -> Lease:
        if self._is_closed:
            raise EngineError("the session is closed")
        if self._lease is not None:
            raise EngineError("the session is in use by another block")
        return self._pool.lease(self.name)

    def _entered(self, lease: Lease) -> Session:
        try:
            session = self._session
            if session is None:
                self._session = session = self._restored(lease.model)
            if self._is_closed:  # by another thread, or by the caller of a task that was cancelled
                self.close()
                session.close()
                raise EngineError("the session is closed")
        except BaseException:
            lease.release()
            raise
        self._lease = lease
        return session

    def _entered_in_vain(self, entering: asyncio.Future[Session]) -> None:
        if not entering.cancelled() and entering.exception() is None:
            self.__exit__(None, None, None)

    def _restored(self, model: Any) -> Session:
        if not isinstance(model, ModelBase):
            raise EngineError(f"{self.name!r} is served by an API, so it has no sessions")
        if not self.is_parked:
            return model.session(**self._options)
        if self._unsaved is None:
            session = model.load_session(self._file)
            _remove(self._file)
        else:
            old, self._unsaved = self._unsaved, None
            session = Session(model, seed=old.seed, row=old.row, sampler=old.sampler, tokens=old.tokens)
            session.memory, session.divergence = old.memory, old.divergence
        session.constrain(self._matcher)
        self._matcher = None
        return session


def _remove(file: Path) -> None:
    with contextlib.suppress(OSError):
        file.unlink(missing_ok=True)
