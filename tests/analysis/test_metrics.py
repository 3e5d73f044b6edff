"""Metrics by hand on five samples, and against a brute-force integral on random runs."""

from __future__ import annotations

import math
from bisect import bisect_right

import pandas as pd
import pytest
from chispa import assert_df_equality
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from analysis.metrics import flattened, metrics_by_run
from analysis.metrics.elasticity import elasticity
from analysis.metrics.excess import excess
from analysis.metrics.intervals import intervals
from analysis.runs import read_journals
from analysis.schema import RUNS, SAMPLES
from tests.analysis.conftest import sample

pytestmark = pytest.mark.spark


HELD = (
    "run_id string, sequence long, time_s double, duration_s double, demand int, supply int, "
    "offered_records long, processed_records long, lag_records long, reconfigurations int, "
    "response_mean_ms double, period_s double, skip_first_s double, skip_after_reconfiguration_s double"
)


ADDED = (
    "begin_s", "end_s", "next_offered", "last_response_mean_ms", "change_s", "steady_s", "last_steady_s",
    "counts_from_s", "begins_to_count_s", "span_s", "counts_until_s", "done_s", "finished",
)  # fmt: skip


def held_by_hand(spark, period_s=0.0):
    """T = 100 s. Demand 2 throughout; supply 2 until 40 s, none until 60 s, then 3, done at 110 s."""
    rows = [
        ("r", 0, 0.0, 100.0, 2, 2, 0, 0, 0, 0),
        ("r", 1, 40.0, 100.0, 2, 0, 600, 600, 0, 1),
        ("r", 2, 60.0, 100.0, 2, 3, 900, 600, 300, 1),
        ("r", 3, 100.0, 100.0, 2, 3, 1500, 1400, 100, 1),
        ("r", 4, 110.0, 100.0, 1, 3, 1500, 1500, 0, 1),
    ]
    return intervals(spark.createDataFrame([(*row, None, period_s, 0.0, 0.0) for row in rows], HELD))


def test_elasticity_by_hand(spark):
    # U: 2 replicas short for 20 s of 100. O: 1 too many for 40 s, from 60 to T; the excess does not count.
    expected = spark.createDataFrame(
        [("r", 0.4, 0.4, 20.0, 40.0)],
        "run_id string, accuracy_u double, accuracy_o double, timeshare_u double, timeshare_o double",
    )
    assert_df_equality(elasticity(held_by_hand(spark)), expected, ignore_nullable=True)


@pytest.mark.parametrize(
    ("period_s", "accuracy_o", "timeshare_o"),
    [
        # From 60 s on one too many; what runs from T to the end of the backlog at 110 s is held, too.
        pytest.param(200.0, 0.25, 25.0, id="longer than the run: nothing counts once all is processed"),
        pytest.param(105.0, 45 / 105, 4500 / 105, id="over before the backlog is"),
    ],
)
def test_a_period_of_its_own_is_what_means_are_taken_over(spark, period_s, accuracy_o, timeshare_o):
    [found] = elasticity(held_by_hand(spark, period_s)).collect()
    assert found.accuracy_o == pytest.approx(accuracy_o)
    assert found.timeshare_o == pytest.approx(timeshare_o)
    assert found.accuracy_u == pytest.approx(40 / period_s)
    [late] = excess(held_by_hand(spark, period_s)).collect()
    assert late.excess_time == pytest.approx(10 / period_s)


def test_all_metrics_of_a_journal_by_hand(spark, tmp_path, journal_lines, write_journal):
    write_journal("\n".join(journal_lines()) + "\n")
    tables = read_journals(spark, str(tmp_path))
    row = metrics_by_run(tables.samples, tables.runs).collect()[0]
    assert (row.run_id, row.policy, row.seed) == ("demo/static/ramp/1", "static", 1)
    assert row.excess_time == pytest.approx(0.1)  # 10 s of 100
    assert row.finished
    assert row.reconfigurations == 1
    assert row.cost == pytest.approx((2 * 40 + 0 * 20 + 3 * 50) / 60)
    assert row.processed_records == 1400
    assert row.processed_ratio == pytest.approx(1400 / 1500)
    # 15 records/s need 2 replicas of 10/s each; so as in test_elasticity_by_hand.
    assert (row.accuracy_u, row.accuracy_o) == pytest.approx((0.4, 0.4))


