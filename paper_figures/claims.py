"""The claims of a paper's text, recomputed.

Each claim is a relative change between two policies, or the mean of one policy against a limit (Student's t
and its interval). The interval of a change is Fieller's for a ratio of means
(analysis.statistics.compare): it knows that the baseline's mean is uncertain too, and, as the test does, that
runs with one seed share their arrivals. The p of all claims of a paper are corrected together (Holm).
Other claims are a number that the paper's own statements.py measures in every seed: its mean, with Student's
interval, has to lie within the bounds that published.yml gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf, isfinite, isnan
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from pydantic import BaseModel

from analysis.metrics.labels import label_of
from analysis.statistics import Comparison, compare, estimate, holm, paired
from analysis.verdicts import Test
from fogscale.errors import FogscaleError, unknown
from paper_figures.published import Claim, Limit, Measured, Published

Statements = Mapping[str, Sequence[float]]
"""By name, one value per seed; one value alone for what is exact. NaN where a seed has none."""

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
    test: Test | Literal["bounds"]
    correction: Literal["holm"] | None = "holm"
    unit: str = "%"

    def text_of(self, value: float) -> str:
        shown = f"{value:.4g}" if self.test == "bounds" and self.unit != "%" else f"{value:.1f}"
        return f"{shown.replace('-', '−')} {self.unit}".rstrip()


def judged_claims(
    metrics: pd.DataFrame, published: Published, level: float = 0.05, statements: Statements | None = None
) -> list[JudgedClaim]:
    """In the order of the paper. Without statements, only the claims about metrics."""
    comparing = [claim for claim in published.claims if claim.measured is None]
    found = [_found(metrics, claim, published.test, level) for claim in comparing]
    corrected: Iterable[float] = holm([each.p for each in found]) if found else ()
    judged = [
        _judged(claim, each, float(p), published.test, level)
        for claim, each, p in zip(comparing, found, corrected, strict=True)
    ]
    if statements is None:
        return judged
    following = iter(judged)
    return [
        next(following) if claim.measured is None else _within(claim, claim.measured, statements, level)
        for claim in published.claims
    ]


def _within(claim: Claim, measured: Measured, statements: Statements, level: float) -> JudgedClaim:
    if measured.of not in statements:
        raise FogscaleError(f"claim '{claim.text}': {unknown('statement', measured.of, statements)}")
    values = np.array([value for value in statements[measured.of] if not isnan(value)])
    mean = float(values.mean()) if values.size else float("nan")
    half = estimate(values, 1 - level).high - mean if values.size > 1 else 0.0
    lowest = -inf if measured.at_least is None else measured.at_least
    highest = inf if measured.at_most is None else measured.at_most
    holds = bool(lowest <= mean - half and mean + half <= highest)
    return JudgedClaim(
        text=claim.text,
        published=claim.published,
        ours=_known(mean),
        low=_known(mean - half),
        high=_known(mean + half),
        holds=holds,
        state="holds" if holds else "does not hold",
        p=None,
        test="bounds",
        correction=None,
        unit=measured.unit,
    )


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
