"""Table III: over which period it was measured, from the table alone.

All eight shares of time are whole numbers of samples only if there were as many as said here; the cost rises
with accuracy_O − accuracy_U by the length of the period; and what is left of the cost is the mean number of
replicas that an ideal autoscaler has over it, row by row.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from paper_figures.gesscale.measuring_period import FEWEST_SAMPLES, LOAD_MIN, MOST_SAMPLES, period_of
from paper_figures.published import load as load_published


def load(_tables: Path) -> pd.DataFrame:
    published = load_published(Path(__file__).parent)
    found = period_of(published.table)
    minutes = round(found.minutes)
    rows = [
        ("Samples", f"{found.samples}", f"the only number from {FEWEST_SAMPLES} to {MOST_SAMPLES}"),
        ("Period", f"{found.minutes:.1f} min", f"largest residual of a cost: {found.residual:.2f}"),
        ("Between samples", f"{found.interval_s:g} s", f"{minutes} min / {found.samples}"),
        *(
            (
                f"Ideal, by {published.label(policy)}",
                f"{ideal:.3f}",
                _arithmetic(published.table[policy], minutes),
            )
            for policy, ideal in zip(published.table, found.ideals, strict=True)
        ),
        ("Ideal, mean", f"{found.mean_ideal:.3f}", "over the period; zero after the load"),
        (
            "Ideal, while there is load",
            f"{found.mean_ideal_under_load:.3f}",
            f"{found.mean_ideal:.3f} · {minutes} / {LOAD_MIN:.0f}",
        ),
    ]
    return pd.DataFrame(rows, columns=["", "Value", "How"])


def _arithmetic(row: dict[str, float], minutes: int) -> str:
    return f"{row['cost']:g} / {minutes} − ({row['accuracy_o']:g} − {row['accuracy_u']:g})"