def test_a_backlog_that_outlives_the_samples_is_flagged(spark):
    unfinished = held_by_hand(spark).drop(*ADDED).where("time_s < 110")
    expected = spark.createDataFrame(
        [("r", 0.0, False)], "run_id string, excess_time double, finished boolean"
    )
    assert_df_equality(excess(intervals(unfinished)), expected, ignore_nullable=True)


def test_of_samples_at_one_instant_the_last_holds(spark):
    rows = [
        ("r", place, 50.0 * (place > 0), 100.0, 1, supply, 0, 0, 0, 0, None, 0.0, 0.0, 0.0)
        for place, supply in enumerate((1, 5, 2))
    ]
    row = elasticity(intervals(spark.createDataFrame(rows, HELD))).collect()[0]
    assert row.accuracy_o == 0.5  # 2 instead of 1 from 50 to 100 s; the 5 held for no time at all


# Service and instances: T = 100 s, objective 0.1 s, images (99 %) and queries (1 %)

SERVED = [
    # time, offered, response, late images, late queries, time of images, of queries, standby, allocated
    (0.0, 0, 50.0, 0, 0, 0.0, 0.0, 1, 3),
    (40.0, 1000, 150.0, 0, 0, 49.5, 0.1, 1, 4),
    (70.0, 1500, 200.0, 30, 2, 124.5, 0.4, 0, 4),
    (80.0, 2000, 80.0, 60, 2, 224.5, 0.6, 0, 2),
    (100.0, 2000, 120.0, 60, 2, 224.5, 0.6, 0, 2),
]


def served(runs_table, samples_table):
    rows = [
        {
            "time_s": time_s,
            "offered_records": offered,
            "processed_records": offered,
            "lag_records": 0,
            "replicas": {"map": 1},
            "reconfigurations": 0,
            "response_mean_ms": response_ms,
            "late_records": {"image": images, "query": queries},
            "time_in_job_s": {"image": image_s, "query": query_s},
            "standby": standby,
            "allocated": allocated,
        }
        for time_s, offered, response_ms, images, queries, image_s, query_s, standby, allocated in SERVED
    ]
    shares = {"image": 0.99, "query": 0.01}
    runs = runs_table({"sla_response_s": 0.1, "kind_shares": shares})
    return metrics_by_run(samples_table(rows), runs).collect()[0]


def test_every_record_weighs_the_same_in_the_response_time(runs_table, samples_table):
    """1000 records at 50 ms, 500 at 150 and 500 at 200; none came later."""
    row = served(runs_table, samples_table)
    assert row.response_mean_ms == pytest.approx((1000 * 50 + 500 * 150 + 500 * 200) / 2000)


def test_late_records_of_all_kinds_are_counted_and_times_told_apart(runs_table, samples_table):
    row = served(runs_table, samples_table)
    assert row.late_records == 62
    assert row.kind_time_s == {"image": pytest.approx(224.5 / 1980), "query": pytest.approx(0.6 / 20)}


def test_an_objective_is_missed_for_a_share_of_time(runs_table, samples_table):
    """From 40 to 80 s; what begins at the very end has no time left. Both are violations."""
    row = served(runs_table, samples_table)
    assert row.violation_timeshare == pytest.approx(40.0)
    assert row.violations == 2


