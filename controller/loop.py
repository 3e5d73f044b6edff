"""The loop: monitor, analyze and plan, execute, journal. The same for every policy and every testbed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from controller.contract import Policy, Step, Testbed
from controller.guards import told_by
from controller.journal import Recorded
from controller.model import Capabilities, Sample
from fogscale.errors import FogscaleError


class Progress(Protocol):
    """Called with the time reached, in seconds of the run, and how things stand where a testbed tells it."""

    def __call__(self, reached_s: float, /, status: str = "") -> None: ...


class Log(Protocol):
    """Where the turns of the loop go."""

    @property
    def recorded(self) -> Recorded | None: ...

    def append(self, step: Step) -> None: ...

    def end(self, finished: bool, samples: Iterable[Sample], findings: Mapping[str, Any]) -> None:
        """`findings`: what a testbed found out besides its samples, such as an audit."""


def check_capabilities(
    needs: Capabilities, offers: Capabilities, policy_name: str, testbed_name: str
) -> None:
    missing = sorted(needs - offers)
    if missing:
        raise FogscaleError(
            f"policy '{policy_name}' needs {', '.join(missing)}, which the {testbed_name} testbed does not "
            f"offer with these settings: choose another policy, testbed or rescale style"
        )


def run(testbed: Testbed, policy: Policy, log: Log, progress: Progress | None = None) -> None:
    """Runs until the workload is processed; picks up where a crashed run of the same log stopped."""
    if log.recorded is not None:
        _relive(log.recorded.steps, policy)
        if log.recorded.ended:
            return
        testbed.restore(log.recorded.steps)
    if progress is not None and hasattr(testbed, "tell"):
        testbed.tell = progress  # it waits long, and has something to tell meanwhile
    while not testbed.finished:
        samples = tuple(testbed.samples())
        observation = testbed.observe()
        plan = policy.decide(observation)
        if plan is not None:
            testbed.apply(plan)
        period_s = policy.period_s
        estimates, notes = told_by(policy, observation.time_s)
        notes = (*notes, *(testbed.happened() if hasattr(testbed, "happened") else ()))
        log.append(Step(observation, plan, period_s, samples, estimates, notes))
        testbed.wait(period_s)
        if progress is not None:
            progress(observation.time_s + period_s)
    log.end(testbed.drained, testbed.samples(), getattr(testbed, "findings", {}))


def _relive(steps: tuple[Step, ...], policy: Policy) -> None:
    """Rebuilds a policy's memory from what it saw; it must come to the same plans again."""
    for step in steps:
        if policy.decide(step.observation) != step.plan:
            raise FogscaleError(
                f"at {step.observation.time_s:g} s the policy now decides otherwise than the journal says: "
                f"its code or parameters have changed; use --fresh to start over"
            )
