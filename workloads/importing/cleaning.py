"""Which rows of a trace are kept, and why the others are not: columns in, columns out.

Each row that is dropped has one reason, the first that applies in the order of REASONS.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  # the name all Spark code knows it by

from workloads.importing.streams import CORRUPT_GZIP, TRUNCATED_GZIP
from workloads.importing.survey import DAY_S, MINUTE_S, Slicing, Span
from workloads.importing.taxi import MALFORMED
from workloads.importing.worldcup98 import HALF_RECORD

DUPLICATE = "exact duplicate"
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
_FOREVER_S = 1 << 40

REASONS = {
    TRUNCATED_GZIP: "the compressed file ends in mid-stream; the line or record that was cut",
    CORRUPT_GZIP: "the compressed file cannot be read on; the line or record at that place",
    HALF_RECORD: "fewer than 20 bytes at the end of a binary log",
    MALFORMED: "wrong number of fields, or a number or stamp that is none",
    DUPLICATE: "the same line was there before",
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


def seconds(stamp: Column) -> Column:
    """Seconds since 1970 on the trace's own clock."""
    return F.unix_seconds(stamp.cast("timestamp"))


def any_of(conditions: Iterable[Column]) -> Column:
    return reduce(Column.__or__, conditions)


# Rules of taxi trips and rides -----------------------------------------------------------------------------


def trip_reason(columns: Iterable[str], spans: Mapping[int, Span]) -> Column:
    """The reason to drop a row, as far as the row alone tells; null if there is none."""
    columns = set(columns)
    duration_s = F.col("dropoff_s") - F.col("pickup_s")  # null for the START of a ride
    rules = []
    if "pickup_longitude" in columns:
        rules += [(ZERO_COORDINATES, _zero_coordinates()), (INVALID_COORDINATES, _invalid_coordinates())]
    metered_s = [F.col("trip_time_s") <= 0] if "trip_time_s" in columns else []
    rules.append((NO_DURATION, any_of([duration_s <= 0, *metered_s])))
    if "distance_miles" in columns:
        rules.append((NO_DISTANCE, F.col("distance_miles") <= 0))
    miles = F.col("distance_miles") if "distance_miles" in columns else _crow_miles()
    rules.append((IMPOSSIBLE_SPEED, miles * 3600 > FASTEST_MPH * duration_s))
    # The last trips of a file end after its month, but not a day after.
    late_s = F.greatest(F.col("pickup_s"), F.col("dropoff_s") - DAY_S)
    rules.append((OUT_OF_SPAN, outside(spans, F.col("pickup_s"), late_s)))
    return _first_of(rules)


def _first_of(rules: list[tuple[str, Column]]) -> Column:
    return F.coalesce("damage", *(F.when(applies, reason) for reason, applies in rules))


def _zero_coordinates() -> Column:
    return any_of(F.col(name) == 0 for name in _LONGITUDE_COLUMNS + _LATITUDE_COLUMNS)


def _invalid_coordinates() -> Column:
    plausible = [F.col(name).between(*LONGITUDES) for name in _LONGITUDE_COLUMNS]
    plausible += [F.col(name).between(*LATITUDES) for name in _LATITUDE_COLUMNS]
    return ~F.coalesce(reduce(Column.__and__, plausible), F.lit(False))


def _crow_miles() -> Column:
    """The great circle's length between pick-up and drop-off (haversine)."""
    latitude_1, latitude_2 = (F.radians(F.col(name)) for name in _LATITUDE_COLUMNS)
    longitude_1, longitude_2 = (F.radians(F.col(name)) for name in _LONGITUDE_COLUMNS)
    half_chord = F.pow(F.sin((latitude_2 - latitude_1) / 2), 2) + F.cos(latitude_1) * F.cos(
        latitude_2
    ) * F.pow(F.sin((longitude_2 - longitude_1) / 2), 2)
    return 2 * EARTH_RADIUS_MILES * F.asin(F.sqrt(half_chord))


def outside(spans: Mapping[int, Span], *stamps_s: Column) -> Column:
    """Whether one of the stamps is outside the span of the row's file; a file of unknown span has no end."""
    files = range(max(spans, default=0) + 1)
    known = [spans.get(file, Span(-_FOREVER_S, _FOREVER_S)) for file in files]
    start_s = F.get(_constants(span.start_s for span in known), F.col("file"))
    end_s = F.get(_constants(span.end_s for span in known), F.col("file"))
    return any_of((stamp_s < start_s) | (stamp_s >= end_s) for stamp_s in stamps_s)


