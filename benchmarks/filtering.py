"""What filtering costs: a step of all Kalman filters of an operator, per instance, beside a plain loop with a
matrix filter per instance; a step of the Weierstrass filters; a whole decision of the policy `ekf`; and all
runs of Tables 3 to 5 of the EKF paper, from a few of each configuration, beside a loop that only counts."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from statistics import median
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from controller.contract import Policy
from controller.experiment import load, runs_of, scenarios_of
from controller.model import InstanceMetrics, Node, Observation, Operator, OperatorMetrics, Topology
from controller.models.kalman import KalmanFilters, KalmanSettings
from controller.models.weierstrass import WeierstrassFilters
from controller.network import RttUniform
from controller.policies import create
from controller.run import simulate
from paper_figures.published import paper_folder

INSTANCES = (3, 8, 64)
LIMIT_US = 10.0  # an EKF step, per instance
STEPS = 3000
ROUNDS = 5
PAPER_SEEDS, SEEDS = 20, 3  # runs of each configuration in the paper, and here
LIMIT_S = 240.0  # all of the paper's
COUNTED = 3_000_000
VARIANCE = (0.0025, 1e-6)


def filtering() -> dict[str, Any]:
    """Microseconds of CPU per step and instance, at each number of instances."""
    return {
        "limit_us": LIMIT_US,
        "instances": {n: _per_instance_us(n) for n in INSTANCES},
        "decision_us": {n: decision_us(n) for n in INSTANCES},
        "paper": paper_runs(),
    }


def paper_runs() -> dict[str, Any]:
    """CPU seconds of a run of each configuration, and of all that the paper's tables rest on."""
    counting_s, costs_s = [], {}
    for scenario, experiment in scenarios_of(load(paper_folder("ekf") / "experiment.yml")).items():
        for policy in experiment.policies:
            runs = runs_of(experiment, [policy], range(1, SEEDS + 1))
            taken_s = [_cpu_s(partial(simulate, run.model_dump_json())) for run in runs]
            costs_s[f"{scenario}/{policy}"] = sum(taken_s) / len(taken_s)
            counting_s.append(_cpu_s(lambda: sum(1 for _ in range(COUNTED))))
    return {
        "run_s": costs_s,
        "runs": PAPER_SEEDS * len(costs_s),
        "all_s": PAPER_SEEDS * sum(costs_s.values()),
        "limit_s": LIMIT_S,
        "counting_to_3_million_s": median(counting_s),
    }


def _cpu_s(action: Callable[[], Any]) -> float:
    start = process_time()
    action()
    return process_time() - start


def _per_instance_us(instances: int) -> dict[str, float]:
    loads = _loads(instances)
    ids = tuple(f"i{n}" for n in range(instances))
    rounds = [
        (
            _step_us(_ekf(ids, loads)),
            _step_us(_matrix_loop(loads), STEPS // 10),
            _step_us(_weierstrass(ids, loads)),
        )
        for _ in range(ROUNDS)
    ]
    ekf_us, plain_us, gw_us = (median(column) / instances for column in zip(*rounds, strict=True))
    ratio = median(ekf / plain for ekf, plain, _ in rounds)
    return {"ekf_us": ekf_us, "matrix_loop_us": plain_us, "ratio": ratio, "gw_us": gw_us}


def _loads(instances: int) -> NDArray[np.float64]:
    rng = np.random.default_rng(1)
    return 0.6 + 0.05 * rng.standard_normal((STEPS, instances, 2))


def _step_us(step: Callable[[int], Any], steps: int = STEPS) -> float:
    start = process_time()
    for i in range(steps):
        step(i)
    return (process_time() - start) / steps * 1e6


def _ekf(ids: tuple[str, ...], loads: NDArray[np.float64]) -> Callable[[int], Any]:
    filters, shift = KalmanFilters(KalmanSettings(VARIANCE)), np.zeros(2)
    return lambda i: filters.step(0.5 * i, ids, loads[i], shift)


def _weierstrass(ids: tuple[str, ...], loads: NDArray[np.float64]) -> Callable[[int], Any]:
    filters = WeierstrassFilters(2)
    return lambda i: filters.step(0.5 * i, ids, loads[i])


def _matrix_loop(loads: NDArray[np.float64]) -> Callable[[int], Any]:
    """Eq. 10–14 with 2 × 2 matrices, instance by instance."""
    instances = loads.shape[1]
    identity, shift = np.eye(2), np.zeros(2)
    noise, variance = np.diag([1e-4, 1e-6]), np.diag(VARIANCE)
    states = [np.full(2, 0.6) for _ in range(instances)]
    errors = [np.diag([1e-3, 1e-5]) for _ in range(instances)]

    def step(i: int) -> None:
        for n in range(instances):
            prior = states[n] + shift
            error = identity @ errors[n] @ identity.T + noise
            gain = error @ identity.T @ np.linalg.inv(identity @ error @ identity.T + variance)
            states[n] = prior + gain @ (loads[i, n] - identity @ prior)
            errors[n] = (identity - gain @ identity) @ error

    return step


def decision_us(instances: int) -> dict[str, float]:
    """A whole decision, from observation to (no) plan."""
    observations = _observations(instances)
    costs: dict[str, float] = {}
    for name in ("pure", "gw", "ekf"):
        policy = create(name, {"high_ratio": 1.4, "low_ratio": 0.01})  # it watches, and never acts

        def decide(i: int, policy: Policy = policy) -> None:
            policy.decide(observations[i])

        rounds = []
        for _ in range(ROUNDS):
            policy.start(observations[0].topology, np.random.default_rng(1))
            rounds.append(_step_us(decide, len(observations)))
        costs[name] = median(rounds)
    return costs


def _observations(instances: int, steps: int = 1000) -> list[Observation]:
    nodes = tuple(f"node{n}" for n in range(instances + 1))
    topology = Topology(
        nodes=tuple(Node(name, 1, 2048) for name in nodes),
        operators=(Operator("source", n_max=1), Operator("map", ("source",), n_max=instances)),
        rtt_ms=RttUniform(0.0),
    )
    placement = {"source": nodes[:1], "map": nodes[1:]}
    loads = _loads(instances)
    return [
        Observation(
            time_s=0.5 * i,
            topology=topology,
            placement=placement,
            requested=placement,
            operators={
                "source": OperatorMetrics(),
                "map": OperatorMetrics(
                    arrival_rate_per_s=10.0 * instances + i % 7,
                    instances=tuple(
                        InstanceMetrics(f"map-{n}", nodes[1 + n], "running", float(cpu), float(memory))
                        for n, (cpu, memory) in enumerate(loads[i])
                    ),
                ),
            },
            measured_s=0.5 * i,
        )
        for i in range(steps)
    ]


if __name__ == "__main__":
    print(json.dumps(filtering(), indent=2))
