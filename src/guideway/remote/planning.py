"""`make_plan`: chooses the route of a plan.

A plan uses the first route with the guarantee "exact" or "checked" or, if "exact" is required, the first one with
"exact". If there is none, it uses the first of the routes with the best guarantee.
"""

from __future__ import annotations

from guideway import constraints
from guideway.arguments import short_repr
from guideway.errors import ConstraintError, LimitExceededError, UnsupportedError
from guideway.grammar.work import BoundedWork
from guideway.remote.capabilities import Capabilities
from guideway.remote.plan import RemotePlan, Require
from guideway.remote.routes import route_plan

__all__ = ["check_require", "make_plan", "without_route"]

_RANK = {"exact": 3, "checked": 2, "narrowed": 1}
_NEEDED = {**_RANK, "any": 0}

PLAN_WORK = 150_000_000
"""The maximum work of a plan, in the units of `CompileLimits.max_work`. All routes share it."""

ROUTE_WORK = PLAN_WORK // 5
"""The work that a route may do even if the routes before it have done `PLAN_WORK`."""


def check_require(require: object) -> None:
    """Raise `ValueError` if a value is not one of the words of `Require`."""
    if require not in _NEEDED:
        raise ValueError(f"require must be 'exact', 'checked', 'narrowed' or 'any', got {short_repr(require)}")


def make_plan(
    given: Capabilities,
    output: object,
    *,
    require: Require = "checked",
    excluded: frozenset[str] = frozenset(),
    on_failure: tuple[str, ...] = (),
) -> RemotePlan:
    """Return the plan of a constraint for an endpoint. The module describes which route it uses.

    Args:
        given: The capabilities of the endpoint.
        output: The constraint, or a value that `guideway.constraints.of` accepts.
        require: The least guarantee: "exact", "checked", "narrowed" or "any".
        excluded: Routes that are not used.
        on_failure: The steps after an answer that does not fit, in words, for `RemotePlan.on_failure`.

    Raises:
        UnsupportedError: No route has the guarantee. If a route has a lower one, the message names the keywords that
            prevent the guarantee.
        LimitExceededError: No route has the guarantee, and at least one route is excluded by a limit, such as a
            published limit of the endpoint or `PLAN_WORK`.
        ValueError: `require` is not one of these words.
    """
    check_require(require)
    constraint = constraints.of(output)
    best: RemotePlan | None = None
    too_large: LimitExceededError | None = None
    left = PLAN_WORK
    for route in given.routes:
        if route in excluded:
            continue
        work = BoundedWork(units=max(left, ROUTE_WORK), purpose="planned")
        try:
            with work:
                plan = route_plan(given, route, constraint, on_failure)
        except LimitExceededError as problem:
            too_large = too_large or problem
            continue
        except UnsupportedError:
            continue
        finally:
            left -= work.used
        if plan is not None and (best is None or _RANK[plan.guarantee] > _RANK[best.guarantee]):
            best = plan
            if plan.guarantee in ("exact", "checked") and require != "exact":
                break
    if best is None or _RANK[best.guarantee] < _NEEDED[require]:
        if too_large is not None:
            raise too_large
        raise _refused(given, best, require)
    return best


def without_route(
    given: Capabilities, output: object, plan: RemotePlan, require: Require, on_failure: tuple[str, ...]
) -> RemotePlan | None:
    """Return a plan by a route that comes after that of `plan` in `given.routes`.

    None if no such route has the guarantee `require`.
    """
    at = given.routes.index(plan.route) if plan.route in given.routes else -1
    try:
        return make_plan(
            given, output, require=require, excluded=frozenset(given.routes[: at + 1]), on_failure=on_failure
        )
    except ConstraintError:
        return None


def _refused(given: Capabilities, plan: RemotePlan | None, require: str) -> UnsupportedError:
    if plan is None:
        return UnsupportedError(f"{given.title or given.name} takes no form of this constraint")
    found = [one for one in plan.parts if one.holder != "provider"]
    shown = "; ".join(f"{one.place or '(root)'} {one.keyword}: {one.holder}".strip() for one in found[:8])
    return UnsupportedError(
        f"{given.title or given.name} gives the guarantee {plan.guarantee!r} by the route {plan.route!r}, and require is"
        f" {require!r}: {shown}",
        found[0].place if found else None,
    )
