"""Erratum, Algorithm 6: a start tells the new node its parent's view alone.

A neighbour that leaves meanwhile is missing from that view, although its records and its deletion are on
their way to the new node. If the new node leaves at once, it terminates before they arrive. Smallest
repair: a deletion says whom it is sent to; if the new node is among them, the start keeps the leaver, which
tells the node itself. The shortest run that fails so.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from paper_figures.decentralized.sequence import chart_of, sequence_chart


def load(tables: Path) -> pd.DataFrame:
    return chart_of(tables, "view_alone")


draw = sequence_chart
