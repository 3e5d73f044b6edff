"""Ad events in JSON, as the click fraud detection of the thesis reads them (§5.1).

Exactly the four fields of the thesis; `timestamp` is event time in seconds, and the key is the user. Honest
users are Zipf-hot, sit behind one address each (some share one) and click on one ad in twenty; all this is
assumed. A share of all events is fraud, in bursts, one fraudster at a time, each of a kind that one of the
three patterns of §5.1 finds: many users behind one address, one user behind many addresses, one user who
clicks on nearly all ads.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from uuid import UUID

import numpy as np
import numpy.typing as npt

from fogscale.errors import FogscaleError
from workloads.records.draws import Weighted, bytes_array, uniform, zipf
from workloads.records.format import IntArray
from workloads.records.keyed import Indices, KeyedRecords, Keys

TEMPLATE = b'{"ip":"%b","userID":"%b","timestamp":%d,"eventType":"%b"}'
USERS, FALSE_USERS = 20_000, 1_000  # honest ones; those that fraudsters make up
ADDRESSES, FALSE_ADDRESSES = 15_000, 1_000
USER_EXPONENT = 0.8
HONEST_CLICKS_RATIO, FRAUD_CLICKS_RATIO = 0.05, 0.9
BURST_RECORDS = 2_000  # of all, among which one fraudster is busy
MANY_USERS, MANY_ADDRESSES, MANY_CLICKS = range(3)  # kinds of fraud, in the order of the thesis' patterns
EVENT_TYPES = bytes_array((b"display", b"click"))
# Streams of random values, one per property; fraudsters' are drawn per burst.
USER, IS_FRAUD, FALSE_USER, FALSE_ADDRESS, CLICKS, BURST_KIND, BURST_USER, BURST_ADDRESS = range(8)


@dataclass(frozen=True, slots=True)
class Click(KeyedRecords):
    """Ad events in JSON as in the thesis, some of them fraud, keyed by user."""

    name = "click"
    fraud_ratio: float = 0.02  # of all events

    def __post_init__(self) -> None:
        if not 0 <= self.fraud_ratio <= 1:
            raise FogscaleError(f"records click: fraud_ratio must be within 0 and 1, not {self.fraud_ratio}")

    def all_keys(self, seed: int) -> Keys:
        return _users(seed)

    def choose_keys(self, seed: int, numbers: IntArray) -> Indices:
        honest = _popularity().choose(uniform(seed, USER, numbers))
        burst = numbers // BURST_RECORDS
        one = uniform(seed, BURST_USER, burst)
        many = uniform(seed, FALSE_USER, numbers)
        false = np.where(self._kinds(seed, numbers) == MANY_USERS, many, one) * FALSE_USERS
        return np.where(self._is_fraud(seed, numbers), USERS + false.astype(np.intp), honest)

    def render(self, seed: int, numbers: IntArray, event_times_ms: IntArray, chosen: Indices) -> list[bytes]:
        fraud = self._is_fraud(seed, numbers)
        burst = numbers // BURST_RECORDS
        one = uniform(seed, BURST_ADDRESS, burst)
        many = uniform(seed, FALSE_ADDRESS, numbers)
        false = np.where(self._kinds(seed, numbers) == MANY_ADDRESSES, many, one) * FALSE_ADDRESSES
        address = np.where(fraud, ADDRESSES + false.astype(np.intp), chosen % ADDRESSES)
        clicks = uniform(seed, CLICKS, numbers) < np.where(fraud, FRAUD_CLICKS_RATIO, HONEST_CLICKS_RATIO)
        columns = (
            _addresses(seed)[address],
            _users(seed).keys[chosen],
            event_times_ms // 1000,
            EVENT_TYPES[clicks.astype(np.intp)],
        )
        return [TEMPLATE % row for row in zip(*(column.tolist() for column in columns), strict=True)]

    def _is_fraud(self, seed: int, numbers: IntArray) -> npt.NDArray[np.bool_]:
        return uniform(seed, IS_FRAUD, numbers) < self.fraud_ratio

    def _kinds(self, seed: int, numbers: IntArray) -> Indices:
        return (uniform(seed, BURST_KIND, numbers // BURST_RECORDS) * 3).astype(np.intp)


@lru_cache(maxsize=1)
def _popularity() -> Weighted:
    return zipf(USERS, USER_EXPONENT)


@lru_cache(maxsize=4)
def _users(seed: int) -> Keys:
    random = np.random.default_rng([seed, 1]).bytes(16 * (USERS + FALSE_USERS))
    ids = (UUID(bytes=random[start : start + 16], version=4) for start in range(0, len(random), 16))
    return Keys([str(each).encode() for each in ids])


@lru_cache(maxsize=4)
def _addresses(seed: int) -> npt.NDArray[np.object_]:
    """IPv4 addresses, no two alike."""
    rng = np.random.default_rng([seed, 2])
    first, last = 1 << 24, 224 << 24  # neither "this network" nor multicast
    numbers = rng.choice(last - first, ADDRESSES + FALSE_ADDRESSES, replace=False, shuffle=False) + first
    return bytes_array([b"%d.%d.%d.%d" % tuple(int(number).to_bytes(4, "big")) for number in numbers])
