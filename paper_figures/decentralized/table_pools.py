"""An elastic pool of nodes, as the paper assumes, and bounded ones.

The policy in the ordinary loop, on the walk of Figures 3 to 5; means over seeds with 95 % intervals. A
duplication that finds no node is refused, the instance goes on as before, and asks again at its next look.
What a full pool costs is records that wait: instances that would have been there are missing.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from paper_figures.decentralized.statements import interval

COLUMNS = {
    "most_nodes": ("Most nodes at a time", 1.0, 1),
    "wanted": ("New nodes asked for", 1.0, 0),
    "refused": ("Refused", 1.0, 0),
    "accuracy": ("Nodes / ideal", 1.0, 3),
    "throughput_ratio": ("Share of the ideal throughput (%)", 100.0, 2),
}


def load(tables: Path) -> pd.DataFrame:
    pools = pd.read_parquet(tables / "pools.parquet")
    rows = []
    for size, runs in pools.groupby(pools["pool"].astype(int), sort=False):
        row: dict[str, object] = {
            "Pool": f"{int(str(size))} nodes" if size else "elastic",
            "Seeds": len(runs),
        }
        row |= {name: interval(scale * runs[key], digits) for key, (name, scale, digits) in COLUMNS.items()}
        rows.append(row)
    return pd.DataFrame(rows)
