"""Figure 2: what goes wrong if channels are not FIFO.

Found by exploring all orders of delivery, the shortest run that shows it. O0,1 duplicates (N1 in the
paper) while O1,2 leaves (N2). The ack of O1,2 overtakes its deletion, so the new instance O0,1.1 starts with
O1,2 among its successors and sends it a record after it has terminated. With FIFO channels no order shows it.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from paper_figures.decentralized.sequence import chart_of, sequence_chart


def load(tables: Path) -> pd.DataFrame:
    return chart_of(tables, "figure-2")


draw = sequence_chart
