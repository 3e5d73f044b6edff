"""Figures from samples as Prometheus scraped them: differences by hand, and None until they are true."""

from __future__ import annotations

import pytest

from controller.model import Operator
from controller.testbeds.flink import queries
from controller.testbeds.flink.http import Door
from controller.testbeds.flink.metrics import Monitor, Running
from controller.testbeds.flink.prometheus import Prometheus, Series
from tests.support.http_server import serving

OPERATORS = (Operator("source"), Operator("map", ("source",)), Operator("sink", ("map",)))
VERTICES = {"source": "Source: source", "map": "map", "sink": "sink: Writer"}
PLACEMENT = {"source": ("services1",), "map": ("fog1", "fog2"), "sink": ("services1",)}
NOW_S = 1000.0


def counter(name, labels, per_s, start=0.0, begun_s=NOW_S - 20, shift_s=0.0, until_s=NOW_S):
    times = [t + shift_s for t in range(int(begun_s), int(until_s) + 1, 5)]
    values = [[t, str(start + per_s * (t - begun_s))] for t in times]
    return {"metric": {"__name__": name, **labels}, "values": values}


def task(vertex, index, node, per_s, idle, blocked, attempt="0", out_per_s=None, **when):
    labels = {"task_name": vertex, "subtask_index": str(index), "tm_id": node, "task_attempt_id": attempt}
    return [
        counter(queries.RECORDS_IN, labels, per_s, **when),
        counter(queries.RECORDS_OUT, labels, per_s if out_per_s is None else out_per_s, **when),
        counter(queries.IDLE_MS, labels, 1000 * idle, **when),
        counter(queries.BACK_PRESSURED_MS, labels, 1000 * blocked, **when),
    ]


def gauge(name, labels, value):
    return counter(name, labels, 0.0, start=value)


def pipeline(**map2):
    """A source that passes 150 of 200 offered records a second on to two instances of map."""
    return [
        *task("Source: source", 0, "services1", 0, 0.05, 0.85, out_per_s=150),
        *task("map", 0, "fog1", 90, 0.1, 0.0),
        *task("map", 1, "fog2", 60, 0.4, 0.0, **map2),
        *task("sink: Writer", 0, "services1", 150, 0.9, 0.0),
        gauge(queries.OFFSET, {"partition": "0"}, 9_000),
        gauge(queries.SOURCE_DELAY_MS, {}, 400),
    ]


NODES = [
    counter(queries.CGROUP_CPU_S, {"node": "fog1"}, 0.18),
    counter(queries.CGROUP_CPU_S, {"node": "fog2"}, 0.10),
    gauge(queries.CGROUP_CPUS, {"node": "fog1"}, 0.2),
    gauge(queries.CGROUP_CPUS, {"node": "fog2"}, 0.2),
]


def measured(
    job,
    since_s=NOW_S - 100,
    topic_end=10_000,
    base=None,
    placement=PLACEMENT,
    nodes=NODES,
    chain=None,
    load_since_s=0.0,
    topic_shift_s=0.0,
):
    def answer(request):
        if "latency" in request.path:
            result = [gauge(queries.LATENCY_MS, {}, 25)]
        elif "end_offset" in request.path:
            end = counter(queries.END_OFFSET, {"partition": "0"}, 200, start=topic_end - 200 * 20)
            end["values"] = [
                [t + topic_shift_s, str(float(value) + 200 * topic_shift_s)] for t, value in end["values"]
            ]
            result = [end]
        elif "fog_node" in request.path:
            result = nodes
        else:
            result = job
        return 200, {"data": {"resultType": "matrix", "result": result}}

    with serving(answer) as server:
        monitor = Monitor(
            Prometheus(Door(server.url)), OPERATORS, "input", 15.0, base, chained=chain is not None
        )
        vertices = VERTICES if chain is None else dict.fromkeys(VERTICES, chain)
        return monitor.measure(Running("a1", vertices, placement, since_s, load_since_s))


def test_what_was_seen_before_the_load_flowed_is_none_of_its_figures():
    """A producer that was just started has sent nothing yet: an idle job is no calm one."""
    found = measured(pipeline(), load_since_s=NOW_S - 14)  # less than the window
    assert found.operators["map"].throughput_per_s is None
    assert found.operators["map"].offered_rate_per_s is None
    found = measured(pipeline(), load_since_s=NOW_S - 15)
    assert found.operators["map"].throughput_per_s == pytest.approx(150)
    assert found.operators["map"].offered_rate_per_s == pytest.approx(200)


