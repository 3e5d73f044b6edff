"""A user's own profile from a CSV: a header, then a time and a count per interval on each line.

Times are ISO stamps or plain seconds; the interval is found from them. Counts of 10 minutes or more are too
coarse to replay as steps and are smoothed like the built-in hourly ones; finer ones are replayed as they are.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from datetime import UTC, datetime
from io import TextIOWrapper
from pathlib import Path
from typing import NamedTuple, TextIO

import numpy as np

from fogscale.errors import FogscaleError
from fogscale.files import opened
from workloads.profile import FloatArray, RateProfile
from workloads.traces.taxi import PAPER_REPLAY
from workloads.workload import Workload, register

SMOOTH_FROM_S = 600.0
GAP_TOLERANCE_S = 2e-3  # for stamps rounded to milliseconds, up or down
FORM = "a header and then lines like 2013-05-01 00:00:00,384"


class Row(NamedTuple):
    line: int
    stamp: str
    records: float


@register("csv")
def csv_workload(path: Path) -> Workload:
    """A CSV of your own, replayed as the taxi days are; its path alone, ending in .csv, means the same."""
    return Workload(read_csv_profile(path), PAPER_REPLAY)


def read_csv_profile(path: str | Path) -> RateProfile:
    path = Path(path)
    try:
        with TextIOWrapper(opened(path), newline="", encoding="utf-8-sig") as file:
            rows = list(_rows(path, file))
    except OSError as error:
        raise FogscaleError(
            f"{path}: {error.strerror or error}: give the path of a CSV you can read"
        ) from error
    except UnicodeDecodeError as error:
        raise FogscaleError(f"{path}: not a text file in UTF-8: save it as CSV in UTF-8") from error

    times_s, start = _times(path, rows)
    step_s = _step_s(path, rows, times_s)
    counts = np.array([row.records for row in rows])
    if counts.sum() == 0:
        raise FogscaleError(
            f"{path}: every count is 0, so there is nothing to replay: check the second column"
        )
    return RateProfile(path.stem, f"CSV file {path}", counts, step_s, start, smooth=step_s >= SMOOTH_FROM_S)


def _rows(path: Path, file: TextIO) -> Iterator[Row]:
    reader = csv.reader(file)
    try:
        _check_header(path, next(reader, []))
        for cells in reader:
            if any(cell.strip() for cell in cells):  # editors leave blank lines at the end
                yield _row(path, reader.line_num, cells)
    except csv.Error as error:
        raise _at(path, reader.line_num, f"{error}: write {FORM}") from error


def _check_header(path: Path, cells: list[str]) -> None:
    if not any(cell.strip() for cell in cells):
        raise FogscaleError(f"{path}: the file is empty or begins with an empty line: write {FORM}")
    _check_columns(path, 1, cells)
    if _number(cells[1]) is not None:
        raise _at(
            path, 1, "this is data, but the first line must be a header: put one like time,count above it"
        )


def _check_columns(path: Path, line: int, cells: list[str]) -> None:
    if len(cells) != 2:
        raise _at(path, line, f"{len(cells)} column(s) instead of two: write a time, a comma and a count")


def _row(path: Path, line: int, cells: list[str]) -> Row:
    _check_columns(path, line, cells)
    count = _number(cells[1])
    if count is None:
        raise _at(path, line, f"the count '{cells[1].strip()}' is no number: write digits such as 384")
    if not (math.isfinite(count) and count >= 0):
        raise _at(
            path, line, f"the count {cells[1].strip()} must be finite and at least 0: write 0 if none came"
        )
    return Row(line, cells[0].strip(), count)


def _times(path: Path, rows: list[Row]) -> tuple[FloatArray, str | None]:
    """Seconds of each row, and the ISO stamp of the first unless the file counts plain seconds."""
    if len(rows) < 2:
        raise FogscaleError(
            f"{path}: at least two lines of data are needed to find the interval: write {FORM}"
        )
    in_seconds = _number(rows[0].stamp) is not None
    parse = _plain_seconds if in_seconds else _iso_seconds
    wanted = "a finite number of seconds" if in_seconds else "an ISO stamp like 2013-05-01 00:00:00"
    times_s = np.empty(len(rows))
    for index, row in enumerate(rows):
        try:
            times_s[index] = parse(row.stamp)
        except ValueError as error:
            raise _at(path, row.line, f"the time '{row.stamp}' does not parse: write {wanted}") from error
    return times_s, None if in_seconds else datetime.fromisoformat(rows[0].stamp).isoformat()


def _step_s(path: Path, rows: list[Row], times_s: FloatArray) -> float:
    """The interval that most lines keep; any line that does not is an error."""
    gaps_s = np.diff(times_s)
    for index in np.flatnonzero(gaps_s <= 0)[:1]:
        row = rows[index + 1]
        raise _at(
            path, row.line, f"the time '{row.stamp}' is not after the line before: sort the lines by time"
        )
    step_s = np.sort(gaps_s)[(len(gaps_s) - 1) // 2]
    off = np.abs(gaps_s - step_s) > min(GAP_TOLERANCE_S, step_s / 100)
    for index in np.flatnonzero(off)[:1]:
        raise _at(
            path,
            rows[index + 1].line,
            f"{gaps_s[index]:g} s after the line before, but the interval is {step_s:g} s:"
            " write one line per interval, with count 0 where nothing came",
        )
    return float((times_s[-1] - times_s[0]) / len(gaps_s))


def _plain_seconds(stamp: str) -> float:
    seconds = float(stamp)
    if not math.isfinite(seconds):
        raise ValueError(stamp)
    return seconds


def _iso_seconds(stamp: str) -> float:
    """Only differences matter, and a local clock's changes would tear gaps: without a zone, it is UTC."""
    moment = datetime.fromisoformat(stamp)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _at(path: Path, line: int, problem: str) -> FogscaleError:
    return FogscaleError(f"{path}, line {line}: {problem}")
