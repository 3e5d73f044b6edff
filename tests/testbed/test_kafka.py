"""What the fog's Kafka does for users it knows, within their rights, and how it refuses all others."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
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

from fog.services.broker import (
    OURS,
    VERIFIED,
    Broker,
    Right,
    attempt,
    beyond_its_rights,
    binding,
    ensure,
    failure_code,
    lets_in,
    problems,
)
from fogscale.errors import FogscaleError
from tests.support.fog import Fog
from tests.support.services import broker, eventually, inside

pytestmark = pytest.mark.testbed


@pytest.fixture
def kafka(fog: Fog) -> Broker:
    return broker(fog)


@pytest.fixture
def topic(fog: Fog, kafka: Broker) -> Iterator[str]:
    """A topic of the administrator's, of whom no right was given to anybody."""
    with made(fog, kafka, f"test-{uuid.uuid4().hex[:8]}") as name:
        yield name


@contextmanager
def made(fog: Fog, kafka: Broker, name: str) -> Iterator[str]:
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
    consumer = Consumer({**access, "group.id": f"{OURS}test", "enable.auto.commit": False, **settings})
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


def test_flink_can_write_exactly_once_where_it_may(fog: Fog, kafka: Broker) -> None:
    def work(topic: str) -> list[bytes | None]:
        producer = Producer({**kafka.access("flink"), "transactional.id": topic})
        producer.init_transactions(20)
        for outcome, value in (("abort", b"never"), ("commit", b"once")):
            producer.begin_transaction()
            producer.produce(topic, value, partition=0)
            assert producer.flush(20) == 0
            getattr(producer, f"{outcome}_transaction")(20)
        levels = ("read_committed", "read_uncommitted")
        return [read(kafka.access("flink"), topic, 0, **{"isolation.level": level}) for level in levels]

    with made(fog, kafka, f"{VERIFIED}{uuid.uuid4().hex[:8]}") as topic:
        assert inside(fog, lambda: work(topic)) == [b"once", b"never"]


def test_flink_is_refused_topics_groups_and_transactions_of_others(
    fog: Fog, kafka: Broker, topic: str
) -> None:
    assert inside(fog, lambda: beyond_its_rights(kafka, "flink", topic)) == []


@pytest.mark.parametrize("pattern", ["LITERAL", "PREFIXED"])
def test_rights_beyond_those_are_found_by_verify_and_taken_away_by_the_next_run(
    fog: Fog, kafka: Broker, pattern: str
) -> None:
    """As an earlier version gave them: all topics, groups and transactional ids."""
    name = "*" if pattern == "LITERAL" else "verify-"
    kinds = {"TOPIC": "WRITE", "GROUP": "READ", "TRANSACTIONAL_ID": "WRITE"}
    wide = [Right("flink", kind, name, action, pattern) for kind, action in kinds.items()]

    def work() -> tuple[list[str], list[str], list[str]]:
        admin = AdminClient(kafka.access("admin"))
        for answer in admin.create_acls([binding(right) for right in wide]).values():
            answer.result(10)
        found = problems(kafka, ["input", "output"], 8)
        return found, ensure(kafka, ["input", "output"], 8), problems(kafka, ["input", "output"], 8)

    found, taken, left = inside(fog, work)
    assert found == [
        f"Kafka lets Flink use a {thing} that is not its own: run site.yml again"
        for thing in ("topic", "group", "transactional id")
    ]
    assert sorted(taken) == sorted(f"no {right}" for right in wide)
    assert left == []


def test_every_topic_has_a_partition_for_every_instance(fog: Fog, kafka: Broker) -> None:
    topics = inside(fog, lambda: AdminClient(kafka.access("admin")).list_topics(timeout=10).topics)
    assert {"input", "output"} <= set(topics)
    for name in ("input", "output"):
        assert len(topics[name].partitions) >= max(8, fog.manifest.fog_nodes)


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"sasl.password": "wrong"}, id="wrong password"),
        pytest.param({"sasl.username": "nobody"}, id="unknown user"),
        pytest.param({"sasl.mechanism": "PLAIN"}, id="password in the clear"),
        pytest.param({"sasl.mechanism": "SCRAM-SHA-256"}, id="weaker hash"),
    ],
)
def test_clients_with_wrong_credentials_are_refused(fog: Fog, kafka: Broker, changed: dict[str, str]) -> None:
    told: list[KafkaError] = []

    def work() -> tuple[bool, bool]:
        right = kafka.access("flink")
        wrong = AdminClient({**right, **changed, "error_cb": told.append})
        return lets_in(AdminClient(right), 10), lets_in(wrong, 3)

    assert inside(fog, work) == (True, False)
    assert KafkaError._AUTHENTICATION in {error.code() for error in told}


def test_a_client_without_a_name_is_refused(fog: Fog, kafka: Broker) -> None:
    access = {"bootstrap.servers": kafka.bootstrap, "log_level": 0}
    answers = inside(fog, lambda: [attempt(kafka, each) for each in (access, kafka.access("flink"))])
    assert answers == ["refused", "accepted"]


@pytest.mark.parametrize("user", ["producer", "flink"])
def test_users_may_do_only_their_own_work(fog: Fog, kafka: Broker, topic: str, user: str) -> None:
    """Not on others' topics, and nothing of the administrator's."""

    def work() -> list[int | None]:
        client = AdminClient(kafka.access(user))
        new = f"{topic}-{user}"
        return [
            failure_code(lambda: sent(kafka.access(user), topic, b"hello")),
            failure_code(lambda: client.create_topics([NewTopic(new, 1, 1)])[new].result(10)),
            failure_code(lambda: client.delete_topics(["input"])["input"].result(10)),
        ]

    assert inside(fog, work) == [KafkaError.TOPIC_AUTHORIZATION_FAILED] * 3


def test_what_differs_is_made_and_what_is_there_is_left_alone(fog: Fog, kafka: Broker, topic: str) -> None:
    """A topic grows, a user's password changes; each is told once. Rights follow the topics."""
    one = Broker(kafka.bootstrap, {"admin": kafka.passwords["admin"], "guest": "first"})
    two = Broker(kafka.bootstrap, {**one.passwords, "guest": "second"})

    def work() -> None:
        usual = ["input", "output"]
        rights = [
            f"right of {user} to {action} TOPIC {topic}"
            for user in ("flink", "producer")
            for action in ("READ", "WRITE")
        ]
        assert ensure(one, [*usual, topic], 1) == ["user guest", *rights]
        assert ensure(one, [*usual, topic], 3) == [f"topic {topic}"]
        assert ensure(two, [*usual, topic], 3) == ["user guest"]
        assert ensure(two, [*usual, topic], 2) == []  # partitions cannot be taken away
        assert sorted(ensure(two, usual, 2)) == sorted(f"no {right}" for right in rights)
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
