"""Rights of Kafka's users, and that passwords do not leak into messages."""

from __future__ import annotations

from controller.testbeds.flink.program import group_of
from fog.services.broker import OURS, Broker, rights
from fog.services.objects import Key, policy


def test_the_producer_may_touch_the_topics_of_experiments_only() -> None:
    mine = [right[1:4] for right in rights(["rides", "results"]) if right.user == "producer"]
    assert mine == [
        ("TOPIC", "rides", "READ"),
        ("TOPIC", "rides", "WRITE"),
        ("TOPIC", "results", "READ"),
        ("TOPIC", "results", "WRITE"),
    ]


def test_flink_may_touch_its_own_topics_groups_and_transactions_only() -> None:
    mine = [right[1:] for right in rights(["rides"]) if right.user == "flink"]
    assert mine == [
        ("TOPIC", "rides", "READ", "LITERAL"),
        ("TOPIC", "rides", "WRITE", "LITERAL"),
        ("TOPIC", "fogscale-verify-", "READ", "PREFIXED"),
        ("TOPIC", "fogscale-verify-", "WRITE", "PREFIXED"),
        ("GROUP", "fogscale-", "READ", "PREFIXED"),
        ("TRANSACTIONAL_ID", "fogscale-", "WRITE", "PREFIXED"),
    ]
    assert group_of("any-run").startswith(OURS)  # also how the ids of a run's transactions begin


def test_nobody_but_the_administrator_may_create_delete_or_alter() -> None:
    assert {right[3] for right in rights(["rides"])} == {"READ", "WRITE"}
    assert {right[0] for right in rights(["rides"])} == {"flink", "producer"}


def test_a_password_is_not_in_what_is_printed() -> None:
    assert "hunter2" not in repr(Broker("localhost:9092", {"admin": "hunter2"}))
    assert "hunter2" not in repr(Key("flink", "hunter2"))


def test_flinks_policy_names_one_bucket_only() -> None:
    statements = policy("state")["Statement"]
    assert [part["Resource"] for part in statements] == [["arn:aws:s3:::state"], ["arn:aws:s3:::state/*"]]
    assert all(part["Effect"] == "Allow" and "s3:*" not in part["Action"] for part in statements)


def test_with_an_authority_every_user_comes_by_tls_and_trusts_no_other() -> None:
    broker = Broker("localhost:9092", {"flink": "hunter2"}, ca="/srv/ca.crt")
    assert broker.access("flink")["security.protocol"] == "SASL_SSL"
    assert broker.access("flink")["ssl.ca.location"] == "/srv/ca.crt"
    assert broker.transport() == {"security.protocol": "SSL", "ssl.ca.location": "/srv/ca.crt"}
    assert "ssl.ca.location" not in Broker("localhost:9092", {"flink": "hunter2"}).access("flink")
