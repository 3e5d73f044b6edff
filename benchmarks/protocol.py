"""`python -m benchmarks.protocol`: the decentralized protocol by the paper's clock, with 10,000 instances.

1,000 operators of 10 instances, 200 steps, in less than 60 s of one core. Beside it stand a tenth and a
hundredth of the operators: what a step costs per instance must not grow with their number.
"""

from __future__ import annotations

import sys
from time import process_time

from controller.protocol.steps import brownian, simulate

STEPS = 200
INSTANCES = 10
START = INSTANCES * 350.0  # records per step: C·r of every instance
LIMIT_S = 60.0
CHANGES = (0.02, 0.07)  # of the load at the start, per step: calm and wild


def measured(operators: int, change: float) -> dict[str, float]:
    loads = brownian(operators, STEPS, START, change * START, seed=1)
    began = process_time()
    found = simulate((INSTANCES,) * operators, loads, seed=1)
    cpu_s = process_time() - began
    return {
        "cpu_s": cpu_s,
        "us_per_instance_and_step": 1e6 * cpu_s / (operators * INSTANCES * STEPS),
        "messages": float(found.messages.sum()),
        "instances": float(found.instances[-1].sum()),
        "needed": float(loads[-1].sum() / 350.0),
    }


def main() -> int:
    print(
        f"{'operators':>10}{'change':>8}{'CPU s':>8}{'µs each':>9}{'messages':>11}{'nodes':>8}{'needed':>8}"
    )
    slowest_s = 0.0
    for change in CHANGES:
        for operators in (10, 100, 1000):
            row = measured(operators, change)
            slowest_s = max(slowest_s, row["cpu_s"])
            print(
                f"{operators:>10}{change:>8.0%}{row['cpu_s']:>8.1f}{row['us_per_instance_and_step']:>9.1f}"
                f"{row['messages']:>11,.0f}{row['instances']:>8,.0f}{row['needed']:>8,.0f}",
                flush=True,
            )
    print(f"slowest {slowest_s:.1f} s, limit {LIMIT_S:g} s")
    return int(slowest_s > LIMIT_S)


if __name__ == "__main__":
    sys.exit(main())
