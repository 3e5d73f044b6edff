"""Welch's tests for every pair of filters.

The paper rejects equal means for all 45 pairs but one, the VM time of GW and EKF in Square (p = 0.1092), and
says that all others have p < 0.004; "from the table" works this out again from its means and deviations. Ours
is from our runs.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from controller.experiment import load as load_experiment
from paper_figures.ekf.aggregate import NAMES
from paper_figures.ekf.deviations import published_p
from paper_figures.orders import records
from paper_figures.published import Order
from paper_figures.published import load as load_published

FOLDER = Path(__file__).parent


def load(tables: Path) -> pd.DataFrame:
    published, experiment = load_published(FOLDER), load_experiment(FOLDER / "experiment.yml")
    orders = pd.read_parquet(tables / "orders.parquet")
    rows = []
    for judged in records(orders):
        order = Order(**{field: judged[field] for field in Order._fields})
        from_table = published_p(order)
        rows.append(
            {
                "Scenario": experiment.scenarios[order.scenario].title,
                "Metric": NAMES[order.metric],
                "Pair": f"{published.label(order.a)}, {published.label(order.b)}",
                "p from the table": from_table,
                "Significant": from_table < experiment.significance,
                "p of ours": judged["p"],
                "Significant, ours": judged["p"] < experiment.significance,
            }
        )
    return pd.DataFrame(rows)
