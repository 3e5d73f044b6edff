"""`python -m benchmarks.learning`: the proactive policy's own load, on data of the thesis' size (§5.5).

Published for one core of a 4-core machine with k = 250: training 5 s, stability check 60 s, 141 MB resident.
Beside each stands the naive way, one least-squares fit after the other, on the same data in the same process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from statistics import median
from time import process_time
from typing import Any

import numpy as np

from controller.models.polynomial import MAX_DEGREE, Floats, Polynomial, Samples, trained
from controller.models.stability import stability

SAMPLES = 1200  # five hours at 15 s: all that the exploration of §5.2 can have collected
CAPACITY_PER_S = 1150.0
RESAMPLES = 250
PUBLISHED = {"training_s": 5.0, "stability_s": 60.0, "memory_mb": 141.0}
LIMITS = {"training_s": 0.1, "stability_s": 0.5, "memory_mb": 141.0}


def gaussian_exploration(count: int = SAMPLES, seed: int = 1) -> Samples:
    """Zero to 4500 records/s and back, one to four TaskManagers (§5.2, Fig. 27)."""
    rng = np.random.default_rng(seed)
    time = np.linspace(0, 1, count)
    workload = 4500 * np.exp(-(((time - 0.5) * 6) ** 2) / 2) * (1 + 0.01 * rng.standard_normal(count))
    replicas = np.clip(np.ceil(workload / CAPACITY_PER_S * rng.uniform(1.0, 1.1, count)), 1, 4)
    load = np.minimum(workload / (CAPACITY_PER_S * replicas), 0.99)
    return Samples(workload, replicas, 0.002 * load / (1 - load) + 0.003 * rng.standard_normal(count))


def training(rounds: int = 7) -> dict[str, float]:
    """Algorithm 3 over degrees 1–8, beside eight separate fits of all powers."""
    samples = gaussian_exploration()
    return _beside(lambda: trained(samples), lambda: _naive_training(samples), rounds)


def stability_check(rounds: int = 3) -> dict[str, float]:
    """Algorithms 4 and 5 with a refit per resample, beside a loop over resamples."""
    samples = gaussian_exploration()
    model, _ = trained(samples)
    return _beside(
        lambda: stability(model, samples, CAPACITY_PER_S, 500.0, 1, np.random.default_rng(2), RESAMPLES),
        lambda: _naive_stability(model, samples, np.random.default_rng(2)),
        rounds,
    )


def controller_memory() -> dict[str, float]:
    """The most memory held by a fresh process that explores for five hours, trains and checks models."""
    code = (
        "import resource; import benchmarks.learning as learning; learning.explore(); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
    )
    return {"memory_mb": float(subprocess.check_output([sys.executable, "-c", code], text=True))}


def explore() -> str:
    """The proactive policy alone, fed sample by sample as its testbed would; how it ended."""
    from controller.model import Node, Observation, Operator, OperatorMetrics, Topology
    from controller.network import RttUniform
    from controller.policies.proactive import Proactive

    nodes = tuple(Node(f"tm{i}", 1, 2048) for i in range(1, 6))
    topology = Topology(nodes, (Operator("job", n_max=5),), RttUniform(0.5))
    policy = Proactive(standby=0, discard_s=0.0)
    policy.start(topology, np.random.default_rng(1))
    last = ""
    for i, (workload, replicas, slow) in enumerate(zip(*gaussian_exploration(), strict=True)):
        placement = {"job": tuple(node.name for node in nodes[: int(replicas)])}
        seen = {"job": OperatorMetrics(offered_rate_per_s=float(workload))}
        lag = float(max(0.0, slow) * workload)
        plan = policy.decide(
            Observation(15.0 * i, topology, placement, placement, seen, measured_s=15.0 * i, lag_records=lag)
        )
        last = plan.reason if plan else last
    return last


def _naive_training(samples: Samples) -> int:
    errors = []
    for degree in range(1, MAX_DEGREE + 1):
        design = _all_powers(samples, degree)
        fit = np.linalg.lstsq(design, samples.slow_ratio, rcond=None)[0]
        errors.append(float(np.sqrt(np.mean((design @ fit - samples.slow_ratio) ** 2))))
    return 1 + int(np.argmin(errors))


def _naive_stability(model: Polynomial, samples: Samples, rng: np.random.Generator) -> float:
    design = _all_powers(samples, model.degree)
    count = len(samples.slow_ratio)
    predicted = []
    for _ in range(RESAMPLES):
        rows = rng.integers(count, size=count)
        predicted.append(design @ np.linalg.lstsq(design[rows], samples.slow_ratio[rows], rcond=None)[0])
    return float(np.std(predicted, axis=0).mean())


def _all_powers(samples: Samples, degree: int) -> Floats:
    workload, replicas = samples.workload_per_s / samples.workload_per_s.max(), samples.replicas / 4
    return np.stack(
        [workload ** (total - j) * replicas**j for total in range(degree + 1) for j in range(total + 1)],
        axis=1,
    )


def _beside(ours: Callable[[], Any], naive: Callable[[], Any], rounds: int) -> dict[str, float]:
    ours()
    pairs = [(_cpu_s(ours), _cpu_s(naive)) for _ in range(rounds)]
    return {
        "cpu_s": median(pair[0] for pair in pairs),
        "naive_cpu_s": median(pair[1] for pair in pairs),
        "ratio": median(mine / theirs for mine, theirs in pairs),
    }


def _cpu_s(action: Callable[[], Any]) -> float:
    start = process_time()
    action()
    return process_time() - start


def main() -> None:
    results = {
        "training": training(),
        "stability_check": stability_check(),
        "controller": controller_memory(),
        "published": PUBLISHED,
        "limits": LIMITS,
        "blas_threads": os.environ.get("OPENBLAS_NUM_THREADS", "default"),
    }
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
