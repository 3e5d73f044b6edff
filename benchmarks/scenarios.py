"""What the benchmarks run."""

from __future__ import annotations

import numpy as np

from controller.experiment import Run, WorkloadSettings, load, runs_of
from controller.run import prepare
from controller.testbeds.simulated.kind import SimulatedSetup
from controller.testbeds.simulated.settings import Simulation
from controller.topology import TopologySettings
from fogscale.cli import default_experiment


def gesscale_run() -> Run:
    return runs_of(load(default_experiment()), ["gesscale"], seeds=[1])[0]


def simulated_setup(run: Run) -> SimulatedSetup:
    setup = prepare(run).setup
    assert isinstance(setup, SimulatedSetup)
    return setup


def naive_gesscale_run() -> float:
    """The same arrivals and the same three operators, second by second in plain Python, with no policy, no
    metrics, no samples and no journal: the least a simulator without arrays would have to do."""
    setup = simulated_setup(gesscale_run())
    capacity = [2000.0, setup.capacity_per_s["map"][2], 2000.0]
    processed, lag = [0.0, 0.0, 0.0], 0.0
    for arrived in np.concatenate(list(setup.inputs.values())).tolist():
        lag += arrived
        served = lag
        for limit in capacity:
            served = min(served, limit)
        lag -= served
        for i in range(len(capacity)):
            processed[i] += served
    return processed[-1]


def large_run(hours: int = 2, operators: int = 10, nodes: int = 200) -> str:
    """A chain of operators on many nodes, with a threshold policy that scales each of them."""
    names = [f"op{i}" for i in range(operators)]
    topology = {
        "nodes": [{"name": f"node{i}", "slots": 1} for i in range(nodes)],
        "operators": [
            {"name": name, "upstream": names[i - 1 : i] if i else [], "n_max": 1 if i == 0 else 2}
            for i, name in enumerate(names)
        ],
        "rtt_ms": {"coordinates_ms": {f"node{i}": (float(i % 32), float(i // 32)) for i in range(nodes)}},
    }
    simulation = {
        "capacity": {name: {"law": "linear", "per_replica_per_s": 200} for name in names},
        "reconfiguration": {"style": "restart", "duration_s": 60},
        "noise": {"relative": 0.03, "cpu_relative": 0.05},
    }
    # 48 trace hours of taxi data, at the speed that makes them last as long as wanted.
    run = Run(
        experiment="bench",
        policy="thr_nlaware",
        guards={"warmup_s": 300},
        workload=WorkloadSettings(name="taxi", speed=48 / hours, copies=1, scale=hours / 12),
        seed=1,
        topology=TopologySettings.model_validate(topology),
        measured_operator=names[-1],
        testbed=Simulation.model_validate(simulation),
    )
    return run.model_dump_json()
