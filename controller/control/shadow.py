"""Policies beside each other on one job: each sees what it does, decides, and is written down."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from controller.contract import Policy, Step
from controller.control.watched import Watched
from controller.guards import told_by
from controller.journal import Journal
from controller.model import Observation, Plan, Sample

Counts = Mapping[str, int]


@dataclass
class Tally:
    """What a policy wanted over time. What it last asked for stands until it asks for something else, or the
    job is rescaled."""

    looks: int = 0
    blind: int = 0  # of them without metrics
    changes: int = 0  # how often what it wants changed
    seconds: float = 0.0
    replica_s: float = 0.0
    agreed_s: float = 0.0
    fewest: int | None = None
    most: int | None = None
    _wanted: dict[str, int] = field(default_factory=dict)
    _running: dict[str, int] = field(default_factory=dict)
    _since_s: float | None = None

    def note(self, time_s: float, running: Counts, plan: Counts | None, blind: bool) -> bool:
        """True where the policy wants something else than before."""
        self.close(time_s)
        self.looks += 1
        self.blind += blind
        before = self._wanted
        if dict(running) != self._running and all(running.values()):
            self._running = self._wanted = before = dict(running)
        if plan is not None:
            self._wanted = dict(plan)
        changed = self._wanted != before
        self.changes += changed
        total = sum(self._wanted.values())
        self.fewest = total if self.fewest is None else min(self.fewest, total)
        self.most = total if self.most is None else max(self.most, total)
        return changed

    def close(self, time_s: float) -> None:
        """Up to then it wanted what it last asked for."""
        if self._since_s is not None:
            span_s = time_s - self._since_s
            self.seconds += span_s
            self.replica_s += span_s * sum(self._wanted.values())
            self.agreed_s += span_s * (self._wanted == self._running)
        self._since_s = time_s

    def as_dict(self) -> dict[str, Any]:
        return {
            "looks": self.looks,
            "without_metrics": self.blind,
            "changes_wanted": self.changes,
            "mean_replicas_wanted": round(self.replica_s / self.seconds, 3) if self.seconds else None,
            "fewest_wanted": self.fewest,
            "most_wanted": self.most,
            "content_ratio": round(self.agreed_s / self.seconds, 3) if self.seconds else None,
        }


@dataclass
class Decider:
    """One policy, its journal and what it wanted."""

    name: str
    policy: Policy
    journal: Journal
    tally: Tally = field(default_factory=Tally)
    next_s: float = 0.0
    samples: list[Sample] = field(default_factory=list)


@dataclass
class Watch:
    """The loop over several policies. Without `carry_out` it only watches."""

    job: Watched
    deciders: Sequence[Decider]
    say: Callable[[str, str, str], None]  # policy, change, reason
    carry_out: Callable[[Plan], None] | None = None
    turn: Callable[[Observation], None] = lambda _: None

    def once(self) -> None:
        """One look at the job, for all whose time it is."""
        now_s = self.job.now_s()
        due = [each for each in self.deciders if each.next_s <= now_s]
        if not due:
            return
        observation = self.job.observe()
        sample = self.job.sample(observation)
        for each in self.deciders:
            each.samples.append(sample)
        for each in due:
            self._decide(each, observation)
        self.turn(observation)

    @property
    def next_s(self) -> float:
        return min(each.next_s for each in self.deciders)

    def end(self) -> dict[str, dict[str, Any]]:
        """Closes the journals; what each policy wanted."""
        told = {}
        for each in self.deciders:
            each.tally.close(self.job.now_s())
            told[each.name] = each.tally.as_dict()
            findings = {"shadow": told[each.name], "driven": self.carry_out is not None}
            each.journal.end(True, tuple(each.samples), findings)
            each.journal.close()
        return told

    def _decide(self, decider: Decider, observation: Observation) -> None:
        plan = decider.policy.decide(observation)
        running = self.job.counts(observation.placement)
        wanted = None if plan is None else self._wanted(plan, running)
        blind = observation.measured_s is None
        if decider.tally.note(observation.time_s, running, wanted, blind) and plan is not None:
            self.say(decider.name, _change(running, wanted or {}), plan.reason)
        if plan is not None and self.carry_out is not None:
            self.carry_out(plan)
        period_s = decider.policy.period_s
        told = told_by(decider.policy, observation.time_s)
        decider.journal.append(Step(observation, plan, period_s, tuple(decider.samples), *told))
        decider.samples.clear()
        decider.next_s = self.job.now_s() + period_s

    def _wanted(self, plan: Plan, running: Counts) -> dict[str, int]:
        return {name: len(plan.placement.get(name, ())) or count for name, count in running.items()}


def _change(running: Counts, wanted: Counts) -> str:
    changes = [f"{name} {running[name]}→{count}" for name, count in wanted.items() if count != running[name]]
    return ", ".join(changes) or "as it is"
