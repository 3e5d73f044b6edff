"""Reads a topic back and judges it by the numbers in its headers: what is lost, twice or out of order."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from fogscale.errors import FogscaleError
from workloads.producer import header
from workloads.producer.sender import ANSWER_WITHIN_S, kafka_library, partitions_of

SILENCE_S = 30.0  # longer than this without a record means that the broker is away
_READ_AT_ONCE = 2_000
# The library would fetch 64 MB ahead of whoever reads: on small machines that is more than all the rest.
_AHEAD = {"queued.min.messages": 5_000, "queued.max.messages.kbytes": 8_192}

IntArray = npt.NDArray[np.int64]


@dataclass
class Log:
    """The records of one run as they stand in a topic, partition by partition in the order of offsets."""

    partitions: array[int] = field(default_factory=lambda: array("q"))
    keys: array[int] = field(default_factory=lambda: array("q"))  # each key by a number of its own
    numbers: array[int] = field(default_factory=lambda: array("q"))

    def add(self, partition: int, key: int, number: int) -> None:
        self.partitions.append(partition)
        self.keys.append(key)
        self.numbers.append(number)


@dataclass(frozen=True)
class Verdict:
    run: str
    expected: int | None  # None: not known, so a loss at the very end cannot be seen
    records: int
    lost: int
    duplicated: int
    unexpected: int  # with a number that was never to be sent
    out_of_order: int  # records that stand behind a later one of the same key
    split_keys: int  # keys with records on more than one partition
    first_lost: int | None = None

    @property
    def clean(self) -> bool:
        return not (self.lost or self.duplicated or self.unexpected or self.out_of_order or self.split_keys)

    @property
    def text(self) -> str:
        found = (
            f"{self.records} records: {self.lost} lost, {self.duplicated} duplicated,"
            f" {self.out_of_order} out of order"
        )
        if self.first_lost is not None:
            found += f", first lost {self.first_lost}"
        if self.unexpected:
            found += f", {self.unexpected} unexpected"
        if self.split_keys:
            found += f", {self.split_keys} keys on several partitions"
        return (
            found if self.expected is not None else f"{found} (the end is not known: name it with --report)"
        )


def whole_run(log: Log, sent: range, run_first: int) -> range:
    """What a reader must find: the numbers that were sent and, where an earlier leg of the run left records
    in the topic, all those from the start of the run."""
    is_later_leg = bool(log.numbers) and min(log.numbers) < sent.start
    return range(min(run_first, sent.start), sent.stop) if is_later_leg else sent


def judge(run: str, log: Log, expected: range | None = None) -> Verdict:
    """Compares what stands in the topic with the numbers that were to be sent.

    Without them, what lies between the smallest and the largest number found is expected.
    """
    numbers = np.frombuffer(log.numbers, np.int64) if log.numbers else np.empty(0, np.int64)
    distinct, first_seen = np.unique(numbers, return_index=True)
    if expected is not None:
        wanted = expected
    else:
        wanted = range(int(distinct[0]), int(distinct[-1]) + 1) if len(distinct) else range(0)
    inside = distinct[(distinct >= wanted.start) & (distinct < wanted.stop)]
    once = np.sort(first_seen)
    return Verdict(
        run=run,
        expected=None if expected is None else len(expected),
        records=len(numbers),
        lost=len(wanted) - len(inside),
        duplicated=len(numbers) - len(distinct),
        unexpected=len(distinct) - len(inside),
        out_of_order=_out_of_order(np.frombuffer(log.keys, np.int64)[once], numbers[once])
        if len(once)
        else 0,
        split_keys=_split_keys(log),
        first_lost=_first_missing(inside, wanted),
    )


def _out_of_order(keys: IntArray, numbers: IntArray) -> int:
    """Records that stand behind one of the same key with a larger number."""
    by_key = np.argsort(keys, kind="stable")
    keys, numbers = keys[by_key], numbers[by_key]
    # Ranks of later keys are all larger, so one running maximum serves every key.
    block = np.cumsum(np.concatenate(([0], np.diff(keys) != 0)))
    rank = np.unique(numbers, return_inverse=True)[1] + block * np.int64(len(numbers))
    return int((np.maximum.accumulate(rank) > rank).sum())


def _split_keys(log: Log) -> int:
    if not log.keys:
        return 0
    keys, partitions = np.frombuffer(log.keys, np.int64), np.frombuffer(log.partitions, np.int64)
    width = int(partitions.max()) + 1
    pairs = np.unique(keys * width + partitions)
    return int((np.unique(pairs // width, return_counts=True)[1] > 1).sum())


def _first_missing(found: IntArray, wanted: range) -> int | None:
    if len(found) == len(wanted):
        return None
    gaps = np.nonzero(found != np.arange(wanted.start, wanted.start + len(found)))[0]
    return wanted.start + (int(gaps[0]) if len(gaps) else len(found))


@dataclass
class Reading:
    """What was read from a topic."""

    runs: dict[str, Log] = field(default_factory=dict)
    foreign: int = 0  # records without our header
    deleted: int = 0  # that the broker no longer has
    only: str | None = None  # the one run whose numbers are kept, without the order of keys
    _key_ids: dict[bytes | None, int] = field(default_factory=dict, repr=False)

    def take(self, message: Any) -> None:
        mark = header.read(message.headers())
        if mark is None:
            self.foreign += 1
            return
        if self.only is not None and mark[0] != self.only:
            return
        log = self.runs.get(mark[0])
        if log is None:
            log = self.runs[mark[0]] = Log()
        key = None if self.only is not None else message.key()
        key_id = self._key_ids.setdefault(key, len(self._key_ids))
        log.add(message.partition(), key_id, mark[1])


def read(
    bootstrap: str,
    topic: str,
    progress: Callable[[float, float], None] = lambda _done, _total: None,
    config: Mapping[str, str] | None = None,
    *,
    start: Mapping[int, int] | None = None,
    reading: Reading | None = None,
) -> Reading:
    """Everything that stands in a topic at this moment, or from given offsets on. `reading`: what takes the
    records; `Reading(only=run)` needs little memory."""
    kafka = kafka_library()
    settings = {
        "log_level": 0,
        "group.id": "fogscale-audit",  # asked for by the library; nothing is committed
        **_AHEAD,
        **(config or {}),  # what is a producer's alone, the library leaves aside
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "bootstrap.servers": bootstrap,
    }
    try:
        consumer = kafka.Consumer(settings)
    except kafka.KafkaException as error:
        raise FogscaleError(f"librdkafka does not take --config ({error.args[0].str()})") from error
    try:
        spans = _spans(consumer, bootstrap, topic)
        reading = reading or Reading()
        reading.deleted = sum(low for low, _ in spans.values())
        for part, offset in (start or {}).items():
            if part in spans:
                spans[part] = (max(offset, spans[part][0]), spans[part][1])
        consumer.assign(
            [kafka.TopicPartition(topic, part, low) for part, (low, high) in spans.items() if high > low]
        )
        _read(consumer, spans, reading, progress)
        return reading
    except kafka.KafkaException as error:
        raise FogscaleError(f"cannot read topic '{topic}' at {bootstrap}: {error.args[0].str()}") from error
    finally:
        consumer.close()


def _spans(consumer: Any, bootstrap: str, topic: str) -> dict[int, tuple[int, int]]:
    """The first offset of each partition and the one after its last."""
    partitions = partitions_of(consumer, bootstrap, topic)
    return {partition: _span(consumer, topic, partition) for partition in partitions}


def _span(consumer: Any, topic: str, partition: int) -> tuple[int, int]:
    """Asks again for a while: after a restart, a partition is without a leader for a moment."""
    kafka = kafka_library()
    deadline_s = time.monotonic() + ANSWER_WITHIN_S
    while True:
        try:
            low, high = consumer.get_watermark_offsets(
                kafka.TopicPartition(topic, partition), timeout=ANSWER_WITHIN_S
            )
            return low, high
        except kafka.KafkaException:
            if time.monotonic() > deadline_s:
                raise
            time.sleep(0.1)


def _read(
    consumer: Any,
    spans: dict[int, tuple[int, int]],
    reading: Reading,
    progress: Callable[[float, float], None],
) -> None:
    total, done = sum(high - low for low, high in spans.values()), 0
    left = {part for part, (low, high) in spans.items() if high > low}
    heard_s = time.monotonic()
    while left:
        messages = consumer.consume(_READ_AT_ONCE, 0.1)  # waits in vain for as many at the topic's end
        if messages:
            heard_s = time.monotonic()
        elif time.monotonic() - heard_s > SILENCE_S:
            raise FogscaleError(f"the broker sent nothing for {SILENCE_S:.0f} s: is it still running?")
        for message in messages:
            part = message.partition()
            if (error := message.error()) is not None:
                if error.name() == "GROUP_AUTHORIZATION_FAILED":
                    continue  # the library asks for a group's coordinator in any case; we need none
                if error.name() != "_PARTITION_EOF":
                    raise FogscaleError(f"cannot read partition {part}: {error.str()}; try again")
                left.discard(part)  # markers of transactions are offsets too, but no records
                continue
            end = spans[part][1]
            if message.offset() < end:
                reading.take(message)
                done += 1
            if message.offset() >= end - 1:
                left.discard(part)
        progress(done, total)


def verdicts(reading: Reading, expected: dict[str, range] | None = None) -> Sequence[Verdict]:
    """One verdict per run that is asked for, or else for each that was found."""
    if expected:
        return [judge(run, reading.runs.get(run, Log()), numbers) for run, numbers in expected.items()]
    return [judge(run, log) for run, log in reading.runs.items()]
