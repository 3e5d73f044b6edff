"""`python -m benchmarks.testbed`: how long the emulated fog takes to come, to be found unchanged, to be
verified and to go, and how its coming grows with the number of nodes. Needs root, as the testbed does.
Wall-clock seconds, since a user waits for them; the load printed below tells how busy the machine was."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

LIMITS_S = {
    "up": 240.0,
    "second up": 90.0,
    "verify": 60.0,
    "down": 20.0,
}  # five nodes, two cores, warm caches
USUAL_FOG_NODES = 3


@dataclass(frozen=True)
class Timing:
    what: str
    nodes: int
    seconds: float


def main() -> None:
    counts = [int(text) for text in sys.argv[1:]] or [1, 2, 3, 4, 5]  # fog nodes: 3 to 7 nodes in all
    with tempfile.TemporaryDirectory(prefix="fog-", dir="/tmp") as base:
        timings = [timing for fog_nodes in counts for timing in measured(Path(base), fog_nodes)]
    show(timings)
    target = Path("results") / "bench-testbed.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps([asdict(timing) for timing in timings], indent=2), encoding="utf-8")
    print(f"\nwritten to {target}")


def measured(base: Path, fog_nodes: int) -> list[Timing]:
    nodes = fog_nodes + 2
    steps = {"up": ["up", "--fog-nodes", str(fog_nodes)]}
    if fog_nodes == USUAL_FOG_NODES:
        steps |= {"second up": ["up"], "verify": ["verify"]}
    steps["down"] = ["down"]
    try:
        return [Timing(what, nodes, timed(base, arguments)) for what, arguments in steps.items()]
    except BaseException:
        fogscale(base, ["down"], check=False)  # before its folder goes from under running nodes
        raise


def timed(base: Path, arguments: list[str]) -> float:
    begun_s = time.monotonic()
    fogscale(base, arguments)
    return time.monotonic() - begun_s


def fogscale(base: Path, arguments: list[str], check: bool = True) -> None:
    subprocess.run(
        [sys.executable, "-m", "fogscale.cli", "testbed", *arguments],
        env={**os.environ, "FOGSCALE_STATE": str(base)}, stdout=subprocess.DEVNULL, check=check,
    )  # fmt: skip


def show(timings: list[Timing]) -> None:
    table = Table("nodes", *LIMITS_S, box=None, header_style="bold")
    for nodes in sorted({timing.nodes for timing in timings}):
        by_step = {timing.what: timing.seconds for timing in timings if timing.nodes == nodes}
        table.add_row(str(nodes), *(f"{by_step[what]:.1f} s" if what in by_step else "" for what in LIMITS_S))
    table.add_row("limit (5 nodes)", *(f"{limit:g} s" for limit in LIMITS_S.values()), style="dim")
    Console().print(table)
    load, _, _ = os.getloadavg()
    print(f"load of the machine over the last minute: {load:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
