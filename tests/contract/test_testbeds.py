"""What every testbed promises. A testbed joins by a case in TESTBEDS; the checks know only the contract."""

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest

from controller.contract import Step, Testbed
from controller.loop import run
from controller.model import Capability, Observation, Plan
from tests.support.jobs import placed
from tests.support.runs import simulated

RATES_PER_S = [60] * 300 + [260] * 420 + [40] * 480  # over and under what two replicas at 100 can do
NOISE = {"relative": 0.03, "cpu_relative": 0.1, "settling_factor": 3, "stale_ratio": 0.1}


class Case(NamedTuple):
    """A testbed with two replicas of map, and how it reconfigures."""

    build: Callable[[int], Testbed]  # of a seed
    takes_time: bool  # a plan is not carried out at once
    stops: bool  # nothing is processed meanwhile


def simulated_case(style: str, buffering: str) -> Case:
    def build(seed: int) -> Testbed:
        # Another seed is another day: arrivals and noise differ.
        arrivals = np.random.default_rng(seed).poisson(RATES_PER_S)
        duration_s = {"restart": 90, "in_place": (2, 20), "boot": (5, 25), "pause": 12.5, "instant": 0}[style]
        return simulated(
            arrivals,
            seed=seed,
            buffering=buffering,
            noise=NOISE,
            reconfiguration={"style": style, "duration_s": duration_s, "settling_s": 30},
        )

    return Case(build, takes_time=style != "instant", stops=style in {"restart", "in_place", "pause"})


TESTBEDS = {
    f"simulated-{style}-{buffering}": simulated_case(style, buffering)
    for style in ("restart", "in_place", "boot", "pause", "instant")
    for buffering in ("back_pressure", "queues")
}


@pytest.fixture(params=TESTBEDS, scope="module")
def case(request):
    return TESTBEDS[request.param]


class Script:
    """Not an autoscaler: asks for given placements at given times, once a minute."""

    period_s = 60.0
    needs: frozenset[Capability] = frozenset()

    def __init__(self, placements):
        self.placements = placements

    def start(self, topology, rng):
        pass

    def decide(self, observation: Observation) -> Plan | None:
        nodes = self.placements.get(observation.time_s)
        return None if nodes is None else Plan(placed(*nodes), reason="the script says so")


UP_AND_DOWN = {
    360.0: ("fog1", "fog2", "fog3"),
    600.0: ("fog1", "fog2", "fog3", "fog4"),
    960.0: ("fog1",),
}


class Memory:
    """A log that keeps the steps."""

    recorded = None

    def __init__(self):
        self.steps: list[Step] = []
        self.finished: bool | None = None
        self.final = ()

    def append(self, step):
        self.steps.append(step)

    def end(self, finished, samples, findings):
        self.finished, self.final = finished, tuple(samples)

    @property
    def samples(self):
        return [*(sample for step in self.steps for sample in step.samples), *self.final]


def played(testbed: Testbed, placements=UP_AND_DOWN) -> Memory:
    memory = Memory()
    with testbed:
        run(testbed, Script(placements), memory)
    return memory


@pytest.fixture(scope="module")
def memory(case):
    return played(case.build(1))


@pytest.fixture
def testbed(case):
    """At 0 s, nothing asked of it yet."""
    with case.build(1) as testbed:
        yield testbed


# Plans and receipts


def test_apply_returns_at_once_and_the_receipt_comes_later(case, testbed):
    plan = Plan(placed("fog1", "fog2", "fog3"), reason="more")
    testbed.apply(plan)
    at_once = testbed.observe()
    assert at_once.time_s == 0
    assert at_once.requested == plan.placement
    testbed.wait(120)
    later = testbed.observe()
    [receipt] = at_once.receipts + later.receipts
    assert (receipt in later.receipts) == case.takes_time
    assert receipt.plan == plan
    assert receipt.outcome == "done"
    assert receipt.requested_s == 0
    assert 0 <= receipt.finished_s <= 120
    assert (receipt.downtime_s > 0) == case.stops
    assert later.placement == later.requested == plan.placement


def test_while_reconfiguring_what_runs_is_not_what_was_requested(case, testbed):
    testbed.wait(60)
    assert not testbed.observe().reconfiguring
    testbed.apply(Plan(placed("fog1", "fog2", "fog3")))
    assert testbed.observe().reconfiguring == case.takes_time
    testbed.wait(120)
    assert not testbed.observe().reconfiguring


def test_it_is_not_reconfiguring_any_more_once_the_receipt_is_there(case):
    """Whatever the order in which the nodes of a plan are named or become ready."""
    for seed in range(5):
        with case.build(seed) as testbed:
            testbed.wait(60)
            testbed.apply(Plan(placed("fog5", "fog3", "fog1", "fog4")))
            testbed.wait(120)
            observation = testbed.observe()
            assert [receipt.outcome for receipt in observation.receipts] == ["done"]
            assert not observation.reconfiguring


