"""Messages of one round with quiet neighbours: counted, and by the formulas of §5.4.

All combinations of 1 to 16 predecessors, 1 to 7 instances, 1 to 14 successors, and 1 to 14 new instances
or all deletions that leave the keeper; by what is 2·min(k, n)(|succs| + |preds|) + k for k new instances,
as realised, and 2(|succs| + |preds|) for each deletion. Asking for n_t is counted apart.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd


def load(tables: Path) -> pd.DataFrame:
    rounds = pd.read_parquet(tables / "rounds.parquet")
    rows = []
    for kind, some in rounds.groupby("kind", sort=False):
        rows.append(
            {
                "Round": f"{kind}s",
                "Rounds counted": len(some),
                "Fewest messages": int(some["counted"].min()),
                "Most": int(some["counted"].max()),
                "As the formula says": int((some["counted"] == some["formula"]).sum()),
                "Otherwise": int((some["counted"] != some["formula"]).sum()),
            }
        )
    return pd.DataFrame(rows)
