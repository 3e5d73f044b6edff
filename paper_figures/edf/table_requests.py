"""What operator managers asked for, and what the application manager granted.

The first seed. Published for Q-learning with the token bucket: less than 1 % of the requests are accepted
(§9).
"""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

from paper_figures.published import load as load_published


def load(tables: Path) -> pd.DataFrame:
    published = load_published(Path(__file__).parent)
    decisions = pd.read_parquet(tables / "decisions.parquet")
    rows = []
    for policy in published.policies:
        told = decisions.loc[decisions["policy"] == policy, "estimates"].map(json.loads)
        counts = [each for each in told if "asked" in each]
        asked, granted = (int(counts[-1][name]) if counts else 0 for name in ("asked", "granted"))
        rows.append(
            {
                "Policy": published.label(policy),
                "Asked": asked,
                "Granted": granted,
                "Granted (%)": f"{100 * granted / asked:.1f}" if asked else "–",
            }
        )
    return pd.DataFrame(rows)
