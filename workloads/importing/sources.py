"""The kinds of raw data: how each is read, judged and turned into events."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workloads.importing import lines, worldcup98
from workloads.importing.cleaning import outside, timed_rides, timed_trips, trip_reasons
from workloads.importing.editions import TLC_PARQUET, Edition, has_header
from workloads.importing.reasons import OUT_OF_SPAN, Numbers, first_reasons
from workloads.importing.rows import Rows
from workloads.importing.streams import CHUNK_BYTES, Part, parts_of
from workloads.importing.survey import Span
from workloads.importing.taxi import read_tlc, read_trips, tlc_parts, trips_at

SAMPLE_BYTES = 4 << 20  # of all files together; smaller files are looked at as a whole
LEAST_SAMPLE_BYTES = 1 << 18  # of each file
_RIDE = "ride (an END that its START would pass comes a second after it)"


@dataclass(frozen=True)
class Source:
    """Tasks on other machines get it too, so all in it can be pickled."""

    edition: str
    title: str
    paths: tuple[Path, ...]
    parts: tuple[Part, ...]  # what one task reads each
    sample_every: int  # a survey looks at one chunk in so many
    read: Callable[[Part, int], Iterator[Rows]]
    timed: Callable[
        [pa.Table, frozenset[str]], pa.Table
    ]  # adds when the event is, for the vendors that round
    reasons: Callable[[pa.Table, Span | None], Numbers]
    time: str  # the column that says when an event is: a timestamp, or seconds since 1970
    events: Callable[[pa.Table], pa.Table]  # the columns of an event, event_time first
    raw_at: Callable[[Part, npt.NDArray[np.int64]], list[str]]  # rows as they stand at these positions
    may_be_rounded: bool
    spread_by: str  # of what the hash is that spreads rounded stamps
    by_month: bool
    drops_duplicates: bool


def taxi_source(paths: Sequence[Path], edition: Edition) -> Source:
    paths = _absolute(paths)
    is_tlc = edition is TLC_PARQUET
    if is_tlc:
        parts = [part for n, path in enumerate(paths) for part in tlc_parts(path, n)]
    else:
        parts = [part for n, path in enumerate(paths) for part in parts_of(path, n, lines.PART_BYTES)]
    with_header = frozenset(n for n, path in enumerate(paths) if not is_tlc and has_header(path))
    times = ["event_time", "pickup_time", "dropoff_time", "spread_s"]
    columns = times + [
        name for name in edition.columns if name not in (*times, "kind", "stamp", "other_stamp")
    ]
    columns += ["is_start"] if edition.rides else []

    def read(part: Part, sample_every: int) -> Iterator[Rows]:
        if is_tlc:
            return read_tlc(part, sample_every)
        return read_trips(part, edition, part.file in with_header, sample_every)

    return Source(
        edition=edition.name,
        title=edition.title,
        paths=tuple(paths),
        parts=tuple(parts),
        sample_every=_sample_every(paths, lines.SAMPLE_CHUNK_BYTES),
        read=read,
        timed=timed_rides if edition.rides else timed_trips,
        reasons=trip_reasons,
        time="event_time",
        events=lambda rows: rows.select(columns),
        raw_at=lambda part, positions: trips_at(part, positions, is_tlc),
        may_be_rounded=True,
        spread_by=_RIDE if edition.rides else "row",
        by_month=True,
        drops_duplicates=True,
    )


def worldcup_source(paths: Sequence[Path]) -> Source:
    """No duplicates are dropped: a client may well ask for the same object twice within a second."""
    paths = _absolute(paths)
    size = worldcup98.RECORD_BYTES
    parts = [part for n, path in enumerate(paths) for part in parts_of(path, n, worldcup98.PART_BYTES, size)]
    return Source(
        edition="worldcup98",
        title="World Cup 98 access log (20-byte binary records, GMT)",
        paths=tuple(paths),
        parts=tuple(parts),
        sample_every=_sample_every(paths, CHUNK_BYTES),
        read=worldcup98.read_records,
        timed=lambda records, _rounded: records,
        reasons=record_reasons,
        time="stamp_s",
        events=worldcup98.decoded,
        raw_at=lambda _part, _positions: [],
        may_be_rounded=False,
        spread_by="",
        by_month=False,
        drops_duplicates=False,
    )


def record_reasons(records: pa.Table, span: Span | None) -> Numbers:
    """What is damaged, and stamps of another day."""
    stamps_s = records["stamp_s"].to_numpy().astype(np.float64)
    return first_reasons(records["reason"].to_numpy(), [(OUT_OF_SPAN, outside(span, stamps_s))])


def _absolute(paths: Sequence[Path]) -> list[Path]:
    """A worker of a cluster runs in a folder of its own. Links stay, since a trace tells the names given."""
    return [path.absolute() for path in paths]


def _sample_every(paths: Sequence[Path], chunk_bytes: int) -> int:
    """One chunk in so many is looked at."""
    wanted = max(SAMPLE_BYTES, LEAST_SAMPLE_BYTES * len(paths))
    return max(1, sum(path.stat().st_size for path in paths) // max(wanted, chunk_bytes))
