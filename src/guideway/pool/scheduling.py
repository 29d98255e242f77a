"""The rules of a pool as a state machine: its methods are events, and they return the actions to carry out.

It has no threads and reads the time only from its clock, so tests run it on a virtual clock. The caller holds a lock
during each call, carries out the returned actions, and reports their ends with `loaded`, `failed` and `unloaded`.

Invariants:

- The bytes of all models that are not cold do not exceed the memory budget, if no model needs more bytes than were
  reserved for it. If a loaded model needs more, idle models are unloaded, whether or not their turns have ended. If
  that does not free enough memory, the model itself is unloaded before any request uses it.
- A model with leases is not unloaded. A model for which requests wait is not unloaded before it has served one of them,
  unless it does not fit into the memory budget.
- A cold model with waiting requests has a claim: a place in the queue of models that are to be loaded. Claims are
  served in the order in which they were made. A later claim gets only bytes that the earlier ones do not need. So each
  claim is served after finitely many leases.
- The claim of another model does not unload a loaded model before its turn ends. The turn ends when the model has
  served `turn_requests` requests, was loaded for `turn_seconds` seconds, or was idle for `linger` seconds. So requests
  of two clients do not make the pool load their models again and again.
- At most one model that needs memory is being loaded, so that its bytes can be measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import count
from typing import Literal

from guideway.arguments import short_list, short_repr
from guideway.errors import EngineError, ModelNotFoundError, ModelTooLargeError

__all__ = ["Action", "Fail", "Grant", "Load", "PooledModel", "Scheduler", "State", "Ticket", "Unload", "size_text"]

State = Literal["cold", "loading", "ready", "draining"]
"""The state of a model. "cold": not loaded. "ready": usable. "draining": it is unloaded when its leases have ended."""


class Ticket:
    """A request for a model.

    Its `state` is first "waiting", then "leased", unless it fails or no longer waits, and at last "ended".
    """

    __slots__ = ("name", "state")

    def __init__(self, name: str) -> None:
        self.name = name
        self.state: Literal["waiting", "leased", "ended"] = "waiting"


@dataclass(frozen=True)
class Load:
    """The action: load a model, then call `loaded` or `failed`."""

    name: str


@dataclass(frozen=True)
class Unload:
    """The action: close a model, then call `unloaded`."""

    name: str


@dataclass(frozen=True)
class Grant:
    """The action: let a request use its model, until `end` is called for the request."""

    ticket: Ticket


@dataclass(frozen=True)
class Fail:
    """The action: end a request with an error."""

    ticket: Ticket
    error: Exception


Action = Load | Unload | Grant | Fail


@dataclass(eq=False)
class PooledModel:
    """A model of the pool.

    Attributes:
        name: The name of the model.
        estimate: The bytes that the model is expected to need; None: unknown. Then all bytes of the memory budget that
            pinned models do not need are reserved for it.
        pinned: Whether the model is never unloaded to free memory for others.
        keep: The seconds after which the idle model is unloaded; None: no limit.
        phase: Whether the model is in memory ("ready"), not in memory ("cold"), or being loaded or unloaded.
        measured: The bytes that the model needed when it was loaded last; None: not measured.
        reserved: The bytes of the model that count against the memory budget now.
        waiting: The requests that wait for the model, in the order in which they came.
        leases: The number of requests that use the model.
        claim: The number of its claim, by which claims are ordered; None: it has no claim.
        served: The number of requests that got the model since it was loaded.
        loads: The number of times the model was loaded.
        ready_since: The time at which the model was loaded.
        last_used: The time at which its last lease ended, or at which it was loaded if that is later.
        closed: Whether the model gets no further leases now, because it is to be unloaded.
        leaving: Whether `unload` or `close` demands that the model is unloaded.
    """

    name: str
    estimate: int | None
    pinned: bool
    keep: float | None
    phase: Literal["cold", "loading", "ready", "unloading"] = "cold"
    measured: int | None = None
    reserved: float = 0
    waiting: dict[Ticket, None] = field(default_factory=dict)
    leases: int = 0
    claim: int | None = None
    served: int = 0
    loads: int = 0
    ready_since: float = 0.0
    last_used: float = 0.0
    closed: bool = False
    leaving: bool = False

    @property
    def state(self) -> State:
        """The state for users."""
        if self.phase == "unloading" or (self.phase == "ready" and self.closed):
            return "draining"
        return self.phase

    @property
    def is_idle(self) -> bool:
        """Whether the model is loaded, and no request uses it or waits for it."""
        return self.phase == "ready" and not self.leases and not self.waiting

    @property
    def known(self) -> int | None:
        """The bytes that the model needs: measured, else estimated; None: unknown."""
        return self.estimate if self.measured is None else self.measured


class Scheduler:
    """Decides which models of a pool are loaded and unloaded, and which requests may use them.

    Args:
        budget: The number of bytes for all models.
        clock: Returns the time in seconds, which never decreases.
        turn_requests: The number of requests after which the turn of a loaded model ends.
        turn_seconds: The number of seconds after which the turn of a loaded model ends.
        linger: The number of seconds for which an idle model keeps its memory within its turn although another model
            needs it.
    """

    def __init__(
        self,
        budget: float,
        clock: Callable[[], float],
        *,
        turn_requests: int = 16,
        turn_seconds: float = 30.0,
        linger: float = 0.1,
    ) -> None:
        self.budget = budget
        self.entries: dict[str, PooledModel] = {}
        self._clock = clock
        self._turn_requests, self._turn_seconds, self._linger = turn_requests, turn_seconds, linger
        self._numbers = count()
        self._is_closed = False

    # -- events

    def add(self, name: str, estimate: int | None, *, pinned: bool = False, keep: float | None = None) -> None:
        """Add a model, which is not loaded. `estimate` and `keep`: see `PooledModel`.

        Raises:
            ModelTooLargeError: The model can never be loaded together with the pinned models; or the model is pinned,
                and another one could then never be loaded.
        """
        entry = PooledModel(name, estimate, pinned, keep)
        self.entries[name] = entry
        try:
            for one in self.entries.values() if pinned else [entry]:
                self._check_size(one)
        except ModelTooLargeError:
            del self.entries[name]
            raise

    def request(self, name: str) -> tuple[Ticket, list[Action]]:
        """Event: a request for a model begins to wait. Returns its `Ticket` and the actions.

        Raises:
            ModelNotFoundError: There is no such model.
            EngineError: The pool is closed.
        """
        entry = self.entry(name)
        if self._is_closed:
            raise EngineError("the pool is closed")
        ticket = Ticket(name)
        entry.waiting[ticket] = None
        return ticket, self.step()

    def end(self, ticket: Ticket) -> list[Action]:
        """Event: a request no longer waits, or its lease ends. A second call for the same `Ticket` changes nothing."""
        entry = self.entries[ticket.name]
        if ticket.state == "waiting":
            del entry.waiting[ticket]
        elif ticket.state == "leased":
            entry.leases -= 1
            entry.last_used = self._clock()
        ticket.state = "ended"
        return self.step()

    def loaded(self, name: str, measured: int | None = None) -> list[Action]:
        """Event: a model was loaded. `measured`: the bytes that it needs; None: they could not be measured."""
        entry = self.entries[name]
        entry.phase, entry.served, entry.closed = "ready", 0, False
        entry.loads += 1
        entry.ready_since = entry.last_used = self._clock()
        if measured is not None:
            entry.measured = entry.reserved = measured
        actions: list[Action] = []
        if not self._make_room_after(entry, actions):
            self._unload(entry, actions)  # it is loaded again later: its claim stays, and its size is known now
        else:
            entry.claim = None
        return actions + self.step()

    def failed(self, name: str, error: Exception) -> list[Action]:
        """Event: a model could not be loaded.

        The requests that wait for it get the error; a later request loads it again.
        """
        entry = self.entries[name]
        entry.phase, entry.reserved, entry.claim, entry.leaving = "cold", 0, None, False
        return [*self._fail_all(entry, error), *self.step()]

    def unloaded(self, name: str) -> list[Action]:
        """Event: a model was closed and is no longer in memory."""
        entry = self.entries[name]
        entry.phase, entry.reserved, entry.closed, entry.leaving = "cold", 0, False, False
        return self.step()

    def unload(self, name: str) -> list[Action]:
        """Event: a model is to be unloaded when its leases have ended.

        If the model is being loaded, it may first serve a waiting request. Requests that still wait after the unloading
        load it again. The event has no effect on a model that is neither loaded nor being loaded.
        """
        entry = self.entry(name)
        entry.leaving = entry.phase in ("loading", "ready")
        return self.step()

    def close(self) -> list[Action]:
        """Event: the pool is closed. Further and waiting requests get an error, and all models are unloaded."""
        self._is_closed = True
        actions: list[Action] = []
        for entry in self.entries.values():
            actions += self._fail_all(entry, EngineError("the pool is closed"))
            entry.leaving = entry.phase in ("loading", "ready")
        return actions + self.step()

    def entry(self, name: str) -> PooledModel:
        """Return the model with this name. Raises `ModelNotFoundError` if there is none."""
        found = self.entries.get(name)
        if found is None:
            known = short_list(sorted(self.entries)) or "none"
            raise ModelNotFoundError(f"there is no model {short_repr(name)} in the pool; it has {known}")
        return found

    def wake_at(self) -> float | None:
        """Return the time at which `step` must be called if no event comes before; None: it need not be called."""
        now, times = self._clock(), []
        claims = any(entry.claim is not None for entry in self.entries.values())
        for entry in self.entries.values():
            if entry.phase != "ready" or entry.pinned or entry.closed:
                continue
            if entry.is_idle and entry.keep is not None:
                times.append(entry.last_used + entry.keep)
            if claims:
                times.append(entry.ready_since + self._turn_seconds)
                if entry.is_idle:
                    times.append(entry.last_used + self._linger)
        return min((time for time in times if time > now), default=None)

    # -- rules

    def step(self) -> list[Action]:
        """Apply the rules, and return the actions.

        Each method for an event calls it. If no event comes first, the caller must call it at the time that `wake_at`
        returns.
        """
        now = self._clock()
        actions: list[Action] = []
        for entry in self.entries.values():
            self._update_claim(entry, actions)
        while True:
            contended = self._plan(now, actions)
            if not self._grant(contended, actions):
                break
        for entry in self.entries.values():
            expired = entry.keep is not None and now >= entry.last_used + entry.keep
            if entry.is_idle and expired and not entry.pinned:
                self._unload(entry, actions)
        return actions

    def _update_claim(self, entry: PooledModel, actions: list[Action]) -> None:
        if entry.phase == "cold" and entry.waiting:
            try:
                self._check_size(entry)
            except ModelTooLargeError as error:
                actions += self._fail_all(entry, error)
        if not entry.waiting:
            entry.claim = None
        elif entry.phase == "cold" and entry.claim is None:
            entry.claim = next(self._numbers)

    def _plan(self, now: float, actions: list[Action]) -> bool:
        """Start loads and unloads, and set `closed` of each model.

        Returns whether a claim needs memory of models that cannot be chosen for unloading yet, for example because
        their turns have not ended.
        """
        chosen: list[PooledModel] = []  # models that get no further leases; each is unloaded once no request uses it
        for entry in self.entries.values():
            if entry.phase == "ready" and entry.leaving and (entry.served or not entry.waiting):
                chosen.append(entry)
        free = self.budget - sum(entry.reserved for entry in self.entries.values())
        coming = sum(entry.reserved for entry in self.entries.values() if entry.phase == "unloading")
        promised = free + coming + sum(entry.reserved for entry in chosen)
        is_loading = any(entry.phase == "loading" and entry.reserved for entry in self.entries.values())
        contended = False
        for entry in sorted(self._claims(), key=lambda one: one.claim or 0):
            need = self._needed(entry)
            if need and not contended:
                victims, freed = self._victims(need - promised, now, chosen)
                contended = freed < need - promised
                if not contended:
                    chosen += victims
                    promised += freed - need
            if not need or (not contended and need <= free and not is_loading):
                entry.phase, entry.reserved = "loading", need
                free -= need
                is_loading = is_loading or need > 0
                actions.append(Load(entry.name))
        for entry in self.entries.values():
            entry.closed = entry in chosen
        for entry in chosen:
            if not entry.leases:
                self._unload(entry, actions)
        return contended

    def _claims(self) -> Iterable[PooledModel]:
        return (entry for entry in self.entries.values() if entry.phase == "cold" and entry.claim is not None)

    def _victims(self, need: float, now: float, chosen: list[PooledModel]) -> tuple[list[PooledModel], float]:
        """Return models that may be unloaded to free `need` bytes, and the number of bytes that they free.

        If they do not free enough, they are all models that may be unloaded. Models in `chosen` are left out.
        """
        found: list[PooledModel] = []
        freed = 0.0
        if need <= 0:
            return found, freed
        for entry in sorted(self._evictable(now), key=_order):
            if freed >= need:
                break
            if entry not in chosen:
                found.append(entry)
                freed += entry.reserved
        return found, freed

    def _evictable(self, now: float) -> Iterable[PooledModel]:
        for entry in self.entries.values():
            if entry.phase != "ready" or entry.pinned or not entry.reserved:
                continue
            turn_over = entry.served >= self._turn_requests or now >= entry.ready_since + self._turn_seconds
            if entry.is_idle:
                if turn_over or now >= entry.last_used + self._linger:
                    yield entry
            elif turn_over and entry.served:
                yield entry

    def _grant(self, contended: bool, actions: list[Action]) -> bool:
        """Grant leases to waiting requests. `contended` is the result of `_plan`.

        Returns whether `_plan` must be called again, because a turn ended or a model is to be unloaded now.
        """
        for entry in self.entries.values():
            while entry.phase == "ready" and not entry.closed and entry.waiting:
                ticket = next(iter(entry.waiting))
                del entry.waiting[ticket]
                ticket.state = "leased"
                entry.leases += 1
                entry.served += 1
                actions.append(Grant(ticket))
                if entry.served == 1 and entry.leaving:
                    return True
                if contended and entry.served == self._turn_requests:
                    return True
        return False

    def _make_room_after(self, entry: PooledModel, actions: list[Action]) -> bool:
        """Unload idle models if a loaded model needs more memory than was reserved for it.

        Returns False, and unloads nothing, if the model does not fit into the memory budget in this way.
        """
        over = sum(one.reserved for one in self.entries.values() if one.phase != "unloading") - self.budget
        idle = (one for one in self.entries.values() if one.is_idle and not one.pinned and one is not entry)
        victims = []
        for one in sorted(idle, key=_order):
            if over <= 0:
                break
            over -= one.reserved
            victims.append(one)
        if over <= 0:
            for one in victims:
                self._unload(one, actions)
        return over <= 0

    def _needed(self, entry: PooledModel) -> float:
        """Return the bytes to reserve for a model before it is loaded.

        If its size is unknown, these are all bytes that it can get; 0 without a memory budget.
        """
        if entry.known is not None:
            return entry.known
        limit = self._limit(entry)
        return 0 if math.isinf(limit) else limit

    def _limit(self, entry: PooledModel) -> float:
        """Return the bytes that a model can get: the memory budget minus the known bytes of other pinned models."""
        pinned = (one.known or 0 for one in self.entries.values() if one.pinned and one is not entry)
        return self.budget - sum(pinned)

    def _check_size(self, entry: PooledModel) -> None:
        limit = self._limit(entry)
        if (entry.known or 0) > limit:
            pinned = "" if limit == self.budget else " without the pinned models"
            raise ModelTooLargeError(
                f"the model {short_repr(entry.name)} needs {size_text(entry.known or 0)}, and the budget of the pool{pinned} is"
                f" {size_text(limit)}; raise the budget, or use a smaller model"
            )

    def _unload(self, entry: PooledModel, actions: list[Action]) -> None:
        entry.phase, entry.closed = "unloading", True
        actions.append(Unload(entry.name))

    def _fail_all(self, entry: PooledModel, error: Exception) -> list[Action]:
        tickets = list(entry.waiting)
        entry.waiting.clear()
        for ticket in tickets:
            ticket.state = "ended"
        return [Fail(ticket, error) for ticket in tickets]


def _order(entry: PooledModel) -> tuple[int, float]:
    """Return the sort key of a model for unloading; the model with the lowest key is unloaded first.

    Idle models come first, the least recently used one first. Then come models in use that get no further requests
    (`closed`), and last other models in use; in both groups, the model that was loaded first comes first.
    """
    if entry.is_idle:
        return 0, entry.last_used
    return (1 if entry.closed else 2), entry.ready_since


def size_text(size: float) -> str:
    """Return a number of bytes with a decimal unit, such as "1.5 GB"."""
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= scale:
            return f"{size / scale:.3g} {unit}"
    return f"{size:.0f} bytes"
