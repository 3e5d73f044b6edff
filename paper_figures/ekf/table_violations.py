"""Violations: how many a run can have at most, by the published mean times.

Of images that take 2 s in the mean, at most two fifths can take more than 5 s (Markov's inequality), and
likewise of queries. So the published numbers of violations cannot be late records of one run: "needed" is how
many a run would have to offer. Only PURE's in Square could be, if nearly all of those late took 5 s and the
others no time. What was counted, and over what, the paper does not say; we compare the orders alone.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from paper_figures.ekf.arithmetic import bounds
from paper_figures.published import load as load_published


def load(_tables: Path) -> pd.DataFrame:
    published = load_published(Path(__file__).parent)
    return pd.DataFrame(
        [
            {
                "Scenario": bound.scenario.capitalize(),
                "Filter": published.label(bound.policy),
                "Violations, published": f"{bound.violations:,.0f}",
                "At most, by the mean times": f"{bound.most:,.0f}",
                "Images and queries offered": f"{bound.offered:,.0f}",
                "Needed": f"{bound.needed:,.0f}",
                "Possible": "yes" if bound.violations <= bound.most else "no",
            }
            for bound in bounds()
        ]
    )
