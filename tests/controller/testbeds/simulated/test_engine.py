"""The engine against a simulator of a few plain lines, and its mechanisms by hand."""

from math import ceil
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.model import Node, Operator, Plan, Topology
from controller.network import RttUniform
from controller.testbeds.simulated.settings import Simulation
from controller.testbeds.simulated.testbed import SimulatedTestbed
from fogscale.settings import validated
from tests.support.jobs import chain, placed
from tests.support.runs import constant, simulated, simulation

NO_CHANCE = {"arrival_scv": 0, "service_scv": 0}  # nobody waits by chance: the backlog is all that waits

# source → left (keeps a quarter), right (doubles) → join; an offered record reaches join 2.25 times.
OPERATORS = (
    Operator("source"),
    Operator("left", ("source",), selectivity=0.25),
    Operator("right", ("source",), selectivity=2.0),
    Operator("join", ("left", "right")),
)
PER_REPLICA = {"source": 512.0, "left": 64.0, "right": 80.0, "join": 400.0}
NODES = tuple(Node(f"n{i}", 1, 1024) for i in range(12))
DIAMOND = Topology(NODES, OPERATORS, RttUniform(0.0))


def replicas(left: int, right: int) -> dict[str, tuple[str, ...]]:
    """source and join have one node each, left the next ones, right the last ones."""
    names = [node.name for node in NODES]
    return {
        "source": (names[0],),
        "left": tuple(names[2 : 2 + left]),
        "right": tuple(names[7 : 7 + right]),
        "join": (names[1],),
    }


class Change(NamedTuple):
    at_s: int
    left: int
    right: int


def plainly(arrivals, start, changes, duration_s, style, buffering, steps=220):
    """The same job, second by second and operator by operator: queues and processed after each second."""
    names = [operator.name for operator in OPERATORS]
    queue = dict.fromkeys(names, 0.0)
    count = {"source": 1, "left": start[0], "right": start[1], "join": 1}
    serves_from = dict.fromkeys(names, 0.0)
    for second in range(steps):
        for change in changes:
            if change.at_s == second:
                new = {**count, "left": change.left, "right": change.right}
                for name in names:
                    if new != count and (style != "pause" or new[name] != count[name]):
                        serves_from[name] = second + duration_s
                count = new
        share = {name: min(1.0, max(0.0, second + 1 - serves_from[name])) for name in names}
        can_do = {name: PER_REPLICA[name] * count[name] * share[name] for name in names}
        offered = arrivals[second] if second < len(arrivals) else 0
        processed = {}
        if buffering == "back_pressure":
            most = min(can_do["source"], can_do["left"], can_do["right"], can_do["join"] / 2.25)
            taken = min(queue["source"] + offered, most)
            queue["source"] += offered - taken
            processed = {"source": taken, "left": taken, "right": taken, "join": 2.25 * taken}
        else:
            came = {"source": float(offered)}
            for name in names:
                if name == "join":
                    came["join"] = 0.25 * processed["left"] + 2.0 * processed["right"]
                elif name != "source":
                    came[name] = processed["source"]
                processed[name] = min(queue[name] + came[name], can_do[name])
                queue[name] += came[name] - processed[name]
        yield dict(queue), processed


@st.composite
def stories(draw):
    """Two minutes of load in blocks, and up to three changes that do not overlap."""
    blocks = draw(st.lists(st.sampled_from([0, 20, 60, 110, 150, 190, 240, 600]), min_size=12, max_size=12))
    bursts = draw(st.lists(st.integers(0, 40), min_size=10, max_size=10))
    arrivals = [block + burst for block in blocks for burst in bursts]
    numbers = st.integers(1, 4)
    duration_s = draw(st.integers(1, 120)) / 4
    changes, at_s = [], draw(st.integers(0, 40))
    for _ in range(draw(st.integers(0, 3))):
        changes.append(Change(at_s, draw(numbers), draw(numbers)))
        at_s += ceil(duration_s) + draw(st.integers(0, 30))
    return arrivals, (draw(numbers), draw(numbers)), changes, duration_s


