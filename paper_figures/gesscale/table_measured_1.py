"""Table III on a real Flink: published, simulated and measured.

Published and simulated: the paper's two days in 288 minutes. Measured: fewer hours on emulated nodes with
periods in proportion (see the runs below), so compare the order of policies; cost (replica-minutes) is
larger the longer a run takes. ± is half of the 95 % confidence interval (Student) over runs; a single run
has none.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from paper_figures.gesscale.table_3 import SYMBOLS, ours
from paper_figures.measured import METRICS
from paper_figures.published import load as load_published


def load(tables: Path) -> pd.DataFrame:
    if not (tables / METRICS).exists():
        return pd.DataFrame()
    published = load_published(Path(__file__).parent)
    simulated = pd.read_parquet(tables / "metrics.parquet")
    simulated = simulated[simulated["variation"] == ""]
    measured = pd.read_parquet(tables / METRICS)
    rows = []
    for policy in published.policies:
        name: dict[str, object] = {"Algorithm": published.label(policy)}
        said = {SYMBOLS[metric]: f"{published.table[policy][metric]:g}" for metric in published.metrics}
        rows.append(name | {"": "published", "runs": 1} | said)
        rows.append(name | _row("simulated", simulated[simulated["policy"] == policy], published.metrics))
        for scenario, runs in measured[measured["policy"] == policy].groupby("scenario", sort=False):
            rows.append(name | _row(f"measured: {scenario}", runs, published.metrics))
    return pd.DataFrame(rows)


def _row(what: str, runs: pd.DataFrame, metrics: tuple[str, ...]) -> dict[str, object]:
    values = {SYMBOLS[metric]: ours(metric, runs[metric]) for metric in metrics}
    return {"": what, "runs": len(runs), **values}
