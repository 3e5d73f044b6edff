"""Demand from what was offered and what replicas can do."""

from __future__ import annotations

import pytest
from chispa import assert_df_equality
from pyspark.sql import functions as F  # noqa: N812

from analysis.demand import replicas_for, with_demand

pytestmark = pytest.mark.spark


def row(time_s, offered, replicas=1):
    return {
        "time_s": float(time_s), "offered_records": offered, "processed_records": 0, "lag_records": offered,
        "replicas": {"map": replicas}, "reconfigurations": 0,
        "response_p50_ms": None, "response_p95_ms": None, "response_p99_ms": None,
    }  # fmt: skip


def rates(frame):
    rows = frame.orderBy("time_s").collect()
    return [(row.time_s, row.offered_rate_per_s, row.demand) for row in rows]


def test_offered_rate_is_the_counters_rise_over_the_window(runs_table, samples_table):
    samples = samples_table([row(0, 0), row(40, 400), row(50, 600), row(60, 800), row(100, 1600)])
    # ±10 s: 10/s until 40 s, 20/s from then on; at 40 s (100 + 200) / 20.
    assert rates(with_demand(samples, runs_table(), window_s=20)) == [
        (0.0, 10.0, 1), (40.0, 15.0, 2), (50.0, 20.0, 2), (60.0, 20.0, 2), (100.0, 20.0, 2),
    ]  # fmt: skip


def test_samples_close_together_do_not_measure_noise(runs_table, samples_table):
    # Between 50.0 and 50.5 s there happen to come 40 records: 80/s for half a second, 10/s around it.
    samples = samples_table([row(0, 0), row(50, 480), row(50.5, 520), row(100, 1000)])
    middle = rates(with_demand(samples, runs_table(), window_s=60))[1:3]
    assert [rate for _, rate, _ in middle] == pytest.approx([10.0, 10.0], rel=0.05)


def test_samples_sparser_than_the_window_still_give_a_rate(runs_table, samples_table):
    samples = samples_table([row(0, 0), row(50, 500), row(100, 1500)])
    assert rates(with_demand(samples, runs_table(), window_s=10)) == [
        (0.0, 10.0, 1), (50.0, 15.0, 2), (100.0, 20.0, 2),
    ]  # fmt: skip


def test_the_window_ends_with_the_workload(runs_table, samples_table):
    samples = samples_table([row(0, 0), row(90, 900), row(100, 1000), row(110, 1000), row(200, 1000)])
    by_time = {time_s: rate for time_s, rate, _ in rates(with_demand(samples, runs_table(), window_s=20))}
    assert by_time[100.0] == 10.0  # not halved by the silence after T = 100 s
    assert by_time[200.0] == 0.0


@pytest.mark.parametrize(
    ("capacity_per_s", "rate_per_s", "expected"),
    [
        pytest.param([10.0, 20.0, 30.0], 20.0, 2, id="capacity that just covers the rate suffices"),
        pytest.param([10.0, 20.0, 30.0], 20.1, 3, id="a little more needs one more"),
        pytest.param([10.0, 20.0, 30.0], 99.0, 4, id="n_max where nothing suffices"),
        pytest.param([10.0, 30.0, 25.0], 26.0, 2, id="the first that suffices where capacity falls"),
        pytest.param([10.0, 20.0, 30.0], 0.0, 1, id="n_min where nothing is offered"),
        pytest.param([10.0, 20.0, 30.0], None, None, id="unknown rate, unknown demand"),
    ],
)
def test_replicas_for(spark, capacity_per_s, rate_per_s, expected):
    schema = "capacity_per_s array<double>, n_min int, n_max int, rate double"
    frame = spark.createDataFrame([(capacity_per_s, 1, 4, rate_per_s)], schema)
    demand = frame.select(
        replicas_for(*map(F.col, ("rate", "capacity_per_s", "n_min", "n_max"))).alias("demand")
    )
    assert_df_equality(demand, spark.createDataFrame([(expected,)], "demand int"), ignore_nullable=True)


def test_bounds_clip_demand(spark):
    schema = "capacity_per_s array<double>, n_min int, n_max int, rate double"
    rows = [([10.0, 20.0, 30.0], 2, 3, 5.0), ([10.0, 20.0, 30.0], 1, 2, 25.0), ([10.0, 20.0], 1, None, 99.0)]
    demand = spark.createDataFrame(rows, schema).select(
        replicas_for(*map(F.col, ("rate", "capacity_per_s", "n_min", "n_max"))).alias("demand")
    )
    assert [row.demand for row in demand.collect()] == [2, 2, 2]


def test_supply_is_what_runs_of_the_measured_operator(runs_table, samples_table):
    samples = samples_table([row(0, 0, 3), row(50, 500, 0) | {"replicas": {"source": 1}}])
    supply = [row.supply for row in with_demand(samples, runs_table()).orderBy("time_s").collect()]
    assert supply == [3, 0]
