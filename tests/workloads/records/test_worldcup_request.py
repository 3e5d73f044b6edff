"""World Cup requests read back: shares as measured in real records, objects that stay what they are."""

import gzip
import json
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest

from workloads.records.registry import create

START_MS = 893_971_817_500
RECORDS = 50_000
REAL = Path(__file__).parents[4] / "shared" / "data" / "worldcup98" / "binary_1000_records.gz"


@pytest.fixture(scope="module")
def requests():
    batch = create("worldcup_request").batch(1, 0, START_MS + np.arange(RECORDS, dtype=np.int64))
    read = [json.loads(value) for value in batch.values]
    assert [str(request["clientID"]).encode() for request in read] == batch.keys
    return read


def share(requests, field, value):
    return sum(request[field] == value for request in requests) / RECORDS


def test_fields_are_those_of_the_log_decoded(requests):
    assert list(requests[0]) == [
        "timestamp", "clientID", "objectID", "type", "size", "method", "status", "version", "region", "server"
    ]  # fmt: skip
    assert [request["timestamp"] for request in requests] == [(START_MS + i) // 1000 for i in range(RECORDS)]


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("status", 200, 0.844), ("status", 304, 0.152), ("status", 206, 0.004), ("version", "HTTP/1.1", 0.1),
        ("method", "GET", 0.998), ("objectID", 1, 0.102),
    ],
)  # fmt: skip
def test_shares(requests, field, value, expected):
    assert share(requests, field, value) == pytest.approx(expected, abs=5 * np.sqrt(expected / RECORDS))


def test_the_shares_are_those_of_real_records(require, requests):
    require("shared-data", REAL.exists(), f"{REAL.name} is not here, and the project ships no trace files")
    fields = [
        ("time", ">u4"),
        ("client", ">u4"),
        ("object", ">u4"),
        ("size", ">u4"),
        *((n, "u1") for n in "msty"),
    ]
    real = np.frombuffer(gzip.decompress(REAL.read_bytes()), dtype=fields)
    assert share(requests, "status", 200) == pytest.approx(np.mean((real["s"] & 63) == 2), abs=0.01)
    assert share(requests, "status", 304) == pytest.approx(np.mean((real["s"] & 63) == 13), abs=0.01)
    top = Counter(real["object"].tolist()).most_common(1)[0][1] / len(real)
    assert share(requests, "objectID", 1) == pytest.approx(top, abs=0.03)


def test_sizes_follow_objects_and_are_missing_only_from_unchanged_ones(requests):
    sizes, kinds = defaultdict(set), defaultdict(set)
    for request in requests:
        kinds[request["objectID"]].add(request["type"])
        if request["status"] == 304:
            assert request["size"] in (0, None)
        else:
            sizes[request["objectID"]].add(request["size"])
    assert all(len(each) == 1 for each in (*sizes.values(), *kinds.values()))
    logs = np.log([next(iter(each)) for each in sizes.values()])
    assert (logs.mean(), logs.std()) == pytest.approx((7.46, 1.68), rel=0.05)
    none = sum(request["size"] is None for request in requests)
    assert none / sum(request["status"] == 304 for request in requests) == pytest.approx(1 / 6, abs=0.03)


def test_most_objects_are_images(requests):
    kinds = Counter({request["objectID"]: request["type"] for request in requests}.values())
    assert kinds["IMAGE"] / kinds.total() == pytest.approx(0.863, abs=0.03)
    assert kinds.keys() == {"IMAGE", "HTML", "DIRECTORY", "JAVA", "DYNAMIC"}


def test_a_client_is_served_from_one_place(requests):
    places = defaultdict(set)
    for request in requests:
        places[request["clientID"]].add(request["region"])
    assert all(len(regions) == 1 for regions in places.values())
    counts = Counter(next(iter(regions)) for regions in places.values())
    assert [
        counts[name] / len(places) for name in ("Santa Clara", "Plano", "Herndon", "Paris")
    ] == pytest.approx([0.2, 0.35, 0.15, 0.3], abs=0.02)
    assert {request["server"] for request in requests} == set(range(8))
