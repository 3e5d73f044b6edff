"""Break-even: from which price of a violation on EKF is cheaper than GW, for any price of a core hour.

Above a line EKF is cheaper. Where EKF has no fewer violations than GW it never is ("never"), and where it
needs no more VM time it always is ("always"). The dot is the printed $0.059 at $0.0612 an hour (Eq. 21),
which compares percentages.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.plotting import PAGE_WIDTH_IN
from paper_figures.ekf.break_even import CORE_HOUR_PRICE, PRINTED_PRICE, trades

PRICES = np.geomspace(0.005, 1.0, 40)  # $ per core hour
COLOURS = {"pyramid": "#0072B2", "square": "#E69F00", "lab": "#009E73", "all": "#30363D"}


def load(tables: Path) -> pd.DataFrame:
    rows = [
        (trade.origin, trade.scenario, price, trade.price_per_violation(price))
        for trade in trades(tables)
        for price in PRICES.tolist()
    ]
    columns = ["origin", "scenario", "core_hour_price", "violation_price"]
    return pd.DataFrame(rows, columns=columns).astype({"violation_price": float})


def draw(curves: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(PAGE_WIDTH_IN, 2.8))
    axes = figure.subplots(1, 2, sharex=True, sharey=True)
    titles = {"published": "By the published amounts", "ours": "By ours"}
    for axis, (origin, title) in zip(axes, titles.items(), strict=True):
        for scenario, rows in curves[curves["origin"] == origin].groupby("scenario", sort=False):
            known = rows[rows["violation_price"] > 0]
            label = str(scenario) if len(known) else f"{scenario}: {_why_none(rows)}"
            colour = COLOURS[str(scenario)]
            axis.plot(known["core_hour_price"], known["violation_price"], color=colour, label=label)
        axis.plot([CORE_HOUR_PRICE], [PRINTED_PRICE], "o", color="#C4513A", label="Eq. 21 as printed")
        axis.axvline(CORE_HOUR_PRICE, color="#9AA3AE", linewidth=0.7, linestyle=(0, (4, 3)))
        axis.set(xscale="log", yscale="log", xlabel="Price of a core hour ($)")
        axis.set_ylabel("Price of a violation ($)")
        axis.set_title(title, fontsize=7)
        axis.legend(loc="upper right", fontsize=6)
    return figure


def _why_none(rows: pd.DataFrame) -> str:
    return "never" if rows["violation_price"].isna().all() else "always"