def _constants(numbers: Iterable[int]) -> Column:
    """An array that Spark folds into one constant; thousands of literals would keep its planner busy."""
    return F.split(F.lit(",".join(map(str, numbers))), ",").cast("array<bigint>")


def record_reason(spans: Mapping[int, Span]) -> Column:
    """For binary records: what is damaged, and stamps of another day."""
    return _first_of([(OUT_OF_SPAN, outside(spans, F.col("stamp_s")))])


# Event time ------------------------------------------------------------------------------------------------


def whole_minute() -> Column:
    """Whether all stamps of a row are whole minutes. Most rows have two, so chance alone hardly does it."""
    return (F.col("pickup_s") % MINUTE_S == 0) & (F.coalesce("dropoff_s", F.lit(0)) % MINUTE_S == 0)


def timed_trips(trips: DataFrame, rounded: frozenset[str]) -> DataFrame:
    """Adds spread_s and event_s. A trip is reported when it ends, so its event is the drop-off.

    The stamps of vendors who round to minutes move on by 0..59 s, by a hash of the line: the same whenever it
    is read, and the same for both stamps, so that order and duration stay.
    """
    if not rounded:
        return trips.withColumns({"spread_s": F.lit(0), "event_s": F.col("dropoff_s")})
    vendor = F.col("vendor") if "vendor" in trips.columns else F.lit("")
    shift_s = F.pmod(F.col("line_hash"), F.lit(MINUTE_S))
    spread_s = F.when(vendor.isin(*rounded) & whole_minute(), shift_s).otherwise(0).cast("int")
    return trips.withColumn("spread_s", spread_s).withColumn(
        "event_s", F.col("dropoff_s") + F.col("spread_s")
    )


def timed_rides(rides: DataFrame, rounded: frozenset[str]) -> DataFrame:
    """As for trips, but START and END are events of their own, and both move by a hash of the ride.

    A START on a full minute moves even if by chance, since it does not know its END; an END then stays, but
    must still come after.
    """
    if not rounded:
        stamp_s = F.when(F.col("is_start"), F.col("pickup_s")).otherwise(F.col("dropoff_s"))
        return rides.withColumns({"spread_s": F.lit(0), "event_s": stamp_s})
    shift_s = F.pmod(F.xxhash64("ride_id"), F.lit(MINUTE_S))
    spread_s = F.when(whole_minute(), shift_s).otherwise(0).cast("int")
    start_shift_s = F.when(F.col("pickup_s") % MINUTE_S == 0, shift_s).otherwise(0)
    start_s, end_s = F.col("pickup_s") + start_shift_s, F.col("dropoff_s") + F.col("spread_s")
    # Where the drop-off is not after the pick-up, the row is dropped anyway.
    event_s = F.when(F.col("is_start"), start_s).otherwise(F.greatest(end_s, start_s + 1))
    return rides.withColumn("spread_s", spread_s).withColumn("event_s", event_s)


# Order and duplicates --------------------------------------------------------------------------------------


def in_slices(rows: DataFrame, cut: Slicing) -> DataFrame:
    """The rows in as many partitions as there are slices of time, in order; those without a time anywhere."""
    number = F.floor((F.col("event_s") - cut.start_s) / cut.bin_s)
    clipped = F.least(F.greatest(number, F.lit(0)), F.lit(len(cut.slices) - 1)).cast("int")
    slices = F.array(*(F.lit(number) for number in cut.slices))
    number_or_any = F.coalesce(
        F.get(slices, clipped), F.pmod(F.col("position"), F.lit(cut.count)).cast("int")
    )
    return rows.withColumn("slice", number_or_any).repartitionById(cut.count, F.col("slice"))


def without_duplicates(rows: DataFrame) -> DataFrame:
    """Sorted by event time; a row that was there before (by the hash of its line) is marked as a duplicate.

    Equal lines have equal stamps, so they meet in the same slice and second.
    """
    same = Window.partitionBy("slice", "event_s", "line_hash").orderBy("file", "position")
    is_again = (F.row_number().over(same) > 1) & F.col("damage").isNull()
    return rows.withColumn("reason", F.when(is_again, DUPLICATE).otherwise(F.col("reason")))
