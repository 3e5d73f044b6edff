"""Requests to the World Cup 98 web site in JSON: the fields of the binary logs, decoded.

Measured in 1000 real records: 84.4 % status 200, 15.2 % 304 (sizes 0, or none for one in six), 0.4 % 206;
86.3 % images, 11.2 % HTML; 10 % HTTP/1.1; the most wanted object takes 10 % of all requests, as under
Zipf's law with 10,000 objects; sizes lognormal. Assumed: how many clients there are and how busy, and where
they are served. Event time is `timestamp`, in seconds (GMT); the key is the client.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from workloads.records.draws import Weighted, bytes_array, uniform, zipf
from workloads.records.format import IntArray
from workloads.records.keyed import Indices, KeyedRecords, Keys

TEMPLATE = (
    b'{"timestamp":%d,"clientID":%b,%b,"size":%b,"method":"%b","status":%b,'
    b'"version":"%b","region":"%b","server":%d}'
)
CLIENTS, CLIENT_EXPONENT = 50_000, 0.7
OBJECTS, OBJECT_EXPONENT = 10_000, 1.0
SIZE_LOG_MEAN, SIZE_LOG_DEVIATION = 7.46, 1.68
STATUSES = bytes_array((b"200", b"304", b"206"))
STATUS_SHARES, NOT_MODIFIED = Weighted((0.844, 0.152, 0.004)), 1
NO_SIZE_RATIO = 1 / 6  # of answers 304; the others say 0
VERSIONS = bytes_array((b"HTTP/1.0", b"HTTP/1.1"))
VERSION_SHARES = Weighted((0.9, 0.1))
METHODS = bytes_array((b"GET", b"HEAD", b"POST"))
METHOD_SHARES = Weighted((0.998, 0.0015, 0.0005))
TYPES = ("IMAGE", "HTML", "DIRECTORY", "JAVA", "DYNAMIC")
TYPE_SHARES = Weighted((0.863, 0.112, 0.012, 0.011, 0.002))
REGIONS = bytes_array((b"Santa Clara", b"Plano", b"Herndon", b"Paris"))
REGION_SHARES = Weighted((0.2, 0.35, 0.15, 0.3))
SERVERS = 8  # of a region
# Streams of random values, one per property.
CLIENT, OBJECT, STATUS, EMPTY, VERSION, METHOD, SERVER, REGION = range(8)


@dataclass(frozen=True, slots=True)
class WorldCupRequest(KeyedRecords):
    """World Cup 98 web requests in JSON, the binary log's fields decoded, keyed by client."""

    name = "worldcup_request"

    def all_keys(self, seed: int) -> Keys:
        return _clients()

    def choose_keys(self, seed: int, numbers: IntArray) -> Indices:
        return _popularity(CLIENTS, CLIENT_EXPONENT).choose(uniform(seed, CLIENT, numbers))

    def render(self, seed: int, numbers: IntArray, event_times_ms: IntArray, chosen: Indices) -> list[bytes]:
        wanted = _popularity(OBJECTS, OBJECT_EXPONENT).choose(uniform(seed, OBJECT, numbers))
        status = STATUS_SHARES.choose(uniform(seed, STATUS, numbers))
        objects, sizes = _objects(seed)
        size = sizes[wanted]
        unchanged = status == NOT_MODIFIED
        size[unchanged] = b"0"
        size[unchanged & (uniform(seed, EMPTY, numbers) < NO_SIZE_RATIO)] = b"null"
        # A client is always served from the same place.
        region = REGION_SHARES.choose(uniform(seed, REGION, chosen.astype(np.int64)))
        columns = (
            event_times_ms // 1000,
            _clients().keys[chosen],
            objects[wanted],
            size,
            METHODS[METHOD_SHARES.choose(uniform(seed, METHOD, numbers))],
            STATUSES[status],
            VERSIONS[VERSION_SHARES.choose(uniform(seed, VERSION, numbers))],
            REGIONS[region],
            (uniform(seed, SERVER, numbers) * SERVERS).astype(np.int64),
        )
        return [TEMPLATE % row for row in zip(*(column.tolist() for column in columns), strict=True)]


@lru_cache(maxsize=2)
def _popularity(size: int, exponent: float) -> Weighted:
    return zipf(size, exponent)


@lru_cache(maxsize=1)
def _clients() -> Keys:
    return Keys([b"%d" % client for client in range(1, CLIENTS + 1)])


@lru_cache(maxsize=4)
def _objects(seed: int) -> tuple[npt.NDArray[np.object_], npt.NDArray[np.object_]]:
    """Id and type of each object, and its size: the same whenever it is asked for."""
    rng = np.random.default_rng([seed, 3])
    kinds = TYPE_SHARES.choose(rng.random(OBJECTS))
    named = [b'"objectID":%d,"type":"%b"' % (i + 1, TYPES[kind].encode()) for i, kind in enumerate(kinds)]
    sizes = np.exp(rng.normal(SIZE_LOG_MEAN, SIZE_LOG_DEVIATION, OBJECTS)).astype(np.int64) + 1
    return bytes_array(named), bytes_array([b"%d" % size for size in sizes])
