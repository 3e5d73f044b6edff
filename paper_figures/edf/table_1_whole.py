"""Table 1 with nothing left out.

As published beside our runs from their first to their last second: what changes cost is in every number.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from paper_figures.edf.rows import both

TABLE = "metrics_whole"


def load(tables: Path) -> pd.DataFrame:
    return both(tables, TABLE)
