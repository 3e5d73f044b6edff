"""What a look at some of the rows tells before all of them are read: the span of each file, whose stamps are
rounded to minutes, and how time is to be cut so that each task sorts about as many rows.

Pure functions of a small table of counts; the counting is Spark's.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

import numpy as np

SECOND_US = 1_000_000
MINUTE_S = 60
DAY_S = 86_400
LEAST_SHARE = 0.01  # of a file's rows in a month or a day for that to be part of the file's span
WHOLE_MINUTE_CHANCE = 1 / 60
MOST_WHOLE_MINUTES = 3 * WHOLE_MINUTE_CHANCE  # a share above this is no chance: the stamps are rounded
MOST_BINS = 4096


class Cell(NamedTuple):
    """Rows of one file and one vendor whose event fell into one minute."""

    file: int
    vendor: str  # "" where the edition names none
    minute: int  # since 1970
    rows: int
    whole: int  # rows all of whose stamps are whole minutes


class Span(NamedTuple):
    """Seconds since 1970; the end is not part of it."""

    start_s: int
    end_s: int


@dataclass(frozen=True)
class Slicing:
    """Which slice of time a second belongs to: slices[(second − start_s) // bin_s], cut off at both ends."""

    start_s: int
    bin_s: int
    slices: tuple[int, ...]

    @property
    def count(self) -> int:
        return self.slices[-1] + 1


def file_spans(cells: Iterable[Cell], by_month: bool) -> dict[int, Span]:
    """Of each file, from the first to the last calendar month (or day, with a day around) that holds 1 % of
    its rows or more.

    Raw files are published by month or by day, and a wrong clock's stamps are few and far off.
    """
    rows_by_file: dict[int, Counter[Span]] = defaultdict(Counter)
    for cell in cells:
        rows_by_file[cell.file][_calendar(cell.minute * MINUTE_S // DAY_S, by_month)] += cell.rows
    spans = {}
    for file, rows in rows_by_file.items():
        least = LEAST_SHARE * rows.total()
        held = [span for span, count in rows.items() if count >= least] or list(rows)
        # Daily files follow a local day and are cut by size, so a few rows of the next day may be sound.
        margin_s = 0 if by_month else DAY_S
        spans[file] = Span(min(held).start_s - margin_s, max(held).end_s + margin_s)
    return spans


@lru_cache(maxsize=1024)
def _calendar(day: int, by_month: bool) -> Span:
    """The calendar month, or the day itself."""
    if not by_month:
        return Span(day * DAY_S, (day + 1) * DAY_S)
    # NumPy's calendar has no last year: a trip of December 9999 is one that a wrong clock stamped.
    month = np.datetime64(day, "D").astype("datetime64[M]")
    first, following = (each.astype("datetime64[s]").astype(int) for each in (month, month + 1))
    return Span(int(first), int(following))


def rounded_vendors(cells: Iterable[Cell]) -> frozenset[str]:
    """The vendors whose stamps fall on whole minutes far more often than one in sixty."""
    rows: Counter[str] = Counter()
    whole: Counter[str] = Counter()
    for cell in cells:
        rows[cell.vendor] += cell.rows
        whole[cell.vendor] += cell.whole
    return frozenset(vendor for vendor in rows if whole[vendor] > max(1, MOST_WHOLE_MINUTES * rows[vendor]))


def slicing(cells: Sequence[Cell], spans: Mapping[int, Span], slices: int) -> Slicing:
    """Cuts time so that each slice holds about the same share of the rows seen."""
    start_s = min((span.start_s for span in spans.values()), default=0)
    seen = [
        cell for cell in cells if spans[cell.file].start_s <= cell.minute * MINUTE_S < spans[cell.file].end_s
    ]
    if not seen:
        return Slicing(start_s, 1, (0,))
    start_s = min(cell.minute for cell in seen) * MINUTE_S
    end_s = (max(cell.minute for cell in seen) + 1) * MINUTE_S
    bin_s = MINUTE_S * max(1, -(-(end_s - start_s) // (MINUTE_S * MOST_BINS)))
    rows = [0] * (-(-(end_s - start_s) // bin_s))
    for cell in seen:
        rows[(cell.minute * MINUTE_S - start_s) // bin_s] += cell.rows
    before = [0, *accumulate(rows)]
    shares = [min(slices - 1, slices * count // before[-1]) for count in before[:-1]]
    numbers = {share: number for number, share in enumerate(sorted(set(shares)))}  # without gaps
    return Slicing(start_s, bin_s, tuple(numbers[share] for share in shares))