def diamond(arrivals, start, style, buffering, duration_s):
    values = {
        "capacity": {
            name: {"law": "linear", "per_replica_per_s": per_s} for name, per_s in PER_REPLICA.items()
        },
        "reconfiguration": {"style": style, "duration_s": duration_s},
        "buffering": buffering,
        "metric_window_s": 1,
        "sample_interval_s": 1,
        "drain_limit_s": 100,
        **NO_CHANCE,
    }
    return SimulatedTestbed(
        DIAMOND,
        replicas(*start),
        validated(Simulation, values, "test"),
        {"source": np.array(arrivals)},
        np.random.default_rng(1),
    )


@pytest.mark.parametrize("style", ["restart", "pause"])
@pytest.mark.parametrize("buffering", ["back_pressure", "queues"])
@settings(max_examples=25, deadline=None)
@given(story=stories(), looks_every_s=st.sampled_from([1, 7, 10, 60]))
def test_it_does_what_a_plain_simulator_does(style, buffering, story, looks_every_s):
    arrivals, start, changes, duration_s = story
    expected = list(plainly(arrivals, start, changes, duration_s, style, buffering))
    job = diamond(arrivals, start, style, buffering, duration_s)
    taken, pending = [], {change.at_s: change for change in changes}
    while not job.finished:
        observation = job.observe()
        now_s = int(observation.time_s)
        if now_s > 0:
            for name, queue in expected[now_s - 1][0].items():
                assert observation.operators[name].queue_records == pytest.approx(queue, abs=1e-6)
        if now_s in pending:
            change = pending.pop(now_s)
            job.apply(Plan(replicas(change.left, change.right)))
        next_change = min((at for at in pending if at > now_s), default=10_000)
        job.wait(min(looks_every_s, next_change - now_s))
        taken += job.samples()
    check_samples(taken, expected, arrivals)


def check_samples(taken, expected, arrivals):
    """Every second: what was offered, and what still waits, counted in offered records."""
    weight = {"source": 1.0, "left": 1.0, "right": 1.0, "join": 2.25}
    for sample in taken:
        second = int(sample.time_s)
        assert sample.offered_records == sum(arrivals[:second])
        if second > 0:
            waiting = sum(queue / weight[name] for name, queue in expected[second - 1][0].items())
            assert abs(sample.lag_records - waiting) <= 1
    assert {sample.time_s for sample in taken} == set(range(len(taken)))
    last = int(taken[-1].time_s)
    if last < 220:  # it ends with the last record, no second later
        assert sum(expected[last - 1][0].values()) <= 1e-6
        assert last == len(arrivals) or sum(expected[last - 2][0].values()) > 1e-6


@settings(max_examples=10, deadline=None)
@given(story=stories())
@pytest.mark.parametrize("buffering", ["back_pressure", "queues"])
def test_throughput_is_what_was_processed_since_the_last_look(buffering, story):
    arrivals, start, _, duration_s = story
    expected = list(plainly(arrivals, start, [], duration_s, "restart", buffering))
    job = diamond(arrivals, start, "restart", buffering, 1)
    for second in range(1, len(arrivals)):
        job.wait(1)
        for name, seen in job.observe().operators.items():
            assert seen.throughput_per_s == pytest.approx(expected[second - 1][1][name], abs=1e-6)


# Looking does not disturb


def samples_when_looking_every(seconds, inputs, buffering="back_pressure"):
    operators = (Operator("a"), Operator("b"), Operator("join", ("a", "b")))
    laws = {name: {"law": "linear", "per_replica_per_s": per_s} for name, per_s in (("a", 512), ("b", 512))}
    values = {
        "capacity": {**laws, "join": {"law": "linear", "per_replica_per_s": 128}},
        "reconfiguration": {"style": "instant"},
        "buffering": buffering,
        "arrival_scv": 0,
    }
    job = SimulatedTestbed(
        Topology(NODES[:3], operators, RttUniform(0.0)),
        {"a": ("n0",), "b": ("n1",), "join": ("n2",)},
        validated(Simulation, values, "test"),
        inputs,
        np.random.default_rng(1),
    )
    taken = []
    while not job.finished:
        job.observe()
        job.wait(seconds)
        taken += job.samples()
    return [(sample.time_s, sample.processed_records) for sample in taken if sample.time_s % 10 == 0]


