"""Taxi trips as lines of the DEBS 2015 challenge, which the job of the EDF paper reads (FGCS 2018, §9.1).

Seventeen columns without a header. Event time is the drop-off, to the second, in the trace's own (New York)
clock. The key is the medallion; routes are what the job counts. Some lines carry no coordinates, as in the
real file: the job's parser must drop them; in a sample of June 2013, 1.8 % do.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from hashlib import md5

import numpy as np
import numpy.typing as npt

from fogscale.errors import FogscaleError
from workloads.records.draws import Weighted, bytes_array, uniform
from workloads.records.format import IntArray
from workloads.records.keyed import Indices, KeyedRecords, Keys
from workloads.records.trips import (
    DAY_S,
    FAULT,
    PAYMENT,
    TAXIS,
    choose_taxis,
    draw_trips,
    hundredths,
    written_corners,
)

COLUMNS = (
    "medallion", "hack_license", "pickup_datetime", "dropoff_datetime", "trip_time_in_secs", "trip_distance",
    "pickup_longitude", "pickup_latitude", "dropoff_longitude", "dropoff_latitude", "payment_type",
    "fare_amount", "surcharge", "mta_tax", "tip_amount", "tolls_amount", "total_amount",
)  # fmt: skip
TEMPLATE = b"%b,%b,%b %b,%b %b,%d,%b,%b,%b,%b,%b,%b,0.50,%b,0.00,%b"
PLACE, NOWHERE = b"%.6f,%.6f", b"0.000000,0.000000"
CARD = 0
PAYMENTS = bytes_array((b"CRD", b"CSH", b"NOC", b"DIS"))
PAYMENT_SHARES = Weighted((0.54, 0.455, 0.003, 0.002))  # assumed
TIP_RATIO = 0.2  # of the fare, by card only: tips in cash are not recorded
TAX_CENTS = 50
SURCHARGES = bytes_array((b"0.00", b"0.50"))  # from 20:00 to 6:00


@dataclass(frozen=True, slots=True)
class DebsRoute(KeyedRecords):
    """Taxi trips in the 17 columns of the DEBS 2015 challenge, keyed by medallion."""

    name = "debs_route"
    zero_ratio: float = 0.018  # of lines without coordinates

    def __post_init__(self) -> None:
        if not 0 <= self.zero_ratio <= 1:
            raise FogscaleError(
                f"records debs_route: zero_ratio must be within 0 and 1, not {self.zero_ratio}"
            )

    def all_keys(self, seed: int) -> Keys:
        return _medallions(seed)

    def choose_keys(self, seed: int, numbers: IntArray) -> Indices:
        return choose_taxis(seed, numbers)

    def render(self, seed: int, numbers: IntArray, event_times_ms: IntArray, chosen: Indices) -> list[bytes]:
        trips = draw_trips(seed, numbers, event_times_ms, chosen)
        pickup = written_corners(PLACE)[trips.from_corner]
        dropoff = written_corners(PLACE)[trips.to_corner]
        faulty = uniform(seed, FAULT, numbers) < self.zero_ratio
        pickup[faulty] = dropoff[faulty] = NOWHERE
        payment = PAYMENT_SHARES.choose(uniform(seed, PAYMENT, numbers))
        night = (trips.dropoff_s % DAY_S // 3600 + 4) % 24 < 10
        tip_cents = np.where(payment == CARD, np.rint(trips.fare_cents * TIP_RATIO), 0).astype(np.int64)
        total_cents = trips.fare_cents + 50 * night + TAX_CENTS + tip_cents
        columns = (
            _medallions(seed).keys[chosen],
            _licenses(seed)[trips.driver],
            *_stamps(trips.dropoff_s - trips.duration_s),
            *_stamps(trips.dropoff_s),
            trips.duration_s,
            hundredths()[trips.miles_100],
            pickup,
            dropoff,
            PAYMENTS[payment],
            hundredths()[trips.fare_cents],
            SURCHARGES[night.astype(np.intp)],
            hundredths()[tip_cents],
            hundredths()[total_cents],
        )
        return [TEMPLATE % row for row in zip(*(column.tolist() for column in columns), strict=True)]


def _stamps(seconds: IntArray) -> tuple[npt.NDArray[np.object_], npt.NDArray[np.object_]]:
    """Date and time of day; a date is written once for all trips of that day."""
    days, which = np.unique(seconds // DAY_S, return_inverse=True)
    dates = [str(np.datetime64(int(day), "D")).encode() for day in days]
    return bytes_array(dates)[which], _clock()[seconds % DAY_S]


@lru_cache(maxsize=1)
def _clock() -> npt.NDArray[np.object_]:
    """Every second of a day, written."""
    return bytes_array([b"%02d:%02d:%02d" % (s // 3600, s // 60 % 60, s % 60) for s in range(DAY_S)])


@lru_cache(maxsize=4)
def _medallions(seed: int) -> Keys:
    return Keys([_hash(f"{seed}/medallion/{taxi}") for taxi in range(TAXIS)])


@lru_cache(maxsize=4)
def _licenses(seed: int) -> npt.NDArray[np.object_]:
    return bytes_array([_hash(f"{seed}/license/{driver}") for driver in range(2 * TAXIS)])


def _hash(text: str) -> bytes:
    """The real file's ids are MD5 digests in capitals."""
    return md5(text.encode(), usedforsecurity=False).hexdigest().upper().encode()
