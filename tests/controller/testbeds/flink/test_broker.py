"""Kafka's side of a run, at a real broker: what is not of the run, and what is wrong."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from controller.testbeds.flink.broker import Offsets, Output, set_group
from controller.testbeds.flink.http import UnreachableError
from fog.services import broker as brokers
from fogscale.errors import FogscaleError
from tests.support.kafka import FogBroker, KafkaMissingError, _free_ports
from workloads.producer.audit import Reading, read

pytestmark = pytest.mark.kafka

PATIENCE_READS = 300


def send(broker, topic, run, numbers):
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in numbers:
        value = b'{"by":"map","run":"%b","number":%d,"dueMs":5}' % (run.encode(), number)
        producer.produce(topic, value, headers=[("fogscale", f"{run}:{number}".encode())])
    assert producer.flush(60) == 0


def access_to(broker):
    return {"bootstrap.servers": broker.bootstrap}


def read_all(output, so_many):
    found = []
    for _ in range(PATIENCE_READS):
        found += output.read(0.1)
        if len(found) >= so_many:
            break
    return found + output.read(0.5)


def test_records_of_another_run_are_none_of_this_one(broker, new_topic):
    """They lie before it, and another program may even write some beside it."""
    topic = new_topic(1)
    send(broker, topic, "before", range(5))
    offsets = Offsets(access_to(broker), topic)
    start = offsets.ends()
    send(broker, topic, "ours", range(3))
    send(broker, topic, "beside", range(4))
    assert sum(offsets.ends().values()) - sum(start.values()) == 7
    offsets.close()
    output = Output(access_to(broker), topic, "ours", start, committed=True)
    assert [(each.number, each.due_ms) for each in read_all(output, 3)] == [(0, 5), (1, 5), (2, 5)]
    output.close()
    reading = read(broker.bootstrap, topic, start=start, reading=Reading(only="ours"))
    assert list(reading.runs["ours"].numbers) == [0, 1, 2]
    assert list(reading.runs) == ["ours"]


def test_a_topic_that_is_not_there_is_told_with_what_to_do(broker):
    with pytest.raises(FogscaleError, match=r"has no topic 'nowhere': create it$"):
        Offsets(access_to(broker), "nowhere")


def test_a_broker_that_does_not_answer_may_come_back():
    (port,) = _free_ports(1)
    with pytest.raises(UnreachableError, match=rf"Kafka at 127.0.0.1:{port} .* see whether it runs$"):
        Offsets({"bootstrap.servers": f"127.0.0.1:{port}", "log_level": 0}, "input")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory, require):
    try:
        with FogBroker(tmp_path_factory.mktemp("guarded"), {"flink": "right"}) as started:
            yield started
    except KafkaMissingError as error:
        require("kafka", False, str(error))


def test_refused_credentials_are_not_taken_for_a_broker_that_is_away(guarded):
    topic = guarded.create_topic("input", 1)
    where = f"127.0.0.1:{guarded.users_port}"
    right, wrong = (brokers.Broker(where, {"flink": word}).access("flink") for word in ("right", "wrong"))
    offsets = Offsets(right, topic)
    assert offsets.partitions == 1
    offsets.close()
    with pytest.raises(FogscaleError, match=r"refuses the testbed's credentials .*: run site.yml") as refused:
        Offsets(wrong, topic)
    assert not isinstance(refused.value, UnreachableError)
    with pytest.raises(FogscaleError, match="does not keep where group 'g' starts"):
        set_group(wrong, "g", topic, {0: 0})
