"""How traffic grows with the number of nodes, on ramps of other slopes, and if instances look at other times.

Exponents of a power law, fitted for every seed, with the 95 % interval of their mean. §5.4 calls the
traffic quadratic. Doubling the nodes is, on nearly every ramp. An iteration's traffic is nearly
quadratic where the load grows by a share of itself, so that the more instances there are, the more are
added at a time; and for one operator whose instances all look in the same step: when they find 0.8 of
their capacity in use, a seventh of them duplicates (0.8/r − 1), each for messages in proportion to its
neighbours. With looks apart, those that look first take the load below the threshold before the others
look. §5.4 has instances of one operator decide in iterations 48 and 49, so they do not look together.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from paper_figures.decentralized.statements import (
    exponents,
    interval,
    per_doubling,
    per_iteration,
    per_iteration_of_one,
)

LOOKS = {
    "apart": "each at its own time",
    "since_birth": "every 5 steps from their start",
    "together": "all in the same step",
}


def load(tables: Path) -> pd.DataFrame:
    ramps = pd.read_parquet(tables / "ramps.parquet")
    rows = []
    for (shape, growth, looks), some in ramps.groupby(["shape", "growth", "looks"], sort=False):
        which = str(shape), float(str(growth)), str(looks)
        name = f"{which[1]:g} records a step" if shape == "straight" else f"{100 * which[1]:g} % a step"
        rows.append(
            {
                "Ramp": name,
                "Instances look": LOOKS[which[2]],
                "Seeds": int(some["seed"].nunique()),
                "Nodes in the end": round(float(some[some["step"] == some["step"].max()]["nodes"].mean()), 1),
                "Exponent: an iteration's traffic": interval(
                    exponents(ramps, which, per_iteration)["exponent"]
                ),
                "one operator's": interval(exponents(ramps, which, per_iteration_of_one)["exponent"]),
                "a doubling's": interval(exponents(ramps, which, per_doubling)["exponent"]),
            }
        )
    return pd.DataFrame(rows)
