"""Ad events read back as the thesis' job would, which finds the fraud by its three patterns."""

import json
import re
from collections import Counter, defaultdict

import numpy as np
import pytest

from workloads.records.click import BURST_RECORDS
from workloads.records.registry import create

START_MS = 1_595_431_611_000  # the stamp of the thesis' example
RECORDS = 60_000
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def events(records=RECORDS, seed=1, **parameters):
    batch = create("click", **parameters).batch(seed, 0, START_MS + np.arange(records, dtype=np.int64))
    read = [json.loads(value) for value in batch.values]
    assert [event["userID"].encode() for event in read] == batch.keys
    return read


@pytest.fixture(scope="module")
def mixed():
    return events()


@pytest.fixture(scope="module")
def honest():
    return events(fraud_ratio=0)


def by(items, key, value):
    groups = defaultdict(set)
    for event in items:
        groups[event[key]].add(event[value])
    return groups


def test_fields_are_those_of_the_thesis(mixed):
    for i, event in enumerate(mixed[:2000]):
        assert list(event) == ["ip", "userID", "timestamp", "eventType"]
        assert UUID.fullmatch(event["userID"])
        parts = [int(part) for part in event["ip"].split(".")]
        assert len(parts) == 4
        assert 1 <= parts[0] < 224
        assert max(parts) <= 255
        assert event["timestamp"] == (START_MS + i) // 1000
        assert event["eventType"] in ("display", "click")


def test_users_are_hot_by_zipf(honest):
    counts = [count for _, count in Counter(event["userID"] for event in honest).most_common(200)]
    weights = 1 / np.arange(1, 20_001) ** 0.8
    expected = RECORDS * weights / weights.sum()
    assert sum(counts[:10]) == pytest.approx(expected[:10].sum(), rel=0.05)
    assert sum(counts[:200]) == pytest.approx(expected[:200].sum(), rel=0.05)


def test_honest_users_have_one_address_and_click_on_one_ad_in_twenty(honest):
    assert max(len(ips) for ips in by(honest, "userID", "ip").values()) == 1
    assert max(len(users) for users in by(honest, "ip", "userID").values()) <= 2
    clicks = sum(event["eventType"] == "click" for event in honest)
    assert clicks / RECORDS == pytest.approx(0.05, abs=5 * np.sqrt(0.05 * 0.95 / RECORDS))


def test_fraud_is_the_share_that_was_asked_for(mixed, honest):
    changed = sum(a["userID"] != b["userID"] for a, b in zip(mixed, honest, strict=True))
    assert changed / RECORDS == pytest.approx(0.02, abs=0.003)


def test_each_burst_shows_in_one_pattern():
    """With much fraud, each burst stands out in exactly one of the thesis' patterns."""
    found = Counter()
    everything = events(fraud_ratio=1.0)
    for start in range(0, RECORDS, BURST_RECORDS):
        burst = everything[start : start + BURST_RECORDS]
        users, addresses = len({e["userID"] for e in burst}), len({e["ip"] for e in burst})
        clicks = sum(e["eventType"] == "click" for e in burst) / len(burst)
        assert clicks == pytest.approx(0.9, abs=0.05)
        found["many users" if users > 100 else "many addresses" if addresses > 100 else "many clicks"] += 1
        assert min(users, addresses) == 1
    assert sum(found.values()) == 30
    assert min(found.values()) >= 3
    assert len(found) == 3


def test_the_job_finds_fraudsters_among_honest_users(mixed, honest):
    per_ip, per_user = by(mixed, "ip", "userID"), by(mixed, "userID", "ip")
    assert max(map(len, per_ip.values())) > 20
    assert max(map(len, per_user.values())) > 20
    suspicious = {ip for ip, users in per_ip.items() if len(users) > 5}
    assert not suspicious & {event["ip"] for event in honest}
