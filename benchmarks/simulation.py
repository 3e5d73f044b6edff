"""The simulated testbed: speed and memory. Times are CPU seconds of this process; since machines are noisy,
what counts are the ratios between things measured side by side in one run."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.scenarios import gesscale_run, large_run, naive_gesscale_run
from controller.run import execute, simulate

ROUNDS = 7
CPU_LIMIT_S = 0.15  # a 288-minute Gesscale run: engine, loop and journal
MEMORY_LIMIT_MB = 150


def main() -> None:
    results = {
        "run": one_run(),
        "time": growth("simulated hours", {hours: large_run(hours=hours) for hours in (2, 4, 8, 16)}),
        "operators": growth("operators", {n: large_run(operators=n) for n in (12, 25, 50, 100)}),
        "nodes": growth("nodes", {n: large_run(nodes=n) for n in (125, 250, 500, 1000)}),
        "memory_mb": resident_mb(),
    }
    show(results)
    target = Path("results") / "bench.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(results, indent=2), encoding="utf-8")
    print(f"\nwritten to {target}")


def cpu_s(action: Callable[[], Any]) -> float:
    start = process_time()
    action()
    return process_time() - start


def one_run() -> dict[str, float]:
    """The run users wait for, beside the same load in a plain loop over seconds, round by round."""
    run = gesscale_run()
    with TemporaryDirectory() as folder:
        execute(run, Path(folder) / "warm")
        pairs = [
            (cpu_s(lambda n=n: execute(run, Path(folder) / str(n))), cpu_s(naive_gesscale_run))
            for n in range(ROUNDS)
        ]
    ours_s, naive_s = (median(column) for column in zip(*pairs, strict=True))
    ratio = median(ours / naive for ours, naive in pairs)
    return {"cpu_s": ours_s, "best_cpu_s": min(p[0] for p in pairs), "naive_cpu_s": naive_s, "ratio": ratio}


def growth(what: str, runs: dict[int, str]) -> dict[str, Any]:
    """Cost per unit at each size; a ratio of 1 between the largest and the smallest is linear growth."""
    costs = {
        size: median(cpu_s(lambda run=run: simulate(run)) for _ in range(3)) for size, run in runs.items()
    }
    sizes = sorted(costs)
    per_unit = {size: costs[size] / size for size in sizes}
    return {
        "what": what,
        "cpu_s": costs,
        "per_unit_ratio": per_unit[sizes[-1]] / per_unit[sizes[0]],
    }


def resident_mb() -> float:
    """The most memory a fresh process holds while it runs one experiment."""
    code = (
        "import resource, tempfile; from pathlib import Path; from benchmarks.scenarios import gesscale_run; "
        "from controller.run import execute; execute(gesscale_run(), Path(tempfile.mkdtemp())); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
    )
    return float(subprocess.check_output([sys.executable, "-c", code], text=True))


def show(results: dict[str, Any]) -> None:
    table = Table(title="fogscale, side by side", header_style="bold")
    for column in ("what", "measured", "target"):
        table.add_column(column)
    run = results["run"]
    table.add_row(
        "288-minute Gesscale run",
        f"{run['cpu_s']:.3f} s CPU (best {run['best_cpu_s']:.3f})",
        f"≤ {CPU_LIMIT_S} s",
    )
    table.add_row(
        "… against a plain loop over seconds", f"{run['ratio']:.2f} × its {run['naive_cpu_s']:.3f} s", ""
    )
    for name in ("time", "operators", "nodes"):
        part = results[name]
        costs = ", ".join(f"{size}: {cost:.2f} s" for size, cost in part["cpu_s"].items())
        table.add_row(
            f"{part['what']} ({costs})",
            f"{part['per_unit_ratio']:.2f} per unit, largest/smallest",
            "≤ 1 (linear)",
        )
    table.add_row("resident memory of one run", f"{results['memory_mb']:.0f} MB", f"≤ {MEMORY_LIMIT_MB} MB")
    Console().print(table)


if __name__ == "__main__":
    main()