WAVE = np.array(([200] * 40 + [20] * 40) * 3)


@pytest.mark.parametrize("buffering", ["back_pressure", "queues"])
@pytest.mark.parametrize("seconds", [1, 5, 20])
def test_how_often_a_policy_looks_does_not_change_what_happens(seconds, buffering):
    one_source = {"a": WAVE}
    assert samples_when_looking_every(seconds, one_source, buffering) == samples_when_looking_every(
        60, one_source, buffering
    )


@pytest.mark.parametrize("buffering", ["back_pressure", "queues"])
@pytest.mark.parametrize("seconds", [1, 5, 20])
def test_nor_does_it_with_two_sources(seconds, buffering):
    """Policies of different periods are compared on one load; the job must not notice who is watching."""
    two_sources = {"a": WAVE, "b": WAVE[::-1].copy()}
    assert samples_when_looking_every(seconds, two_sources, buffering) == samples_when_looking_every(
        60, two_sources, buffering
    )


# A restart of 120 s, by hand: 150 records/s arrive, two replicas do 200, three do 300.


@pytest.fixture(scope="module")
def restarted():
    """At 60 s a third replica is asked for."""
    job = simulated(constant(150, 600))
    job.wait(60)
    job.apply(Plan(placed("fog1", "fog2", "fog3")))
    while not job.finished:
        job.wait(10)
    return {sample.time_s: sample for sample in job.samples()}


@pytest.mark.parametrize(
    ("time_s", "lag"),
    [
        pytest.param(60, 0, id="nothing waits before"),
        pytest.param(70, 1_500, id="all that comes waits"),
        pytest.param(180, 18_000, id="for 120 s"),
        pytest.param(190, 16_500, id="then 300 leave while 150 come"),
        pytest.param(290, 1_500, id="and so on"),
        pytest.param(300, 0, id="until 300 s"),
        pytest.param(600, 0, id="the end"),
    ],
)
def test_a_restart_is_caught_up_at_capacity(restarted, time_s, lag):
    sample = restarted[time_s]
    assert sample.lag_records == lag
    assert sample.processed_records == 150 * time_s - lag


def test_nothing_runs_during_a_restart(restarted):
    for time_s in range(60, 180, 10):
        assert restarted[time_s].replicas == {"source": 0, "map": 0, "sink": 0}
    assert restarted[180].replicas == {"source": 1, "map": 3, "sink": 1}


def test_samples_are_taken_when_a_stop_ends_between_the_grid():
    """A restart of 3.25 s at 5 s: at the end of the ninth second all are back, off the grid of 10 s."""
    job = simulated(constant(50, 60), reconfiguration={"style": "restart", "duration_s": 3.25})
    job.wait(5)
    job.apply(Plan(placed("fog1")))
    job.wait(30)
    running = {sample.time_s: sample.replicas["map"] for sample in job.samples()}
    assert running == {0: 2, 5: 0, 9: 1, 10: 1, 20: 1, 30: 1}


def test_during_a_pause_only_the_touched_operator_stops():
    """In front of it Kafka, with back pressure; with queues the source goes on."""
    pause = {"style": "pause", "duration_s": 30}
    for buffering, where in (("back_pressure", "source"), ("queues", "map")):
        job = simulated(constant(50, 60), reconfiguration=pause, buffering=buffering, **NO_CHANCE)
        job.apply(Plan(placed("fog1", "fog2", "fog3")))
        job.wait(10)
        observation = job.observe()
        waiting = {name: seen.queue_records for name, seen in observation.operators.items()}
        assert waiting == {"source": 0, "map": 0, "sink": 0, where: 500}
        assert {name: len(nodes) for name, nodes in observation.placement.items()} == {
            "source": 1,
            "map": 0,
            "sink": 1,
        }


