"""Erratum, Algorithms 8 to 10: all neighbours are told of a deletion at once.

Successors then forget the leaver while records still reach it. One of them may leave in turn and terminate
before the leaver's last records arrive: they are lost. Smallest repair: tell the predecessors first, and
the successors once all acks are in and the queue is empty. It takes as many messages, and four steps
instead of two. The shortest run that fails so.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from paper_figures.decentralized.sequence import chart_of, sequence_chart


def load(tables: Path) -> pd.DataFrame:
    return chart_of(tables, "all_at_once")


draw = sequence_chart
