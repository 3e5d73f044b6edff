"""Kafka's side of a job: what was offered, what was committed, and every record that came out of it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from controller.testbeds.flink.http import UnreachableError
from fogscale.errors import FogscaleError
from workloads.producer import header

ANSWER_WITHIN_S = 5.0
AT_ONCE = 1_000
REFUSALS = frozenset(
    {
        KafkaError._AUTHENTICATION,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    }
)
# Fetched ahead of whoever reads. The library's own limit of 64 MB a client would be most of the controller.
AHEAD = {"queued.min.messages": 2_000, "queued.max.messages.kbytes": 2_048}
FETCH_WITHIN_MS = 100
_DUE = re.compile(rb'"dueMs":(\d+)')
_TALLY = re.compile(rb'\{"by":"([^"]*)","run":"([^"]*)","records":(\d+),"sum":\d+,"mix":(\d+),')


@dataclass(frozen=True, slots=True)
class Left:
    """A result that came out of the job: of one record, with its number, or of several."""

    number: int | None
    due_ms: int  # when it was due at the source, by the producer's clock; of several, the latest
    done_ms: int  # when the job wrote it
    partition: int = 0
    offset: int = 0
    # Of several: the operator that made it, how many they are, and which (workloads/jobs/output.py).
    by: str = ""
    records: int = 1
    mix: int = 0


class Offsets:
    """End offsets of a topic, and a group's place in it."""

    def __init__(self, access: Mapping[str, Any], topic: str) -> None:
        self.topic = topic
        self._bootstrap = access["bootstrap.servers"]
        self._refused = ""
        own = {"group.id": "fogscale-offsets", "enable.auto.commit": False, "error_cb": self._notice}
        self._consumer = Consumer({**access, **own})
        self._partitions = self._known_partitions()

    def close(self) -> None:
        self._consumer.close()

    @property
    def partitions(self) -> int:
        return len(self._partitions)

    def ends(self) -> dict[int, int]:
        """The offset after the last record of each partition."""
        return {part: self._span(part)[1] for part in self._partitions}

    def _span(self, partition: int) -> tuple[int, int]:
        try:
            low, high = self._consumer.get_watermark_offsets(
                TopicPartition(self.topic, partition), timeout=ANSWER_WITHIN_S
            )
            return low, high
        except KafkaException as error:
            raise self._unreachable(error) from None

    def _known_partitions(self) -> list[int]:
        try:
            found = self._consumer.list_topics(self.topic, timeout=ANSWER_WITHIN_S).topics[self.topic]
        except KafkaException as error:
            raise self._unreachable(error) from None
        if found.error is not None or not found.partitions:
            raise FogscaleError(f"Kafka at {self._bootstrap} has no topic '{self.topic}': create it")
        return sorted(found.partitions)

    def _notice(self, error: KafkaError) -> None:
        if error.code() in REFUSALS:
            self._refused = error.str()

    def _unreachable(self, error: KafkaException) -> FogscaleError:
        self._consumer.poll(0)  # the library tells only then why it has no connection
        if self._refused or error.args[0].code() in REFUSALS:
            return FogscaleError(
                f"Kafka at {self._bootstrap} refuses the testbed's credentials"
                f" ({self._refused or error.args[0].str()}): run site.yml (or services.yml) again"
            )
        return UnreachableError(
            f"Kafka at {self._bootstrap} does not tell about topic '{self.topic}' ({error.args[0].str()}):"
            " see whether it runs"
        )


def set_group(access: Mapping[str, Any], group: str, topic: str, offsets: Mapping[int, int]) -> None:
    """Where a group's readers begin: a job that has no state yet starts there, whatever lies before it."""
    consumer = Consumer({**access, "group.id": group, "enable.auto.commit": False})
    try:
        places = [TopicPartition(topic, part, offset) for part, offset in offsets.items()]
        for place in consumer.commit(offsets=places, asynchronous=False) or ():
            if place.error is not None:
                raise KafkaException(place.error)
    except KafkaException as error:
        raise FogscaleError(
            f"Kafka does not keep where group '{group}' starts ({error.args[0].str()}): is it in use?"
        ) from None
    finally:
        consumer.close()


def places_of_group(
    access: Mapping[str, Any], group: str, topic: str, partitions: Collection[int]
) -> dict[int, int]:
    """How far a group's readers have said that they came, by partition; left out where they have said
    nothing yet."""
    consumer = Consumer({**access, "group.id": group, "enable.auto.commit": False})
    try:
        wanted = [TopicPartition(topic, part) for part in partitions]
        found = consumer.committed(wanted, timeout=ANSWER_WITHIN_S)
        return {place.partition: place.offset for place in found if place.offset >= 0}
    except KafkaException as error:
        raise UnreachableError(
            f"Kafka does not tell how far group '{group}' is ({error.args[0].str()}): see whether it runs"
        ) from None
    finally:
        consumer.close()


class Output:
    """Reads a topic from given offsets on, at one isolation level; only one run's results count."""

    def __init__(
        self, access: Mapping[str, Any], topic: str, run: str, start: Mapping[int, int], committed: bool
    ) -> None:
        self._run = run
        self._consumer = Consumer(
            {
                **access,
                **AHEAD,
                "group.id": "fogscale-output",
                "enable.auto.commit": False,
                "isolation.level": "read_committed" if committed else "read_uncommitted",
                "fetch.wait.max.ms": FETCH_WITHIN_MS,
            }
        )
        self._consumer.assign([TopicPartition(topic, part, offset) for part, offset in start.items()])

    def close(self) -> None:
        self._consumer.close()

    def read(self, timeout_s: float) -> list[Left]:
        """What came meanwhile. A broker that is away is waited for: the records are still there then."""
        found = []
        for message in self._consumer.consume(AT_ONCE, timeout_s):
            if message.error() is not None:
                continue
            left = _left(message)
            if left is not None and left[0] == self._run:
                found.append(left[1])
        return found


def _left(message: Any) -> tuple[str, Left] | None:
    """A result and the run that it is of."""
    value, done_ms = message.value(), message.timestamp()[1]
    place = message.partition(), message.offset()
    mark = header.read(message.headers())
    if mark is not None:
        return mark[0], Left(mark[1], _due_ms(value, done_ms), done_ms, *place)
    tally = _TALLY.match(value or b"")
    if tally is None:
        return None
    by, run, records, mix = tally.groups()
    due_ms = _due_ms(value, done_ms)
    return run.decode(), Left(None, due_ms, done_ms, *place, by.decode(), int(records), int(mix))


def _due_ms(value: bytes | None, usual_ms: int) -> int:
    """As the jobs of workloads/jobs write it. Parsing all of the JSON would take ten times as long."""
    found = _DUE.search(value or b"")
    return usual_ms if found is None else int(found[1])
