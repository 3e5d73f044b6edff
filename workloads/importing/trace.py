"""A trace folder: events and quarantine in Parquet, records per second, a manifest and a report.

events/part-….parquet      in the order of event_time, within a file and from file to file
quarantine/part-….parquet  the same columns, with reason, file, position (in bytes; rows in Parquet) and raw
rate.parquet               second since the start, records; seconds without any are left out
trace.json                 where it comes from, what was kept, how fast it is
report.html                the same to look at
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from glob import escape
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from fogscale.documents import read_json
from fogscale.errors import FogscaleError
from workloads.excerpts import Excerpt
from workloads.profile import RateProfile
from workloads.traces.taxi import PAPER_REPLAY
from workloads.traces.worldcup98 import FOG_REPLAY
from workloads.workload import Workload

MANIFEST = "trace.json"
FORMAT = 1
BATCH_ROWS = 1 << 17
MINUTE_S = 60
LONGEST_S = 200 * 366 * 86_400  # of a trace: longer, and a stamp is wrong
MOST_STEPS = 366 * 86_400  # a year by the second, some 250 MB; a longer trace becomes coarser

RATE = pa.schema([("second", pa.int64()), ("records", pa.int64())])

# An imported trace is replayed as the built-in workload of its kind, since the testbed is the same.
_REPLAY = {"taxi": PAPER_REPLAY, "worldcup98": FOG_REPLAY}


@contextmanager
def draft(folder: Path, fresh: bool) -> Iterator[Path]:
    """A folder to write into, which becomes the trace's when the block ends well and goes otherwise."""
    check_target(folder, fresh)
    _remove_stale(folder)
    work = folder.parent / f".{folder.name}.{os.getpid()}"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    try:
        yield work
        check_target(folder, fresh)  # another import may have ended meanwhile
        _put(work, folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _put(work: Path, folder: Path) -> None:
    """In the place of an older trace, which is there until the new one is."""
    older = folder.with_name(f".{folder.name}.older")
    if folder.exists():
        shutil.rmtree(older, ignore_errors=True)
        folder.rename(older)
    try:
        work.rename(folder)
    except BaseException:
        if not folder.exists() and older.exists():
            older.rename(folder)
        raise
    shutil.rmtree(older, ignore_errors=True)


def _remove_stale(folder: Path) -> None:
    """Drafts of this trace whose process was killed before it could remove them."""
    for draft_folder in folder.parent.glob(f".{escape(folder.name)}.*"):
        pid = draft_folder.name.rpartition(".")[2]
        if pid.isdecimal() and draft_folder.is_dir() and not _is_alive(int(pid)):
            shutil.rmtree(draft_folder, ignore_errors=True)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it is someone else's
        return True
    return True


def check_target(folder: Path, fresh: bool) -> None:
    """What stands there is only replaced if it is a trace and the user says so."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FogscaleError(
            f"cannot write into {folder.parent} ({error.strerror}): name another --out"
        ) from error
    if not os.access(folder.parent, os.W_OK):
        raise FogscaleError(f"cannot write into {folder.parent}: name another --out")
    if folder.is_symlink():
        raise FogscaleError(f"{folder} is a link: name the folder itself with --out and --name")
    if not folder.exists():
        return
    if not (folder / MANIFEST).is_file():
        if not folder.is_dir() or any(folder.iterdir()):
            raise FogscaleError(f"{folder} is there already and is no trace: name another --out or --name")
    elif not fresh:
        raise FogscaleError(
            f"{folder} holds a trace already: add --fresh to replace it, or name another --out"
        )


# What was written


def event_files(folder: Path) -> list[Path]:
    """Spark numbers them by slice of time, so their names sort as their events do."""
    return sorted((folder / "events").glob("part-*.parquet"))


def count_rows(files: list[Path]) -> int:
    return sum(pq.read_metadata(file).num_rows for file in files)


def count_reasons(folder: Path) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for file in sorted((folder / "quarantine").glob("part-*.parquet")):
        for batch in pq.ParquetFile(file).iter_batches(BATCH_ROWS, columns=["reason"]):
            for entry in batch.column(0).value_counts().to_pylist():
                counts[entry["values"]] += entry["counts"]
    return dict(counts)


@dataclass
class Pace:
    """How fast a trace is, gathered from its events in order."""

    start_s: int | None = None
    end_s: int = 0
    peak_records: int = 0
    by_second_of_minute: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(MINUTE_S, np.int64))
    as_stamped: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(MINUTE_S, np.int64))

    @property
    def span_s(self) -> int:
        return self.end_s - (self.start_s or 0)


def write_rate(folder: Path) -> Pace:
    """Writes rate.parquet from the events, a batch at a time; checks on the way that they are in order."""
    pace = Pace()
    with pq.ParquetWriter(folder / "rate.parquet", RATE) as writer:
        last: tuple[int, int] | None = None  # a second that may go on in the next batch
        for seconds in _event_seconds(folder, pace):
            last = _add(writer, pace, seconds, last)
        if last is not None:
            _write(writer, pace, np.array([last[0]]), np.array([last[1]]))
            pace.end_s = last[0] + 1
    return pace


def _event_seconds(folder: Path, pace: Pace) -> Iterator[npt.NDArray[np.int64]]:
    for path in event_files(folder):
        file = pq.ParquetFile(path)
        stamps = [
            name for name in ("event_time", "pickup_time", "dropoff_time") if name in file.schema_arrow.names
        ]
        for batch in file.iter_batches(BATCH_ROWS, columns=stamps):
            seconds = _seconds(batch.column("event_time"))
            pace.by_second_of_minute += np.bincount(seconds % MINUTE_S, minlength=MINUTE_S)
            if "dropoff_time" in stamps:
                own = pc.coalesce(batch.column("dropoff_time"), batch.column("pickup_time"))
                pace.as_stamped += np.bincount(_seconds(own) % MINUTE_S, minlength=MINUTE_S)
            yield seconds


def _seconds(stamps: pa.Array) -> npt.NDArray[np.int64]:
    seconds: npt.NDArray[np.int64] = stamps.cast(pa.timestamp("s"), safe=False).cast(pa.int64()).to_numpy()
    return seconds


def _add(
    writer: pq.ParquetWriter, pace: Pace, seconds: npt.NDArray[np.int64], last: tuple[int, int] | None
) -> tuple[int, int]:
    """Writes all seconds of a batch but the last, which is handed on."""
    if (np.diff(seconds) < 0).any() or (last is not None and seconds[0] < last[0]):
        raise RuntimeError("the events of a trace are not in the order of time")
    distinct, records = np.unique(seconds, return_counts=True)
    if pace.start_s is None:
        pace.start_s = int(distinct[0])
    if last is not None:
        if distinct[0] == last[0]:
            records[0] += last[1]
        else:
            distinct, records = np.insert(distinct, 0, last[0]), np.insert(records, 0, last[1])
    _write(writer, pace, distinct[:-1], records[:-1])
    return int(distinct[-1]), int(records[-1])


def _write(
    writer: pq.ParquetWriter, pace: Pace, seconds: npt.NDArray[np.int64], records: npt.NDArray[np.int64]
) -> None:
    if len(seconds):
        pace.peak_records = max(pace.peak_records, int(records.max()))
        writer.write_batch(
            pa.record_batch([pa.array(seconds - (pace.start_s or 0)), pa.array(records)], schema=RATE)
        )


# A trace as a workload


def read_manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest: dict[str, Any] = read_json(folder / MANIFEST)
    except (OSError, FogscaleError) as error:
        raise FogscaleError(
            f"{folder / MANIFEST} cannot be read ({error}): import the trace again"
        ) from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise FogscaleError(f"{folder} holds a trace of another version of fogscale: import it again")
    return manifest


def _profile(manifest: Mapping[str, Any], rate: pa.Table) -> RateProfile:
    """Its records per second; raises whatever comes of it where somebody has edited the files."""
    span_s = manifest["span_s"]
    seconds, records = rate["second"].to_numpy(), rate["records"].to_numpy()
    if not isinstance(span_s, int) or isinstance(span_s, bool) or not 0 < span_s < LONGEST_S:
        raise ValueError(f"a span of {span_s!r} s")
    if len(seconds) == 0 or seconds.min() < 0 or seconds.max() >= span_s or records.min() < 0:
        raise ValueError("rates that do not fit its span")
    step_s = -(-span_s // MOST_STEPS)
    counts = np.zeros(-(-span_s // step_s))
    np.add.at(counts, seconds // step_s, records)
    source = f"{manifest['title']}, imported from {', '.join(file['name'] for file in manifest['files'])}"
    if counts.sum() != manifest["rows"]["kept"]:
        raise ValueError("rates that do not add up to its rows")
    return RateProfile(str(manifest["name"]), source, counts, float(step_s), manifest["start"])


def trace_workload(path: str | Path) -> Workload:
    """The trace's records per second, as they were; sent are its own events, each at its moment."""
    folder = Path(path)
    manifest = read_manifest(folder)
    try:
        rate = pq.read_table(folder / "rate.parquet")
    except (OSError, pa.ArrowException) as error:
        raise FogscaleError(f"{folder / 'rate.parquet'} cannot be read: import the trace again") from error
    try:
        profile = _profile(manifest, rate)
        # Chance is in the events already: each is sent once, none by a draw.
        replay = replace(_REPLAY[manifest["kind"]], arrivals="even")
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError) as error:
        raise FogscaleError(
            f"{folder} holds a damaged trace ({type(error).__name__}: {error}): import it again"
        ) from error
    whole = Excerpt(str(folder), 1.0, 0.0, profile.total_records)
    return Workload(profile, replay, records=str(folder), excerpts=(whole,))
