"""A testbed of one's own, whole: a bucket that load runs into, with a hole as large as its replicas are many.

`tests/fogscale/test_example_testbed.py` holds it to the contract. A package of your own publishes such a
module in its pyproject.toml:

    [project.entry-points."fogscale.testbeds"]
    bucket = "mine.bucket"
"""

from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Literal, Self

import numpy as np

from controller.contract import Step
from controller.model import Capability, Observation, OperatorMetrics, Plan, Receipt, Sample
from controller.testbeds import Assignment, Setup, TestbedSettings, register
from fogscale import FogscaleError
from workloads.replay import arrivals

OFFERS = frozenset({Capability.LAG, Capability.TRUE_RATE, Capability.OPERATOR_PARALLELISM})


class BucketSettings(TestbedSettings):
    kind: Literal["bucket"] = "bucket"
    per_replica_per_s: int = 100
    restart_s: int = 30


@register("bucket")
class Bucket:
    """One operator works off what waits; while it is rescaled, nothing runs."""

    settings = BucketSettings
    offers = OFFERS
    may_offer: frozenset[Capability] = frozenset()

    def prepare(self, wanted: Assignment, settings: BucketSettings) -> Setup:
        [profile] = wanted.inputs.values()
        per_s = arrivals(profile, wanted.replay, 1.0, np.random.default_rng(wanted.seed))
        most = wanted.topology.operator(wanted.measured_operator).n_max or len(wanted.topology.nodes)
        ladder = tuple(float(settings.per_replica_per_s * count) for count in range(1, most + 1))
        return Setup(
            testbed=lambda: BucketTestbed(wanted, settings, per_s.tolist()),
            duration_s=wanted.duration_s,
            capacity_per_s={wanted.measured_operator: ladder},
        )


class BucketTestbed:
    offers = OFFERS

    def __init__(self, wanted: Assignment, settings: BucketSettings, per_s: Sequence[int]) -> None:
        self._topology, self._operator = wanted.topology, wanted.measured_operator
        self._settings, self._per_s = settings, per_s
        self._requested = dict(wanted.start)
        self._under_way: tuple[Plan, int] | None = None  # with the second in which it began
        self._now_s = self._offered = self._processed = self._changes = 0
        self._receipts: list[Receipt] = []
        self._samples = [self._sample()]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing outlives the process."""

    @property
    def drained(self) -> bool:
        return self._now_s >= len(self._per_s) and self._offered == self._processed

    @property
    def finished(self) -> bool:
        return self.drained or self._now_s > 10 * len(self._per_s)

    def observe(self) -> Observation:
        receipts, self._receipts = tuple(self._receipts), []
        metrics = {each.name: OperatorMetrics() for each in self._topology.operators}
        if capacity_per_s := self._capacity_per_s():
            metrics[self._operator] = OperatorMetrics(true_rate_per_s=float(capacity_per_s))
        return Observation(
            time_s=float(self._now_s),
            topology=self._topology,
            placement=self._running(),
            requested=self._requested,
            operators=metrics,
            measured_s=float(self._now_s),
            lag_records=float(self._offered - self._processed),
            receipts=receipts,
        )

    def apply(self, plan: Plan) -> None:
        now_s = float(self._now_s)
        known = {node.name for node in self._topology.nodes}
        if self._under_way or not all(known.issuperset(nodes) for nodes in plan.placement.values()):
            why = "another plan is under way" if self._under_way else "it names a node that is not there"
            self._receipts.append(Receipt(plan, "refused", now_s, now_s, message=why))
        elif dict(plan.placement) == self._requested:
            self._receipts.append(Receipt(plan, "unchanged", now_s, now_s))
        else:
            self._requested, self._under_way = dict(plan.placement), (plan, self._now_s)
            self._changes += 1

    def wait(self, seconds: float) -> None:
        for _ in range(round(seconds)):
            if self._now_s < len(self._per_s):
                self._offered += self._per_s[self._now_s]
            self._processed += min(self._offered - self._processed, self._capacity_per_s())
            self._now_s += 1
            self._end_what_is_under_way()
            if self._now_s % 5 == 0:
                self._samples.append(self._sample())

    def samples(self) -> Iterator[Sample]:
        samples, self._samples = self._samples, []
        return iter(samples)

    def restore(self, steps: Sequence[Step]) -> None:
        """The same plans at the same times lead to the same place; the samples prove it."""
        for step in steps:
            if tuple(self.samples()) != step.samples:
                raise FogscaleError("the journal is of another run: give its seed and settings")
            self.observe()
            if step.plan is not None:
                self.apply(step.plan)
            self.wait(step.waited_s)

    def _end_what_is_under_way(self) -> None:
        if self._under_way is None:
            return
        plan, since_s = self._under_way
        downtime_s = self._now_s - since_s
        if downtime_s >= self._settings.restart_s:
            self._under_way = None
            receipt = Receipt(plan, "done", float(since_s), float(self._now_s), float(downtime_s))
            self._receipts.append(receipt)

    def _running(self) -> Mapping[str, tuple[str, ...]]:
        return dict.fromkeys(self._requested, ()) if self._under_way else self._requested

    def _capacity_per_s(self) -> int:
        return self._settings.per_replica_per_s * len(self._running()[self._operator])

    def _sample(self) -> Sample:
        counts = {name: len(nodes) for name, nodes in self._running().items()}
        waiting = self._offered - self._processed
        return Sample(float(self._now_s), self._offered, self._processed, waiting, counts, self._changes)
