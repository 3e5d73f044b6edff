"""The same walks by the paper's clock and through the ordinary loop.

The seeds that went both ways, means over steps and seeds with 95 % intervals. In the loop an instance
sees the load of the step before, and a new node is created first and announced in the step after; so the
nodes are later by some steps, and more of them have to be corrected. The protocol is the same code.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from paper_figures.decentralized.statements import delay_steps, interval

NAMES = {"steps": "paper's clock", "loop": "policy in the loop"}


def load(tables: Path) -> pd.DataFrame:
    steps = pd.read_parquet(tables / "steps.parquet")
    both = steps[steps["seed"].isin(steps.loc[steps["way"] == "loop", "seed"])]
    rows = []
    for way, runs in both.groupby("way", sort=False):
        seeds = [rows for _, rows in runs.groupby("seed")]
        rows.append(
            {
                "": NAMES[str(way)],
                "Seeds": len(seeds),
                "Nodes": interval([float(run["nodes"].mean()) for run in seeds]),
                "Messages a step": interval([float(run["messages"].mean()) for run in seeds]),
                "Share of the ideal throughput (%)": interval(
                    [100 * float(run["processed"].sum() / run["load"].sum()) for run in seeds]
                ),
                "Steps behind the load": interval([delay_steps(run) for run in seeds]),
            }
        )
    return pd.DataFrame(rows)
