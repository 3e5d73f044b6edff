"""A recorded run decided again: where would another policy, or the same one today, have acted otherwise?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from controller.contract import Policy, Step
from controller.model import Placement, Plan


class Difference(NamedTuple):
    time_s: float
    recorded: str
    now: str


def differences(steps: tuple[Step, ...], policy: Policy) -> Iterator[Difference]:
    """The policy sees what was seen then; what it would have caused is not known, so every difference after
    the first is a decision on a world that the recorded policy made."""
    for step in steps:
        plan = policy.decide(step.observation)
        if _asked(plan) != _asked(step.plan):
            seen = step.observation
            yield Difference(seen.time_s, _said(step.plan, seen.requested), _said(plan, seen.requested))


def _asked(plan: Plan | None) -> object:
    return plan and (dict(plan.placement), plan.instances)


def _said(plan: Plan | None, requested: Placement) -> str:
    if plan is None:
        return "nothing"
    changes = [
        f"{name} {len(requested[name])} → {len(nodes)}"
        for name, nodes in plan.placement.items()
        if tuple(nodes) != tuple(requested[name])
    ]
    return f"{', '.join(changes) or 'the same'} ({plan.reason})"
