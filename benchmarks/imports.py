"""`python -m benchmarks.imports`: what `fogscale trace import` costs beside doing next to nothing.

Taxi: the whole import (survey, parse, judge, sort, find duplicates, write Parquet, report) beside a plain
`spark.read.csv(file).count()` of the same file, which only looks for line ends. The floor is what no import
can save: the columns parsed by Arrow and written as Parquet, neither judged nor sorted.
World Cup: records to native columns in Spark's tasks, and the whole import, beside numpy.fromfile; the floor
is numpy.fromfile and its columns written as Parquet.
Spark counts in a session as it comes from the box, imports run in fogscale's. Both are warm, several rounds
of each in turn, and medians are given; then each once in a fresh session, as a user has it, where the JVM is
still compiling. Memory: the most that JVM and Python workers hold together, for one and four times the input.
Machines are noisy: CPU seconds of all processes stand beside those on the clock.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from hashlib import md5
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

ROUNDS = 3
TURNS = 2
WARM_UPS = 2
TAXI_ROWS = 6_000_000  # a public file has 14 million
LOG_RECORDS = 28_000_000  # of a busy day
ZIPPED_RECORDS = 7_000_000  # of a full file of the public logs
DRIVER_HEAP = "512m"
MOST_TIMES = 3.0

Measured = dict[str, float]


def main() -> None:
    only = sys.argv[1:] or ["taxi", "worldcup98", "memory"]
    measures = {"taxi": taxi, "worldcup98": worldcup98, "memory": memory}
    with TemporaryDirectory() as folder:
        results = {name: measures[name](Path(folder)) for name in only}
    print(json.dumps(results, indent=2))


def taxi(folder: Path, rows: int = TAXI_ROWS) -> dict[str, Any]:
    path = folder / "trips.csv"
    write_trips(path, rows)
    warm = _turns([["count"], ["import_taxi"], ["parse_and_write"]], path, WARM_UPS)
    cold = {name: _session([name], path, 0, 1)[name] for name in ("count", "import_taxi")}
    return {
        "rows": rows,
        "megabytes": path.stat().st_size / 1e6,
        "warm": warm,
        "in_a_fresh_session": cold,
        "rows_per_s": rows / warm["import_taxi"]["wall_s"],
        "import_to_count": _judged(_ratios(warm, "import_taxi", "count")),
        "floor_to_count": _ratios(warm, "parse_and_write", "count"),
        "fresh_import_to_count": _judged(_ratios(cold, "import_taxi", "count")),
    }


def worldcup98(folder: Path) -> dict[str, Any]:
    plain, zipped = folder / "wc_day46.bin", folder / "wc_day46_1.gz"
    write_log(plain, LOG_RECORDS)
    with plain.open("rb") as file:
        zipped.write_bytes(gzip.compress(file.read(ZIPPED_RECORDS * _RECORD.itemsize), 6))
    found: dict[str, Any] = {}
    for path, records in ((plain, LOG_RECORDS), (zipped, ZIPPED_RECORDS)):
        names = ["fromfile", "native", "read_log", "import_log", "native_and_write"]
        warm = _turns([names], path, warm_ups=1)
        found[path.suffix[1:]] = {
            "records": records,
            "warm": warm,
            "records_per_s": records / warm["import_log"]["wall_s"],
            "read_to_fromfile": _judged(_ratios(warm, "read_log", "fromfile")),
            "read_to_fromfile_and_native_columns": _ratios(warm, "read_log", "native"),
            "import_to_fromfile_and_native_columns": _ratios(warm, "import_log", "native"),
            "import_to_floor": _ratios(warm, "import_log", "native_and_write"),
        }
    return found


def memory(folder: Path, rows: int = 500_000) -> dict[str, Any]:
    """The driver's heap is small, so that what grows with the input would fail or show."""
    held = {}
    for times in (1, 4):
        path = folder / f"trips-{times}.csv"
        write_trips(path, rows * times)
        held[f"{times}x"] = _session(["import_taxi"], path, 0, 1, DRIVER_HEAP)["import_taxi"]["peak_mb"]
    return {"rows": rows, "driver_heap": DRIVER_HEAP, "peak_mb": held, "growth": held["4x"] / held["1x"]}


