"""Table 1: all 15 rows, published and ours.

TH: thresholds, QL: Q-learning, MB: model-based learning; res: weights (.4, .4, .2) of slow records, replicas
and changes; rcf: (.4, .2, .4). The first 30 minutes and 2 minutes after each change are left out, but for the
downtime. A dash: nothing is left, since no change is ever 2 minutes away from the next.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from paper_figures.edf.rows import both

TABLE = "metrics"


def load(tables: Path) -> pd.DataFrame:
    return both(tables, TABLE)
