"""Table 4: aggregate results for the Square scenario, published and ours.

Means over all runs, standard deviations in brackets.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from paper_figures.ekf.aggregate import aggregate


def load(tables: Path) -> pd.DataFrame:
    return aggregate(tables, "square")
