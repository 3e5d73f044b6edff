"""What the controller itself costs: a process of its own that is fed recorded samples, one by one.

`python -m paper_figures.thesis.controller_load` reads them from standard input, decides on each as the loop
would, trains and checks models as the policy does, and prints what that took. Like the thesis' controller it
holds the samples of one exploration in memory; unlike it, nobody has to be asked for them over HTTP.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import mean, median
from time import process_time
from typing import Any

import pandas as pd

EXPLORATION_S, CONTROL_S = 15.0, 5.0  # between samples, in the two modes
ROUNDS = 5


def measured(exploration: pd.DataFrame, control: pd.DataFrame) -> dict[str, float]:
    """The controller's load on the samples of an exploration and of a run in optimal control."""
    columns = ["time_s", "workload_per_s", "replicas", "slow_ratio"]
    given = {
        "exploration": exploration[columns].to_numpy(float).tolist(),
        "control": control[columns].to_numpy(float).tolist(),
    }
    found = subprocess.run(
        [sys.executable, "-m", "paper_figures.thesis.controller_load"],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},  # CPU time is then one core's
    )
    numbers: dict[str, float] = json.loads(found.stdout)
    return numbers


# In the process that is measured


def main() -> None:
    given = json.load(sys.stdin)
    exploration, control = given["exploration"], given["control"]
    found: dict[str, float] = {}
    decided_s, policy = _decided(exploration, {})
    found["exploration_cpu_ratio"] = decided_s / EXPLORATION_S
    found["exploration_mb"] = _resident_mb()
    training_s, stability_s = _learnt(exploration)
    found |= {"training_s": training_s, "stability_s": stability_s, "learning_mb": _peak_mb()}
    decided_s, _ = _decided(control, policy.save())
    found["control_cpu_ratio"] = decided_s / CONTROL_S
    found["control_mb"] = _resident_mb()
    print(json.dumps(found))


def _decided(rows: Sequence[Sequence[float]], learned: Any) -> tuple[float, Any]:
    """CPU seconds per decision, and the policy afterwards. The slowest 1 % are left out: there a model is
    trained, which is measured on its own."""
    import numpy as np

    from controller.model import Node, Observation, Operator, OperatorMetrics, Topology
    from controller.network import RttUniform
    from controller.policies import create

    nodes = tuple(Node(f"tm{i}", 1, 2048) for i in range(1, 7))
    topology = Topology(nodes, (Operator("job", n_max=6),), RttUniform(0.5))
    policy = create("proactive", {"standby": 0, "discard_s": 0.0})
    policy.start(topology, np.random.default_rng(1))
    if learned:
        policy.load(learned)  # type: ignore[attr-defined]  # this policy has it
    taken_s = []
    for time_s, workload_per_s, replicas, slow_ratio in rows:
        placement = {"job": tuple(node.name for node in nodes[: int(replicas)])}
        seen = {"job": OperatorMetrics(offered_rate_per_s=workload_per_s)}
        lag = slow_ratio * workload_per_s
        observation = Observation(
            time_s, topology, placement, placement, seen, measured_s=time_s, lag_records=lag
        )
        taken_s.append(_cpu_s(partial(policy.decide, observation)))
    return mean(sorted(taken_s)[: max(1, int(0.99 * len(taken_s)))]), policy


def _learnt(rows: Sequence[Sequence[float]]) -> tuple[float, float]:
    """CPU seconds of a training and of a stability check with all the samples."""
    import numpy as np

    from controller.models.polynomial import Samples, trained
    from controller.models.stability import stability

    samples = Samples.of([(workload, replicas, slow) for _, workload, replicas, slow in rows])
    model, _ = trained(samples)
    capacity_per_s = float(samples.workload_per_s.max() / samples.replicas.max())
    rng = np.random.default_rng(2)
    training_s = median(_cpu_s(lambda: trained(samples)) for _ in range(ROUNDS))
    stability_s = median(
        _cpu_s(lambda: stability(model, samples, capacity_per_s, 500.0, 1, rng, 250)) for _ in range(ROUNDS)
    )
    return training_s, stability_s


def _cpu_s(action: Callable[[], Any]) -> float:
    start_s = process_time()
    action()
    return process_time() - start_s


def _resident_mb() -> float:
    """As htop's RES."""
    return _memory_mb("VmRSS")


def _peak_mb() -> float:
    return _memory_mb("VmHWM")


def _memory_mb(field: str) -> float:
    """From /proc where there is one: the largest size that getrusage knows is that of the parent process, if
    that was larger before this one took its place."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return int(status.partition(f"{field}:")[2].split()[0]) / 1024
    except (OSError, IndexError):
        unit = 1 if sys.platform == "darwin" else 1024  # bytes there, KiB elsewhere
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


if __name__ == "__main__":
    main()