def fork():
    """source → left and right, each of which may have three replicas of 100/s."""
    operators = (Operator("source"), Operator("left", ("source",), n_max=3), Operator("right", ("source",)))
    nodes = tuple(Node(f"n{i}", 1, 1024) for i in range(8))
    laws = {"source": 1000, "left": 100, "right": 100}
    values = {
        "capacity": {name: {"law": "linear", "per_replica_per_s": rate} for name, rate in laws.items()},
        "reconfiguration": {"style": "pause", "duration_s": 30},
    }
    return SimulatedTestbed(
        Topology(nodes, operators, RttUniform(1.0)),
        {"source": ("n0",), "left": ("n1",), "right": ("n2",)},
        validated(Simulation, values, "test"),
        {"source": np.full(120, 50)},
        np.random.default_rng(1),
    )


def test_while_one_operator_is_paused_another_can_be_changed():
    """left from 0 to 30 s, right from 10 to 40 s: neither ends or places the other's pause."""
    job = fork()
    job.apply(Plan({"source": ("n0",), "left": ("n1", "n3"), "right": ("n2",)}))
    job.wait(10)
    assert job.observe().changing == ("left",)
    job.apply(Plan({"source": ("n0",), "left": ("n1", "n3"), "right": ("n2", "n4")}))
    seen = []
    for _ in range(3):
        job.wait(15)  # at 25, 40 and 55 s
        observation = job.observe()
        seen.append({name: len(nodes) for name, nodes in observation.placement.items()})
        for receipt in observation.receipts:
            assert (receipt.outcome, receipt.downtime_s) == ("done", 30)
            seen.append((receipt.operators, receipt.finished_s))
    assert seen == [
        {"source": 1, "left": 0, "right": 0},
        {"source": 1, "left": 2, "right": 2},
        (("left",), 30),
        (("right",), 40),
        {"source": 1, "left": 2, "right": 2},
    ]


def test_an_operator_that_is_paused_is_not_changed_again():
    job = fork()
    job.apply(Plan({"source": ("n0",), "left": ("n1", "n3"), "right": ("n2",)}))
    job.wait(10)
    job.apply(Plan({"source": ("n0",), "left": ("n1", "n3", "n4"), "right": ("n2", "n5")}))
    [receipt] = job.observe().receipts
    assert (receipt.outcome, receipt.message) == ("refused", "a reconfiguration of left is in progress")
    job.wait(20)
    job.apply(Plan({"source": ("n0",), "left": ("n1", "n3", "n4"), "right": ("n2", "n5")}))
    job.wait(30)
    assert [receipt.operators for receipt in job.observe().receipts] == [("left",), ("left", "right")]


def test_a_job_that_stops_as_a_whole_names_no_operators():
    job = simulated(constant(50, 300))
    job.apply(Plan(placed("fog1", "fog2", "fog3")))
    job.wait(60)
    assert job.observe().changing is None
    job.wait(60)
    assert [receipt.operators for receipt in job.observe().receipts] == [()]


def test_while_instances_boot_the_others_go_on():
    """150 arrive, two replicas do 200; the third serves after 20 s, nothing ever waits."""
    job = simulated(constant(150, 60), reconfiguration={"style": "boot", "duration_s": 20})
    job.apply(Plan(placed("fog1", "fog2", "fog3")))
    job.wait(19)
    states = [instance.state for instance in job.observe().operators["map"].instances]
    assert states == ["running", "running", "booting"]
    job.wait(1)
    assert len(job.observe().placement["map"]) == 3
    assert all(sample.lag_records == 0 for sample in job.samples())


def test_instances_given_up_while_they_boot_never_serve():
    job = simulated(constant(150, 90), reconfiguration={"style": "boot", "duration_s": 20})
    job.apply(Plan(placed("fog1", "fog2", "fog3")))
    job.wait(10)
    job.apply(Plan(placed("fog1", "fog2")))
    job.wait(30)
    observation = job.observe()
    assert observation.placement == placed("fog1", "fog2")
    assert not observation.reconfiguring


