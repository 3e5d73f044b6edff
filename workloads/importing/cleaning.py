"""Which rows of a trace are kept, and when their events are: columns in, columns out.

The columns are Arrow's, and what is computed from them numpy's: they are judged where they were parsed, in
the tasks that Spark runs, and never become single rows. A missing number is NaN, to which no rule applies.
"""

from __future__ import annotations

from functools import reduce
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from workloads.importing.reasons import (
    FASTEST_MPH,
    IMPOSSIBLE_SPEED,
    INVALID_COORDINATES,
    LATITUDES,
    LONGITUDES,
    NO_DISTANCE,
    NO_DURATION,
    OUT_OF_SPAN,
    ZERO_COORDINATES,
    Flags,
    Numbers,
    first_reasons,
)
from workloads.importing.survey import DAY_S, MINUTE_S, SECOND_US, Span

EARTH_RADIUS_MILES = 3958.8

_LONGITUDE_COLUMNS = ("pickup_longitude", "dropoff_longitude")
_LATITUDE_COLUMNS = ("pickup_latitude", "dropoff_latitude")

Floats: TypeAlias = npt.NDArray[np.float64]
Hashes: TypeAlias = npt.NDArray[np.uint64]
Micros: TypeAlias = npt.NDArray[np.int64]


def micros(stamps: pa.ChunkedArray) -> Micros:
    """Microseconds since 1970 on the trace's own clock, 0 where there is no stamp."""
    found: Micros = filled(stamps.cast(pa.int64())).to_numpy()
    return found


