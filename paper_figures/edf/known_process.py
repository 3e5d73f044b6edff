"""What learning is worth where everything is known: partialRank alone, as the decision process that its
manager sees, with the true transitions of the load and the true response times of the simulator.

There the optimum is known (value iteration), and so is what a learned table would cost for ever. Learners go
through the same twelve hours again and again and keep their tables: a chain of warm starts. Nobody else's
changes, pauses or noise disturb them, so that this is the best they can do.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from controller.experiment import load as load_experiment
from controller.models.scaling_process import (
    Floats,
    States,
    Weights,
    cost_of,
    greedy,
    known_costs,
    optimum,
)
from controller.policies.edf.learning import Learner, Rules
from controller.policies.edf.model_based import ModelBased
from controller.policies.edf.operator_manager import View
from controller.policies.edf.q_learning import QLearning
from controller.testbeds.simulated.response import Station
from controller.testbeds.simulated.settings import scv_of, simulation_of
from paper_figures.edf.calibration import offered

OPERATOR, BOUND_MS = "partialRank", 210.0
STATES = States(1, 6, 10, 50.0)
WEIGHTS = {"res": Weights(0.4, 0.4, 0.2), "rcf": Weights(0.4, 0.2, 0.4)}
DISCOUNT, LEARNING_RATE, EXPLORATION = 0.99, 0.1, 0.05
# After so many hours of the load a table is judged; the load lasts for twelve, 200 runs are 2400.
HOURS = (0.25, 0.5, 1, 2, 4, 8, 12, 24, 60, 120, 240, 600, 1200, 2400)
JUDGED = {"q_learning": HOURS, "model_based": HOURS[:10]}
PERIODS_PER_HOUR = 120
SEED = 1


class Process(NamedTuple):
    levels: NDArray[np.int64]  # of the rate, period by period
    response_ms: Floats  # [row, level]
    moves: Floats  # [level, next level], as often as the load does it
    often: Floats  # the share of time in each level

    def unknown_cost(self, weights: Weights) -> Floats:
        cost: Floats = weights.performance * (self.response_ms > BOUND_MS).astype(np.float64)
        return cost


def known_process() -> Process:
    experiment = load_experiment(Path(__file__).parent / "experiment.yml")
    simulation = simulation_of(experiment.testbed)
    levels = np.array([STATES.level(rate) for rate in offered()])
    counts = np.zeros((STATES.levels + 1, STATES.levels + 1))
    np.add.at(counts, (levels, np.roll(levels, -1)), 1)  # the day after the last is the first again
    left = counts.sum(axis=1, keepdims=True)
    moves = np.where(left > 0, counts / np.maximum(left, 1), np.eye(len(counts)))
    law = simulation.capacity[OPERATOR]
    arrival_scv = scv_of(simulation.arrival_scv, OPERATOR)
    service_scv = scv_of(simulation.service_scv, OPERATOR)
    response_ms = np.empty(STATES.shape)
    for row in range(STATES.shape[0]):
        replicas = STATES.k_min + row
        queue_each = simulation.waiting_lines == "each"
        capacity_per_s = law.capacity_per_s(replicas, 1.0, 0.0)
        station = Station.of(capacity_per_s, replicas, arrival_scv, service_scv, queue_each)
        for level in range(STATES.shape[1]):
            wait_s = station.wait_s(level * STATES.quantum_per_s)
            response_ms[row, level] = 1000 * (station.service_s + wait_s)
    often = np.bincount(levels, minlength=STATES.levels + 1) / len(levels)
    return Process(levels, response_ms, moves, often)


def beyond_optimum(learner: Learner, process: Process, weights: Weights, best: Floats) -> float:
    """By how many percent following a table for ever costs more than the optimum, in the mean over the states
    in which a run may begin: one replica, any level as often as it occurs."""
    known, unknown = known_costs(STATES, weights), process.unknown_cost(weights)
    followed = cost_of(greedy(learner.values), known, unknown, process.moves, DISCOUNT)
    return 100 * (float(followed[0] @ process.often) / float(best[0] @ process.often) - 1)


def learned_over_runs() -> pd.DataFrame:
    """How far each learner is from the optimum after so many hours."""
    process, rows = known_process(), []
    for name, weights in WEIGHTS.items():
        values = optimum(STATES, weights, process.unknown_cost(weights), process.moves, DISCOUNT, 1e-6)
        best = values.min(axis=2)
        for local, judged in JUDGED.items():
            learner, replicas, done = _learner(local, weights), 1, 0
            for hours in judged:
                until = round(hours * PERIODS_PER_HOUR)
                replicas = _gone_through(learner, process, replicas, range(done, until))
                done = until
                rows.append((name, local, hours, beyond_optimum(learner, process, weights, best)))
    return pd.DataFrame(rows, columns=["weights", "local", "hours", "beyond_optimum_percent"])


def _learner(local: str, weights: Weights) -> Learner:
    rules = Rules(weights, DISCOUNT, LEARNING_RATE, EXPLORATION)
    if local == "q_learning":
        return QLearning(OPERATOR, STATES, rules, BOUND_MS, np.random.default_rng(SEED))
    return ModelBased(OPERATOR, STATES, rules, BOUND_MS)


def _gone_through(learner: Learner, process: Process, replicas: int, periods: range) -> int:
    response_ms, levels = process.response_ms.tolist(), process.levels.tolist()
    for period in periods:
        level = levels[period % len(levels)]
        row = replicas - STATES.k_min
        proposal = learner.propose(View(replicas, level * STATES.quantum_per_s, response_ms[row][level], ()))
        change = proposal.change if proposal is not None else 0
        learner.carried_out(change)
        replicas += change
    return replicas