def test_what_a_reconfiguration_costs_is_told_apart_from_what_it_came_too_late_for(runs_table, samples_table):
    """Missed from 10 to 90 s; a reconfiguration begins at 20 s and has a grace of 50 s."""
    rows = [
        {
            "time_s": time_s,
            "offered_records": 10,
            "processed_records": 10,
            "lag_records": 0,
            "replicas": {"map": 1},
            "reconfigurations": int(time_s >= 20),
            "response_mean_ms": 200.0 if 10 <= time_s < 90 else 50.0,
        }
        for time_s in (0.0, 10.0, 20.0, 40.0, 70.0, 90.0, 100.0)
    ]
    runs = runs_table({"sla_response_s": 0.1, "sla_grace_s": 50.0})
    row = metrics_by_run(samples_table(rows), runs).collect()[0]
    assert (row.violation_timeshare, row.violations) == (80.0, 1)
    assert row.steady_violation_timeshare == pytest.approx(10 + 20)  # 10-20 s and 70-90 s
    assert row.steady_violations == 2
    without = metrics_by_run(samples_table(rows), runs_table({"sla_response_s": 0.1})).collect()[0]
    assert (without.steady_violation_timeshare, without.steady_violations) == (80.0, 1)


def test_all_that_is_allocated_is_paid_for(runs_table, samples_table):
    row = served(runs_table, samples_table)
    assert row.instance_time_s == 3 * 40 + 4 * 40 + 2 * 20
    assert row.mean_instances == pytest.approx((2 * 40 + 3 * 30 + 4 * 10 + 2 * 20) / 100)
    assert row.mean_standby == pytest.approx(0.7)


def test_an_initial_span_and_what_follows_reconfigurations_may_be_left_out(runs_table, samples_table):
    """Demand 2. Two run until 40 s, none until 60 s, three until T = 100 s. Without the first 20 s and 30 s
    from the reconfiguration at 40 s on, 20–40 and 70–100 s are left: 30 of 50 s are one too many."""
    rows = [
        sample(0.0, 0, 0, 2) | {"response_mean_ms": 10.0},
        sample(40.0, 600, 600, 0, 1) | {"response_mean_ms": 500.0},
        sample(60.0, 900, 600, 3, 1) | {"response_mean_ms": 40.0},
        sample(100.0, 1500, 1500, 3, 1),
    ]
    skips = {"metrics": (0.0, 20.0, 30.0)}
    whole, part = (metrics_by_run(samples_table(rows), runs_table(change)).first() for change in ({}, skips))
    assert (whole.timeshare_u, whole.timeshare_o, whole.downtime_timeshare) == pytest.approx((20, 40, 20))
    assert (part.timeshare_u, part.timeshare_o) == pytest.approx((0, 60))
    assert part.downtime_timeshare == pytest.approx(25)  # 20 of the 80 s after the first 20
    assert part.cost == whole.cost  # sums leave out nothing
    # 300 records from 20 to 40 s, 450 from 70 to 100 s.
    assert part.response_mean_ms == pytest.approx((10 * 300 + 40 * 450) / 750)
    # A monitor shows 10 ms for 20 s and 40 ms for 30 s.
    assert part.monitored_mean_ms == pytest.approx((10 * 20 + 40 * 30) / 50)
    assert (part.monitored_p50_ms, part.monitored_p95_ms) == (40.0, 40.0)
    assert (whole.monitored_p50_ms, whole.monitored_p95_ms) == (40.0, 500.0)  # 40, 20 and 40 s


def test_quantiles_of_a_run_weigh_every_record_the_same(runs_table, samples_table):
    """900 calm records, then 100 slow ones, half of which, 5 % of all, took more than their median. 450 calm
    ones needed 10 ms, the next 81 up to 14."""

    def at(time_s, offered, times_ms):
        names = ("response_p50_ms", "response_p95_ms", "response_p99_ms")
        return sample(float(time_s), offered, offered, 1) | dict(zip(names, times_ms, strict=True))

    calm, slow = (10.0, 30.0, 40.0), (1000.0, 3000.0, 4000.0)
    rows = [at(0, 0, calm), at(50, 900, slow), at(100, 1000, (None, None, None))]
    row = metrics_by_run(samples_table(rows), runs_table()).first()
    assert (row.response_p50_ms, row.response_p95_ms, row.response_p99_ms) == (14.0, 1000.0, 3000.0)
    steady = metrics_by_run(
        samples_table([at(0, 0, calm), at(50, 900, calm), at(100, 1000, calm)]), runs_table()
    )
    assert steady.select("response_p50_ms", "response_p95_ms", "response_p99_ms").first() == calm


