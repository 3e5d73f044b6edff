"""What the published numbers say by themselves, before any run of ours.

Worked out from the paper's tables and text alone.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from paper_figures.ekf.arithmetic import Odd, ceiling_by_deviations, odd_claims, rankings, remainders
from paper_figures.published import Published
from paper_figures.published import load as load_published


def load(_tables: Path) -> pd.DataFrame:
    published = load_published(Path(__file__).parent)
    rows = [*_of_tables(published), *(_claim(odd) for odd in odd_claims(published))]
    return pd.DataFrame(rows, columns=["What", "Found", "So"])


def _of_tables(published: Published) -> list[tuple[str, str, str]]:
    (remainder, values), *others = remainders().most_common()
    (_, alike), *_ = rankings(published).most_common()
    triples = len(published.tables) * len(published.metrics)
    agree, low, high = ceiling_by_deviations(published)
    orders = len(list(published.orders()))
    return [
        (
            "Table 2: violations, divided by 6",
            f"{values} of {values + sum(count for _, count in others)} leave a remainder of {remainder}",
            "Means of 180 runs would leave any; what they are is not known, so Table 2 is no target here",
        ),
        (
            "Tables 3 to 5: rankings of the three filters, by metric",
            f"{alike} of {triples} have GW in the middle and the same ends",
            f"The {orders} orders are not independent: one mechanism may decide most of them",
        ),
        (
            "Tables 3 to 5: the paper's own deviations",
            f"20 new runs would confirm {agree:.1f} of {orders} orders ({low:.0f} to {high:.0f})",
            "So chance explains hardly any order that does not agree",
        ),
    ]


def _claim(odd: Odd) -> tuple[str, str, str]:
    so = "May be rounding of the table's values" if odd.may_be_rounding else "No rounding explains it"
    return f"Text: {odd.claim.text}", f"The tables give {odd.from_table:.1f} %", so