def test_of_a_chain_nothing_is_told_that_flink_does_not_know():
    """Its task counts no record that comes in or leaves: 0 would be a lie, and so would its own busy time."""
    task_of_all, nodes = "Source: source -> map -> sink: Writer", ("fog1", "fog2")
    job = [
        *task(task_of_all, 0, "fog1", 0, 0.0, 0.0),
        *task(task_of_all, 1, "fog2", 0, 0.0, 0.0),
        gauge(queries.OFFSET, {"partition": "0"}, 9_000),
    ]
    seen = measured(job, placement=dict.fromkeys(VERTICES, nodes), chain=task_of_all)
    here = seen.operators["map"]
    assert (here.offered_rate_per_s, here.cpu_ratio) == (pytest.approx(200), pytest.approx(0.7))
    assert (here.throughput_per_s, here.back_pressure_ratio, here.busy_ratio, here.instances) == (
        None, None, None, (),
    )  # fmt: skip
    assert (seen.lag_records, seen.response_time_ms) == (999, None)


def test_rates_and_ratios_are_differences_of_counters():
    seen = measured(pipeline())
    source, work = seen.operators["source"], seen.operators["map"]
    assert source.throughput_per_s == pytest.approx(150)
    assert source.back_pressure_ratio == pytest.approx(0.85)
    assert work.throughput_per_s == pytest.approx(150)
    assert work.offered_rate_per_s == pytest.approx(200)  # what Kafka is offered
    assert work.arrival_rate_per_s == pytest.approx(150)  # what comes through
    assert work.busy_ratio == pytest.approx((0.9 + 0.6) / 2)
    assert work.true_rate_per_s == pytest.approx(90 / 0.9 + 60 / 0.6)
    assert work.cpu_ratio == pytest.approx((0.9 + 0.5) / 2)
    assert [each.node for each in work.instances] == ["fog1", "fog2"]
    assert seen.time_s == NOW_S


def test_a_late_scrape_of_a_far_node_does_not_look_like_a_slow_one():
    seen = measured(pipeline(shift_s=0.6, until_s=NOW_S - 5))
    assert seen.operators["map"].throughput_per_s == pytest.approx(150)
    assert seen.time_s == pytest.approx(NOW_S - 4.4)  # as old as the oldest


def test_the_lag_counts_what_is_on_its_way_too():
    job = pipeline()
    for each in job:
        if (each["metric"].get("task_name"), each["metric"]["__name__"]) != (
            "sink: Writer",
            queries.RECORDS_IN,
        ):
            continue
        each["values"] = [[t, str(float(v) - 30)] for t, v in each["values"]]
    # Kafka holds 10,000 records, 9,001 are passed on, 30 of those have not arrived at the sink.
    assert measured(job).lag_records == pytest.approx(999 + 30)


def test_without_an_offset_of_a_used_partition_the_lag_is_not_known():
    job = [each for each in pipeline() if each["metric"]["__name__"] != queries.OFFSET]
    job.append(gauge(queries.OFFSET, {"partition": "0"}, -1))
    assert measured(job).lag_records is None
    assert measured(job, base={0: 10_000}).lag_records == 0  # nothing came since the run began


def test_right_after_a_rescale_nothing_is_claimed():
    young = measured(pipeline(begun_s=NOW_S, attempt="1"), since_s=NOW_S - 2)
    assert young.operators["map"].throughput_per_s is None
    assert young.operators["map"].busy_ratio is None


def test_an_instance_without_samples_leaves_all_unknown():
    job = [each for each in pipeline() if each["metric"].get("tm_id") != "fog2"]
    seen = measured(job)
    assert seen.time_s is None
    assert seen.operators["map"].throughput_per_s is None
    assert seen.lag_records is None


def test_an_older_attempt_on_the_same_node_is_not_counted():
    before = task("map", 1, "fog2", 500, 0, 0, attempt="old", begun_s=NOW_S - 40, until_s=NOW_S - 5)
    assert measured([*before, *pipeline(attempt="new")]).operators["map"].throughput_per_s == pytest.approx(
        150
    )


