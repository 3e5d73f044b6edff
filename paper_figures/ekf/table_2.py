"""Table 2: SLA violations for every pair of thresholds, published and ours, in thousands.

Shown, but no target: all 21 published numbers leave a remainder of 2 when divided by 6, so they are not what
the caption says they are, means of 180 runs; what they are is not known. Ours is the mean over all filters
and scenarios, of the runs of sweeps.yml. The
least of each is marked with an asterisk. From Θ⁻ = 50 % on, ours flaps: a VM that boots counts as an idle one
here, so that a full VM and a booting one average to 50 %, and PURE and GW take the new one away half a second
after they asked for it, thousands of times in a run. That gives violations of the published size, which our
calm runs are far from. "Kept": booting VMs are never a reason to take some away.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

SWEEPS = {"ours": "thresholds/", "ours, kept": "thresholds_kept/"}
HIGH = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
PUBLISHED = {  # by Θ⁻, then as many as there are Θ⁺ above it
    0.4: (65.144, 63.596, 63.554, 61.160, 69.434, 67.850),
    0.5: (63.632, 61.484, 60.056, 62.450, 67.244),
    0.6: (61.370, 65.000, 65.678, 69.098),
    0.7: (67.628, 69.668, 75.818),
    0.8: (79.508, 80.168),
    0.9: (79.154,),
}

Grid = dict[tuple[float, float], float]


def load(tables: Path) -> pd.DataFrame:
    metrics = pd.read_parquet(tables / "metrics.parquet")
    swept = {title: ours(metrics, sweep) for title, sweep in SWEEPS.items()}
    if not any(swept.values()):  # a build without what takes long
        return pd.DataFrame()
    grids = {"published": published()} | swept
    rows = []
    for origin, grid in grids.items():
        least = min(grid.values(), default=float("nan"))
        for low in PUBLISHED:
            cells = {f"Θ⁺ = {high:.0%}": _cell(grid.get((low, high)), least) for high in HIGH}
            rows.append({"": origin, "Θ⁻": f"{low:.0%}"} | cells)
    return pd.DataFrame(rows)


def published() -> Grid:
    return {
        (low, high): value
        for low, row in PUBLISHED.items()
        for high, value in zip(HIGH[-len(row) :], row, strict=True)
    }


def ours(metrics: pd.DataFrame, sweep: str) -> Grid:
    """Thousands of late records in a run, by both thresholds."""
    swept = metrics[metrics["variation"].str.startswith(sweep)]
    grid: Grid = {}
    for name, runs in swept.groupby("variation"):
        low, high = map(float, str(name).removeprefix(sweep).split("/"))
        by_configuration = runs.groupby(["scenario", "policy"])["late_records"].mean()
        grid[low, high] = float(by_configuration.mean()) / 1000
    return grid


def _cell(value: float | None, least: float) -> str:
    if value is None:
        return ""
    return f"{value:.3f}{' *' if value == least else ''}"
