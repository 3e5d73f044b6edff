"""The claims of a paper's text, recomputed.

Each claim is a relative change between two policies, or the mean of one policy against a limit (Student's t
and its interval). The interval of a change is Fieller's for a ratio of means
(analysis.statistics.compare): it knows that the baseline's mean is uncertain too, and, as the test does, that
runs with one seed share their arrivals. The p of all claims of a paper are corrected together (Holm).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from pydantic import BaseModel

from analysis.metrics.labels import label_of
from analysis.statistics import Comparison, Test, compare, estimate, holm, paired
from paper_figures.published import Claim, Limit, Published

State = Literal["holds", "in direction only", "does not hold"]
"""In direction only: significant and as published, but of another size than the interval allows."""


class JudgedClaim(BaseModel):
    """A claim with the published and our value in its unit; None: it cannot be computed, or is not given."""

    text: str
    published: float | None
    ours: float | None
    low: float | None
    high: float | None
    holds: bool  # in its size, too
    state: State
    p: float | None  # corrected
    test: Test
    correction: Literal["holm"] = "holm"
    unit: str = "%"


def judged_claims(metrics: pd.DataFrame, published: Published, level: float = 0.05) -> list[JudgedClaim]:
    found = [_found(metrics, claim, published.test, level) for claim in published.claims]
    corrected = holm([each.p for each in found])
    return [
        _judged(claim, each, float(p), published.test, level)
        for claim, each, p in zip(published.claims, found, corrected, strict=True)
    ]


class _Found(NamedTuple):
    """Of a claim, in its unit."""

    ours: float
    low: float
    high: float
    p: float
    in_direction: bool
    unit: str = "%"


def _found(metrics: pd.DataFrame, claim: Claim, test: Test, level: float) -> _Found:
    if claim.limit is not None:
        return _against_limit(metrics, claim.limit, claim.scenario, level)
    found = _compared(metrics, claim, test, level)
    low, high = sorted(claim.sign * 100 * end for end in (found.relative_low, found.relative_high))
    return _Found(claim.sign * 100 * found.relative, low, high, found.p, claim.sign * found.difference > 0)


def _against_limit(metrics: pd.DataFrame, limit: Limit, scenario: str | None, level: float) -> _Found:
    runs = metrics[metrics["policy"] == limit.of]
    if scenario is not None:
        runs = runs[runs["scenario"] == scenario]
    values = runs[limit.metric].dropna().to_numpy(dtype=float)
    found = estimate(values, 1 - level)
    p = paired(values, np.full_like(values, limit.value))
    in_direction = limit.sign * (found.mean - limit.value) > 0
    return _Found(found.mean, found.low, found.high, p, in_direction, label_of(limit.metric).unit)


def _compared(metrics: pd.DataFrame, claim: Claim, test: Test, level: float) -> Comparison:
    change = claim.change
    summed = _summed(metrics, claim)
    return compare(summed, "total", change.against, change.of, confidence=1 - level, test=test)


def _judged(claim: Claim, found: _Found, p: float, test: Test, level: float) -> JudgedClaim:
    ends = (found.low, found.high)
    state = _state(claim, bool(found.in_direction and p < level), ends)
    return JudgedClaim(
        text=claim.text,
        published=claim.published,
        ours=_known(found.ours),
        low=_known(ends[0]),
        high=_known(ends[1]),
        holds=state == "holds",
        state=state,
        p=_known(p),
        test=test,
        unit=found.unit,
    )


def _state(claim: Claim, is_significant: bool, ends: Sequence[float]) -> State:
    if not is_significant:
        return "does not hold"
    if claim.published is None or ends[0] <= claim.published <= ends[1]:
        return "holds"
    return "in direction only"


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
    if claim.limit is not None:
        tables = published.tables.values() if claim.scenario is None else [published.tables[claim.scenario]]
        row = next((table[claim.limit.of] for table in tables if claim.limit.of in table), {})
        return row.get(claim.limit.metric)
    change = claim.change
    tables = published.tables.values() if claim.scenario is None else [published.tables[claim.scenario]]
    rows = [(table.get(change.of, {}), table.get(change.against, {})) for table in tables]
    if any(metric not in row for pair in rows for row in pair for metric in change.metrics):
        return None
    of, against = (sum(pair[side][metric] for pair in rows for metric in change.metrics) for side in (0, 1))
    return claim.sign * 100 * (of / against - 1)