def test_an_idle_job_has_no_true_rate():
    job = [
        *task("Source: source", 0, "services1", 0, 1, 0),
        *task("map", 0, "fog1", 0, 1, 0),
        *task("map", 1, "fog2", 0, 1, 0),
        *task("sink: Writer", 0, "services1", 0, 1, 0),
    ]
    work = measured(job).operators["map"]
    assert work.true_rate_per_s is None
    assert (work.throughput_per_s, work.busy_ratio) == (0, 0)


def test_a_counter_that_went_down_is_another_one():
    series = Series("x", {}, (0.0, 5.0, 10.0), (100.0, 110.0, 5.0))
    assert series.rate_per_s(0, 5) == 2
    assert series.rate_per_s(0, 10) is None
    assert series.rate_per_s(0, 6) is None
    assert series.rate_per_s(10, 20) is None


def test_between_two_scrapes_a_figure_lies_on_the_line_between_them():
    series = Series("x", {}, (0.0, 5.0, 10.0), (0.0, 10.0, 50.0))
    assert [series.at(time_s) for time_s in (-1, 0, 2.5, 5, 9, 10, 11)] == [None, 0, 5, 10, 42, 50, None]
    assert series.rate_per_s(2.5, 7.5) == pytest.approx((30 - 5) / 5)


@pytest.mark.parametrize("apart_s", [0.0, 1.3, 3.7, -2.2])
def test_services_that_were_scraped_at_other_moments_are_compared_as_of_one(apart_s):
    """Kafka's end moves on by 200 records a second, the source by 150: 1.3 s apart would be 260 records of
    lag that do not exist."""
    offset = counter(queries.OFFSET, {"partition": "0"}, 150, start=9_000 - 150 * 20 - 1)
    job = [*pipeline()[:-2], offset, pipeline()[-1]]
    seen = measured(job, topic_shift_s=apart_s)
    assert seen.time_s == pytest.approx(NOW_S + min(0.0, apart_s))
    # At NOW_S Kafka has 10,000 records by its own clock, of which 9,000 are passed on.
    assert seen.lag_records == pytest.approx(1000 - 50 * (NOW_S - seen.time_s), abs=1)


def test_an_offset_counts_from_its_first_record_on():
    """Before that a source tells -1, and a line from there would be no place in the topic."""
    job = [each for each in pipeline() if each["metric"]["__name__"] != queries.OFFSET]
    offset = gauge(queries.OFFSET, {"partition": "0"}, 9_000)
    offset["values"] = [[t, "-1" if t < NOW_S - 5 else v] for t, v in offset["values"]]
    assert measured([*job, offset]).lag_records == 999
    late = pipeline(shift_s=-2.0)  # all figures are of a moment before the one at which the offset was known
    job = [each for each in late if each["metric"]["__name__"] != queries.OFFSET]
    offset["values"] = [[t, "-1" if t < NOW_S else v] for t, v in offset["values"]]
    assert measured([*job, offset]).lag_records is None


def with_fog1(used_per_s=0.18, cpus=0.2):
    return [
        counter(queries.CGROUP_CPU_S, {"node": "fog1"}, used_per_s),
        gauge(queries.CGROUP_CPUS, {"node": "fog1"}, cpus),
        NODES[1],
        NODES[3],
    ]


@pytest.mark.parametrize(
    "nodes",
    [
        pytest.param(with_fog1(used_per_s=1e9), id="a counter that jumps"),
        pytest.param(with_fog1(cpus=1e-6), id="hardly a core"),
        pytest.param(with_fog1(cpus=float("nan")), id="no number of cores"),
        pytest.param(with_fog1(cpus=-1), id="less than no core"),
    ],
)
def test_a_cpu_that_cannot_be_is_not_measured(nodes):
    """It would look saturated otherwise, and a policy would add nodes."""
    seen = measured(pipeline(), nodes=nodes)
    assert (seen.nodes["fog1"].cpu_ratio, seen.operators["map"].cpu_ratio) == (None, None)
    assert seen.nodes["fog2"].cpu_ratio == pytest.approx(0.5)


def test_time_that_cannot_be_is_not_measured():
    """2.2 s of waiting in a second."""
    source = task("Source: source", 0, "services1", 0, 0.05, 2.2, out_per_s=150)
    work = measured([*source, *pipeline()[4:]]).operators
    assert work["source"].back_pressure_ratio is None
    assert work["source"].true_rate_per_s is None
    assert work["map"].busy_ratio == pytest.approx(0.75)


def test_offsets_that_are_no_numbers_are_no_lag_of_zero():
    assert measured(pipeline(), topic_end=float("nan")).lag_records is None
