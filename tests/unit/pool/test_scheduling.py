"""The rules of the pool, on a virtual clock."""

import pytest

from guideway.errors import EngineError, ModelNotFoundError, ModelTooLargeError
from guideway.pool.scheduling import Action, Fail, Grant, Load, Scheduler, Ticket, Unload

from ...campaigns.pool_schedules import Schedule, VirtualClock


def run_schedules(number: int) -> int:
    """Return the number of leases."""
    return sum(Schedule(seed).run()["granted"] for seed in range(number))


class Bench:
    """A scheduler whose loads and unloads end when the test ends them."""

    def __init__(self, budget: float = 10, **options: float) -> None:
        self.clock = VirtualClock()
        settings = {"turn_requests": 2, "turn_seconds": 30.0, "linger": 0.0} | options
        self.rules = Scheduler(budget, self.clock, **settings)  # type: ignore[arg-type]  # numbers by name
        self.log: list[str] = []
        self.tickets: list[Ticket] = []

    def add(self, *models: tuple[str, int | None], pinned: bool = False, keep: float | None = None) -> None:
        for name, size in models:
            self.rules.add(name, size, pinned=pinned, keep=keep)

    def saw(self, actions: list[Action]) -> None:
        for action in actions:
            name = action.name if isinstance(action, (Load, Unload)) else action.ticket.name
            self.log.append(f"{type(action).__name__.lower()} {name}")

    def request(self, name: str) -> Ticket:
        ticket, actions = self.rules.request(name)
        self.saw(actions)
        return ticket

    def end(self, ticket: Ticket) -> None:
        self.saw(self.rules.end(ticket))

    def loaded(self, name: str, measured: int | None = None) -> None:
        self.saw(self.rules.loaded(name, measured))

    def unloaded(self, name: str) -> None:
        self.saw(self.rules.unloaded(name))

    def wait(self, seconds: float) -> None:
        self.clock.now += seconds
        self.saw(self.rules.step())

    def taken(self) -> list[str]:
        taken, self.log = self.log, []
        return taken

    def ready(self, name: str) -> Ticket:
        ticket = self.request(name)
        self.loaded(name)
        self.taken()
        return ticket


def test_concurrent_requests_load_a_model_once() -> None:
    bench = Bench()
    bench.add(("a", 5))
    for _ in range(3):
        bench.request("a")
    assert bench.taken() == ["load a"]
    bench.loaded("a")
    assert bench.taken() == ["grant a"] * 3


def test_the_least_recently_used_idle_model_is_unloaded() -> None:
    bench = Bench()
    bench.add(("a", 4), ("b", 4), ("c", 4))
    first, second = bench.ready("a"), bench.ready("b")
    bench.end(second)
    bench.clock.now = 1.0
    bench.end(first)
    bench.request("c")
    assert bench.taken() == ["unload b"]
    bench.unloaded("b")
    assert bench.taken() == ["load c"]


def test_a_leased_model_is_not_unloaded() -> None:
    bench = Bench()
    bench.add(("a", 6), ("b", 6))
    lease = bench.ready("a")
    bench.request("b")
    bench.wait(1000)
    assert bench.taken() == []
    assert bench.rules.entries["a"].state == "draining"
    bench.end(lease)
    assert bench.taken() == ["unload a"]


def test_a_model_whose_first_request_waits_is_not_unloaded() -> None:
    bench = Bench(turn_seconds=0.0)
    bench.add(("a", 6), ("b", 6))
    bench.request("a")
    bench.request("b")
    bench.loaded("a")
    assert bench.taken() == ["load a", "grant a"]


def test_a_turn_ends_after_its_requests() -> None:
    bench = Bench(turn_requests=2)
    bench.add(("a", 6), ("b", 6))
    leases = [bench.ready("a")]
    bench.request("b")
    leases.append(bench.request("a"))
    bench.request("a")
    assert bench.taken() == ["grant a"], "the third request of a waits for the turn of b"
    for lease in leases:
        bench.end(lease)
    assert bench.taken() == ["unload a"]
    bench.unloaded("a")
    assert bench.taken() == ["load b"], "a, which waits too, claims its memory after b"


