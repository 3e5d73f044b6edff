"""A load variation file as Faban reads it (thesis §2.8, Figure 12): how long, and how many threads.

    10, 500
    20, 700

The thesis drives all its experiments with such files; each thread is one Kafka producer (§4.3.5). How fast
one of them sends is up to the driver, hence a parameter.
"""

from __future__ import annotations

from pathlib import Path

from fogscale.errors import FogscaleError
from fogscale.files import read_document
from workloads.traces.formula import PositiveRate, levels_profile
from workloads.workload import Workload, register

MOST = 10**9
FORM = "seconds and threads as in '10, 500'"


@register("variation_file")
def variation_file(path: Path, rate_per_thread_per_s: PositiveRate = 1.0) -> Workload:
    """A Faban load variation file: lines of seconds and threads."""
    levels = read_variation_file(path)
    profile = levels_profile(
        path.stem,
        f"Faban variation file {path}, {rate_per_thread_per_s:g} records/s per thread",
        [seconds for seconds, _ in levels],
        [threads * rate_per_thread_per_s for _, threads in levels],
    )
    return Workload(profile, records="click")


def read_variation_file(path: Path) -> list[tuple[int, int]]:
    """Seconds and threads of each line; blank lines are passed over."""
    try:
        lines = read_document(path).removeprefix("\ufeff").splitlines()
    except OSError as error:
        raise FogscaleError(
            f"{path}: {error.strerror or error}: give the path of a file you can read"
        ) from error
    except UnicodeDecodeError as error:
        raise FogscaleError(f"{path}: not a text file in UTF-8: write {FORM} on each line") from error
    levels = [_level(path, number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    if not any(threads for _, threads in levels):
        raise FogscaleError(f"{path}: no line lets a thread run: write {FORM} on each line")
    return levels


def _level(path: Path, number: int, line: str) -> tuple[int, int]:
    cells = line.split(",")
    try:
        seconds, threads = map(int, cells)
    except ValueError as error:
        raise FogscaleError(
            f"{path}, line {number}: '{line.strip()[:60]}' is not a pair of whole numbers: write {FORM}"
        ) from error
    if not (1 <= seconds <= MOST and 0 <= threads <= MOST):
        raise FogscaleError(
            f"{path}, line {number}: {seconds} s of {threads} threads: write 1 to {MOST} s and 0 to {MOST}"
        )
    return seconds, threads
