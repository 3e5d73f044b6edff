"""Erratum, Algorithms 4, 6, 8 and 10: one counter of acks for all operations of an instance.

Of two operations that overlap, the second sets the counter back, and the first never ends: its new nodes
are never started. Smallest repair: acks name their operation, and each operation counts its own. The
shortest run that fails so.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from paper_figures.decentralized.sequence import chart_of, sequence_chart


def load(tables: Path) -> pd.DataFrame:
    return chart_of(tables, "one_counter")


draw = sequence_chart
