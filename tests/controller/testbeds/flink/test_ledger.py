"""What left a job, counted once, and how long nothing did."""

from __future__ import annotations

import pytest

from controller.testbeds.flink.broker import Left, _due_ms
from controller.testbeds.flink.ledger import Ledger, WindowLedger


def left(*numbers, due_ms=0, done_ms=100):
    return [Left(number, due_ms, done_ms) for number in numbers]


def test_a_record_that_a_failure_repeats_counts_once():
    ledger = Ledger()
    ledger.leave(left(0, 1, 2), zero_ms=0)
    ledger.leave(left(1, 2, 3), zero_ms=0)
    assert ledger.processed == 4
    ledger.commit(left(0, 1, 2, 3), now_s=1)
    assert (ledger.committed, ledger.doubled) == (4, 0)
    ledger.commit(left(3), now_s=2)
    assert (ledger.committed, ledger.doubled) == (4, 1)


def test_numbers_may_be_far_apart():
    ledger = Ledger()
    ledger.leave(left(1_000_000, 5), zero_ms=0)
    ledger.leave(left(1_000_000), zero_ms=0)
    assert ledger.processed == 2


def test_response_times_are_from_due_to_done_and_each_is_told_once():
    ledger = Ledger()
    ledger.leave([Left(number, 1000, 1000 + 10 * (number + 1)) for number in range(100)], zero_ms=0)
    told = ledger.responses()
    assert told.mean_ms == pytest.approx(505)  # of 10, 20, …, 1000
    assert told.p50_ms == pytest.approx(505)
    assert ledger.responses().mean_ms is None


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        pytest.param((2, 9), 6, id="between the records at 3 and 9"),
        pytest.param((4, 5), 6, id="also where the window lies inside of it"),
        pytest.param((10, 14), 4, id="since the last one, up to now"),
        pytest.param((0.5, 2.5), 1, id="steady"),
    ],
)
def test_a_silence_is_the_longest_time_between_two_records(window, expected):
    ledger = Ledger()
    for number, second in enumerate((0, 1, 2, 3, 9, 10)):
        ledger.leave(left(number, done_ms=second * 1000), zero_ms=0)
        ledger.commit(left(number), now_s=second)
    assert ledger.silence_s(*window) == pytest.approx(expected)
    assert ledger.committed_silence_s(*window) == pytest.approx(expected)


def test_a_job_says_when_its_record_was_due():
    assert _due_ms(b'{"by":"map","run":"r","number":7,"dueMs":123,"readMs":130,"doneMs":140}', 9) == 123
    assert _due_ms(b"something else", 9) == 9
    assert _due_ms(None, 9) == 9


def window(by, records, offset, mix=None, partition=0):
    """A result of several records; `mix` says which."""
    return Left(None, 0, 100, partition, offset, by, records, records if mix is None else mix)


@pytest.fixture
def windows():
    return WindowLedger(counted_by=("a", "b"))


def test_a_record_has_left_when_every_operator_that_counts_it_has_told_of_it(windows):
    windows.leave([window("a", 5, 0), window("b", 3, 1)], zero_ms=0)
    assert windows.processed == 3
    refused = Left(7, 0, 100, 0, 3)  # on its own: nobody counts it
    windows.leave([window("b", 2, 2), refused], zero_ms=0)
    assert windows.processed == 6
    windows.commit([window("a", 5, 0), window("b", 3, 1), window("b", 2, 2), refused], now_s=1)
    assert (windows.processed, windows.committed) == (6, 6)


def test_what_a_failure_undid_and_told_again_counts_once(windows):
    undone, again = [window("a", 5, 0), window("b", 5, 1)], [window("a", 5, 4), window("b", 5, 5)]
    windows.leave(undone, zero_ms=0)
    windows.leave(again, zero_ms=0)
    assert windows.processed == 5
    windows.commit(again, now_s=1)
    assert (windows.processed, windows.committed) == (5, 5)


def test_windows_that_are_cut_otherwise_after_a_failure_count_until_the_others_are_committed(windows):
    windows.leave([window("a", 5, 0, mix=12345), window("b", 5, 1, mix=12345)], zero_ms=0)
    parts = [
        window(by, records, 4 + place, mix=records) for place, by in enumerate("ab") for records in (2, 3)
    ]
    windows.leave(parts, zero_ms=0)
    assert windows.processed == 10  # nobody can know yet
    windows.commit(parts, now_s=1)
    assert windows.committed == 5
    windows.leave([window("a", 7, 8), window("b", 7, 9)], zero_ms=0)
    assert windows.processed == 12


def test_the_reader_of_committed_results_may_be_first(windows):
    windows.commit([window("a", 5, 0), window("b", 5, 1)], now_s=1)
    windows.leave([window("a", 5, 0), window("b", 5, 1)], zero_ms=0)
    assert (windows.processed, windows.committed) == (5, 5)
    assert windows.responses().mean_ms == 100
