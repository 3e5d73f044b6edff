"""A schedule is fixed by the clock, equals the simulated load, and can be cut anywhere without loss."""

from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller import experiment as experiments
from controller.run import prepare
from fogscale.cli import default_experiment
from fogscale.errors import FogscaleError
from tests.support.records import Counted
from workloads.catalog import load
from workloads.producer.schedule import Schedule, part_of, schedule_of
from workloads.producer.tasks import Part, job_of
from workloads.profile import RateProfile
from workloads.replay import ReplaySettings

COUNTS = st.lists(st.integers(0, 40), min_size=1, max_size=12).filter(any)


def schedule(counts, **settings):
    return Schedule(np.array(counts, dtype=np.int64), **settings)


def test_the_real_load_is_the_simulated_one_second_by_second():
    (run,) = experiments.runs_of(experiments.load(default_experiment()), ["static"], [7], None)
    (simulated,) = prepare(run).setup.inputs.values()
    workload = load(run.workload.name, **run.workload.parameters)
    pace = run.workload.replay(workload.replay)
    (task,) = job_of(workload, pace, Counted(), "rides", run="r", seed=7).tasks
    np.testing.assert_array_equal(task.schedule.wanted_per_s(), simulated)


def test_records_follow_at_equal_distances_within_a_second():
    assert schedule([2, 0, 4]).due_s(np.arange(6)).tolist() == [0.25, 0.75, 2.125, 2.375, 2.625, 2.875]


@given(COUNTS, st.floats(-1, 14))
def test_what_is_due_before_a_time_is_what_has_an_earlier_due_time(counts, time_s):
    plan = schedule(counts)
    due_s = plan.due_s(np.arange(plan.total))
    assert plan.due_before(time_s) == (due_s < time_s).sum()


@given(COUNTS)
def test_each_second_gets_its_count_in_order(counts):
    plan = schedule(counts)
    due_s = plan.due_s(np.arange(plan.total))
    assert (np.diff(due_s) > 0).all()
    assert np.bincount(due_s.astype(int), minlength=len(counts)).tolist() == counts


@given(COUNTS, st.floats(0, 12), st.integers(1, 3))
def test_two_windows_make_the_whole(counts, cut_s, copies):
    whole = schedule(counts, copies=copies)
    parts = []
    for window in ((0.0, cut_s), (cut_s, None)):
        try:
            parts.append(part_of(whole, *window))
        except FogscaleError:  # nothing is due on that side
            continue
    assert [n for part in parts for n in range(part.first, part.last)] == list(range(whole.total))
    assert sum(part.records for part in parts) == whole.records == sum(counts) * copies
    np.testing.assert_array_equal(sum(part.wanted_per_s() for part in parts), whole.wanted_per_s())


def test_going_on_with_a_record_starts_when_it_is_due():
    rest = part_of(schedule([4, 4]), first_record=6)
    assert (rest.first, rest.last, rest.starts_at_s) == (6, 8, 1.625)


def test_event_times_are_those_of_the_trace():
    day = RateProfile("day", "test", np.array([3600.0] * 24), 3600.0, start="2013-01-07T00:00:00")
    plan = schedule_of(day, ReplaySettings(speed=60), np.random.default_rng(1))
    times_ms = plan.event_times_ms(np.arange(plan.total))
    midnight_ms = datetime(2013, 1, 7, tzinfo=UTC).timestamp() * 1000
    assert times_ms[0] >= midnight_ms
    assert midnight_ms + 23.9 * 3.6e6 < times_ms[-1] < midnight_ms + 24 * 3.6e6
    # One replay second is a minute of the trace.
    per_minute = np.bincount(((times_ms - midnight_ms) // 60_000).astype(int))
    np.testing.assert_array_equal(per_minute, plan.counts)


def test_a_trace_without_a_date_starts_in_1970():
    flat = RateProfile("flat", "test", np.array([100.0]), 10.0)
    plan = schedule_of(flat, ReplaySettings(), np.random.default_rng(1))
    assert 0 <= plan.event_times_ms(np.array([0]))[0] < 1000


def test_copies_are_one_record_to_the_schedule():
    flat = RateProfile("flat", "test", np.array([100.0]), 10.0)
    once = schedule_of(flat, ReplaySettings(), np.random.default_rng(1))
    thrice = schedule_of(flat, ReplaySettings(copies=3), np.random.default_rng(1))
    np.testing.assert_array_equal(once.counts, thrice.counts)
    assert thrice.records == 3 * once.records


def test_a_workload_per_operator_has_a_topic_each():
    job = job_of(load("brownian"), ReplaySettings(), Counted(), "in", run="r")
    operators = load("brownian").inputs
    assert len(operators) == 5
    assert [task.topic for task in job.tasks] == [f"in-{name}" for name in operators]
    assert len({task.schedule.records for task in job.tasks}) > 1


def test_operators_cannot_go_on_with_one_number():
    with pytest.raises(FogscaleError, match="--start-at"):
        job_of(load("brownian"), ReplaySettings(), Counted(), "in", run="r", part=Part(first_record=5))


@pytest.mark.parametrize("part", [{"start_at_s": 99}, {"duration_s": 0.0}, {"first_record": 8}])
def test_a_part_without_records_says_what_there_is(part):
    with pytest.raises(FogscaleError, match=r"lasts 2 s and has records 0 to 7"):
        part_of(schedule([4, 4]), **part)


def test_a_workload_without_records_is_refused():
    flat = RateProfile("flat", "test", np.array([1.0]), 10.0)
    with pytest.raises(FogscaleError, match="offers no records"):
        schedule_of(flat, ReplaySettings(scale=1e-9), np.random.default_rng(1))