def test_an_instance_asked_for_again_boots_again():
    """Asked for at 0 s, given up at 10 s, asked for again at 15 s: it serves at 35 s, not at 20 s."""
    job = simulated(constant(150, 90), reconfiguration={"style": "boot", "duration_s": 20})
    job.apply(Plan(placed("fog1", "fog2", "fog3")))
    job.wait(10)
    job.apply(Plan(placed("fog1", "fog2")))
    job.wait(5)
    job.apply(Plan(placed("fog1", "fog2", "fog3")))
    job.wait(10)
    assert job.observe().placement == placed("fog1", "fog2")
    job.wait(10)
    assert job.observe().placement == placed("fog1", "fog2", "fog3")


# Back pressure (mechanism 3): the source does 1024, map on two replicas 200


def seen_after(seconds, arrivals, **changes):
    job = simulated(arrivals, **changes)
    job.wait(seconds)
    return job.observe().operators


def test_behind_a_saturated_operator_the_rest_of_the_time_is_back_pressure():
    """300 come, 200 pass: the source is busy for 200/1024 of the time and back-pressured for the rest."""
    seen = seen_after(60, constant(300, 120))
    assert seen["source"].busy_ratio == pytest.approx(200 / 1024)
    assert seen["source"].back_pressure_ratio == pytest.approx(1 - 200 / 1024)
    assert seen["map"].busy_ratio == 1
    assert seen["map"].back_pressure_ratio == 0
    assert seen["sink"].back_pressure_ratio == 0


def test_without_a_backlog_there_is_no_back_pressure():
    seen = seen_after(60, constant(199, 120))
    assert [metrics.back_pressure_ratio for metrics in seen.values()] == [0, 0, 0]
    assert seen["map"].busy_ratio == pytest.approx(199 / 200)


def test_a_source_that_is_itself_too_slow_is_not_back_pressured():
    laws = {
        name: {"law": "linear", "per_replica_per_s": per_s}
        for name, per_s in (("source", 50), ("map", 100), ("sink", 1024))
    }
    seen = seen_after(60, constant(300, 120), capacity=laws)
    assert [metrics.back_pressure_ratio for metrics in seen.values()] == [0, 0, 0]
    assert seen["source"].busy_ratio == 1


def test_a_slow_sink_presses_back_on_all_above_it():
    """The sink does 100: source and map are both back-pressured, in proportion to what they could do."""
    laws = {
        name: {"law": "linear", "per_replica_per_s": per_s}
        for name, per_s in (("source", 1000), ("map", 100), ("sink", 100))
    }
    seen = seen_after(60, constant(150, 120), capacity=laws)
    assert seen["source"].back_pressure_ratio == pytest.approx(0.9)
    assert seen["map"].back_pressure_ratio == pytest.approx(0.5)
    assert seen["sink"].back_pressure_ratio == 0


def test_half_a_minute_of_overload_is_half_the_back_pressure():
    """250 for 20 s leave 1000 that the next 10 s of 100 absorb; the other half of the minute is calm."""
    seen = seen_after(60, constant(250, 20) + constant(100, 100))
    busy = (250 * 20 + 100 * 40) / 60 / 1024
    # After the 29th second 100 still wait, after the 30th nothing.
    assert seen["source"].back_pressure_ratio == pytest.approx(29 / 60 * (1 - busy))


@pytest.mark.parametrize(("in_catch_up", "expected"), [(True, 1 - 200 / 1024), (False, 0)])
def test_back_pressure_while_the_backlog_is_worked_off(in_catch_up, expected):
    """10 000 are left from the first 100 s; the next minute brings 50/s and works off 9000 of them."""
    arrivals = constant(300, 100) + constant(50, 200)
    job = simulated(arrivals, back_pressure_in_catch_up=in_catch_up)
    job.wait(100)
    job.observe()
    job.wait(60)
    assert job.observe().operators["source"].back_pressure_ratio == pytest.approx(expected)


