"""`PooledModels`: the models of a `Pool`, for a server; and the endpoints that list and unload them."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from guideway.errors import LeaseTimeoutError, ModelTooLargeError
from guideway.pool import ModelStatus, Pool
from guideway.server.errors import HttpError
from guideway.server.models import ModelCard, ServedModels, known_name
from guideway.server.state import ServerState

__all__ = ["PooledModels", "pool_models", "unload_model"]


class PooledModels:
    """The models of a pool. The class implements `ServedModels`. A request for a model that is not loaded loads it.

    Args:
        pool: The pool. `stop` closes it.
        preload: The names of the models that are loaded at the start.
        lease_seconds: The maximum time that a request waits for its model.
        close_seconds: The time that `stop` waits for leases to end.

    Raises:
        ValueError: The pool has no models.
    """

    def __init__(
        self, pool: Pool, *, preload: Sequence[str] = (), lease_seconds: float = 600.0, close_seconds: float = 10.0
    ) -> None:
        if not pool.names:
            raise ValueError("a server needs at least one model")
        self.pool = pool
        self._preload = list(preload)
        self._lease_seconds, self._close_seconds = lease_seconds, close_seconds
        self._created = int(time.time())

    async def start(self) -> None:
        """Load the models `preload`."""
        for name in self._preload:
            async with self.pool.lease(name):
                pass

    async def stop(self) -> None:
        """Close the pool."""
        await self.pool.aclose(self._close_seconds)

    def cards(self) -> list[ModelCard]:
        """Return the `ModelCard` of each model."""
        return [self._card(status) for status in self.pool.status()]

    def _card(self, status: ModelStatus) -> ModelCard:
        details: dict[str, Any] = {"bytes": status.bytes, "pinned": status.pinned}
        return ModelCard(status.name, status.state, status.source, status.context_size, self._created, details)

    @asynccontextmanager
    async def lease(self, name: str | None) -> AsyncIterator[Any]:
        """Wait until the model with this name is loaded, and yield it; see `ServedModels.lease`.

        Raises:
            HttpError: The model was not free within `lease_seconds`, or is too large for the memory of the pool (503).
        """
        found = known_name(name, self.pool.names)
        held = self.pool.lease(found, timeout=self._lease_seconds)
        try:
            model = await held.aacquire()
        except LeaseTimeoutError as error:
            raise HttpError(
                503, str(error), kind="server_error", code="model_busy", headers={"Retry-After": "5"}
            ) from None
        except ModelTooLargeError as error:
            raise HttpError(503, str(error), kind="server_error", code="model_too_large") from None
        try:
            yield model
        finally:
            held.release()


async def pool_models(state: ServerState, request: Request) -> Response:
    """`GET /guideway/models`: the state of each model of the pool; an empty list if the server has no pool."""
    pool = _pool_of(state.models)
    data = [] if pool is None else [dataclasses.asdict(one) for one in pool.status()]
    return JSONResponse({"object": "list", "budget": None if pool is None else pool.budget, "data": data})


async def unload_model(state: ServerState, request: Request) -> Response:
    """`POST /guideway/models/{name}/unload`: unload a model as soon as its running requests have ended.

    A later request loads it again.
    """
    pool = _pool_of(state.models)
    if pool is None:
        raise HttpError(400, "the models of this server stay loaded", code="not_in_a_pool")
    return JSONResponse(dataclasses.asdict(pool.unload(known_name(request.path_params["name"], pool.names))))


def _pool_of(models: ServedModels) -> Pool | None:
    parts = (models, *getattr(models, "parts", ()))
    return next((one.pool for one in parts if isinstance(one, PooledModels)), None)
