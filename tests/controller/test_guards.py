"""Each guard by a sequence of observations written by hand."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from controller.guards import Bounds, Cooldown, FreshMetrics, Warmup, guarded, told_by
from controller.model import Capability, Instance, Note, Observation, OperatorMetrics, Plan, Receipt
from controller.policies import create
from fogscale.errors import FogscaleError
from tests.support.jobs import chain, placed, replicas_of, seen, without_metrics

STOPPED = {"source": (), "map": (), "sink": ()}
MORE = Plan(placed("fog1", "fog2", "fog3", "fog4"), reason="more")


@dataclass
class Eager:
    """Wants four replicas whenever it is asked, and remembers when it was."""

    period_s: float = 60.0
    needs: frozenset[Capability] = frozenset({Capability.CPU})
    asked_at_s: list[float] = field(default_factory=list)
    started: bool = False

    def start(self, topology, rng):
        self.started = True
        self.asked_at_s.clear()

    def decide(self, observation: Observation) -> Plan | None:
        self.asked_at_s.append(observation.time_s)
        return MORE


def at(time_s: float, **more) -> Observation:
    return seen(["fog1", "fog2"], time_s=time_s, **more)


def receipt(finished_s: float, outcome="done") -> Receipt:
    return Receipt(MORE, outcome, requested_s=finished_s - 120, finished_s=finished_s)


def started(guard):
    guard.start(chain(), np.random.default_rng(1))
    return guard


def times_of_plans(guard, observations):
    return [seen.time_s for seen in observations if guard.decide(seen) is not None]


@pytest.mark.parametrize(
    "guard",
    [
        Warmup(Eager(), 300),
        Cooldown(Eager(), 300),
        Bounds(Eager(), 3),
        FreshMetrics(Eager(), 30),
    ],
    ids=lambda guard: type(guard).__name__,
)
def test_a_guard_needs_what_its_policy_needs_as_often(guard):
    assert guard.needs == {Capability.CPU}
    assert guard.period_s == 60
    started(guard)
    assert guard.policy.started


# Warmup


def test_warmup_begins_with_the_run():
    guard = started(Warmup(Eager(), 300))
    assert times_of_plans(guard, [at(0), at(60), at(299), at(300), at(360)]) == [300, 360]


def test_warmup_begins_anew_when_a_reconfiguration_is_done():
    """Done at 720 s: warm again at 1020 s."""
    guard = started(Warmup(Eager(), 300))
    sequence = [at(600), at(660, running=STOPPED), at(720, receipts=(receipt(720),)), at(1019), at(1020)]
    assert times_of_plans(guard, sequence) == [600, 1020]


def test_warmup_counts_from_the_end_of_a_reconfiguration_not_from_its_receipt():
    guard = started(Warmup(Eager(), 300))
    assert times_of_plans(guard, [at(780, receipts=(receipt(725),)), at(1020), at(1026)]) == [1026]


def test_warmup_may_count_from_when_the_change_was_asked_for():
    """It was asked for at 480 s and done at 600 s."""
    guard = started(guarded(Eager(), {"warmup_from_request_s": 300}))
    seen = [at(600, receipts=(receipt(600),)), *(at(time_s) for time_s in (720, 779, 780))]
    assert times_of_plans(guard, seen) == [780]


def test_warmup_follows_a_failed_reconfiguration_too():
    """A failed savepoint stops the job as well."""
    guard = started(Warmup(Eager(), 300))
    assert times_of_plans(guard, [at(720, receipts=(receipt(720, "failed"),)), at(1000), at(1020)]) == [1020]


def test_a_refused_plan_needs_no_warmup():
    guard = started(Warmup(Eager(), 300))
    assert times_of_plans(guard, [at(720, receipts=(receipt(720, "refused"),))]) == [720]


def test_warmup_hides_what_it_sees_from_the_policy():
    guard = started(Warmup(Eager(), 300))
    for observation in (at(0), at(300), at(360, running=STOPPED), at(420, receipts=(receipt(420),)), at(720)):
        guard.decide(observation)
    assert guard.policy.asked_at_s == [300, 720]


def test_a_warmup_started_again_is_cold_again():
    guard = started(Warmup(Eager(), 300))
    guard.decide(at(900, receipts=(receipt(900),)))
    started(guard)
    assert times_of_plans(guard, [at(0), at(300)]) == [300]


def paused(*operators, time_s, finished_s=None):
    """What a testbed shows that pauses operators one by one."""
    receipts = ()
    if finished_s is not None:
        receipts = (replace(receipt(finished_s), operators=("map",)),)
    return replace(at(time_s, receipts=receipts), changing=operators)


@dataclass
class Watcher(Eager):
    """Remembers which operators it saw measured, and wants map at four replicas."""

    measured: list[tuple[float, list[str]]] = field(default_factory=list)

    def decide(self, observation):
        seen = [n for n, metrics in observation.operators.items() if metrics.throughput_per_s is not None]
        self.measured.append((observation.time_s, seen))
        return super().decide(observation)


def test_warmup_hides_only_operators_that_are_reconfigured_on_their_own():
    """map is paused until 402 s, so it shows from 702 s on; the others always do."""
    guard = started(Warmup(Watcher(), 300))
    sequence = [
        paused(time_s=300),
        paused("map", time_s=401),
        paused(time_s=420, finished_s=402),
        paused(time_s=701),
        paused(time_s=702),
    ]
    for observation in sequence:
        guard.decide(observation)
    others, everything = ["source", "sink"], ["source", "map", "sink"]
    assert guard.policy.measured == [
        (300, everything), (401, others), (420, others), (701, others), (702, everything)
    ]  # fmt: skip


def test_a_plan_leaves_operators_that_warm_up_as_they_are():
    guard = started(Warmup(Eager(), 300))
    assert guard.decide(paused("map", time_s=400)) is None  # it wants nothing else
    wanted = {"source": ("fog5",), "map": ("fog1", "fog2", "fog3"), "sink": ("services",)}
    guard.policy.decide = lambda _observation: Plan(wanted, reason="more")
    plan = guard.decide(paused("map", time_s=460))
    assert plan.placement == wanted | {"map": ("fog1", "fog2")}
    assert plan.reason == "more; map warming up"


def test_a_job_of_which_all_operators_are_paused_is_hidden_as_a_whole():
    guard = started(Warmup(Eager(), 300))
    assert guard.decide(paused("source", "map", "sink", time_s=400)) is None
    assert guard.policy.asked_at_s == []


# Cooldown


def test_cooldown_holds_plans_back_after_one():
    guard = started(Cooldown(Eager(), 120))
    assert times_of_plans(guard, [at(0), at(60), at(119), at(120), at(180), at(240)]) == [0, 120, 240]


def test_cooldown_lets_the_policy_watch():
    guard = started(Cooldown(Eager(), 120))
    for time_s in (0, 60, 120):
        guard.decide(at(time_s))
    assert guard.policy.asked_at_s == [0, 60, 120]


def test_a_cooldown_started_again_is_free_again():
    guard = started(Cooldown(Eager(), 120))
    guard.decide(at(900))
    started(guard)
    assert times_of_plans(guard, [at(0)]) == [0]


# Bounds


def test_bounds_cut_a_plan_and_say_so():
    plan = Bounds(Eager(), 3).decide(at(0))
    assert plan.placement == placed("fog1", "fog2", "fog3")
    assert plan.reason == "more; cut to 3 replicas"


def test_bounds_pass_a_plan_within_them():
    assert Bounds(Eager(), 4).decide(at(0)) is MORE


def test_bounds_drop_a_plan_of_which_nothing_is_left():
    assert Bounds(Eager(), 2).decide(at(0)) is None


# FreshMetrics


@pytest.mark.parametrize(("age_s", "expected"), [(0, 4), (30, 4), (31, None)])
def test_metrics_older_than_allowed_are_skipped(age_s, expected):
    assert replicas_of(FreshMetrics(Eager(), 30).decide(at(600, measured_s=600 - age_s))) == expected


def test_an_operator_without_metrics_makes_them_incomplete():
    guard = FreshMetrics(Eager(), 30)
    assert guard.decide(at(600, map=OperatorMetrics())) is None
    assert guard.decide(without_metrics(at(600))) is None


def test_metrics_that_were_never_taken_are_not_fresh():
    assert FreshMetrics(Eager(), 30).decide(replace(at(600), measured_s=None)) is None


def test_stale_metrics_are_hidden_from_the_policy():
    guard = FreshMetrics(Eager(), 30)
    guard.decide(at(600, measured_s=500))
    assert guard.policy.asked_at_s == []


# Nesting


def test_no_guard_leaves_the_policy_bare():
    eager = Eager()
    assert guarded(eager, {}) is eager


def test_the_first_guard_named_is_the_outermost():
    guard = guarded(Eager(), {"warmup_s": 300, "cooldown_s": 120, "max_replicas": 3, "max_metrics_age_s": 30})
    types = []
    while not isinstance(guard, Eager):
        types.append(type(guard))
        guard = guard.policy
    assert types == [Warmup, Cooldown, Bounds, FreshMetrics]


def test_order_matters_a_cut_that_leaves_nothing_does_not_start_a_cooldown():
    """Inside the cooldown, the bounds drop the plan before it counts as one; outside, it counts."""
    inside = started(guarded(Eager(), {"cooldown_s": 300, "max_replicas": 2}))
    outside = started(guarded(Eager(), {"max_replicas": 2, "cooldown_s": 300}))
    one_replica = seen(["fog1"], time_s=60)
    assert [inside.decide(at(0)), outside.decide(at(0))] == [None, None]
    assert replicas_of(inside.decide(one_replica)) == 2
    assert outside.decide(one_replica) is None


def test_an_unknown_guard_finds_the_known_one():
    with pytest.raises(FogscaleError, match=r"unknown guard 'warmup': did you mean warmup_s\?"):
        guarded(Eager(), {"warmup": 300})


@pytest.mark.parametrize("guards", [{"max_replicas": 0}, {"max_replicas": 2.5}, {"warmup_s": -60}])
def test_a_guard_that_makes_no_sense_is_refused(guards):
    """No replica at all, half a replica, a warm-up that ends before it begins."""
    with pytest.raises(FogscaleError, match=next(iter(guards))):
        guarded(Eager(), guards)


class Thoughtful:
    """Says how often it was asked."""

    needs = frozenset()
    period_s = 60.0

    def start(self, topology, rng):
        self.estimates, self.notes = {"asked": 0.0}, ()

    def decide(self, observation):
        self.estimates = {"asked": self.estimates["asked"] + 1}
        self.notes = (Note("asked", "a", "b", {"at_s": observation.time_s}),)


def test_what_a_decision_rests_on_is_known_only_when_the_policy_was_asked():
    policy = guarded(Thoughtful(), {"warmup_s": 100, "cooldown_s": 10})
    policy.start(chain(), np.random.default_rng(1))
    found = []
    for time_s in (60.0, 120.0, 180.0):
        policy.decide(seen(["fog1"], time_s=time_s))
        found.append(told_by(policy, time_s))
    assert found == [
        ({}, ()),
        ({"asked": 1}, (Note("asked", "a", "b", {"at_s": 120.0}),)),
        ({"asked": 2}, (Note("asked", "a", "b", {"at_s": 180.0}),)),
    ]


def test_a_policy_need_not_have_any():
    assert told_by(create("static"), 0.0) == ({}, ())


def test_a_plan_that_changes_nothing_starts_no_cooldown():
    """A policy may say something, or ask for standby, without touching the job."""
    same = Plan(placed("fog1"), standby=2, reason="kept")
    policy = Eager()
    guard = started(Cooldown(policy, 120))
    policy.decide = lambda _observation: same
    assert guard.decide(seen(["fog1"], time_s=60)) is same
    policy.decide = lambda _observation: MORE
    assert guard.decide(seen(["fog1"], time_s=120)) is MORE


def test_what_stayed_as_it_was_needs_no_warming_up():
    guard = started(Warmup(Eager(), 100))
    unchanged = Receipt(Plan(placed("fog1")), "unchanged", 180.0, 180.0)
    assert guard.decide(seen(["fog1"], time_s=240, receipts=(unchanged,))) is MORE


# Plans that name instances


@dataclass
class Namer:
    """Always wants these instances of map."""

    wanted: tuple[Instance, ...]
    needs = frozenset()
    period_s = 60.0

    def start(self, topology, rng):
        """Nothing to prepare."""

    def decide(self, observation):
        return Plan.of_instances(observation.requested_instances | {"map": self.wanted}, "by name")


A, B, IDLE, C = (
    Instance("a", "fog1"),
    Instance("b", "fog2"),
    Instance("i", "fog3", active=False),
    Instance("c", "fog4"),
)


def showing(*map_instances):
    return replace(
        seen([each.node for each in map_instances if each.active], time_s=60),
        requested_instances={
            "source": (Instance("s", "services"),),
            "map": map_instances,
            "sink": (Instance("k", "services"),),
        },
    )


def test_bounds_cut_the_last_active_instances_and_leave_those_that_serve_nothing():
    plan = started(Bounds(Namer((A, IDLE, B, C)), 2)).decide(showing(A))
    assert plan.instances["map"] == (A, IDLE, B)
    assert plan.placement["map"] == ("fog1", "fog2")


def test_a_cut_that_leaves_what_is_there_is_no_plan():
    assert started(Bounds(Namer((A, IDLE, B, C)), 2)).decide(showing(B, IDLE, A)) is None


def test_leave_and_join_on_one_node_is_a_change_and_starts_a_cooldown():
    successor = replace(A, id="a2")
    guard = started(Cooldown(Namer((successor,)), 300))
    assert guard.decide(showing(A)).placement == showing(A).requested
    assert guard.decide(replace(showing(A), time_s=120)) is None


def test_the_same_instances_again_start_no_cooldown():
    guard = started(Cooldown(Namer((B, A)), 300))
    assert guard.decide(showing(A, B)) is not None
    assert guard.decide(replace(showing(A, B), time_s=120)) is not None
