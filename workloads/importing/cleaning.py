"""Which rows of a trace are kept, and why the others are not: columns in, columns out.

Each row that is dropped has one reason, the first that applies in the order of REASONS. The columns are
Arrow's: they are judged where they were parsed, in the tasks that Spark runs, and never become single rows.
"""

from __future__ import annotations

from functools import reduce
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from workloads.importing.rows import DUPLICATE, MALFORMED
from workloads.importing.streams import CORRUPT_GZIP, TRUNCATED_GZIP
from workloads.importing.survey import DAY_S, MINUTE_S, Span
from workloads.importing.worldcup98 import HALF_RECORD

ZERO_COORDINATES = "zero coordinates"
INVALID_COORDINATES = "invalid coordinates"
NO_DURATION = "non-positive duration"
NO_DISTANCE = "non-positive distance"
IMPOSSIBLE_SPEED = "impossible speed"
OUT_OF_SPAN = "stamp out of span"

# New York with its airports (Newark too) and the counties around, into which trips do lead.
LONGITUDES = (-74.5, -73.4)
LATITUDES = (40.4, 41.2)
FASTEST_MPH = 100.0  # on average over a trip
EARTH_RADIUS_MILES = 3958.8

REASONS = {
    TRUNCATED_GZIP: "the compressed file ends in mid-stream; the line or record that was cut",
    CORRUPT_GZIP: "the compressed file cannot be read on; the line or record at that place",
    HALF_RECORD: "fewer than 20 bytes at the end of a binary log",
    MALFORMED: "wrong number of fields, or a number or stamp that is none",
    DUPLICATE: "a row with the same fields was there before",
    ZERO_COORDINATES: "a longitude or latitude is 0",
    INVALID_COORDINATES: (
        f"missing, or outside {LONGITUDES[0]:g}..{LONGITUDES[1]:g} °E, {LATITUDES[0]:g}..{LATITUDES[1]:g} °N"
    ),
    NO_DURATION: "drop-off not after pick-up, or a metered time of 0 or less",
    NO_DISTANCE: "a metered distance of 0 or less",
    IMPOSSIBLE_SPEED: f"more than {FASTEST_MPH:g} mph on average (by the meter, else as the crow flies)",
    OUT_OF_SPAN: (
        "outside the months that hold at least 1 % of the file's rows each (World Cup: a day or more away"
        " from such days)"
    ),
}

_LONGITUDE_COLUMNS = ("pickup_longitude", "dropoff_longitude")
_LATITUDE_COLUMNS = ("pickup_latitude", "dropoff_latitude")
_MICROSECONDS = 1_000_000

Column: TypeAlias = pa.ChunkedArray  # or pa.Array: all that is done here can be done to both


def seconds(stamps: Column) -> Column:
    """Seconds since 1970 on the trace's own clock."""
    return stamps.cast(pa.timestamp("s"), safe=False).cast(pa.int64())


def first_reason(damage: Column, rules: list[tuple[str, Column]]) -> Column:
    """The damage of a row, else the first rule that applies, else null."""
    conditions = [damage.is_valid(), *(pc.fill_null(applies, False) for _, applies in rules)]
    choices = [damage, *(pa.scalar(reason) for reason, _ in rules)]
    flat = [
        column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column for column in conditions
    ]
    return pc.case_when(pc.make_struct(*flat), *choices)


# Rules of taxi trips and rides


def trip_reason(trips: pa.Table, span: Span | None) -> Column:
    """The reason to drop a row, as far as the row alone tells; null if there is none."""
    names = trips.schema.names
    pickup_s, dropoff_s = seconds(trips["pickup_time"]), seconds(trips["dropoff_time"])
    duration_s = pc.subtract(dropoff_s, pickup_s)  # null for the START of a ride
    rules: list[tuple[str, Column]] = []
    if "pickup_longitude" in names:
        rules += [(ZERO_COORDINATES, _zero_coordinates(trips)), (INVALID_COORDINATES, _invalid(trips))]
    no_duration = pc.less_equal(duration_s, 0)
    if "trip_time_s" in names:
        no_duration = pc.or_kleene(no_duration, pc.less_equal(trips["trip_time_s"], 0))
    rules.append((NO_DURATION, no_duration))
    if "distance_miles" in names:
        rules.append((NO_DISTANCE, pc.less_equal(trips["distance_miles"], 0)))
    miles = trips["distance_miles"] if "distance_miles" in names else _crow_miles(trips)
    too_far = pc.greater(pc.multiply(miles, 3600.0), pc.multiply(duration_s.cast(pa.float64()), FASTEST_MPH))
    rules.append((IMPOSSIBLE_SPEED, too_far))
    # The last trips of a file end after its month, but not a day after.
    late_s = pc.max_element_wise(pickup_s, pc.subtract(dropoff_s, DAY_S))
    rules.append((OUT_OF_SPAN, pc.or_kleene(outside(span, pickup_s), outside(span, late_s))))
    return first_reason(trips["damage"], rules)


def _zero_coordinates(trips: pa.Table) -> Column:
    zero = [pc.equal(trips[name], 0.0) for name in _LONGITUDE_COLUMNS + _LATITUDE_COLUMNS]
    return reduce(pc.or_kleene, zero)


def _invalid(trips: pa.Table) -> Column:
    plausible = [
        pc.and_(pc.greater_equal(trips[name], low), pc.less_equal(trips[name], high))
        for names, (low, high) in ((_LONGITUDE_COLUMNS, LONGITUDES), (_LATITUDE_COLUMNS, LATITUDES))
        for name in names
    ]
    return pc.invert(pc.fill_null(reduce(pc.and_kleene, plausible), False))


