"""The bound of the kernel's work while a constraint is lowered."""

from __future__ import annotations

import pytest

import guideway as gw
from guideway._kernel import WorkDeferred, bound_work
from guideway.errors import LimitExceededError
from guideway.grammar import work
from guideway.grammar.recognizer import is_empty, single_bytes
from guideway.grammar.work import BoundedWork

COSTLY = (gw.Regex("(a|b)*a(a|b){9}c") & gw.Regex("(a|b)*a(a|b){9}d")).grammar()


def test_work_beyond_the_bound_is_a_limit() -> None:
    with pytest.raises(LimitExceededError, match="more than 50,000 units of work") as caught, BoundedWork("/a", 50_000):
        is_empty(COSTLY, single_bytes())
    assert caught.value.place == "/a"
    assert bound_work(None) is None
    with BoundedWork():
        assert is_empty(COSTLY, single_bytes())
    assert bound_work(None) is None


def test_an_outer_bound_stays_in_force() -> None:
    bound_work(50_000)
    with pytest.raises(WorkDeferred), BoundedWork():
        is_empty(COSTLY, single_bytes())
    assert bound_work(10_000_000) == 0
    with BoundedWork():
        is_empty(COSTLY, single_bytes())
    left = bound_work(10_000_000)
    assert left is not None
    assert 5_000_000 < left < 9_990_000
    with pytest.raises(LimitExceededError), BoundedWork(None, 50_000):
        is_empty(COSTLY, single_bytes())
    assert bound_work(None) == 10_000_000 - 50_000


def test_all_objects_of_a_schema_count_together(monkeypatch: pytest.MonkeyPatch) -> None:
    def schema(count: int) -> gw.JsonSchema:
        patterns = [{f"a.{{{n}}}x{m}|y{m}": {"minimum": n} for n in range(3, 8)} for m in range(count)]
        return gw.JsonSchema({"prefixItems": [{"patternProperties": one} for one in patterns]}, profile="exact")

    monkeypatch.setattr(work, "LOWERING_WORK", 1_000_000)
    schema(1)
    with pytest.raises(LimitExceededError, match="units of work before it is compiled"):
        schema(20)
