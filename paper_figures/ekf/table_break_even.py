"""Break-even of EKF against GW, by amounts and prices (Eq. 20 to 23).

At the paper's price of a core hour, $0.0612. The paper compares percentages and finds that EKF pays off above
$0.059 per violation; its own tables, with VM time in VM-seconds, say a few millionths of a dollar. "never"
where EKF saves nothing.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from paper_figures.ekf.break_even import trades


def load(tables: Path) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "": trade.origin,
                "Scenario": trade.scenario.capitalize(),
                "More VM hours a run": f"{trade.more_vm_h:.3f}",
                "Fewer violations": f"{trade.fewer_violations:,.0f}",
                "Pays off above, $ per 1000 violations": _price(trade.price_per_violation()),
                "Less processing time, s of all images": f"{trade.fewer_image_s:,.0f}",
                "Pays off above, $ per 1000 s": _price(trade.price_per_image_s()),
            }
            for trade in trades(tables)
        ]
    )


def _price(price: float | None) -> str:
    return "never" if price is None else f"{1000 * price:.5f}"
