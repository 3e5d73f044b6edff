"""How traffic grows with the number of nodes, on ramps of other slopes.

Exponents of a power law, fitted for every seed, with the 95 % interval of their mean. §5.4 calls the
traffic quadratic. That is what doubling the nodes costs on every ramp; an iteration's traffic is nearly
quadratic only where the load grows by a share of itself, so that the more instances there are, the more
are added at a time.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from paper_figures.decentralized.statements import exponents, interval, per_doubling, per_iteration


def load(tables: Path) -> pd.DataFrame:
    ramps = pd.read_parquet(tables / "ramps.parquet")
    rows = []
    for (shape, growth), some in ramps.groupby(["shape", "growth"], sort=False):
        which = str(shape), float(str(growth))
        name = f"{which[1]:g} records a step" if shape == "straight" else f"{100 * which[1]:g} % a step"
        rows.append(
            {
                "Ramp": name,
                "Seeds": int(some["seed"].nunique()),
                "Nodes in the end": round(float(some[some["step"] == some["step"].max()]["nodes"].mean()), 1),
                "Exponent of an iteration's traffic": interval(
                    exponents(ramps, which, per_iteration)["exponent"]
                ),
                "Exponent of a doubling's traffic": interval(
                    exponents(ramps, which, per_doubling)["exponent"]
                ),
            }
        )
    return pd.DataFrame(rows)