def test_a_turn_ends_after_its_seconds() -> None:
    bench = Bench(turn_requests=100, turn_seconds=5.0)
    bench.add(("a", 6), ("b", 6))
    bench.ready("a")
    bench.request("b")
    bench.request("a")
    assert bench.taken() == ["grant a"]
    assert bench.rules.wake_at() == 5.0
    bench.wait(5.0)
    bench.request("a")
    assert bench.taken() == []


def test_requests_are_granted_without_limit_if_no_other_model_waits() -> None:
    bench = Bench(turn_requests=1, turn_seconds=0.0)
    bench.add(("a", 6), ("b", 6))
    bench.ready("a")
    for _ in range(5):
        bench.request("a")
    assert bench.taken() == ["grant a"] * 5


def test_alternating_clients_do_not_load_a_model_for_each_request() -> None:
    bench = Bench(turn_requests=8, linger=0.5)
    bench.add(("a", 6), ("b", 6))
    lease = bench.ready("a")
    bench.request("b")
    for _ in range(7):
        bench.end(lease)
        bench.wait(0.1)
        lease = bench.request("a")
    assert bench.taken() == ["grant a"] * 7
    bench.end(lease)
    assert bench.taken() == ["unload a"]


def test_an_idle_model_gives_up_its_turn_after_the_linger_time() -> None:
    bench = Bench(turn_requests=100, linger=0.5)
    bench.add(("a", 6), ("b", 6))
    lease = bench.ready("a")
    bench.end(lease)
    bench.request("b")
    assert bench.taken() == []
    assert bench.rules.wake_at() == 0.5
    bench.wait(0.5)
    assert bench.taken() == ["unload a"]


def test_a_small_model_does_not_delay_the_claim_of_a_large_one() -> None:
    bench = Bench(turn_requests=1)
    bench.add(("a", 6), ("large", 9), ("small", 2), ("tiny", 1))
    lease = bench.ready("a")
    bench.request("large")
    bench.request("tiny")
    bench.request("small")
    assert bench.taken() == ["load tiny"], "tiny fits beside the large model, small does not"
    bench.loaded("tiny")
    bench.end(lease)
    assert bench.taken() == ["grant tiny", "unload a"]
    bench.unloaded("a")
    assert bench.taken() == ["load large"]


def test_a_pinned_model_is_not_unloaded() -> None:
    bench = Bench()
    bench.add(("a", 6), pinned=True, keep=1.0)
    with pytest.raises(ModelTooLargeError, match="'b' needs 5 bytes, and the budget of the pool without the pinned"):
        bench.add(("b", 5))
    bench.add(("b", 4), ("c", 4))
    bench.end(bench.ready("a"))
    bench.ready("b")
    bench.request("c")
    bench.wait(1000)
    assert bench.taken() == []


def test_a_model_larger_than_the_budget_is_refused_by_name() -> None:
    bench = Bench(budget=3_000_000_000)
    with pytest.raises(ModelTooLargeError, match=r"'big' needs 3\.5 GB, and the budget of the pool is 3 GB"):
        bench.add(("big", 3_500_000_000))


def test_a_model_that_turns_out_too_large_fails_its_requests() -> None:
    bench = Bench()
    bench.add(("a", 6))
    ticket = bench.request("a")
    bench.loaded("a", 11)
    assert bench.taken() == ["load a", "unload a"]
    actions = bench.rules.unloaded("a")
    assert [type(one) for one in actions] == [Fail]
    assert isinstance(actions[0], Fail)
    assert isinstance(actions[0].error, ModelTooLargeError)
    assert ticket.state == "ended"


def test_a_model_that_is_larger_than_estimated_makes_room() -> None:
    bench = Bench()
    bench.add(("a", 4), ("b", 4))
    bench.end(bench.ready("a"))
    bench.request("b")
    bench.loaded("b", 7)
    assert bench.taken() == ["load b", "unload a", "grant b"]


def test_a_model_that_is_larger_than_estimated_waits_for_leases() -> None:
    bench = Bench()
    bench.add(("a", 4), ("b", 4))
    lease = bench.ready("a")
    bench.request("b")
    bench.loaded("b", 7)
    assert bench.taken() == ["load b", "unload b"]
    bench.unloaded("b")
    bench.wait(30)
    bench.end(lease)
    bench.unloaded("a")
    assert bench.taken() == ["unload a", "load b"]