def test_with_queues_nobody_is_pressed_back():
    seen = seen_after(60, constant(300, 120), buffering="queues", **NO_CHANCE)
    assert [metrics.back_pressure_ratio for metrics in seen.values()] == [0, 0, 0]
    assert seen["map"].queue_records == 100 * 60
    assert seen["source"].queue_records == 0


def rates_of(seen, metric):
    return pytest.approx([getattr(metrics, metric) for metrics in seen.values()])


def test_behind_a_bottleneck_less_arrives_than_is_offered():
    """map does 200 of 300/s: Kafka sees all that comes, map and sink only what passes."""
    seen = seen_after(60, constant(300, 120))
    assert rates_of(seen, "offered_rate_per_s") == [300, 300, 300]
    assert rates_of(seen, "arrival_rate_per_s") == [300, 200, 200]
    assert rates_of(seen, "throughput_per_s") == [200, 200, 200]
    assert rates_of(seen, "output_rate_per_s") == [200, 200, 200]


def test_with_queues_what_arrives_waits_where_it_is_not_processed():
    seen = seen_after(60, constant(300, 120), buffering="queues", **NO_CHANCE)
    assert rates_of(seen, "arrival_rate_per_s") == [300, 300, 200]
    assert rates_of(seen, "throughput_per_s") == [300, 200, 200]


def test_operators_emit_by_their_selectivity_and_pass_on_by_their_shares():
    """source turns 100/s into 200; 30 % of it, 60/s, go to left, of whose 50/s each becomes 3."""
    operators = (
        Operator("source", selectivity=2.0),
        Operator("left", ("source",), selectivity=3.0, shares=(0.3,)),
        Operator("right", ("source",), shares=(0.7,)),
        Operator("join", ("left", "right")),
    )
    laws = {"source": 1000, "left": 50, "right": 1000, "join": 1000}
    values = {
        "capacity": {name: {"law": "linear", "per_replica_per_s": rate} for name, rate in laws.items()},
        "reconfiguration": {"style": "instant"},
        "buffering": "queues",
    }
    job = SimulatedTestbed(
        Topology(tuple(Node(f"n{i}", 1, 1024) for i in range(4)), operators, RttUniform(1.0)),
        {operator.name: (f"n{i}",) for i, operator in enumerate(operators)},
        validated(Simulation, values, "test"),
        {"source": np.full(120, 100)},
        np.random.default_rng(1),
    )
    job.wait(60)
    seen = job.observe().operators
    assert rates_of(seen, "offered_rate_per_s") == [100, 60, 140, 320]
    assert rates_of(seen, "arrival_rate_per_s") == [100, 60, 140, 290]
    assert rates_of(seen, "output_rate_per_s") == [200, 150, 140, 290]


def test_instances_share_what_their_operator_is_given():
    """Two instances of map, which passes 200 of 300/s on."""
    for instance in seen_after(60, constant(300, 120))["map"].instances:
        rates = (instance.rate_per_s, instance.arrival_rate_per_s, instance.output_rate_per_s)
        assert rates == pytest.approx((100, 100, 100))
        assert instance.offered_rate_per_s == pytest.approx(150)


def test_while_the_job_is_stopped_the_broker_still_knows_what_enters():
    job = simulated(constant(100, 300))
    job.wait(60)
    job.apply(Plan(placed("fog1", "fog2", "fog3")))
    job.wait(60)
    seen = job.observe().operators
    assert (seen["source"].arrival_rate_per_s, seen["map"].arrival_rate_per_s) == (100, None)
    assert rates_of(seen, "offered_rate_per_s") == [100, 100, 100]
    assert seen["map"].output_rate_per_s is None


def test_the_true_rate_is_the_throughput_per_busy_second():
    seen = seen_after(60, constant(50, 120))
    assert seen["map"].true_rate_per_s == pytest.approx(200)
    assert seen["source"].true_rate_per_s == pytest.approx(1024)


