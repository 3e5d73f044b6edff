"""What reaches a real broker is what the task says; what goes wrong is one clear line."""

import time

import numpy as np
import pytest

from fogscale.errors import FogscaleError
from tests.support.records import Counted
from workloads.producer import header
from workloads.producer.audit import read as read_topic
from workloads.producer.chunks import Task, chunks
from workloads.producer.schedule import Schedule
from workloads.producer.sender import Sender, _create, prepare_topics

pytestmark = pytest.mark.kafka


def send(broker, topic, task, **config):
    sender = Sender(broker.bootstrap, topic, config)
    for chunk in chunks(task, zero_ms=1_700_000_000_000):
        at = 0
        while at < len(chunk):
            at = sender.offer(chunk, at, len(chunk))
            sender.poll(0.01)
    while sender.waiting():
        sender.poll(0.1)
    return sender


def task_of(count, **settings):
    return Task("t", Schedule(np.array([count]), copies=2), Counted(**settings), seed=3, run="r")


def test_messages_hold_key_value_due_time_and_number(broker, topic):
    send(broker, topic, task_of(50))
    found = sorted(broker.messages(topic), key=lambda message: header.read(message.headers())[1])
    assert [header.read(message.headers()) for message in found] == [("r", number) for number in range(100)]
    assert [message.key() for message in found[:4]] == [b"k0", b"k0", b"k1", b"k1"]
    assert found[3].value() == b"3,1,30"  # record 1 of 50 in a second is due after 30 ms
    assert found[3].timestamp()[1] == 1_700_000_000_030
    places = {}
    for message in found:
        places.setdefault(message.key(), set()).add(message.partition())
    assert all(len(partitions) == 1 for partitions in places.values())
    assert len(set.union(*places.values())) > 1


def test_more_than_there_is_room_for_waits(broker, topic):
    sender = send(broker, topic, task_of(2000), **{"queue.buffering.max.messages": "100"})
    assert sender.waiting() == 0
    numbers = [header.read(message.headers())[1] for message in broker.messages(topic)]
    assert sorted(numbers) == list(range(4000))


def test_a_record_too_large_for_the_client_is_named(broker, topic):
    with pytest.raises(FogscaleError, match=r"record 0 \(2000\d+ bytes\).*message\.max\.bytes"):
        send(broker, topic, task_of(1, padding=2_000_000))


def test_a_record_too_large_for_the_topic_is_explained(broker, new_topic):
    small = new_topic(max_message_bytes="1000")
    with pytest.raises(FogscaleError, match=r"too large.*max\.message\.bytes"):
        send(broker, small, task_of(1, padding=5000), **{"compression.type": "none"})


def test_a_missing_topic_is_explained_and_can_be_created(broker, topic):
    with pytest.raises(FogscaleError, match=f"unknown topic '{topic}x': did you mean .*--create-topic"):
        Sender(broker.bootstrap, f"{topic}x", {})
    prepare_topics(broker.bootstrap, [f"{topic}x"], {}, create_partitions=3)
    prepare_topics(broker.bootstrap, [f"{topic}x"], {}, create_partitions=3)  # is there already
    assert send(broker, f"{topic}x", task_of(1)).waiting() == 0


def test_a_topic_deleted_on_the_way_ends_the_run(broker, topic):
    from confluent_kafka.admin import AdminClient

    sender = Sender(broker.bootstrap, topic, {"topic.metadata.propagation.max.ms": "100"})
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.delete_topics([topic])[topic].result(10)
    chunk = next(chunks(task_of(5), 0.0))

    def go_on():
        deadline_s = time.monotonic() + 60
        while time.monotonic() < deadline_s:
            sender.offer(chunk, 0, 1)
            sender.poll(0.1)

    with pytest.raises(FogscaleError, match=r"was the topic deleted"):
        go_on()


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        ("_UNKNOWN_PARTITION", r"\(_UNKNOWN_PARTITION\); was the topic deleted"),
        ("_DESTROY", r"\(_DESTROY\); was the topic deleted"),  # one deletion in a hundred ends like this
        ("_MSG_TIMED_OUT", r"message\.timeout\.ms"),
        ("TOPIC_AUTHORIZATION_FAILED", "see the broker's log"),
    ],
)
def test_a_record_given_up_ends_the_run_with_advice(broker, topic, code, advice):
    from confluent_kafka import KafkaError

    sender = Sender(broker.bootstrap, topic, {})
    sender._delivered(KafkaError(getattr(KafkaError, code)), None)
    with pytest.raises(FogscaleError, match=advice):
        sender.poll(0)


@pytest.mark.parametrize(
    ("config", "complaint"),
    [
        ({"linger": "5"}, r'No such configuration property: "linger".*given with --config: linger$'),
        ({"linger": "5", "sasl.password": "geheim"}, r"given with --config: linger, sasl\.password$"),
        ({"linger.ms": "soon"}, r"linger\.ms"),
        ({"acks": "1"}, "--config acks cannot be changed"),
        ({"enable.idempotence": "false"}, "--config enable.idempotence cannot be changed"),
        ({"partitioner": "random"}, "breaks the order per key"),
    ],
)
def test_wrong_settings_are_named(config, complaint):
    with pytest.raises(FogscaleError, match=complaint) as error:
        Sender("127.0.0.1:1", "t", config)
    assert "geheim" not in str(error.value)


def test_a_topic_that_takes_too_long_to_create_is_named():
    with pytest.raises(FogscaleError, match=r"cannot create topic 't': no answer within 6 s"):
        _create("127.0.0.1:1", "t", 4, {})


def test_settings_of_the_connection_reach_readers_and_administrators(broker, topic):
    """A client that may only use another family of addresses finds no broker at 127.0.0.1."""
    elsewhere = {"broker.address.family": "v6", "linger.ms": "5"}
    with pytest.raises(FogscaleError, match=r"no broker answers|cannot read topic"):
        read_topic(broker.bootstrap, topic, config=elsewhere)
    with pytest.raises(FogscaleError, match="cannot create topic"):
        _create(broker.bootstrap, f"{topic}y", 4, elsewhere)
    assert not read_topic(broker.bootstrap, topic, config=elsewhere | {"broker.address.family": "v4"}).runs


def test_a_broker_that_is_not_there_is_named():
    with pytest.raises(FogscaleError, match=r"no broker answers at 127\.0\.0\.1:1 .*advertised\.listeners"):
        Sender("127.0.0.1:1", "t", {})