def test_without_objective_and_kinds_there_is_nothing_to_miss(runs_table, samples_table):
    still = {
        "offered_records": 1,
        "processed_records": 1,
        "lag_records": 0,
        "replicas": {"map": 1},
        "reconfigurations": 0,
    }
    row = metrics_by_run(
        samples_table([{"time_s": 0.0, **still}, {"time_s": 100.0, **still}]), runs_table()
    ).collect()[0]
    assert (row.late_records, row.violation_timeshare, row.violations, row.kind_time_s) == (
        None,
        None,
        None,
        None,
    )


def test_kinds_become_columns(runs_table, samples_table):
    frame = pd.DataFrame([served(runs_table, samples_table).asDict()])
    found = flattened(frame)
    assert found["kind_time_s.query"].tolist() == [pytest.approx(0.03)]
    assert "kind_time_s" not in found


def test_a_run_without_samples_keeps_its_row(runs_table, samples_table):
    row = metrics_by_run(samples_table([]), runs_table()).collect()[0]
    assert (row.run_id, row.cost, row.finished) == ("demo/static/ramp/1", None, False)


def test_no_offered_records_is_no_division_by_zero(runs_table, samples_table):
    still = {
        "offered_records": 0, "processed_records": 0, "lag_records": 0, "replicas": {"map": 1},
        "reconfigurations": 0, "response_p50_ms": None, "response_p95_ms": None, "response_p99_ms": None,
    }  # fmt: skip
    samples = samples_table([{"time_s": 0.0, **still}, {"time_s": 100.0, **still}])
    row = metrics_by_run(samples, runs_table()).collect()[0]
    assert (row.processed_ratio, row.accuracy_u, row.excess_time) == (None, 0.0, 0.0)


# Against a brute-force integral


@st.composite
def random_run(draw):
    """A run whose times are whole halves of seconds, so that a sum over half seconds is its integral."""
    duration = draw(st.integers(min_value=2, max_value=60))
    ticks = draw(st.lists(st.integers(0, 2 * duration + 40), min_size=1, max_size=12))
    samples, offered, processed, reconfigurations, before = [], 0, 0, 0, 0
    for tick in sorted(ticks):
        offered += draw(st.integers(0, 200)) if before < tick <= 2 * duration else 0
        before = tick
        processed = min(offered, processed + draw(st.integers(0, 300)))
        reconfigurations += draw(st.integers(0, 1))
        samples.append((tick / 2, offered, processed, draw(st.integers(0, 4)), reconfigurations))
    capacity = draw(st.lists(st.floats(0.5, 40.0), min_size=1, max_size=4))
    n_min = draw(st.integers(1, 2))
    window_s = 8.0
    return {"duration": float(duration), "samples": samples, "capacity": capacity, "n_min": n_min,
            "n_max": n_min + draw(st.integers(0, 3)), "window_s": window_s}  # fmt: skip


def counter_at(samples, time_s):
    """Linear between samples, from (0, 0), and constant after the last."""
    points = [(0.0, 0)] + [(sample[0], sample[1]) for sample in samples]
    if time_s <= 0:
        return samples[0][1] if samples[0][0] == 0 else 0
    after = [point for point in points if point[0] >= time_s]
    if not after:
        return points[-1][1]
    before = [point for point in points if point[0] <= time_s][-1]
    if after[0][0] == before[0]:
        return before[1]
    share = (time_s - before[0]) / (after[0][0] - before[0])
    return before[1] + share * (after[0][1] - before[1])


