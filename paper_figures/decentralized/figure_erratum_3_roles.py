"""Erratum, Algorithms 5 and 9: a node that is not active looks the sender up in sets that are still empty.

So it acks newcomers and leavers, and forgets them. Smallest repair: the sender's operator tells whether it
is a successor or a predecessor. The shortest run that fails so.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from paper_figures.decentralized.sequence import chart_of, sequence_chart


def load(tables: Path) -> pd.DataFrame:
    return chart_of(tables, "by_view")


draw = sequence_chart