def _crow_miles(trips: pa.Table) -> Column:
    """The great circle's length between pick-up and drop-off (haversine)."""
    latitude_1, latitude_2 = (np.radians(trips[name].to_numpy()) for name in _LATITUDE_COLUMNS)
    longitude_1, longitude_2 = (np.radians(trips[name].to_numpy()) for name in _LONGITUDE_COLUMNS)
    half_chord = (
        np.sin((latitude_2 - latitude_1) / 2) ** 2
        + np.cos(latitude_1) * np.cos(latitude_2) * np.sin((longitude_2 - longitude_1) / 2) ** 2
    )
    return pa.array(2 * EARTH_RADIUS_MILES * np.arcsin(np.sqrt(half_chord)))


def outside(span: Span | None, stamps_s: Column) -> Column:
    """Whether a stamp is outside the span of its file; a file of unknown span has no end."""
    if span is None:
        return pc.is_null(stamps_s)
    return pc.or_(pc.less(stamps_s, span.start_s), pc.greater_equal(stamps_s, span.end_s))


# Event time


def whole_minute(trips: pa.Table) -> Column:
    """Whether all stamps of a row are whole minutes. Most rows have two, so chance alone hardly does it."""
    return pc.and_(_is_full(trips["pickup_time"]), pc.fill_null(_is_full(trips["dropoff_time"]), True))


def _is_full(stamps: Column) -> Column:
    stamps_s = seconds(stamps)
    return pc.equal(pc.subtract(stamps_s, pc.multiply(pc.divide(stamps_s, MINUTE_S), MINUTE_S)), 0)


def timed_trips(trips: pa.Table, rounded: frozenset[str]) -> pa.Table:
    """Adds event_time and spread_s. A trip is reported when it ends, so its event is the drop-off.

    The stamps of vendors who round to minutes move on by 0..59 s, by a hash of the row: the same whenever it
    is read, and the same for both stamps, so that order and duration stay.
    """
    if not rounded:
        return _timed(trips, trips["dropoff_time"], _never(trips))
    is_theirs = pc.is_in(vendors(trips), pa.array(sorted(rounded), pa.string()))
    spread_s = _shift_s(fingerprints(trips), pc.and_(is_theirs, whole_minute(trips)))
    return _timed(trips, later(trips["dropoff_time"], spread_s), spread_s)


def timed_rides(rides: pa.Table, rounded: frozenset[str]) -> pa.Table:
    """As for trips, but START and END are events of their own, and both move by a hash of the ride.

    A START on a full minute moves even if by chance, since it does not know its END; an END then stays, but
    must still come after.
    """
    stamp = pc.coalesce(rides["dropoff_time"], rides["pickup_time"])
    if not rounded:
        return _timed(rides, stamp, _never(rides))
    by_ride = mixed([pc.fill_null(rides["ride_id"], 0).to_numpy()])
    spread_s = _shift_s(by_ride, whole_minute(rides))
    start = later(rides["pickup_time"], _shift_s(by_ride, _is_full(rides["pickup_time"])))
    end = later(rides["dropoff_time"], spread_s)
    # Where the drop-off is not after the pick-up, the row is dropped anyway.
    event = pc.if_else(rides["is_start"], start, pc.max_element_wise(end, later(start, pa.scalar(1))))
    return _timed(rides, event, spread_s)


def vendors(trips: pa.Table) -> Column:
    """ "" where none is named."""
    if "vendor" not in trips.schema.names:
        return pa.repeat(pa.scalar(""), trips.num_rows)
    return pc.fill_null(trips["vendor"].cast(pa.string()), "")


def later(stamps: Column, by_s: Column) -> Column:
    shift = pc.multiply(by_s.cast(pa.int64()), _MICROSECONDS).cast(pa.duration("us"))
    return pc.add(stamps, shift)


def _never(rows: pa.Table) -> Column:
    return pa.array(np.zeros(rows.num_rows, np.int32))


def _shift_s(hashes: npt.NDArray[np.uint64], is_moved: Column) -> Column:
    return pc.if_else(pc.fill_null(is_moved, False), pa.array((hashes % MINUTE_S).astype(np.int32)), 0)


def _timed(rows: pa.Table, event_time: Column, spread_s: Column) -> pa.Table:
    return rows.append_column("event_time", event_time).append_column("spread_s", spread_s.cast(pa.int32()))


# Fingerprints


def fingerprints(trips: pa.Table) -> npt.NDArray[np.uint64]:
    """A number for each row, of its stamps and measures: equal rows have equal ones, others hardly ever."""
    words = []
    for name in trips.schema.names:
        column = trips[name]
        if pa.types.is_timestamp(column.type) or pa.types.is_floating(column.type):
            words.append(_words(column))
    return mixed(words)


def _words(column: Column) -> npt.NDArray[np.uint64]:
    numbers = column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column
    if numbers.null_count:
        numbers = pc.fill_null(numbers, 0)
    words: npt.NDArray[np.uint64] = numbers.to_numpy().view(np.uint64)
    return words


def mixed(words: list[npt.NDArray[np.uint64]]) -> npt.NDArray[np.uint64]:
    """One hash of several columns, by the steps of splitmix64; the same on every machine."""
    state = np.full(len(words[0]), 0x9E3779B97F4A7C15, np.uint64)
    for word in words:
        state ^= word.view(np.uint64)
        state *= np.uint64(0xBF58476D1CE4E5B9)
        state ^= state >> np.uint64(29)
    state *= np.uint64(0x94D049BB133111EB)
    state ^= state >> np.uint64(32)
    return state
