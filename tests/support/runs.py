"""Short runs on the simulated testbed, small enough to be worked out on paper."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from controller.model import Topology
from controller.testbeds.simulated.settings import Simulation
from controller.testbeds.simulated.testbed import SimulatedTestbed
from fogscale.settings import validated
from tests.support.jobs import DELAYS_MS, chain, placed


def simulation(**changes: Any) -> Simulation:
    """map does 100 records/s per replica, source and sink are never in the way, a restart takes 120 s."""
    values: dict[str, Any] = {
        "capacity": {
            "source": {"law": "linear", "per_replica_per_s": 1024},
            "map": {"law": "linear", "per_replica_per_s": 100},
            "sink": {"law": "linear", "per_replica_per_s": 1024},
        },
        "reconfiguration": {"style": "restart", "duration_s": 120},
    }
    return validated(Simulation, values | changes, "test")


def simulated(
    arrivals_per_s: Sequence[int],
    *,
    map_nodes: Sequence[str] = ("fog1", "fog2"),
    topology: Topology | None = None,
    seed: int = 1,
    **changes: Any,
) -> SimulatedTestbed:
    """The chain with these arrivals, second by second, at its source."""
    return SimulatedTestbed(
        topology or chain(),
        placed(*map_nodes),
        simulation(**changes),
        {"source": np.array(arrivals_per_s, dtype=np.int64)},
        np.random.default_rng(seed),
    )


def constant(rate_per_s: int, seconds: int) -> list[int]:
    return [rate_per_s] * seconds


def load_csv(folder: Path, rates_per_s: Sequence[float]) -> Path:
    """A workload file of one count per minute."""
    path = folder / "load.csv"
    lines = [f"{60 * minute},{60 * rate:g}" for minute, rate in enumerate(rates_per_s)]
    path.write_text("\n".join(["seconds,records", *lines, ""]), encoding="utf-8")
    return path


def run_values(policy: str, workload: Path, **changes: Any) -> dict[str, Any]:
    """A run as an experiment would resolve it, on the chain of jobs.py."""
    values: dict[str, Any] = {
        "experiment": "test",
        "policy": policy,
        "workload": {"name": str(workload), "speed": 1, "copies": 1},
        "seed": 1,
        "topology": {
            "nodes": [{"name": name, "slots": 2 if name == "services" else 1} for name in DELAYS_MS],
            "operators": [
                {"name": "source", "n_max": 1},
                {"name": "map", "upstream": ["source"], "n_max": 5},
                {"name": "sink", "upstream": ["map"], "n_max": 1},
            ],
            "rtt_ms": {"delays_ms": DELAYS_MS},
        },
        "start": {"map": 2},
        "pins": {"source": ["services"], "sink": ["services"]},
        "measured_operator": "map",
        "testbed": {
            "kind": "simulated",
            "capacity": {
                "source": {"law": "linear", "per_replica_per_s": 1000},
                "map": {"law": "linear", "per_replica_per_s": 100},
                "sink": {"law": "linear", "per_replica_per_s": 1000},
            },
            "reconfiguration": {"style": "restart", "duration_s": 30},
        },
    }
    return values | changes
