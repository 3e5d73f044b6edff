"""What testbeds keep, as tests that any package can run on its own.

    from fogscale.testing import TestbedContract

    class TestMine(TestbedContract):
        def build(self):                    # a testbed with its job running, and some minutes of load
            return MyTestbed(…)

pytest collects the class. Nothing here knows how a testbed works or what its job is called: plans are made
from what it shows. On a real testbed a minute is a minute, so `PERIOD_S` and `PATIENCE_S` can be set lower.

A deterministic testbed keeps more: the same seed gives the same bytes, seconds are exact, no record is
missing. It takes the second class, which has all tests of the first one, too:

    from fogscale.testing import DeterministicTestbedContract

    class TestMine(DeterministicTestbedContract):
        def build_seeded(self, seed):       # as above, with arrivals and noise of this seed
            return MyTestbed(…, seed)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import ClassVar

from numpy.random import Generator

from controller.contract import Step, Testbed
from controller.journal import Journal
from controller.loop import run
from controller.model import Capabilities, Capability, Observation, Plan, Receipt, Sample, Topology
from controller.placement import resized
from fogscale.errors import FogscaleError


class TestbedContract:
    """Subclass it, say how to build a testbed, and run it with pytest."""

    PERIOD_S: ClassVar[float] = 30.0  # between two looks
    PATIENCE_S: ClassVar[float] = 300.0  # until a plan that can be carried out is
    AT_ONCE_S: ClassVar[float] = 1.0  # what `apply` may take, by the clock on the wall

    __test__ = False  # only what says how to build a testbed can be tried

    def __init_subclass__(cls) -> None:
        cls.__test__ = vars(cls).get("__test__", True)

    def build(self) -> Testbed:
        raise NotImplementedError("say how to build a testbed: def build(self): return MyTestbed(…)")

    # Capabilities

    def test_it_offers_only_what_there_is(self) -> None:
        with self.build() as testbed:
            assert testbed.offers <= frozenset(Capability)

    def test_what_it_offers_to_measure_is_measured(self) -> None:
        with self.build() as testbed:
            seen = self._until(testbed, lambda now: not _unmeasured(testbed, now))
            assert _unmeasured(testbed, seen) == [], "it is offered, but never measured"

    # Plans and receipts

    def test_apply_returns_at_once_and_what_is_requested_shows_at_once(self) -> None:
        with self.build() as testbed:
            plan = another_size(testbed.observe())
            before_s = time.monotonic()
            testbed.apply(plan)
            assert time.monotonic() - before_s < self.AT_ONCE_S, "apply must not wait for the outcome"
            assert sizes(testbed.observe().requested) == sizes(plan.placement)

    def test_every_plan_gets_one_receipt(self) -> None:
        with self.build() as testbed:
            plan = another_size(testbed.observe())
            testbed.apply(plan)
            receipts = self._receipts(testbed)
            assert [receipt.outcome for receipt in receipts] == ["done"]
            assert sizes(receipts[0].plan.placement) == sizes(plan.placement)
            assert receipts[0].requested_s <= receipts[0].finished_s
            assert receipts[0].downtime_s is None or receipts[0].downtime_s >= 0, "None: not measured"
            testbed.wait(self.PERIOD_S)
            assert testbed.observe().receipts == (), "a receipt is shown once"

    def test_what_was_requested_runs_once_the_receipt_is_there(self) -> None:
        with self.build() as testbed:
            plan = another_size(testbed.observe())
            testbed.apply(plan)
            self._receipts(testbed)
            seen = self._until(testbed, lambda now: not now.reconfiguring)
            assert sizes(seen.placement) == sizes(seen.requested) == sizes(plan.placement)

    def test_a_plan_for_what_is_already_so_changes_nothing(self) -> None:
        with self.build() as testbed:
            before = testbed.observe().requested
            testbed.apply(Plan(dict(before), reason="as it is"))
            assert [receipt.outcome for receipt in self._receipts(testbed)] == ["unchanged"]
            assert dict(testbed.observe().requested) == dict(before)

    def test_an_impossible_plan_is_refused_in_one_line_and_changes_nothing(self) -> None:
        with self.build() as testbed:
            before = dict(testbed.observe().requested)
            nowhere = {name: ("no such node",) * len(nodes) for name, nodes in before.items()}
            testbed.apply(Plan(nowhere, reason="a mistake"))
            [receipt] = self._receipts(testbed)
            assert receipt.outcome == "refused"
            assert receipt.message
            assert "\n" not in receipt.message
            assert receipt.downtime_s == 0
            assert dict(testbed.observe().requested) == before

    # Samples

    def test_samples_rise_in_time_and_their_counters_never_fall(self) -> None:
        with self.build() as testbed:
            samples = self._samples(testbed)
        assert len(samples) > 2
        for a, b in pairwise(samples):
            assert a.time_s < b.time_s
            assert a.offered_records <= b.offered_records
            assert a.processed_records <= b.processed_records
            assert a.reconfigurations <= b.reconfigurations
        assert all(sample.lag_records >= 0 for sample in samples)

    def test_a_sample_is_handed_out_once(self) -> None:
        with self.build() as testbed:
            testbed.wait(self.PERIOD_S)
            list(testbed.samples())
            assert list(testbed.samples()) == []

    def test_time_goes_on_while_waiting(self) -> None:
        with self.build() as testbed:
            before_s = testbed.observe().time_s
            testbed.wait(self.PERIOD_S)
            assert testbed.observe().time_s >= before_s + 0.9 * self.PERIOD_S

    # The end

    def test_it_does_not_hide_a_failure_of_the_loop(self) -> None:
        try:
            with self.build():
                raise KeyError("the loop")
        except KeyError:
            return
        raise AssertionError("an error inside the block must pass through __exit__")

    def test_nothing_happens_after_it_was_left(self) -> None:
        with self.build() as testbed:
            testbed.wait(self.PERIOD_S)
            list(testbed.samples())
        assert list(testbed.samples()) == []

    # After a crash

    def test_it_is_restored_to_where_the_journal_ends(self) -> None:
        with self.build() as testbed:
            steps = self._steps(testbed, 3)
        with self.build() as again:
            again.restore(steps)
            seen = again.observe()
            assert sizes(seen.requested) == sizes(steps[-1].observation.requested)
            assert seen.time_s >= steps[-1].observation.time_s
            again.wait(self.PERIOD_S)
            recorded_s = max((sample.time_s for step in steps for sample in step.samples), default=-1.0)
            assert all(sample.time_s > recorded_s for sample in again.samples()), "none comes twice"

    # Helpers

    def _until(self, testbed: Testbed, is_so: Callable[[Observation], bool]) -> Observation:
        """The first observation of which it is so, or the last that patience allows."""
        seen = testbed.observe()
        for _ in range(max(1, round(self.PATIENCE_S / self.PERIOD_S))):
            if is_so(seen) or testbed.finished:
                break
            testbed.wait(self.PERIOD_S)
            seen = testbed.observe()
        return seen

    def _receipts(self, testbed: Testbed) -> list[Receipt]:
        return list(self._until(testbed, lambda now: bool(now.receipts)).receipts)

    def _samples(self, testbed: Testbed) -> list[Sample]:
        found = list(testbed.samples())
        for _ in range(4):
            testbed.wait(self.PERIOD_S)
            found += testbed.samples()
        return found

    def _steps(self, testbed: Testbed, count: int) -> list[Step]:
        """As the loop records them."""
        steps = []
        for _ in range(count):
            samples = tuple(testbed.samples())
            steps.append(Step(testbed.observe(), None, self.PERIOD_S, samples))
            testbed.wait(self.PERIOD_S)
        return steps


class DeterministicTestbedContract(TestbedContract):
    """What a testbed keeps besides if its seed decides everything. The seeds 1 and 2 are tried."""

    __test__ = False

    def build(self) -> Testbed:
        return self.build_seeded(1)

    def build_seeded(self, seed: int) -> Testbed:
        raise NotImplementedError("say how to build one: def build_seeded(self, seed): return MyTestbed(…)")

    def test_the_same_seed_gives_the_same_run_byte_for_byte(self) -> None:
        first, second = self._journal(1), self._journal(1)
        assert len(first) > 2
        assert first == second

    def test_another_seed_gives_another_run(self) -> None:
        assert self._journal(1) != self._journal(2)

    def test_waiting_takes_exactly_as_long_as_it_was_asked_to(self) -> None:
        with self.build() as testbed:
            start_s = testbed.observe().time_s
            for turn in (1, 2, 3):
                testbed.wait(self.PERIOD_S)
                assert testbed.observe().time_s == start_s + turn * self.PERIOD_S

    def test_a_receipt_tells_exactly_when_its_plan_was_requested(self) -> None:
        with self.build() as testbed:
            testbed.wait(self.PERIOD_S)
            seen = testbed.observe()
            testbed.apply(another_size(seen))
            [receipt] = self._receipts(testbed)
            assert receipt.requested_s == seen.time_s
            assert receipt.downtime_s is not None, "who knows every second knows this one"
            assert receipt.downtime_s <= receipt.finished_s - receipt.requested_s

    def test_every_record_is_processed_or_waits(self) -> None:
        with self.build() as testbed:
            log = _Turns()
            run(testbed, _UpAndDown(self.PERIOD_S), log)
        for sample in log.samples:
            assert sample.offered_records == sample.processed_records + sample.lag_records
        assert log.samples[-1].offered_records > 0
        assert log.finished == (log.samples[-1].lag_records == 0), "finished: all is processed"

    def test_a_restored_one_goes_on_as_if_nothing_had_happened(self) -> None:
        with self.build() as testbed:
            whole = _Turns()
            run(testbed, _UpAndDown(self.PERIOD_S), whole)
        for crashed_after in sorted({1, len(whole.steps) // 2, len(whole.steps) - 1}):
            with self.build() as again:
                again.restore(whole.steps[:crashed_after])
                policy, rest = _UpAndDown(self.PERIOD_S), _Turns()
                for step in whole.steps[:crashed_after]:
                    policy.decide(step.observation)
                run(again, policy, rest)
            assert rest.steps == whole.steps[crashed_after:], f"crashed after {crashed_after} turns"
            assert rest.final == whole.final

    def test_the_journal_of_another_run_is_not_restored(self) -> None:
        with self.build_seeded(2) as other:
            steps = self._steps(other, 6)
        with self.build() as testbed:
            try:
                testbed.restore(steps)
            except FogscaleError:
                return
        raise AssertionError("restore must compare what it comes to with the journal, and refuse another's")

    def _journal(self, seed: int) -> list[bytes]:
        with self.build_seeded(seed) as testbed:
            policy, turns = _UpAndDown(self.PERIOD_S), _Turns()
            run(testbed, policy, turns)
        journal = Journal.open(None, {}, turns.steps[0].observation.topology)
        for step in turns.steps:
            journal.append(step)
        journal.end(turns.finished, turns.final, {})
        return journal.lines


class _UpAndDown:
    """Not an autoscaler: in its fourth turn it asks for another size, in its eighth for the one before."""

    needs: Capabilities = frozenset()

    def __init__(self, period_s: float) -> None:
        self.period_s = period_s
        self._turns = 0

    def start(self, topology: Topology, rng: Generator) -> None:
        """It has already begun."""

    def decide(self, observation: Observation) -> Plan | None:
        self._turns += 1
        if self._turns == 4:
            self._before = dict(observation.requested)
            return another_size(observation)
        return Plan(self._before, reason="as it was") if self._turns == 8 else None


class _Turns:
    """A log that keeps the turns of the loop."""

    recorded: None = None

    def __init__(self) -> None:
        self.steps: tuple[Step, ...] = ()
        self.final: tuple[Sample, ...] = ()
        self.finished = False

    def append(self, step: Step) -> None:
        self.steps = (*self.steps, step)

    def end(self, finished: bool, samples: Iterable[Sample], findings: Mapping[str, object]) -> None:
        self.finished, self.final = finished, tuple(samples)

    @property
    def samples(self) -> list[Sample]:
        return [*(sample for step in self.steps for sample in step.samples), *self.final]


def sizes(placement: object) -> dict[str, int]:
    assert isinstance(placement, dict) or hasattr(placement, "items")
    return {name: len(nodes) for name, nodes in placement.items()}


def another_size(observation: Observation) -> Plan:
    """One replica more, or less, of the first operator that allows it."""
    for operator in observation.topology.operators:
        now = len(observation.requested[operator.name])
        for wanted in (now + 1, now - 1):
            if operator.n_min <= wanted <= (operator.n_max or wanted):
                placement = resized(observation, {operator.name: wanted})
                if len(placement[operator.name]) == wanted:
                    return Plan(placement, reason="the contract is tried")
    raise AssertionError("the job of the testbed has no operator that can be scaled: give it one")


_MEASURED = {
    Capability.CPU: "cpu_ratio",
    Capability.MEMORY: "memory_ratio",
    Capability.BUSY: "busy_ratio",
    Capability.BACK_PRESSURE: "back_pressure_ratio",
    Capability.TRUE_RATE: "true_rate_per_s",
    Capability.RESPONSE_TIME: "response_time_ms",
}


def _unmeasured(testbed: Testbed, observation: Observation) -> list[str]:
    """What the testbed offers and no operator shows."""
    missing = [
        str(capability)
        for capability, field in _MEASURED.items()
        if capability in testbed.offers
        and all(getattr(metrics, field) is None for metrics in observation.operators.values())
    ]
    if Capability.LAG in testbed.offers and observation.lag_records is None:
        missing.append(str(Capability.LAG))
    return missing
