"""Beyond the paper: how many days Q-learning needs to reach what model-based learning costs.

Both as in the figure of costs over runs; Q-learning's cost is a mean over ten runs. Days are days of
operation. Each has the load of ten days, since the experiment goes ten times as fast as the taxis did.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from paper_figures.edf.learning_curves import RUN_DAYS, learning, runs_until, settled_cost

WITHIN = (0.5, 0.2, 0.1, 0.05, 0.0)


def load(tables: Path) -> pd.DataFrame:
    rows = learning(tables)
    if rows.empty:
        return rows
    length, settled = int(rows["run"].max()), settled_cost(rows)
    table = []
    for within in WITHIN:
        runs = runs_until(rows, within)
        reached = f"{runs}" if runs is not None else f"not in {length}"
        days = f"{runs * RUN_DAYS:g}" if runs is not None else f"not in {length * RUN_DAYS:g}"
        table.append(
            {
                "Above model-based (%)": f"{100 * within:g}",
                "Cost per turn": f"{(1 + within) * settled:.3f}",
                "Runs": reached,
                "Days": days,
            }
        )
    return pd.DataFrame(table)