def brute_demand(run, time_s):
    samples, half_s = run["samples"], run["window_s"] / 2
    horizon_s = min(run["duration"], samples[-1][0])
    end_s = min(time_s + half_s, horizon_s) if time_s <= horizon_s else time_s + half_s
    length_s = end_s - max(time_s - half_s, 0.0)
    if length_s <= 0:
        return None
    rate = (counter_at(samples, time_s + half_s) - counter_at(samples, time_s - half_s)) / length_s
    enough = [n for n, capacity in enumerate(run["capacity"], start=1) if capacity >= rate]
    return max(run["n_min"], min(run["n_max"], enough[0])) if enough else run["n_max"]


def brute_metrics(run):
    """Sums over half seconds, looking up at each what ran and what was needed."""
    samples, duration = run["samples"], run["duration"]
    times = [sample[0] for sample in samples]
    demand = [brute_demand(run, time_s) for time_s in times]
    done = [
        time_s for time_s, offered, processed, *_ in samples if time_s >= duration and offered <= processed
    ]
    done_s = done[0] if done else times[-1]
    area = {"u": 0.0, "o": 0.0, "share_u": 0.0, "share_o": 0.0, "cost": 0.0}
    for tick in range(int(2 * max(duration, done_s))):
        now = tick / 2
        held = max(0, bisect_right(times, now) - 1)
        supply = samples[held][3]
        if now < duration and demand[held] is not None:
            area["u"] += max(demand[held] - supply, 0) / 2
            area["o"] += max(supply - demand[held], 0) / 2
            area["share_u"] += (demand[held] > supply) / 2
            area["share_o"] += (supply > demand[held]) / 2
        if now < done_s:
            area["cost"] += supply / 2
    by_end = [sample[2] for sample in samples if sample[0] <= duration]
    offered = samples[-1][1]
    return {
        "accuracy_u": area["u"] / duration,
        "accuracy_o": area["o"] / duration,
        "timeshare_u": 100 * area["share_u"] / duration,
        "timeshare_o": 100 * area["share_o"] / duration,
        "excess_time": max(0.0, done_s - duration) / duration,
        "finished": bool(done),
        "cost": area["cost"] / 60,
        "reconfigurations": samples[-1][4],
        "processed_records": by_end[-1] if by_end else None,
        "processed_ratio": by_end[-1] / offered if by_end and offered else None,
    }


def as_tables(spark, runs):
    run_rows, sample_rows = [], []
    for place, run in enumerate(runs):
        row = {"run_id": f"x/p/w/{place}", "experiment": "x", "policy": "p", "workload": "w", "seed": place,
               "duration_s": run["duration"], "operator": "map", "capacity_per_s": run["capacity"],
               "n_min": run["n_min"], "n_max": run["n_max"]}  # fmt: skip
        run_rows.append([row.get(name) for name in RUNS.names])
        for sequence, (time_s, offered, processed, replicas, reconfigurations) in enumerate(run["samples"]):
            counters = (offered, processed, offered - processed, {"map": replicas}, reconfigurations)
            known = (row["run_id"], sequence, time_s, *counters)
            sample_rows.append(known + (None,) * (len(SAMPLES.names) - len(known)))
    return spark.createDataFrame(sample_rows, SAMPLES), spark.createDataFrame(run_rows, RUNS)


# Many runs per example, and no shrinking: a Spark job costs a second, whatever its size, and a failure names
# the one run it is about.
@settings(
    max_examples=4,
    deadline=None,
    derandomize=True,
    phases=(Phase.generate,),
    suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example),
)
@given(runs=st.lists(random_run(), min_size=60, max_size=80))
def test_metrics_equal_a_brute_force_integral(spark, runs):
    samples, facts = as_tables(spark, runs)
    rows = {row.run_id: row for row in metrics_by_run(samples, facts, runs[0]["window_s"]).collect()}
    assert len(rows) == len(runs)
    for place, run in enumerate(runs):
        row = rows[f"x/p/w/{place}"]
        for name, expected in brute_metrics(run).items():
            ours = row[name]
            same = ours == expected if expected is None else math.isclose(ours, expected, abs_tol=1e-9)
            assert same, f"{name} of {run}: {ours} instead of {expected}"
