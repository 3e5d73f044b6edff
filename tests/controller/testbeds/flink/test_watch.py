"""Truth is sampled at a fixed interval, and once more when a run is over."""

import time
from dataclasses import dataclass, field

import pytest

from controller.testbeds.flink.broker import Left
from controller.testbeds.flink.http import UnreachableError
from controller.testbeds.flink.ledger import Ledger
from controller.testbeds.flink.watch import State, Watch

OFFERED = 10
NEVER_S = 1e6
PATIENCE_S = 30.0


@dataclass
class Topic:
    """What is read of a topic: its end, and each record once."""

    records: list[Left] = field(default_factory=list)

    def ends(self) -> dict[int, int]:
        return {0: OFFERED}

    def read(self, within_s: float) -> list[Left]:
        time.sleep(0.001)
        read, self.records = self.records, []
        return read

    def close(self) -> None: ...


@pytest.fixture
def output():
    return Topic()


@pytest.fixture
def watch(output):
    began_s = time.monotonic()
    watch = Watch(
        input=Topic(), output=output, committed=Topic(), base={}, ledger=Ledger(),
        state=lambda: State({"map": 2}, 1, 0, 2), now_s=lambda: time.monotonic() - began_s,
        zero_ms=lambda: 0.0, interval_s=NEVER_S,
    )  # fmt: skip
    watch.start()
    yield watch
    watch.stop()


def first_of(watch):
    deadline_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline_s:
        if taken := watch.take():
            return taken
    raise AssertionError("no sample was taken")


def test_the_last_sample_shows_that_all_is_processed_however_long_the_interval(watch, output):
    (first,) = first_of(watch)
    assert (first.offered_records, first.lag_records) == (OFFERED, OFFERED)
    output.records = [Left(number, 0.0, 0.0) for number in range(OFFERED)]
    while watch.ledger.processed < OFFERED:
        watch.check()

    watch.sample_now(PATIENCE_S)

    (last,) = watch.take()
    assert (last.offered_records, last.lag_records, last.replicas) == (OFFERED, 0, {"map": 2})


def test_a_sample_that_could_not_be_taken_is_told_and_taken_later(output):
    missed, kept, taken, began_s = [], [], [], time.monotonic()

    class Away(Topic):
        def ends(self):
            if len(missed) < 2:
                raise UnreachableError("Kafka is away")
            return super().ends()

    watch = Watch(
        input=Away(), output=output, committed=Topic(), base={}, ledger=Ledger(),
        state=lambda: State({"map": 2}, 1, 0, 2), now_s=lambda: time.monotonic() - began_s,
        zero_ms=lambda: 0.0, interval_s=0.01, missed=lambda error: missed.append(str(error)),
        chores=lambda: kept.append(len(missed)), taken=lambda: taken.append(len(missed)),
    )  # fmt: skip
    watch.start()
    assert first_of(watch)
    watch.stop()
    assert missed == ["Kafka is away"] * 2
    assert kept[:3] == [0, 1, 2], "the lease is kept also while Kafka is away"
    assert set(taken) == {2}
