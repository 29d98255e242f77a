"""The state of a running server: its models, settings, metrics, and the requests in flight."""

from __future__ import annotations

import hashlib
import hmac
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from weakref import WeakKeyDictionary, WeakSet

from guideway.constraints.tools import Family
from guideway.generation import Model
from guideway.generation.async_loop import loop_of
from guideway.server.constraint_workers import ConstraintWorkers
from guideway.server.errors import HttpError
from guideway.server.metrics import Metrics
from guideway.server.models import ServedModels
from guideway.server.settings import ServerSettings

__all__ = ["LOG", "ServerState"]

LOG = logging.getLogger("guideway.server")


class ServerState:
    """The state that the endpoints share. Use the object in the thread of the event loop.

    Args:
        models: The models that the server offers.
        settings: The settings.

    Attributes:
        ready: Whether the models are loaded.
        on_ready: Called in the thread of the event loop before `ready` is set.
        workers: Processes that translate large constraints.
        families: By model: the notation of its replies, as the last request with tools or reasoning determined it.
        failure: Why the models cannot be loaded; None: no error occurred.
        draining: Whether the server is stopping and takes no new requests.
    """

    def __init__(self, models: ServedModels, settings: ServerSettings) -> None:
        self.models, self.settings = models, settings
        self.ready = self.draining = False
        self.on_ready: Callable[[], None] = lambda: None
        self.failure: str | None = None
        self.metrics = Metrics()
        self.metrics.gauge("num_requests_running", "Requests in flight.", lambda: float(self._count))
        self.metrics.gauge("tokens_in_flight", "Tokens that the requests in flight may need.", lambda: self._tokens)
        self.metrics.gauge("num_sequences", "Sequences that run in the models.", self._sequences)
        self.metrics.gauge("prefix_cache_bytes", "Bytes of cached prefixes of the models.", self._prefix_bytes)
        self._models: WeakSet[Model] = WeakSet()
        self.workers = ConstraintWorkers(settings.constraint_workers)
        self.families: WeakKeyDictionary[Model, Family] = WeakKeyDictionary()
        self._count, self._tokens = 0, 0
        self._of_key: Counter[str] = Counter()
        self._keys = [hashlib.sha256(key.encode()).digest() for key in settings.api_keys]

    def uses(self, model: Model) -> None:
        """Include a model in the metrics from now on."""
        self._models.add(model)

    def _sequences(self) -> float:
        return float(sum(loop_of(model).sequences for model in self._models))

    def _prefix_bytes(self) -> float:
        return float(sum(model.prefixes.statistics.nbytes for model in self._models))

    def key_of(self, header: str | None) -> str:
        """Return the name of the API key in an `Authorization` header: the beginning of its digest.

        It is "" if the server has no keys, so that no key is needed. The name of the scheme, "Bearer", may have any case
        (RFC 9110, section 11.1).

        Raises:
            HttpError: The key is missing or wrong (401).
        """
        if not self._keys:
            return ""
        scheme, _, credentials = (header or "").partition(" ")
        given = (credentials if scheme.lower() == "bearer" else header or "").strip()
        digest = hashlib.sha256(given.encode("utf-8", "surrogatepass")).digest()
        # All keys are compared, so that the time does not depend on which one is equal.
        matches = [hmac.compare_digest(digest, one) for one in self._keys]
        if not any(matches):
            raise HttpError(
                401,
                "the API key is missing or wrong; send the header 'Authorization: Bearer KEY'",
                code="invalid_api_key",
                headers={"WWW-Authenticate": "Bearer"},
            )
        return digest.hex()[:16]

    @contextmanager
    def admitted(self, key: str) -> Iterator[Admission]:
        """Count a request as running or waiting until the block ends.

        Args:
            key: The name of its API key.

        Yields:
            The admission, with which tokens can be reserved.

        Raises:
            HttpError: The server is loading or stopping (503), or has too many requests (429).
        """
        self.check_capacity(key)
        one = Admission(self)
        self._count += 1
        self._of_key[key] += 1
        try:
            yield one
        finally:
            self._count -= 1
            self._tokens -= one.tokens
            self._of_key[key] -= 1
            if not self._of_key[key]:
                del self._of_key[key]

    def check_capacity(self, key: str) -> None:
        """Raise `HttpError` (503 or 429) if the server takes no further request of this API key."""
        if self.draining:
            raise HttpError(
                503,
                "the server stops; send the request to another one",
                kind="server_error",
                code="shutting_down",
                headers={"Retry-After": "5"},
            )
        if self.failure is not None:
            raise HttpError(503, self.failure, kind="server_error", code="loading_failed")
        if not self.ready:
            raise HttpError(
                503, "the models are being loaded", kind="server_error", code="loading", headers={"Retry-After": "2"}
            )
        if self._count >= self.settings.max_queue or self._of_key[key] >= self.settings.max_queue_per_key:
            raise busy(f"{self._count} requests run or wait; send the request again later")

    def reserve(self, tokens: int) -> None:
        """Reserve tokens. `Admission.reserve` calls it; `admitted` releases the tokens at the end of the request.

        Raises `HttpError` (429) if all requests together would need more than `max_tokens_in_flight`.
        """
        most = self.settings.max_tokens_in_flight
        if most is not None and self._tokens + tokens > most:
            raise busy(f"the requests in flight may need {self._tokens} tokens of {most}; this one needs {tokens}")
        self._tokens += tokens


class Admission:
    """A request that runs or waits. `tokens`: the number of tokens that are reserved for it."""

    def __init__(self, state: ServerState) -> None:
        self._state = state
        self.tokens = 0

    def reserve(self, tokens: int) -> None:
        """Reserve tokens until the request ends.

        Raises `HttpError` (429) if all requests together would need more than `max_tokens_in_flight`.
        """
        self._state.reserve(tokens)
        self.tokens += tokens


def busy(message: str) -> HttpError:
    """Return the error (429) for a request that the server has no capacity for now."""
    return HttpError(429, message, kind="rate_limit_error", code="rate_limit_exceeded", headers={"Retry-After": "1"})
