"""`python -m benchmarks.records`: records rendered per CPU second, beside the least that the standard library
does for the same contents (json.dumps of ready values, or a join of ready cells), round by round."""

from __future__ import annotations

import json
from collections.abc import Callable
from statistics import median
from time import process_time

import numpy as np
from rich.console import Console
from rich.table import Table

from workloads.records.format import Records
from workloads.records.registry import FORMATS, create

BATCH, ROUNDS = 2_048, 15  # as many as the producer renders at a time
WANTED_PER_S = 300_000


def main() -> None:
    table = Table("format", "bytes", "records/s", "stdlib/s", "ratio", box=None)
    for name in FORMATS:
        table.add_row(name, *_row(create(name)))
    Console().print(table)
    print(f"wanted: {WANTED_PER_S:,} records/s of each")


def _row(records: Records) -> tuple[str, ...]:
    times_ms = 1_357_517_000_000 + np.arange(BATCH, dtype=np.int64)
    values = records.batch(1, 0, times_ms).values  # tables are made on first use
    plain = _plain(values)
    pairs = [
        (_per_s(lambda n=n: records.batch(1, n * BATCH, times_ms)), _per_s(plain)) for n in range(ROUNDS)
    ]
    ours, theirs = (median(column) for column in zip(*pairs, strict=True))
    ratio = median(a / b for a, b in pairs)
    return f"{sum(map(len, values)) / BATCH:.0f}", f"{ours:,.0f}", f"{theirs:,.0f}", f"{ratio:.2f}"


def _per_s(action: Callable[[], object]) -> float:
    start = process_time()
    action()
    return BATCH / (process_time() - start)


def _plain(values: list[bytes]) -> Callable[[], object]:
    if values[0].startswith(b"{"):
        contents = [json.loads(value) for value in values]
        return lambda: [json.dumps(content).encode() for content in contents]
    cells = [value.decode().split(",") for value in values]
    return lambda: [",".join(row).encode() for row in cells]


if __name__ == "__main__":
    main()
