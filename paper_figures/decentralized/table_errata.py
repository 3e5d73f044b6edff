"""Errata: the paper as printed, beside what is meant.

The walk of Figures 3 to 5, means over seeds. Algorithm 2 rounds down, Algorithm 4 draws against the whole
p and makes no single instance, Algorithm 8 draws against a negative number; the other readings break the
protocol (docs/decentralized.md). Wrong: nodes too many or too few; stuck: instances that still wait at the
end, once all messages are through; views agree: runs after which every instance has exactly its neighbours
in view. One counter and the view alone need overlaps that this load never has; exploration finds what they
break.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

COLUMNS = {
    "accuracy": ("Nodes / ideal", 3),
    "wrong_ratio": ("Wrong / ideal", 3),
    "throughput_ratio": ("Throughput / ideal", 4),
    "messages": ("Messages a step", 1),
    "stuck": ("Stuck", 1),
}
NAMES = {
    "": "as meant",
    "floor_difference": "Algorithm 2: n_diff rounded down",
    "whole_probability": "Algorithm 4: applyProba(p)",
    "more_than_one": "Algorithm 4: n > 1",
    "signed_deletion": "Algorithm 8: negative p",
    "all_at_once": "Algorithm 8: all told at once",
    "by_view": "Algorithms 5, 9: sender looked up",
    "one_counter": "one nbAck",
    "view_alone": "Algorithm 6: parent's view alone",
}


def load(tables: Path) -> pd.DataFrame:
    errata = pd.read_parquet(tables / "errata.parquet")
    rows = []
    for reading, runs in errata.groupby("reading", sort=False):
        row: dict[str, object] = {"Reading": NAMES.get(str(reading), "the last four together")}
        row |= {name: round(float(runs[key].mean()), digits) for key, (name, digits) in COLUMNS.items()}
        rows.append(row | {"Views agree": f"{int(runs['views_agree'].sum())} of {len(runs)}"})
    return pd.DataFrame(rows)