def filled(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """With 0 where there is nothing; not copied if there is none to fill."""
    return pc.fill_null(column, 0) if column.null_count else column


def seconds(stamps: pa.ChunkedArray) -> Floats:
    """Whole seconds since 1970, NaN where there is no stamp."""
    found = (micros(stamps) // SECOND_US).astype(np.float64)
    if stamps.null_count:
        found[_is_missing(stamps)] = np.nan
    return found


def _is_missing(values: pa.ChunkedArray) -> Flags:
    flags: Flags = values.is_null().to_numpy()
    return flags


# Rules of taxi trips and rides


def trip_reasons(trips: pa.Table, span: Span | None) -> Numbers:
    """The reason to drop a row, as far as the row alone tells; 0 if there is none."""
    names = trips.schema.names
    pickup_s, dropoff_s = seconds(trips["pickup_time"]), seconds(trips["dropoff_time"])
    duration_s = dropoff_s - pickup_s  # NaN for the START of a ride
    rules: list[tuple[str, Flags]] = []
    if "pickup_longitude" in names:
        places = {name: trips[name].to_numpy() for name in _LONGITUDE_COLUMNS + _LATITUDE_COLUMNS}
        is_zero = reduce(np.logical_or, (degrees == 0.0 for degrees in places.values()))
        rules += [(ZERO_COORDINATES, is_zero), (INVALID_COORDINATES, _invalid(places))]
    no_duration = duration_s <= 0
    if "trip_time_s" in names:
        no_duration |= trips["trip_time_s"].to_numpy() <= 0
    rules.append((NO_DURATION, no_duration))
    if "distance_miles" in names:
        miles = trips["distance_miles"].to_numpy()
        rules.append((NO_DISTANCE, miles <= 0))
    else:
        miles = _crow_miles(places)
    rules.append((IMPOSSIBLE_SPEED, miles * 3600.0 > duration_s * FASTEST_MPH))
    # The last trips of a file end after its month, but not a day after.
    late_s = np.fmax(pickup_s, dropoff_s - DAY_S)
    rules.append((OUT_OF_SPAN, outside(span, pickup_s) | outside(span, late_s)))
    return first_reasons(trips["reason"].to_numpy(), rules)


def _invalid(places: dict[str, Floats]) -> Flags:
    plausible = [
        (places[name] >= low) & (places[name] <= high)
        for names, (low, high) in ((_LONGITUDE_COLUMNS, LONGITUDES), (_LATITUDE_COLUMNS, LATITUDES))
        for name in names
    ]
    return ~reduce(np.logical_and, plausible)


def _crow_miles(places: dict[str, Floats]) -> Floats:
    """The great circle's length between pick-up and drop-off (haversine)."""
    latitude_1, latitude_2 = (np.radians(places[name]) for name in _LATITUDE_COLUMNS)
    longitude_1, longitude_2 = (np.radians(places[name]) for name in _LONGITUDE_COLUMNS)
    half_chord = (
        np.sin((latitude_2 - latitude_1) / 2) ** 2
        + np.cos(latitude_1) * np.cos(latitude_2) * np.sin((longitude_2 - longitude_1) / 2) ** 2
    )
    miles: Floats = 2 * EARTH_RADIUS_MILES * np.arcsin(np.sqrt(half_chord))
    return miles


def outside(span: Span | None, stamps_s: Floats) -> Flags:
    """Whether a stamp is outside the span of its file; a file of unknown span has no end."""
    if span is None:
        return np.isnan(stamps_s)
    return (stamps_s < span.start_s) | (stamps_s >= span.end_s)


# Event time


def whole_minute(trips: pa.Table) -> Flags:
    """Whether all stamps of a row are whole minutes. Most rows have two, so chance alone hardly does it."""
    pickup, dropoff = trips["pickup_time"], trips["dropoff_time"]
    is_whole = _is_full(micros(pickup))
    if pickup.null_count:
        is_whole &= ~_is_missing(pickup)
    return is_whole & _is_full(micros(dropoff))  # a missing one counts as 0, which is full


def _is_full(stamps_us: Micros) -> Flags:
    minute_us = MINUTE_S * SECOND_US
    return stamps_us - stamps_us // minute_us * minute_us < SECOND_US  # much quicker than a remainder


def timed_trips(trips: pa.Table, rounded: frozenset[str]) -> pa.Table:
    """Adds event_time and spread_s. A trip is reported when it ends, so its event is the drop-off.

    The stamps of vendors who round to minutes move on by 0..59 s, by a hash of the row: the same whenever it
    is read, and the same for both stamps, so that order and duration stay.
    """
    dropoff = trips["dropoff_time"]
    if not rounded:
        return _timed(trips, dropoff, np.zeros(trips.num_rows, np.int32))
    spread_s = _shift_s(fingerprints(trips), _is_of(trips, rounded) & whole_minute(trips))
    event_us = micros(dropoff) + spread_s * np.int64(SECOND_US)
    return _timed(trips, _stamps(event_us, _is_missing(dropoff) if dropoff.null_count else None), spread_s)


def timed_rides(rides: pa.Table, rounded: frozenset[str]) -> pa.Table:
    """As for trips, but START and END are events of their own, and both move by a hash of the ride.

    A START on a full minute moves even if by chance, since it does not know its END; an END then stays, or
    follows it a second later: hence 0..58 s, so that both are still within their minute.
    """
    pickup, dropoff = rides["pickup_time"], rides["dropoff_time"]
    if not rounded:
        return _timed(rides, pc.coalesce(dropoff, pickup), np.zeros(rides.num_rows, np.int32))
    by_ride = mixed([filled(rides["ride_id"]).to_numpy()])
    pickup_us, dropoff_us = micros(pickup), micros(dropoff)
    start_us = pickup_us + _shift_s(by_ride, _is_full(pickup_us), MINUTE_S - 1) * np.int64(SECOND_US)
    end_us = dropoff_us + _shift_s(by_ride, whole_minute(rides), MINUTE_S - 1) * np.int64(SECOND_US)
    is_start = pc.fill_null(rides["is_start"], True).to_numpy()
    # Where the drop-off is not after the pick-up, the row is dropped anyway.
    event_us = np.where(
        is_start | (dropoff_us <= pickup_us), start_us, np.maximum(end_us, start_us + SECOND_US)
    )
    spread_s = ((event_us - np.where(is_start, pickup_us, dropoff_us)) // SECOND_US).astype(np.int32)
    return _timed(rides, _stamps(event_us, _is_missing(pickup) if pickup.null_count else None), spread_s)


def vendors(trips: pa.Table) -> pa.DictionaryArray:
    """ "" where none is named."""
    if "vendor" not in trips.schema.names:
        return pa.DictionaryArray.from_arrays(pa.array(np.zeros(trips.num_rows, np.int32)), [""])
    named = trips["vendor"].unify_dictionaries().combine_chunks()
    if not named.null_count:
        return named
    names = named.dictionary.to_pylist()
    indices = pc.fill_null(named.indices, len(names))
    return pa.DictionaryArray.from_arrays(indices, [*names, ""])


def _is_of(trips: pa.Table, some: frozenset[str]) -> Flags:
    """Whether the row is of one of these vendors."""
    named = vendors(trips)
    is_one = np.array([name in some for name in named.dictionary.to_pylist()], np.bool_)
    flags: Flags = is_one[named.indices.to_numpy()] if len(is_one) else np.zeros(len(named), np.bool_)
    return flags


def _shift_s(hashes: Hashes, is_moved: Flags, within_s: int = MINUTE_S) -> npt.NDArray[np.int32]:
    shift: npt.NDArray[np.int32] = np.where(is_moved, hashes % np.uint64(within_s), 0).astype(np.int32)
    return shift


def _stamps(stamps_us: Micros, is_missing: Flags | None) -> pa.Array:
    return pa.array(stamps_us.view("datetime64[us]"), mask=is_missing)


def _timed(rows: pa.Table, event_time: pa.Array, spread_s: npt.NDArray[np.int32]) -> pa.Table:
    return rows.append_column("event_time", event_time).append_column("spread_s", pa.array(spread_s))


# Fingerprints


def fingerprints(trips: pa.Table) -> Hashes:
    """A number for each row, of its stamps and measures: equal rows have equal ones, others hardly ever."""
    words = []
    for name in trips.schema.names:
        column = trips[name]
        if pa.types.is_timestamp(column.type):
            words.append(micros(column).view(np.uint64))
        elif pa.types.is_floating(column.type):
            words.append(filled(column).to_numpy().view(np.uint64))
    return mixed(words)


def mixed(words: list[Hashes]) -> Hashes:
    """One hash of several columns, by the steps of splitmix64; the same on every machine."""
    state = np.full(len(words[0]), 0x9E3779B97F4A7C15, np.uint64)
    for word in words:
        state ^= word.view(np.uint64)
        state *= np.uint64(0xBF58476D1CE4E5B9)
        state ^= state >> np.uint64(29)
    state *= np.uint64(0x94D049BB133111EB)
    state ^= state >> np.uint64(32)
    return state
