"""`python -m benchmarks.edf`: one step of EDF's largest operator, with six replicas and eleven rates.

It must cost less than 1 ms: what was seen is counted, the whole table is backed up once, an action is chosen.
Beside the vectorised backup stands Algorithm 2 as it is printed, state by state.
"""

from __future__ import annotations

import json
from itertools import product
from statistics import median
from time import process_time

import numpy as np

from controller.models.scaling_process import (
    ACTIONS,
    Floats,
    States,
    Weights,
    backed_up,
    first_values,
    known_costs,
)
from controller.policies.edf.learning import Learner, Rules
from controller.policies.edf.model_based import ModelBased
from controller.policies.edf.operator_manager import View
from controller.policies.edf.q_learning import QLearning

STATES = States(1, 6, 10, 50.0)
WEIGHTS = Weights(0.4, 0.4, 0.2)
RULES = Rules(WEIGHTS, discount=0.99, rate=0.1, exploration=0.05)
STEPS = 2_000
LIMIT_MS = 1.0


def learners() -> dict[str, Learner]:
    return {
        "model_based": ModelBased("op", STATES, RULES, 210.0),
        "q_learning": QLearning("op", STATES, RULES, 210.0, np.random.default_rng(1)),
    }


def step_ms(learner: Learner, rounds: int = 5) -> float:
    """CPU time of one turn, the median of some thousands."""
    rng = np.random.default_rng(2)
    spent = []
    for _ in range(rounds):
        rates_per_s, replicas = rng.uniform(0, 500, STEPS).tolist(), 1
        start = process_time()
        for rate_per_s in rates_per_s:
            proposal = learner.propose(View(replicas, rate_per_s, rate_per_s, ()))
            change = proposal.change if proposal is not None else 0
            learner.carried_out(change)
            replicas += change
        spent.append(1000 * (process_time() - start) / STEPS)
    return median(spent)


def state_by_state(values: Floats, known: Floats, unknown: Floats, moves: Floats, discount: float) -> Floats:
    """Algorithm 2, lines 2 to 6."""
    rows, levels = unknown.shape
    result = np.full_like(values, np.inf)
    for row, level, (place, action) in product(range(rows), range(levels), enumerate(ACTIONS)):
        reached = row + action
        if 0 <= reached < rows:
            result[row, level, place] = known[row, place] + sum(
                moves[level, following]
                * (unknown[reached, following] + discount * values[reached, following].min())
                for following in range(levels)
            )
    return result


def backup() -> dict[str, float]:
    rng = np.random.default_rng(3)
    unknown, counts = rng.random(STATES.shape), rng.random((STATES.levels + 1, STATES.levels + 1))
    moves, known = counts / counts.sum(axis=1, keepdims=True), known_costs(STATES, WEIGHTS)
    values = backed_up(first_values(STATES), known, unknown, moves, 0.99)
    start = process_time()
    ours = [backed_up(values, known, unknown, moves, 0.99) for _ in range(STEPS)][-1]
    ours_ms = 1000 * (process_time() - start) / STEPS
    start = process_time()
    printed = [state_by_state(values, known, unknown, moves, 0.99) for _ in range(5)][-1]
    printed_ms = 1000 * (process_time() - start) / 5
    assert np.allclose(ours, printed)
    return {"cpu_ms": ours_ms, "as_printed_cpu_ms": printed_ms, "ratio": ours_ms / printed_ms}


def main() -> None:
    steps = {name: step_ms(learner) for name, learner in learners().items()}
    print(json.dumps({"step_ms": steps, "limit_ms": LIMIT_MS, "backup": backup()}, indent=2))


if __name__ == "__main__":
    main()
