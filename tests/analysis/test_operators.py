"""Demand and metrics per operator: random jobs against brute force, and a branching run counted once more."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import asdict

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from analysis.campaign import _batch
from analysis.demand import with_demand
from analysis.metrics import metrics_by_operator, metrics_by_run
from analysis.schema import RUNS, SAMPLES
from controller.experiment import Run
from controller.model import Operator, Sample, records_per
from controller.recording import OperatorFacts, RunFacts
from controller.run import simulate
from tests.support.runs import load_csv

pytestmark = pytest.mark.spark


def tables_of(spark, runs):
    """Samples and runs as a campaign would make them."""
    rows = [
        row for facts, samples in runs for row in _batch(facts, samples).to_pylist(maps_as_pydicts="strict")
    ]
    samples = [[row[name] for name in SAMPLES.names] for row in rows if row["time_s"] is not None]
    facts = [[row["run"][name] for name in RUNS.names] for row in rows if row["run"] is not None]
    return spark.createDataFrame(samples, SAMPLES), spark.createDataFrame(facts, RUNS)


# Random jobs


@st.composite
def random_job(draw):
    """Up to five operators in any DAG, one or more inputs, counters that rise by any amount every 10 s."""
    size = draw(st.integers(1, 5))
    operators = []
    for i in range(size):
        above = tuple(f"o{j}" for j in range(i) if draw(st.booleans()))
        shares = tuple(draw(st.sampled_from([0.25, 0.5, 1.0])) for _ in above) if draw(st.booleans()) else ()
        selectivity = draw(st.sampled_from([0.0, 0.2, 1.0, 3.0]))
        operators.append(Operator(f"o{i}", above, n_max=4, selectivity=selectivity, shares=shares))
    entries = sorted(draw(st.sets(st.integers(0, size - 1), min_size=1, max_size=2)))
    rises = [[draw(st.integers(0, 600)) for _ in entries] for _ in range(4)]
    ladder = tuple(sorted(draw(st.lists(st.integers(1, 200), min_size=1, max_size=4))))
    replicas = [{operator.name: draw(st.integers(0, 4)) for operator in operators} for _ in range(5)]
    return tuple(operators), [f"o{i}" for i in entries], rises, ladder, replicas


def recorded(place, job):
    operators, entries, rises, ladder, replicas = job
    facts = RunFacts(
        experiment="x", policy="p", workload="w", seed=place, duration_s=40.0, operator=operators[0].name,
        capacity_per_s=ladder, n_min=1, n_max=4,
        operators=tuple(
            OperatorFacts(
                name=operator.name, capacity_per_s=ladder, n_min=1, n_max=4,
                records_per_input={entry: records_per(operators, entry)[operator.name] for entry in entries},
            )
            for operator in operators
        ),
    )  # fmt: skip
    totals = [dict.fromkeys(entries, 0)]
    for rise in rises:
        totals.append({entry: totals[-1][entry] + n for entry, n in zip(entries, rise, strict=True)})
    samples = []
    for i, total in enumerate(totals):
        offered = sum(total.values())
        entered = total if len(entries) > 1 else {}
        samples.append(Sample(10.0 * i, offered, offered, 0, replicas[i], 0, entered_records=entered))
    return asdict(facts), samples


def reached(operators, name, entry):
    """Records that reach an operator for one that enters: over every way there, the product along it."""
    operator = next(each for each in operators if each.name == name)
    total = 1.0 if name == entry else 0.0
    for place, above in enumerate(operator.upstream):
        share = operator.shares[place] if operator.shares else 1.0
        selectivity = next(each.selectivity for each in operators if each.name == above)
        total += reached(operators, above, entry) * selectivity * share
    return total


def brute_demand(job, name, i):
    """Over a window of 20 s around sample i, cut off at the ends of the 40 s."""
    operators, entries, rises, ladder, _ = job
    around = [rises[k] for k in (i - 1, i) if 0 <= k < 4]
    rate = sum(
        reached(operators, name, entry) * sum(rise[k] for rise in around) / (10 * len(around))
        for k, entry in enumerate(entries)
    )
    enough = [n for n, capacity in enumerate(ladder, start=1) if capacity >= rate - 1e-9]
    return rate, enough[0] if enough else 4


# Many jobs per example, and no shrinking: a Spark job costs seconds, whatever its size.
@settings(
    max_examples=2,
    deadline=None,
    derandomize=True,
    phases=(Phase.generate,),
    suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example),
)
@given(jobs=st.lists(random_job(), min_size=40, max_size=60))
def test_demand_follows_from_what_is_offered_to_the_operator(spark, jobs):
    samples, runs = tables_of(spark, [recorded(place, job) for place, job in enumerate(jobs)])
    rows = with_demand(samples, runs, window_s=20.0).select("run_id", "sequence", "by_operator").collect()
    assert len(rows) == 5 * len(jobs)
    for row in rows:
        job = jobs[int(row.run_id.rpartition("/")[2])]
        assert [each.operator for each in row.by_operator] == [operator.name for operator in job[0]]
        for each in row.by_operator:
            rate, demand = brute_demand(job, each.operator, row.sequence)
            assert each.offered_rate_per_s == pytest.approx(rate)
            assert (each.demand, each.supply) == (demand, job[4][row.sequence][each.operator]), (job, each)


# Real runs


def branching(policy, workload, **changes):
    """source emits a fifth of what comes in; 75 % of that goes left, 25 % right, and both into join."""
    laws = {"source": 2000, "left": 20, "right": 15, "join": 25}
    values = {
        "experiment": "branching",
        "policy": policy,
        "workload": {"name": str(workload), "speed": 1, "copies": 1},
        "seed": 1,
        "topology": {
            "nodes": [{"name": f"n{i}"} for i in range(25)],
            "operators": [
                {"name": "source", "n_max": 1, "selectivity": 0.2},
                {"name": "left", "upstream": {"source": 0.75}, "n_max": 8},
                {"name": "right", "upstream": {"source": 0.25}, "n_max": 8},
                {"name": "join", "upstream": ["left", "right"], "n_max": 8},
            ],
            "rtt_ms": {"uniform_ms": 5},
        },
        "measured_operator": "join",
        "testbed": {
            "kind": "simulated",
            "capacity": {name: {"law": "linear", "per_replica_per_s": rate} for name, rate in laws.items()},
            "reconfiguration": {"style": "instant"},
            "metric_window_s": 10,
        },
    }
    return Run.model_validate(values | changes)


RATES_PER_S = [100, 250, 400, 500, 300, 150, 100, 100]


def recount(facts, samples):
    """What metrics say of each operator, second by second from the samples of the journal."""
    times = [one.time_s for one in samples]
    duration_s = facts["duration_s"]
    done_s = next(one.time_s for one in samples if one.time_s >= duration_s and one.lag_records <= 0)

    def offered_at(time_s):
        after = next((k for k, each in enumerate(times) if each >= time_s), None)
        if time_s <= 0 or after is None:
            return samples[0 if time_s <= 0 else -1].offered_records
        if times[after] == time_s:
            return samples[after].offered_records
        before, until = samples[after - 1], samples[after]
        share = (time_s - before.time_s) / (until.time_s - before.time_s)
        return before.offered_records + share * (until.offered_records - before.offered_records)

    found = {}
    for operator in facts["operators"]:
        sums = {"cost": 0.0, "timeshare_u": 0.0, "accuracy_o": 0.0, "downtime_timeshare": 0.0}
        for second in range(int(max(done_s, duration_s))):
            held = samples[max(0, bisect_right(times, second) - 1)]
            running = held.replicas[operator["name"]]
            sums["cost"] += running / 60 if second < done_s else 0.0
            if second >= duration_s:
                continue
            begin_s, end_s = max(held.time_s - 30, 0.0), min(held.time_s + 30, duration_s)
            rate = (offered_at(end_s) - offered_at(begin_s)) / (end_s - begin_s)
            rate *= operator["records_per_input"]["source"]
            fits = [n for n, most in enumerate(operator["capacity_per_s"], start=1) if most >= rate]
            needed = fits[0] if fits else operator["n_max"]
            sums["timeshare_u"] += 100 * (running < needed) / duration_s
            sums["accuracy_o"] += max(0, running - needed) / duration_s
            sums["downtime_timeshare"] += 100 * (running == 0) / duration_s
        found[operator["name"]] = sums
    return found


@pytest.mark.parametrize("style", ["instant", "restart"])
def test_ds2_on_a_branching_job_is_measured_as_a_recount_of_its_samples_says(spark, tmp_path, style):
    run = branching("ds2", load_csv(tmp_path, RATES_PER_S))
    duration = {} if style == "instant" else {"duration_s": 20}
    changes = {"testbed": run.model_dump()["testbed"] | {"reconfiguration": {"style": style, **duration}}}
    run = branching("ds2", load_csv(tmp_path, RATES_PER_S), **changes)
    facts, samples = simulate(run.model_dump_json())
    assert samples[-1].reconfigurations >= 4
    tables = tables_of(spark, [(facts, samples)])
    expected = recount(facts, samples)
    rows = {row.operator: row for row in metrics_by_operator(*tables).collect()}
    assert set(rows) == {"source", "left", "right", "join"}
    for name, sums in expected.items():
        for metric, value in sums.items():
            assert rows[name][metric] == pytest.approx(value, abs=1e-6), (name, metric)
    whole = metrics_by_run(*tables).first()
    assert whole.cost == rows["join"].cost
    assert whole.job_cost == pytest.approx(sum(sums["cost"] for sums in expected.values()))
    assert whole.job_accuracy_o == pytest.approx(sum(sums["accuracy_o"] for sums in expected.values()))
    assert whole.job_timeshare_u >= max(sums["timeshare_u"] for sums in expected.values()) - 1e-9


def test_ideal_behind_a_source_that_thins_out_is_hardly_ever_short(spark, tmp_path):
    """Demand once compared the job's rate with one operator's capacity: ideal was short most of the time."""
    run = branching("ideal", load_csv(tmp_path, [350] * 8))  # left needs 2.6 replicas, right 1.2, join 2.8
    tables = tables_of(spark, [simulate(run.model_dump_json())])
    for row in metrics_by_operator(*tables).collect():
        assert row.timeshare_u < 3, row.operator  # until it has seen the first 10 s