def _turns(sessions: list[list[str]], path: Path, warm_ups: int) -> dict[str, Measured]:
    """Each session in turn, and all of them again, so that a slow minute of the machine hits all alike."""
    taken: dict[str, list[Measured]] = {}
    for _ in range(TURNS):
        for what in sessions:
            for name, measured in _session(what, path, warm_ups, ROUNDS).items():
                taken.setdefault(name, []).append(measured)
    return {name: _median(each) for name, each in taken.items()}


def _ratios(measured: dict[str, Measured], ours: str, theirs: str) -> Measured:
    return {key: measured[ours][key] / measured[theirs][key] for key in ("wall_s", "cpu_s")}


def _judged(ratios: Measured) -> dict[str, Any]:
    """With the target beside it, on the clock, and whether it was met."""
    verdict = "met" if ratios["wall_s"] <= MOST_TIMES else "missed"
    return {**ratios, "target": f"at most {MOST_TIMES:g} on the clock: {verdict}"}


# Measurements in a process of their own


def _session(
    what: list[str], path: Path, warm_ups: int, rounds: int, heap: str = "2g"
) -> dict[str, Measured]:
    code = f"from benchmarks.imports import measure; measure({what!r}, {str(path)!r}, {warm_ups}, {rounds})"
    submit = {"PYSPARK_SUBMIT_ARGS": f"--driver-memory {heap} pyspark-shell"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | submit, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    result: dict[str, Measured] = json.loads(done.stdout.splitlines()[-1])
    return result


def measure(what: list[str], path: str, warm_ups: int, rounds: int) -> None:
    """Prints seconds on the clock, CPU seconds of all processes, and the most memory they held."""
    spark = _plain_session() if what == ["count"] else _own_session()
    actions: dict[str, Callable[[], Any]] = {
        "count": lambda: spark.read.csv(path).count(),
        "import_taxi": lambda: _import(spark, "taxi", path),
        "parse_and_write": lambda: _parse_and_write(path),
        "fromfile": lambda: _records(path),
        "native": lambda: _native(_records(path)),
        "read_log": lambda: _read_log(spark, path),
        "import_log": lambda: _import(spark, "worldcup98", path),
        "native_and_write": lambda: _native_and_write(path),
    }
    if "read_log" in what and (found := actions["read_log"]()) != len(_records(path)):
        raise RuntimeError(f"{found} records were read")  # one that stops early looks fast
    for _ in range(warm_ups):
        for name in what:
            actions[name]()
    taken: dict[str, list[Measured]] = {name: [] for name in what}
    for _ in range(rounds):
        for name in what:
            taken[name].append(_timed(actions[name]))
    print(json.dumps({name: _median(each) for name, each in taken.items()}))
    spark.stop()


def _own_session() -> Any:
    from analysis.spark import session

    return session()


def _plain_session() -> Any:
    from pyspark.sql import SparkSession

    from analysis.spark import java_home

    os.environ["JAVA_HOME"] = str(java_home())
    return SparkSession.builder.master("local[*]").getOrCreate()


def _median(measured: list[Measured]) -> Measured:
    return {key: median(each[key] for each in measured) for key in measured[0]}


def _timed(action: Callable[[], Any]) -> Measured:
    over, most_mb = threading.Event(), [0.0]

    def watch() -> None:
        while not over.wait(0.1):
            most_mb[0] = max(most_mb[0], sum(_resident_mb(pid) for pid in _family()))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    cpu_s, wall_s = _cpu_s(), perf_counter()
    action()
    result = {"wall_s": perf_counter() - wall_s, "cpu_s": _cpu_s() - cpu_s}
    over.set()
    watcher.join()
    return result | {"peak_mb": most_mb[0]}


def _import(spark: Any, kind: str, path: str) -> None:
    from workloads.importing.editions import recognise
    from workloads.importing.importer import import_trace
    from workloads.importing.sources import taxi_source, worldcup_source

    files = [Path(path)]
    source = taxi_source(files, recognise(files)) if kind == "taxi" else worldcup_source(files)
    import_trace(spark, source, kind, Path(path).parent / "trace", True, lambda _stage: None)


def _read_log(spark: Any, path: str) -> int:
    """Every record to native columns in Spark's tasks; how many there were."""
    from workloads.importing.sources import worldcup_source

    source = worldcup_source([Path(path)])

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                rows = sum(rows.table.num_rows for rows in source.read(source.parts[number], 1))
                yield pa.RecordBatch.from_pydict({"rows": [rows]})

    parts = len(source.parts)
    tasks = spark.range(0, parts, 1, parts).mapInArrow(read, "rows long")
    return sum(row.rows for row in tasks.collect())


# The process and its children


def _family() -> list[int]:
    """This process and all below it."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    family = [os.getpid()]
    for pid in family:
        family += children.get(pid, [])
    return family


def _resident_mb(pid: int) -> float:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _cpu_s() -> float:
    """Of the whole family, with those that ended and were waited for."""
    ticks = 0
    for pid in _family():
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


# Floors

_RECORD = np.dtype([(name, ">u4") for name in "abcd"] + [(name, "u1") for name in "efgh"])


def _records(path: str) -> np.ndarray:
    if path.endswith(".gz"):
        return np.frombuffer(gzip.decompress(Path(path).read_bytes()), _RECORD)
    return np.fromfile(path, _RECORD)


def _native(records: np.ndarray) -> pa.Table:
    columns = {name: records[name].astype(np.uint32) for name in "abcd"}
    return pa.table(columns | {name: np.ascontiguousarray(records[name]) for name in "efgh"})


def _native_and_write(path: str) -> None:
    pq.write_table(_native(_records(path)), f"{path}.parquet", compression="lz4")


def _parse_and_write(path: str) -> None:
    """Batch by batch in one thread, with the types that Arrow guesses."""
    with csv.open_csv(path, csv.ReadOptions(use_threads=False, block_size=1 << 20)) as batches:
        writer = pq.ParquetWriter(f"{path}.parquet", batches.schema, compression="lz4")
        with writer:
            for batch in batches:
                writer.write_batch(batch)


# Data like the real


def write_trips(path: Path, rows: int, seed: int = 1) -> None:
    """A FOIL file: June 2013, half of the stamps whole minutes, 2 % without coordinates, some repeated."""
    rng = np.random.default_rng(seed)
    ids = np.array([md5(b"%d" % n, usedforsecurity=False).hexdigest().upper() for n in range(40_000)])
    june = np.datetime64("2013-06-01T00:00:00")
    with path.open("w") as file:
        file.write(_HEADER)
        for start in range(0, rows, 100_000):
            count = min(100_000, rows - start)
            is_rounded = rng.random(count) < 0.5
            pickup_s, lasted_s = rng.integers(0, 30 * 86_400, count), rng.integers(60, 3000, count)
            pickup_s = np.where(is_rounded, pickup_s // 60 * 60, pickup_s)
            lasted_s = np.where(is_rounded, lasted_s // 60 * 60, lasted_s)
            miles = lasted_s / 3600 * rng.uniform(5, 25, count) + 0.01
            west, south = rng.normal(-73.98, 0.02, (2, count)), rng.normal(40.75, 0.02, (2, count))
            west[:, rng.random(count) < 0.02] = 0
            columns = (
                ids[rng.integers(0, 13_000, count)],
                ids[rng.integers(0, 40_000, count)],
                np.where(is_rounded, "VTS,1,", "CMT,1,N"),
                np.char.replace((june + pickup_s).astype(str), "T", " "),
                np.char.replace((june + pickup_s + lasted_s).astype(str), "T", " "),
                rng.integers(1, 6, count),
                lasted_s,
                *(miles, west[0], south[0], west[1], south[1]),
            )
            lines = [_TRIP % row for row in zip(*(column.tolist() for column in columns), strict=True)]
            lines[-100:] = lines[:100]  # repeated
            file.write("".join(lines))


_HEADER = (
    "medallion, hack_license, vendor_id, rate_code, store_and_fwd_flag, pickup_datetime, dropoff_datetime, "
    "passenger_count, trip_time_in_secs, trip_distance, pickup_longitude, pickup_latitude, "
    "dropoff_longitude, dropoff_latitude\n"
)
_TRIP = "%s,%s,%s,%s,%s,%d,%d,%.2f,%.6f,%.6f,%.6f,%.6f\n"


def write_log(path: Path, records: int, seed: int = 1) -> None:
    rng = np.random.default_rng(seed)
    log = np.zeros(records, _RECORD)
    log["a"] = 897_516_000 + np.sort(rng.integers(0, 3600, records))
    log["b"], log["c"] = rng.zipf(1.3, records) % 2**21, rng.zipf(1.2, records) % 2**16
    log["d"], log["f"], log["g"], log["h"] = rng.integers(0, 50_000, records), 0x42, 1, 0x60
    log.tofile(path)


if __name__ == "__main__":
    main()
