"""Hands records to Kafka through confluent-kafka: acknowledged by all replicas, none lost, none twice, in
order per key, also over a restart of the broker.

`produce` is called per record: `produce_batch` takes neither headers nor timestamps (confluent-kafka 2.16).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fogscale.errors import FogscaleError, unknown
from workloads.producer.chunks import Chunk

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message, Producer

ANSWER_WITHIN_S = 6.0
_ANY_PARTITION = -1

# What makes "none lost, none twice, in order" true: not for the user to change.
_PROMISED: dict[str, Any] = {
    "enable.idempotence": True,  # implies retries without end and order over up to 5 requests in flight
    "acks": "all",
}
_USUAL: dict[str, Any] = {
    "partitioner": "murmur2_random",  # the Java clients' choice of partition for a key
    "linger.ms": 5,
    "batch.size": 131_072,
    "compression.type": "lz4",
    "message.timeout.ms": 300_000,  # how long a broker may be away before a record is given up
    "queue.buffering.max.messages": 100_000,  # the rest of a backlog waits as a number, not as records
    "queue.buffering.max.kbytes": 131_072,
    "log_level": 0,  # what goes wrong is in the report; 6 shows librdkafka's own lines
}


class Sender:
    """One connection to Kafka for one topic."""

    def __init__(self, bootstrap: str, topic: str, config: Mapping[str, str]) -> None:
        self.topic = topic
        self.broker_errors = 0
        self.broker_said = ""
        self._failure: str | None = None
        self._config = config
        self._producer = self._connected(bootstrap)

    def offer(self, chunk: Chunk, first: int, until: int) -> int:
        """Hands over the records from first to before until, or as many as there is room for; returns where
        it stopped."""
        at, topic, produce = first, self.topic, self._producer.produce
        try:
            # Positional, which takes half the time: callbacks are None, since one is set for all.
            for key, value, stamp_ms, header in chunk.messages(first, until):
                produce(topic, value, key, _ANY_PARTITION, None, None, stamp_ms, header)
                at += 1
        except BufferError:
            pass
        except self._kafka_exception as error:
            raise FogscaleError(self._refused(chunk, at, error.args[0])) from error
        return at

    def waiting(self) -> int:
        """Records handed over that the broker has not acknowledged yet."""
        return len(self._producer)

    def poll(self, timeout_s: float) -> None:
        """Takes in what the broker answered; raises if it refused a record for good."""
        self._producer.poll(timeout_s)
        if self._failure is not None:
            raise FogscaleError(self._failure)

    def abandon(self) -> None:
        """Forgets what is not acknowledged."""
        self._producer.purge()
        self._producer.flush(1.0)

    def _connected(self, bootstrap: str) -> Producer:
        from confluent_kafka import KafkaException

        self._kafka_exception = KafkaException
        producer = new_producer(bootstrap, self._config, self._delivered, self._noticed)
        partitions_of(producer, bootstrap, self.topic, ANSWER_WITHIN_S)  # another broker may know it later
        return producer

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        """Called for failures only (delivery.report.only.error)."""
        if error is not None and self._failure is None:
            self._failure = (
                f"Kafka gave up a record of topic '{self.topic}': {error.str()}"
                f" ({error.name()}); {_advice(error.name())}"
            )

    def _noticed(self, error: KafkaError) -> None:
        """Called when brokers come and go, and for what cannot be fixed."""
        self.broker_errors += 1
        self.broker_said = error.str()
        if error.fatal() and self._failure is None:
            self._failure = f"the producer cannot go on: {error.str()} ({error.name()}); start the run again"

    def _refused(self, chunk: Chunk, at: int, error: KafkaError) -> str:
        size = len(chunk.values[at])
        return f"record {chunk.numbers[at]} ({size} bytes): {error.str()}; {_advice(error.name())}"


def new_producer(bootstrap: str, config: Mapping[str, str], on_delivery: Any, on_error: Any) -> Producer:
    confluent_kafka = kafka_library()
    for key in config:
        if key in (*_PROMISED, "bootstrap.servers", "delivery.report.only.error"):
            raise FogscaleError(f"--config {key} cannot be changed: the producer's promises rest on it")
    if config.get("partitioner") == "random":
        raise FogscaleError("--config partitioner=random breaks the order per key: choose another, or none")
    settings = {
        **_USUAL,
        **config,
        **_PROMISED,
        "bootstrap.servers": bootstrap,
        "delivery.report.only.error": True,
        "on_delivery": on_delivery,
        "error_cb": on_error,
    }
    try:
        producer: Producer = confluent_kafka.Producer(settings)
    except (confluent_kafka.KafkaException, ValueError, TypeError) as error:
        raise FogscaleError(_bad_setting(config, error)) from error
    return producer


def partitions_of(client: Any, bootstrap: str, topic: str, within_s: float = 0.0) -> list[int]:
    """The topic's partitions; the first question to a broker, hence the place of clear errors.

    A topic that was just created may not be known everywhere yet: it is asked for again for a while.
    """
    deadline_s = time.monotonic() + within_s
    while topic not in (known := _topics(client, bootstrap)) and time.monotonic() < deadline_s:
        time.sleep(0.1)
    if topic not in known:
        names = [name for name in known if not name.startswith("__")]
        raise FogscaleError(f"{unknown('topic', topic, names)}; produce --create-topic 4 creates it")
    return sorted(known[topic].partitions)


def _topics(client: Any, bootstrap: str) -> Mapping[str, Any]:
    confluent_kafka = kafka_library()
    try:
        topics: Mapping[str, Any] = client.list_topics(timeout=ANSWER_WITHIN_S).topics
    except confluent_kafka.KafkaException as error:
        raise FogscaleError(
            f"no broker answers at {bootstrap} ({error.args[0].str()}): check the address, that the broker"
            " runs, and that its advertised.listeners can be reached from here"
        ) from error
    return topics


def prepare_topics(
    bootstrap: str, topics: Sequence[str], config: Mapping[str, str], create_partitions: int | None
) -> None:
    """Finds out, before anything is sent, whether settings, address and topics are right."""
    producer = new_producer(bootstrap, config, lambda _error, _message: None, lambda _error: None)
    if create_partitions is not None:
        known = _topics(producer, bootstrap)
        for topic in topics:
            if topic not in known:
                _create(bootstrap, topic, create_partitions, config)
    for topic in topics:
        partitions_of(producer, bootstrap, topic, 0.0 if create_partitions is None else ANSWER_WITHIN_S)


def _create(bootstrap: str, topic: str, partitions: int, config: Mapping[str, str]) -> None:
    confluent_kafka = kafka_library()
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    client = AdminClient({"log_level": 0, **config, "bootstrap.servers": bootstrap})
    try:
        client.create_topics([NewTopic(topic, num_partitions=partitions)])[topic].result(ANSWER_WITHIN_S)
    except confluent_kafka.KafkaException as error:
        raise FogscaleError(f"cannot create topic '{topic}': {error.args[0].str()}") from error
    except TimeoutError as error:
        raise FogscaleError(
            f"cannot create topic '{topic}': no answer within {ANSWER_WITHIN_S:.0f} s; try again"
        ) from error


def kafka_library() -> Any:
    try:
        import confluent_kafka
    except ImportError as error:
        raise FogscaleError(
            "confluent-kafka is not installed: pip install 'confluent-kafka>=2.16,<3'"
        ) from error
    return confluent_kafka


def _bad_setting(config: Mapping[str, str], error: Exception) -> str:
    said = error.args[0].str() if hasattr(error.args[0], "str") else str(error)
    given = ", ".join(config) or "none"  # without their values, among which may be passwords
    return f"librdkafka does not take the settings ({said}); given with --config: {given}"


def _advice(name: str) -> str:
    if name in ("MSG_SIZE_TOO_LARGE", "_MSG_SIZE_TOO_LARGE"):
        return "raise the topic's max.message.bytes and --config message.max.bytes=…"
    if name == "_MSG_TIMED_OUT":
        return "the broker was away for too long: raise --config message.timeout.ms=…"
    # _DESTROY: the record was queued just as its partition vanished (librdkafka's toppar_destroy_final).
    if name in ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION", "_DESTROY"):
        return "was the topic deleted? create it and start again"
    return "see the broker's log"