def test_an_idle_operator_has_no_true_rate():
    assert seen_after(60, [*constant(0, 100), 1])["map"].true_rate_per_s is None


# CPU (mechanism 2): on fog1 and fog3 map could do 200, but 100 ms cost it 50


@pytest.mark.parametrize(
    ("idle_ratio", "rate_per_s", "cpu_ratio"),
    [
        pytest.param(1.0, 300, 0.75, id="saturated at 150 of 200 it looks calm"),
        pytest.param(0.0, 300, 1.0, id="saturated it looks busy"),
        pytest.param(0.5, 300, 150 / 175, id="half of what is lost looks idle"),
        pytest.param(1.0, 75, 0.375, id="half the load, half the CPU"),
        pytest.param(0.0, 75, 0.5, id="half the capacity is half the CPU"),
    ],
)
def test_cpu_is_a_share_of_the_latency_free_capacity(idle_ratio, rate_per_s, cpu_ratio):
    laws = {
        "source": {"law": "linear", "per_replica_per_s": 1024},
        "map": {"law": "power_latency", "alpha_per_s": 100, "gamma_per_s_per_ms": 0.5},
        "sink": {"law": "linear", "per_replica_per_s": 1024},
    }
    seen = seen_after(
        60,
        constant(rate_per_s, 120),
        map_nodes=["fog1", "fog3"],
        capacity=laws,
        cpu_idle_in_latency_ratio=idle_ratio,
    )
    assert seen["map"].cpu_ratio == pytest.approx(cpu_ratio)
    assert [instance.cpu_ratio for instance in seen["map"].instances] == pytest.approx([cpu_ratio] * 2)
    assert seen["map"].busy_ratio == pytest.approx(min(1.0, rate_per_s / 150))


# Elsewhere


def test_the_clock_can_tick_in_other_steps():
    """Half a second a step: 75 per step, of which 50 pass; the window of 60 s holds 120 steps."""
    job = simulated(constant(75, 240), map_nodes=["fog1"], step_s=0.5, **NO_CHANCE)
    job.wait(60)
    observation = job.observe()
    assert observation.time_s == 60
    assert observation.operators["map"].throughput_per_s == pytest.approx(100)
    assert observation.operators["map"].offered_rate_per_s == pytest.approx(150)
    assert observation.lag_records == 3000


def test_a_large_job_keeps_its_books():
    """A hundred operators in a row, each of which loses nothing."""
    operators = tuple(Operator(f"o{i}", (f"o{i - 1}",) if i else ()) for i in range(100))
    nodes = tuple(Node(f"n{i}", 1, 1024) for i in range(100))
    laws = {
        operator.name: {"law": "linear", "per_replica_per_s": 100 + i} for i, operator in enumerate(operators)
    }
    values = {"capacity": laws, "reconfiguration": {"style": "instant"}}
    job = SimulatedTestbed(
        Topology(nodes, operators, RttUniform(1.0)),
        {operator.name: (node.name,) for operator, node in zip(operators, nodes, strict=True)},
        validated(Simulation, values, "test"),
        {"o0": np.full(120, 150)},
        np.random.default_rng(1),
    )
    job.wait(60)
    assert job.observe().operators["o99"].throughput_per_s == pytest.approx(100)
    while not job.finished:
        job.wait(60)
    *_, last = job.samples()
    assert last.processed_records == 120 * 150
    assert last.time_s == 180  # 18 000 records at 100/s


def test_input_may_enter_in_the_middle():
    """50/s enter at the source and 30/s at map: map and sink see 80."""
    job = SimulatedTestbed(
        chain(),
        placed("fog1"),
        simulation(),
        {"source": np.full(120, 50), "map": np.full(120, 30)},
        np.random.default_rng(1),
    )
    job.wait(60)
    rates = [seen.throughput_per_s for seen in job.observe().operators.values()]
    assert rates == pytest.approx([50, 80, 80])
    assert {sample.offered_records for sample in job.samples()} >= {0, 800, 1600}
