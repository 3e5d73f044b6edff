"""Chunks hold every record of a task once, in order, numbered, stamped with the time at which it is due."""

import numpy as np
import pytest

from tests.support.records import Counted
from workloads.producer import header
from workloads.producer.chunks import MOST_AHEAD, MOST_RECORDS, Ahead, Task, chunks
from workloads.producer.schedule import Schedule
from workloads.producer.tasks import shared

PLAN = Schedule(np.array([3, 0, 9000, 40]), copies=3)
TASK = Task("rides", PLAN, Counted(keys=7), seed=5, run="r1")


def flat(task, zero_ms=0.0):
    return [
        (key, value, stamp_ms, header.read(headers))
        for chunk in chunks(task, zero_ms)
        for key, value, stamp_ms, headers in chunk.messages(0, len(chunk))
    ]


def test_every_copy_has_a_number_of_its_own_and_they_follow_each_other():
    assert [mark for *_, mark in flat(TASK)] == [("r1", number) for number in range(9043 * 3)]


def test_copies_are_identical_but_for_their_number():
    sent = flat(TASK)
    assert sent[0][:3] == sent[1][:3] == sent[2][:3] != sent[3][:3]
    assert sent[3 * 5000][1] == b"5,5000,%d" % PLAN.event_times_ms(np.array([5000]))[0]


def test_stamps_say_when_a_record_is_due():
    stamps_ms = [stamp_ms for _, _, stamp_ms, _ in flat(TASK, zero_ms=1e12)]
    expected = 1e12 + 1000 * np.repeat(PLAN.due_s(np.arange(9043)), 3)
    np.testing.assert_allclose(stamps_ms, expected, atol=0.5)


def test_a_window_sends_the_same_records_as_the_whole():
    window = Task("rides", PLAN.window(100, 250), Counted(keys=7), seed=5, run="r1")
    assert flat(window) == flat(TASK)[300:750]


@pytest.mark.parametrize("processes", [2, 3])
def test_shares_split_the_records_by_key(processes):
    parts = [flat(task) for task in shared(TASK, processes)]
    by_number = sorted((message for part in parts for message in part), key=lambda message: message[3][1])
    assert by_number == flat(TASK)
    keys = [{key for key, *_ in part} for part in parts]
    assert sum(map(len, keys)) == len(set.union(*keys)) == 7


def test_chunks_stay_small_and_short():
    for chunk in chunks(TASK, 0.0):
        assert len(chunk) <= MOST_RECORDS
        assert chunk.due_s[-1] - chunk.due_s[0] <= 0.25


def test_rendering_ahead_changes_neither_records_nor_their_order_and_has_a_bound():
    task = Task("rides", Schedule(np.array([200_000])), Counted(), seed=5, run="r1")
    ahead = Ahead(chunks(task, 0.0))
    numbers = [next(ahead).numbers]
    assert sum(ahead.render_one() for _ in range(100)) == MOST_AHEAD
    numbers += [chunk.numbers for chunk in ahead]
    assert np.concatenate(numbers).tolist() == list(range(200_000))
    assert not ahead.render_one()


def test_other_headers_are_not_taken_for_ours():
    assert header.read(None) is None
    assert header.read([("trace", b"r1:5"), ("fogscale", b"r1"), ("fogscale", None)]) is None
    assert header.read([("trace", b"x"), ("fogscale", b"r1:5")]) == ("r1", 5)