def test_a_model_of_unknown_size_is_loaded_alone() -> None:
    bench = Bench()
    bench.add(("a", 1), ("b", None))
    bench.end(bench.ready("a"))
    bench.request("b")
    assert bench.taken() == ["unload a"]
    bench.unloaded("a")
    bench.loaded("b", 3)
    bench.request("a")
    assert bench.taken() == ["load b", "grant b", "load a"]


def test_remote_models_need_no_room_and_no_turn() -> None:
    bench = Bench()
    bench.add(("a", 10), ("api", 0), ("api2", 0))
    bench.ready("a")
    bench.request("api")
    bench.request("api2")
    assert bench.taken() == ["load api", "load api2"]


def test_idle_models_are_unloaded_after_keep() -> None:
    bench = Bench()
    bench.add(("a", 5), keep=60.0)
    bench.end(bench.ready("a"))
    assert bench.rules.wake_at() == 60.0
    bench.wait(59.0)
    assert bench.taken() == []
    bench.wait(1.0)
    assert bench.taken() == ["unload a"]
    bench.unloaded("a")
    assert bench.rules.wake_at() is None


def test_a_failed_load_fails_the_waiting_requests_and_is_not_repeated() -> None:
    bench = Bench()
    bench.add(("a", 5))
    bench.request("a")
    bench.request("a")
    bench.saw(bench.rules.failed("a", EngineError("damaged")))
    assert bench.taken() == ["load a", "fail a", "fail a"]
    bench.request("a")
    assert bench.taken() == ["load a"]


def test_a_cancelled_request_gets_no_lease() -> None:
    bench = Bench()
    bench.add(("a", 5))
    ticket = bench.request("a")
    bench.end(ticket)
    bench.end(ticket)
    bench.loaded("a")
    assert bench.taken() == ["load a"]
    assert bench.rules.entries["a"].is_idle


def test_a_draining_model_is_kept_if_the_other_request_is_cancelled() -> None:
    bench = Bench(turn_requests=1)
    bench.add(("a", 6), ("b", 6))
    bench.ready("a")
    other = bench.request("b")
    assert bench.rules.entries["a"].state == "draining"
    bench.end(other)
    assert bench.rules.entries["a"].state == "ready"


def test_unload_waits_for_leases_and_the_model_can_return() -> None:
    bench = Bench()
    bench.add(("a", 5), pinned=True)
    lease = bench.ready("a")
    bench.saw(bench.rules.unload("a"))
    waiting = bench.request("a")
    assert bench.taken() == []
    bench.end(lease)
    bench.unloaded("a")
    assert bench.taken() == ["unload a", "load a"]
    bench.loaded("a")
    assert waiting.state == "leased"


def test_close_ends_waiting_requests() -> None:
    bench = Bench()
    bench.add(("a", 6), ("b", 6))
    lease = bench.ready("a")
    bench.request("b")
    bench.saw(bench.rules.close())
    assert bench.taken() == ["fail b"]
    with pytest.raises(EngineError, match="the pool is closed"):
        bench.rules.request("a")
    bench.end(lease)
    assert bench.taken() == ["unload a"]


def test_unknown_models_are_named() -> None:
    bench = Bench()
    bench.add(("a", 5))
    with pytest.raises(ModelNotFoundError, match="no model 'b' in the pool; it has a"):
        bench.rules.request("b")


def test_random_schedules() -> None:
    assert run_schedules(800) > 10_000


@pytest.mark.parametrize(
    ("method", "replacement", "message"),
    [
        ("_evictable", lambda rules, now: rules.entries.values(), "leased|first request|not loaded|resident"),
        ("_needed", lambda rules, entry: 0.0, "bytes are in use"),
        ("_victims", lambda rules, need, now, chosen: ([], 0.0), "deadlock|starvation"),
    ],
)
def test_random_schedules_find_broken_rules(
    method: str, replacement: object, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Scheduler, method, replacement)
    with pytest.raises(AssertionError, match=message):
        run_schedules(200)


def test_grants_are_reported_once() -> None:
    bench = Bench()
    bench.add(("a", 5))
    ticket, actions = bench.rules.request("a")
    granted = [one for one in bench.rules.loaded("a") if isinstance(one, Grant)]
    assert [type(one) for one in actions] == [Load]
    assert [one.ticket for one in granted] == [ticket]
