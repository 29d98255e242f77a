"""Random schedules of a pool's rules on a virtual clock; `make pool` runs 100,000 of them.

Each schedule has random models (pinned ones, ones of an API, ones whose size is estimated wrongly or unknown) and random
requests, cancellations, failures of loads and calls of `unload`. After each event all invariants of
`guideway.pool.scheduling` are checked. At the end no request waits any more.

    python -m tests.campaigns.pool_schedules [SCHEDULES] [SEED]
"""

from __future__ import annotations

import heapq
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import count

from guideway.errors import EngineError, ModelTooLargeError
from guideway.pool.scheduling import Action, Fail, Grant, Load, Scheduler, Ticket, Unload

LONGEST_LEASE, LONGEST_LOAD, LONGEST_UNLOAD = 20.0, 8.0, 2.0


class VirtualClock:
    """A clock that moves when the schedule does."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Truth:
    """What a model really does. `size`: the bytes that a load measures; `fails`: the probability that a load fails."""

    size: int
    is_exact: bool
    fails: float
    needed: bool = False  # a request waited at the beginning of the load
    used: bool = True  # since the last load: a request was served, or all that waited have left
    resident: bool = False
    leases: set[Ticket] = field(default_factory=set)


class Schedule:
    """One random schedule."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.clock = VirtualClock()
        draw = self.random
        self.budget = draw.randint(10, 40)
        self.turn_seconds = draw.choice([0.0, 1.0, 5.0, 30.0])
        self.rules = Scheduler(
            self.budget,
            self.clock,
            turn_requests=draw.choice([1, 2, 5, 16]),
            turn_seconds=self.turn_seconds,
            linger=draw.choice([0.0, 0.1, 2.0]),
        )
        self.exact = draw.random() < 0.5
        self.truths: dict[str, Truth] = {}
        self.events: list[tuple[float, int, str, object]] = []
        self.numbers = count()
        self.arrived: dict[Ticket, tuple[float, int]] = {}
        self.order: dict[str, list[Ticket]] = {}
        self.counts: Counter[str] = Counter()
        self._add_models()

    def _add_models(self) -> None:
        draw = self.random
        for index in range(draw.randint(1, 6)):
            name = f"m{index}"
            size = 0 if draw.random() < 0.15 else draw.randint(1, self.budget)
            estimate: int | None = size
            if not self.exact and size:
                estimate = draw.choice([None, size, max(1, size // 2), size + 3])
            fails = 0.3 if draw.random() < 0.2 else 0.0
            try:
                self.rules.add(name, estimate, pinned=draw.random() < 0.15, keep=draw.choice([None, 0.0, 3.0, 60.0]))
            except ModelTooLargeError:
                self.counts["refused"] += 1
                continue
            self.truths[name] = Truth(size, estimate == size, fails)
            self.order[name] = []

    def at(self, delay: float, kind: str, what: object) -> None:
        heapq.heappush(self.events, (self.clock.now + delay, next(self.numbers), kind, what))

    def run(self) -> Counter[str]:
        """Run the schedule. Raises `AssertionError` for a broken rule."""
        if not self.truths:
            return self.counts
        draw = self.random
        busy = draw.choice([0.01, 0.3, 2.0])
        arrival = 0.0
        for _ in range(draw.randint(5, 60)):
            arrival += draw.expovariate(1 / busy)
            self.at(arrival, "request", draw.choice(list(self.truths)))
        for _ in range(draw.randint(0, 3)):
            self.at(draw.uniform(0, arrival + 1), "unload", draw.choice(list(self.truths)))
        while True:
            wake = self.rules.wake_at()
            if self.events and (wake is None or self.events[0][0] <= wake):
                self.clock.now, _, kind, what = heapq.heappop(self.events)
                self.handle(kind, what)
            elif wake is not None:
                assert wake > self.clock.now, "the next wake-up must be in the future"
                self.clock.now = wake
                self.carry_out(self.rules.step())
            else:
                break
            self.check()
        waiting = [name for name, entry in self.rules.entries.items() if entry.waiting or entry.leases]
        assert not waiting, f"deadlock: {waiting}"
        assert not any(truth.leases for truth in self.truths.values())
        return self.counts

    def handle(self, kind: str, what: object) -> None:
        draw = self.random
        if kind == "request":
            ticket, actions = self.rules.request(str(what))
            self.arrived[ticket] = (self.clock.now, len(self.order[ticket.name]))
            self.order[ticket.name].append(ticket)
            self.counts["requests"] += 1
            if draw.random() < 0.1:
                self.at(draw.uniform(0, 10), "end", ticket)
            self.carry_out(actions)
        elif kind == "end":
            assert isinstance(what, Ticket)
            truth = self.truths[what.name]
            truth.leases.discard(what)
            if what in self.order[what.name]:
                self.order[what.name].remove(what)
                self.counts["cancelled"] += 1
                if not self.order[what.name]:
                    truth.used = True
            self.carry_out(self.rules.end(what))
        elif kind == "loaded":
            truth = self.truths[str(what)]
            if draw.random() < truth.fails:
                self.counts["failed loads"] += 1
                truth.resident, truth.used = False, True
                self.carry_out(self.rules.failed(str(what), EngineError("damaged")))
                return
            entry = self.rules.entries[str(what)]
            if truth.size > entry.reserved:
                self.counts["loads larger than expected"] += 1
                truth.used = True  # it may be unloaded at once
            self.carry_out(self.rules.loaded(str(what), truth.size))
        elif kind == "unloaded":
            self.truths[str(what)].resident = False
            self.carry_out(self.rules.unloaded(str(what)))
        else:
            self.carry_out(self.rules.unload(str(what)))

    def carry_out(self, actions: list[Action]) -> None:
        draw = self.random
        for action in actions:
            if isinstance(action, Load):
                truth = self.truths[action.name]
                assert not truth.resident, "a model is loaded twice"
                assert truth.used, "a model is loaded again although its last load served nobody"
                assert self.order[action.name], "a model is loaded although nobody waits"
                truth.resident, truth.used = True, False
                self.counts["loads"] += 1
                self.at(draw.uniform(0, LONGEST_LOAD), "loaded", action.name)
            elif isinstance(action, Unload):
                truth = self.truths[action.name]
                assert truth.resident
                assert not truth.leases, "a leased model is unloaded"
                assert truth.used, "a model is unloaded although its first request waits"
                self.at(draw.uniform(0, LONGEST_UNLOAD), "unloaded", action.name)
            elif isinstance(action, Grant):
                ticket, truth = action.ticket, self.truths[action.ticket.name]
                entry = self.rules.entries[ticket.name]
                assert truth.resident, "a lease of a model that is not loaded"
                assert entry.phase == "ready"
                assert self.order[ticket.name].pop(0) is ticket, "the requests of a model are not served in order"
                truth.leases.add(ticket)
                truth.used = True
                self.counts["granted"] += 1
                self._check_wait(ticket)
                self.at(draw.uniform(0, LONGEST_LEASE), "end", ticket)
            else:
                assert isinstance(action, Fail)
                self.order[action.ticket.name].remove(action.ticket)
                self.counts["failed requests"] += 1

    def _check_wait(self, ticket: Ticket) -> None:
        """Before a request, each earlier one of its model may need a turn, and between turns each other model has one.

        A turn lasts until its leases have ended; then models are unloaded and loaded, twice if a size was wrong.
        """
        models = len(self.truths)
        one = self.turn_seconds + LONGEST_LEASE + LONGEST_UNLOAD * models + 2 * LONGEST_LOAD * models
        arrived, before = self.arrived.pop(ticket)
        waited = self.clock.now - arrived
        assert waited <= (before + 2) * models * one, f"starvation: a request waited {waited:.0f} s"
        self.counts["longest wait"] = max(self.counts["longest wait"], int(waited))

    def check(self) -> None:
        entries = self.rules.entries.values()
        total = sum(entry.reserved for entry in entries)
        if self.exact:
            used = sum(truth.size for truth in self.truths.values() if truth.resident)
            assert used <= self.budget, f"{used} bytes are in use, and the budget is {self.budget}"
        else:
            total -= sum(entry.reserved for entry in entries if entry.phase == "unloading")
        assert total <= self.budget, f"{total} bytes are reserved, and the budget is {self.budget}"
        for entry in entries:
            assert entry.leases == len(self.truths[entry.name].leases)
            assert list(entry.waiting) == self.order[entry.name]
            if entry.phase != "ready":
                assert not entry.leases


def main() -> int:
    schedules = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    counts: Counter[str] = Counter()
    start = time.process_time()
    for number in range(seed, seed + schedules):
        try:
            found = Schedule(number).run()
        except Exception:
            print(f"schedule {number} failed; run it with: python -m tests.campaigns.pool_schedules 1 {number}")
            raise
        longest = max(counts["longest wait"], found["longest wait"])
        counts += found
        counts["longest wait"] = longest
    print(f"{schedules:,} schedules, no rule broken, {time.process_time() - start:.0f} s of CPU time")
    print(", ".join(f"{name}: {value:,}" for name, value in sorted(counts.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
