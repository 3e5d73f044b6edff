"""The reader of the jobs' output: bytes that the Java side wrote, and an audit that finds what is wrong."""

import random

import pytest

from fog.folders import checkout
from fogscale.errors import FogscaleError
from workloads.jobs.output import Result, Tally, balance, parse, tally_of

# Java's own tests write exactly these lines.
WRITTEN = checkout() / "workloads/jobs/java/src/test/resources/outputs.jsonl"


def test_what_java_writes_is_read():
    single, several, fault = map(parse, WRITTEN.read_bytes().splitlines())
    assert single == Result(
        by="map", run='a "run"', number=7, tally=tally_of([7]), first_due_ms=1000, due_ms=1000, read_ms=1005,
        done_ms=1010, value={"attraction": "Times Square"},
    )  # fmt: skip
    assert several == Result(
        by="clickRate", run="r1", number=None, tally=tally_of([3, 4, 5_000_000_000]), first_due_ms=900,
        due_ms=1200, read_ms=1300, done_ms=1400, value=[1, 2],
    )  # fmt: skip
    assert (fault.fault, fault.number, fault.latency_ms) == ("no number 'pickupLon'", 0, 10)
    assert single.fault is None


@pytest.mark.parametrize("bad", [b"", b"{}", b"[1]", b'{"by":"map"}', b"\xff", b"7"])
def test_what_no_job_wrote_is_refused(bad):
    with pytest.raises(FogscaleError, match="was not written by a job"):
        parse(bad)


def result(numbers, run="r"):
    single = len(numbers) == 1
    return Result("map", run, numbers[0] if single else None, tally_of(numbers), 0, 0, 0, 0, {})


def test_the_numbers_are_scrambled_as_splitmix64_does():
    assert tally_of([0]) == Tally(1, 0, 0xE220A8397B1DCDAF)  # its first value for the seed 0
    assert tally_of(range(5)) + tally_of(range(5, 9)) == tally_of(range(9))


def test_single_results_tell_how_many_are_lost_and_doubled():
    results = [result([number]) for number in [0, 1, 2, 2, 4, 7]] + [result([5], run="other")]
    verdict = balance(results, "r", range(8))
    assert (verdict.lost, verdict.doubled, verdict.clean) == (3, 1, False)
    assert verdict.text == "6 records: 3 lost, 1 doubled"


def test_tallies_tell_that_every_record_was_counted_once():
    numbers = list(range(100, 1100))
    random.Random(1).shuffle(numbers)
    windows = [result(numbers[at : at + 30]) for at in range(0, 1000, 30)]
    assert balance(windows, "r", range(100, 1100)).clean
    assert not balance(windows[1:], "r", range(100, 1100)).clean
    assert not balance([*windows, windows[3]], "r", range(100, 1100)).clean


def test_a_loss_and_a_copy_do_not_cancel_out():
    # As many records and the same sum of numbers: 1 + 4 = 2 + 3.
    verdict = balance([result([0, 2, 3, 2, 3, 5])], "r", range(6))
    assert verdict.found.records == 6
    assert verdict.found.sum == verdict.expected.sum
    assert not verdict.clean
    assert verdict.text == "6 records: some lost, as many doubled"
