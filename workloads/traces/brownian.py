"""The load of the decentralized paper (§5.1): five operators, each driven by a random walk of its own.

Published: Brownian motion, independent per operator; 200 steps; 7 instances of capacity 500 per operator at
the start, meant to be loaded by 0.7, hence 2450 records a step; a peak of 40,396 over all operators (§5.2).
Assumed: the size of a change. Two are told of one operator, +247 and about +600 within one step (§5.3).
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from fogscale.errors import FogscaleError
from workloads.profile import RateProfile, summed
from workloads.traces.formula import PositiveSeconds, Rate
from workloads.workload import Workload, register

SOURCE = "generated: decentralized paper §5.1, one Brownian motion per operator, size of changes assumed"
OPERATORS = ("op1", "op2", "op3", "op4", "op5")


@register("brownian")
def brownian(
    operators: Annotated[tuple[str, ...], Field(min_length=1)] = OPERATORS,
    start_per_s: Rate = 7 * 500 * 0.7,
    change_per_s: Rate = 400.0,  # standard deviation of the change from one step to the next
    step_s: PositiveSeconds = 1.0,  # of the paper's discrete time, which has no seconds
    steps: Annotated[int, Field(ge=1, le=1_000_000)] = 200,
    seed: Annotated[int, Field(ge=0)] = 1,
) -> Workload:
    """A random walk of its own for each of five operators, as in the decentralized paper (§5.1)."""
    if len(set(operators)) < len(operators):
        raise FogscaleError("workload 'brownian': two operators have the same name: rename one")
    inputs = {}
    for number, operator in enumerate(operators):
        # A generator each: with one more operator, the others' walks stay what they were.
        changes = np.random.default_rng([seed, number, 1]).normal(0.0, change_per_s, steps)
        changes[0] = 0.0
        rates_per_s = np.abs(
            start_per_s + np.cumsum(changes)
        )  # folded at 0: Brownian motion, reflected there
        inputs[operator] = RateProfile(f"brownian {operator}", SOURCE, rates_per_s * step_s, step_s)
    return Workload(summed("brownian", SOURCE, inputs.values()), inputs=inputs)
