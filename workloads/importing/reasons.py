"""Why a row of a raw file may be dropped: the first reason that applies in the order of REASONS.

In the columns of tasks a reason is its number, 0 for none: a byte that is quick to compare and to move. Its
words are for the files that people read.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

TRUNCATED_GZIP = "truncated gzip member"
CORRUPT_GZIP = "corrupt gzip member"
HALF_RECORD = "half record"
MALFORMED = "malformed line"
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

REASONS = {
    TRUNCATED_GZIP: "the compressed file ends in mid-stream; the line or record that was cut",
    CORRUPT_GZIP: (
        "the compressed file cannot be read on; the line or record at that place, and all that follows until"
        " the file's next gzip member, if it has one"
    ),
    HALF_RECORD: "fewer than 20 bytes at the end of a binary log",
    MALFORMED: "wrong number of fields, or a number or stamp that is none",
    DUPLICATE: "a row with the same fields was there before",
    ZERO_COORDINATES: "a longitude or latitude is 0",
    INVALID_COORDINATES: (
        f"missing, or outside {LONGITUDES[0]:g}..{LONGITUDES[1]:g} °E, {LATITUDES[0]:g}..{LATITUDES[1]:g} °N"
    ),
    NO_DURATION: (
        "drop-off not after pick-up (also where the clock was set back in between), or a metered time of 0 or"
        " less"
    ),
    NO_DISTANCE: "a metered distance of 0 or less",
    IMPOSSIBLE_SPEED: f"more than {FASTEST_MPH:g} mph on average (by the meter, else as the crow flies)",
    OUT_OF_SPAN: (
        "outside the months that hold at least 1 % of the file's rows each (World Cup: a day or more away"
        " from such days)"
    ),
}

NUMBER_OF = {reason: number for number, reason in enumerate(REASONS, start=1)}
Numbers = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]


def is_damaged(reasons: Numbers) -> Flags:
    """Whether a row has no values to judge it by."""
    return (reasons > 0) & (reasons <= NUMBER_OF[MALFORMED])


def first_reasons(damage: Numbers, rules: list[tuple[str, Flags]]) -> Numbers:
    """The damage of a row, else the first rule that applies, else 0."""
    reasons = np.zeros_like(damage)
    for reason, applies in reversed(rules):
        reasons[applies] = NUMBER_OF[reason]
    return np.where(damage > 0, damage, reasons)


def in_words(reasons: Numbers) -> pa.Array:
    words = pa.DictionaryArray.from_arrays(pa.array(reasons.astype(np.int8)), ["", *REASONS])
    return words.cast(pa.string())
