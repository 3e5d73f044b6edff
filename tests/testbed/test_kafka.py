"""What the fog's Kafka does for those it knows, and for strangers."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from fog.services.broker import Broker, ensure, knock, lets_in, problems
from fogscale.errors import FogscaleError
from tests.support.fog import Fog
from tests.support.services import broker, eventually, inside

pytestmark = pytest.mark.testbed


@pytest.fixture
def kafka(fog: Fog) -> Broker:
    return broker(fog)


@pytest.fixture
def topic(fog: Fog, kafka: Broker) -> Iterator[str]:
    """A topic of the administrator's."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    admin = inside(fog, lambda: AdminClient(kafka.access("admin")))
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(10)
    yield name
    admin.delete_topics([name])[name].result(10)


def sent(access: dict[str, Any], topic: str, value: bytes) -> Message:
    """The broker's receipt for a record in partition 0."""
    receipts: list[tuple[KafkaError | None, Message]] = []
    producer = Producer({**access, "message.timeout.ms": 10_000})
    producer.produce(topic, value, partition=0, on_delivery=lambda *receipt: receipts.append(receipt))
    producer.flush(12)
    ((error, message),) = receipts
    if error is not None:
        raise KafkaException(error)
    return message


def read(access: dict[str, Any], topic: str, offset: int, **settings: Any) -> bytes | None:
    consumer = Consumer({**access, "group.id": f"test-{topic}", "enable.auto.commit": False, **settings})
    try:
        consumer.assign([TopicPartition(topic, 0, offset)])
        message = consumer.poll(15)
        return None if message is None or message.error() else message.value()
    finally:
        consumer.close()


def test_a_record_of_the_producer_reaches_flink(fog: Fog, kafka: Broker) -> None:
    said = uuid.uuid4().bytes

    def work() -> bytes | None:
        offset = sent(kafka.access("producer"), "input", said).offset()
        assert offset is not None
        return read(kafka.access("flink"), "input", offset)

    assert inside(fog, work) == said


def test_flink_can_write_exactly_once(fog: Fog, kafka: Broker, topic: str) -> None:
    def work() -> list[bytes | None]:
        producer = Producer({**kafka.access("flink"), "transactional.id": topic})
        producer.init_transactions(20)
        for outcome, value in (("abort", b"never"), ("commit", b"once")):
            producer.begin_transaction()
            producer.produce(topic, value, partition=0)
            assert producer.flush(20) == 0
            getattr(producer, f"{outcome}_transaction")(20)
        levels = ("read_committed", "read_uncommitted")
        return [read(kafka.access("flink"), topic, 0, **{"isolation.level": level}) for level in levels]

    assert inside(fog, work) == [b"once", b"never"]


def test_every_topic_has_a_partition_for_every_instance(fog: Fog, kafka: Broker) -> None:
    topics = inside(fog, lambda: AdminClient(kafka.access("admin")).list_topics(timeout=10).topics)
    assert {"input", "output"} <= set(topics)
    for name in ("input", "output"):
        assert len(topics[name].partitions) >= max(8, fog.manifest.fog_nodes)


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"sasl.password": "wrong"}, id="wrong password"),
        pytest.param({"sasl.username": "stranger"}, id="unknown user"),
        pytest.param({"sasl.mechanism": "PLAIN"}, id="password in the clear"),
        pytest.param({"sasl.mechanism": "SCRAM-SHA-256"}, id="weaker hash"),
    ],
)
def test_strangers_are_refused(fog: Fog, kafka: Broker, changed: dict[str, str]) -> None:
    told: list[KafkaError] = []

    def work() -> tuple[bool, bool]:
        right = kafka.access("flink")
        stranger = AdminClient({**right, **changed, "error_cb": told.append})
        return lets_in(AdminClient(right), 10), lets_in(stranger, 3)

    assert inside(fog, work) == (True, False)
    assert KafkaError._AUTHENTICATION in {error.code() for error in told}


def test_nobody_is_let_in_without_a_name(fog: Fog, kafka: Broker) -> None:
    access = {"bootstrap.servers": kafka.bootstrap, "log_level": 0}
    answers = inside(fog, lambda: [knock(kafka, each) for each in (access, kafka.access("flink"))])
    assert answers == ["turned away", "let in"]


@pytest.mark.parametrize("user", ["producer", "flink"])
def test_users_may_do_only_their_own_work(fog: Fog, kafka: Broker, topic: str, user: str) -> None:
    """Not on others' topics (producer), and nothing of the administrator's."""

    def failure(work: Any) -> int | None:
        try:
            work()
        except KafkaException as error:
            code: int = error.args[0].code()
            return code
        return None

    def work() -> list[int | None]:
        client = AdminClient(kafka.access(user))
        new = f"{topic}-{user}"
        return [
            failure(lambda: sent(kafka.access(user), topic, b"hello")),
            failure(lambda: client.create_topics([NewTopic(new, 1, 1)])[new].result(10)),
            failure(lambda: client.delete_topics(["input"])["input"].result(10)),
        ]

    refused = KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert inside(fog, work) == [None if user == "flink" else refused, refused, refused]


def test_what_differs_is_made_and_what_is_there_is_left_alone(fog: Fog, kafka: Broker, topic: str) -> None:
    """A topic grows, a user's password changes; each is told once."""
    one = Broker(kafka.bootstrap, {"admin": kafka.passwords["admin"], "guest": "first"})
    two = Broker(kafka.bootstrap, {**one.passwords, "guest": "second"})

    def work() -> None:
        rights = [f"right of User:producer to {action} {topic}" for action in ("READ", "WRITE")]
        assert ensure(one, [topic], 1) == ["user guest", *rights]
        assert ensure(one, [topic], 3) == [f"topic {topic}"]
        assert ensure(two, [topic], 3) == ["user guest"]
        assert ensure(two, [topic], 2) == []  # partitions cannot be taken away
        assert lets_in(AdminClient(two.access("guest")), 10)
        assert not lets_in(AdminClient(one.access("guest")), 3)
        assert problems(kafka, [topic], 3) == []
        assert problems(kafka, [topic], 4) == [
            f"topic {topic} does not have 4 partitions: run site.yml again"
        ]

    inside(fog, work)


def test_an_administrator_of_another_testbed_is_told_so_at_once(fog: Fog, kafka: Broker) -> None:
    other = Broker(kafka.bootstrap, {"admin": "of-another-testbed"})
    with pytest.raises(FogscaleError, match="its data is of another testbed"):
        inside(fog, lambda: ensure(other, ["input"], 8, patience_s=30))


def test_records_and_users_outlive_a_crash(fog: Fog, kafka: Broker) -> None:
    said = uuid.uuid4().bytes
    offset = inside(fog, lambda: sent(kafka.access("producer"), "output", said).offset())
    assert offset is not None
    before = fog.ask("services1", "systemctl show --value -p MainPID kafka")
    fog.ask("services1", "systemctl kill --signal=KILL kafka")
    eventually(lambda: fog.ask("services1", "systemctl show --value -p MainPID kafka") not in ("0\n", before))
    eventually(lambda: inside(fog, lambda: lets_in(AdminClient(kafka.access("flink")), 2)))
    assert inside(fog, lambda: read(kafka.access("flink"), "output", offset)) == said