def test_a_plan_for_what_is_already_so_changes_nothing(testbed):
    testbed.apply(Plan(placed("fog1", "fog2")))
    testbed.wait(60)
    observation = testbed.observe()
    assert [receipt.outcome for receipt in observation.receipts] == ["unchanged"]
    assert not observation.reconfiguring
    assert all(sample.reconfigurations == 0 for sample in testbed.samples())


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        pytest.param(Plan(placed("fog1", "fog99")), "unknown node 'fog99'", id="an unknown node"),
        pytest.param(Plan(placed("fog1", "fog1")), "fog1 has 1 slots", id="two replicas in one slot"),
        pytest.param(Plan({"map": ("fog1", "fog2")}), "every operator", id="operators left out"),
        pytest.param(
            Plan({**placed("fog1"), "reduce": ("fog2",)}),
            "every operator",
            id="an operator that does not exist",
        ),
        pytest.param(Plan(placed()), "outside 1..5", id="fewer than n_min"),
        pytest.param(
            Plan({**placed("fog1"), "source": ("services", "fog2")}), "outside 1..1", id="more than n_max"
        ),
        pytest.param(Plan(placed("fog1"), standby=-1), "standby", id="fewer than no standby"),
    ],
)
def test_an_impossible_plan_is_refused_in_words_and_changes_nothing(testbed, plan, message):
    testbed.wait(60)
    before = testbed.observe()
    testbed.apply(plan)
    testbed.wait(60)
    after = testbed.observe()
    [receipt] = after.receipts
    assert receipt.outcome == "refused"
    assert message in receipt.message
    assert "\n" not in receipt.message
    assert receipt.requested_s == receipt.finished_s == 60
    assert receipt.downtime_s == 0
    assert after.requested == before.requested
    assert after.placement == before.placement
    assert all(sample.reconfigurations == 0 for sample in testbed.samples())


def test_a_second_plan_while_the_job_is_stopped_is_refused(case, testbed):
    testbed.apply(Plan(placed("fog1", "fog2", "fog3")))
    testbed.wait(1)
    testbed.apply(Plan(placed("fog1")))
    testbed.wait(120)
    observation = testbed.observe()
    outcome_of = {len(receipt.plan.placement["map"]): receipt.outcome for receipt in observation.receipts}
    assert outcome_of == {3: "done", 1: "refused" if case.stops else "done"}
    assert len(observation.requested["map"]) == (3 if case.stops else 1)


def test_nothing_is_processed_while_the_job_is_stopped(case, memory):
    stopped = [(a, b) for a, b in pairwise(memory.samples) if a.replicas["map"] == b.replicas["map"] == 0]
    assert all(b.processed_records == a.processed_records for a, b in stopped)
    assert any(b.offered_records > a.offered_records for a, b in stopped) == case.stops


# Samples


def test_samples_are_in_order_and_start_at_zero(memory):
    times_s = [sample.time_s for sample in memory.samples]
    assert times_s[0] == 0
    assert all(a < b for a, b in pairwise(times_s))


def test_samples_come_at_least_every_ten_seconds(memory):
    times_s = [sample.time_s for sample in memory.samples]
    assert max(b - a for a, b in pairwise(times_s)) <= 10


def test_every_accepted_plan_counts_as_one_reconfiguration(memory):
    assert memory.samples[-1].reconfigurations == len(UP_AND_DOWN)


def test_samples_show_running_replicas(memory):
    assert memory.samples[0].replicas == {"source": 1, "map": 2, "sink": 1}
    assert memory.samples[-1].replicas == {"source": 1, "map": 1, "sink": 1}
    assert {sample.replicas["map"] for sample in memory.samples} >= {1, 2, 3, 4}


def test_a_sample_is_taken_at_the_instant_a_restart_begins(case, memory):
    """The integral of the replicas over time, and so the cost of a run, depends on it."""
    at = {sample.time_s: sample.replicas["map"] for sample in memory.samples}
    if case.stops:
        assert at[360.0] == 0


def test_response_quantiles_are_in_order(memory):
    for sample in memory.samples:
        if sample.response_p50_ms is not None:
            assert 0 <= sample.response_p50_ms <= sample.response_p95_ms <= sample.response_p99_ms


# The end


def test_everything_is_processed_in_the_end(memory):
    assert memory.finished
    assert memory.samples[-1].lag_records == 0
    assert memory.samples[-1].processed_records == memory.samples[-1].offered_records > 0


def test_it_is_drained_only_after_the_workload(case):
    testbed = case.build(1)
    testbed.wait(299)
    assert not testbed.finished
    assert not testbed.drained


# Again, and after a crash


@pytest.mark.parametrize("crashed_after", [1, 7, 11, 18])
def test_a_restored_testbed_goes_on_as_if_nothing_had_happened(case, memory, crashed_after):
    """After 7 steps a restart is under way, after 11 the next one."""
    testbed = case.build(1)
    testbed.restore(memory.steps[:crashed_after])
    rest = played(testbed)
    assert rest.steps == memory.steps[crashed_after:]
    assert rest.final == memory.final
