"""The claims of a paper's text, recomputed.

Each claim is a relative change between two policies. Its interval is Fieller's for a ratio of means
(analysis.statistics.compare): it knows that the baseline's mean is uncertain too. Policies share their
arrivals seed by seed, which the interval ignores: sharing could only narrow it, so it errs on the safe side,
as Welch's test does for the orders.
"""

from __future__ import annotations

from math import isfinite

import pandas as pd
from pydantic import BaseModel

from analysis.statistics import compare
from paper_figures.published import Claim, Published


class JudgedClaim(BaseModel):
    """A claim with the published and our value in %; None where it cannot be computed or is not given."""

    text: str
    published: float | None
    ours: float | None
    low: float | None
    high: float | None
    holds: bool  # the change has the published direction, and is significant


def judged_claims(metrics: pd.DataFrame, published: Published, level: float = 0.05) -> list[JudgedClaim]:
    return [_judged(metrics, claim, level) for claim in published.claims]


def _judged(metrics: pd.DataFrame, claim: Claim, level: float) -> JudgedClaim:
    change = claim.change
    summed = _summed(metrics, claim)
    found = compare(summed, "total", change.against, change.of, confidence=1 - level)
    ends = sorted(claim.sign * 100 * end for end in (found.relative_low, found.relative_high))
    return JudgedClaim(
        text=claim.text,
        published=claim.published,
        ours=_known(claim.sign * 100 * found.relative),
        low=_known(ends[0]),
        high=_known(ends[1]),
        holds=bool(claim.sign * found.difference > 0 and found.p < level),
    )


def _summed(metrics: pd.DataFrame, claim: Claim) -> pd.DataFrame:
    """The claim's metrics added up, seed by seed and over all scenarios unless the claim is about one."""
    if claim.scenario is not None:
        metrics = metrics[metrics["scenario"] == claim.scenario]
    totals = metrics[list(claim.change.metrics)].astype(float).sum(axis=1)
    return metrics[["policy", "seed"]].assign(total=totals).groupby(["policy", "seed"], as_index=False).sum()


def _known(value: float) -> float | None:
    return value if isfinite(value) else None


def from_published_table(claim: Claim, published: Published) -> float | None:
    """What the claim's formula gives for the paper's own table, in %; None where the table lacks a metric."""
    change = claim.change
    tables = published.tables.values() if claim.scenario is None else [published.tables[claim.scenario]]
    rows = [(table.get(change.of, {}), table.get(change.against, {})) for table in tables]
    if any(metric not in row for pair in rows for row in pair for metric in change.metrics):
        return None
    of, against = (sum(pair[side][metric] for pair in rows for metric in change.metrics) for side in (0, 1))
    return claim.sign * 100 * (of / against - 1)
