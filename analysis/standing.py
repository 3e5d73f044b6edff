"""Which policy to take: service first, then cost.

The cheapest policy is often the one that leaves work undone, so cost decides only among those that keep
service. A policy misses service by the worst of its shares: records not processed by the workload's end, time
to work off the backlog, records past their deadline, time in which the objective was missed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import combinations
from math import inf, isnan, nan

import pandas as pd

from analysis.metrics.labels import measured
from analysis.statistics import Comparison, compare
from analysis.verdicts import Test

SIGNIFICANT = 0.05
TESTS: Mapping[Test, str] = {"paired": "t-test of pairs by seed", "welch": "Welch's t-test"}
MOST_MISSED = 0.05
RULE = f"Rule: service first (late records, backlog, objective: {100 * MOST_MISSED:g} % at most), then cost."


@dataclass(frozen=True, slots=True)
class Standing:
    """One policy's place, means over its runs."""

    policy: str
    runs: int
    cost: float  # replica-minutes; NaN where it is not known
    missed_ratio: float  # the worst share; NaN where none is known
    missed: str  # what that share is of, in words

    @property
    def keeps_service(self) -> bool:
        return self.missed_ratio <= MOST_MISSED

    @property
    def service(self) -> str:
        """In a few words, for a table."""
        if isnan(self.missed_ratio):
            return "not measured"
        return "kept" if self.keeps_service else f"{_percent(self.missed_ratio)} {self.missed}"


def standings(metrics: pd.DataFrame) -> list[Standing]:
    """Best first: those that keep service by cost, then the others by how much they miss."""
    places = [_standing(str(policy), runs) for policy, runs in metrics.groupby("policy", sort=True)]
    return sorted(places, key=_place)


def _place(standing: Standing) -> tuple[bool, float, float]:
    cost = inf if isnan(standing.cost) else standing.cost
    if standing.keeps_service:
        return False, cost, standing.missed_ratio
    return True, inf if isnan(standing.missed_ratio) else standing.missed_ratio, cost


def _standing(policy: str, runs: pd.DataFrame) -> Standing:
    means = {name: _mean(runs, name) for name in (*_MISSED, "cost", "processed_ratio", "processed_records")}
    shares = {words: share(means) for share, words in _MISSED.values()}
    known = {words: value for words, value in shares.items() if not isnan(value)}
    worst = max(known, key=lambda words: known[words], default="")
    return Standing(policy, len(runs), means["cost"], known.get(worst, nan), worst)


def _mean(runs: pd.DataFrame, name: str) -> float:
    return float(runs[name].astype(float).mean()) if name in runs else nan


def _late_ratio(means: Mapping[str, float]) -> float:
    """Late records as a share of all that were offered."""
    if not means["processed_records"] > 0:
        return nan
    return means["late_records"] * means["processed_ratio"] / means["processed_records"]


_MISSED: Mapping[str, tuple[Callable[[Mapping[str, float]], float], str]] = {
    "processed_ratio": (lambda means: 1 - means["processed_ratio"], "of records not in time"),
    "excess_time": (lambda means: means["excess_time"], "of the span to work off the backlog"),
    "late_records": (_late_ratio, "of records past their deadline"),
    "steady_violation_timeshare": (
        lambda means: means["steady_violation_timeshare"] / 100,
        "of time the objective was missed",
    ),
}


def headline(metrics: pd.DataFrame, places: Sequence[Standing] | None = None) -> str:
    """The first thing to know about several policies: which one to take, and how sure that is."""
    places = standings(metrics) if places is None else places
    kept = [place for place in places if place.keeps_service and not isnan(place.cost)]
    others = [place for place in places if not place.keeps_service]
    if not kept:
        return f"No policy keeps service; {_closest(others)}." if others else ""
    best, *beaten = kept
    text = f"{best.policy} is the cheapest that keeps service: {best.cost:,.0f} replica-minutes"
    if beaten:
        text += f", {_less(metrics, best, beaten[0])}"
    if not others:
        return f"{text}."
    if beaten:
        lost = (
            f"{others[0].policy} does" if len(others) == 1 else f"{len(others)} of {len(places)} policies do"
        )
        return f"{text}. {lost} not keep it."
    return f"{text}. No other policy keeps it; {_closest(others)}."


def _closest(others: Sequence[Standing]) -> str:
    first = others[0]
    if isnan(first.missed_ratio):
        return "nothing was measured that tells"
    return f"{first.policy} comes closest ({first.service})"


def _less(metrics: pd.DataFrame, best: Standing, second: Standing) -> str:
    pair = compare(metrics, "cost", a=second.policy, b=best.policy)
    doubt = ", so perhaps by chance" if pair.p >= SIGNIFICANT else ""
    sure = "" if isnan(pair.p) else f" ({p_text(pair.p)}, {TESTS[pair.test]}{doubt})"
    return f"{abs(100 * pair.relative):.1f} % less than {second.policy}{sure}"


def p_text(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def _percent(ratio: float) -> str:
    return f"{100 * ratio:.1f} %" if ratio < 0.995 else f"{100 * ratio:.0f} %"


def marks(metrics: pd.DataFrame, name: str, lower_is_better: bool) -> dict[str, str]:
    """Policy -> "*" for the best mean of a metric, "=" where runs do not tell a policy from that one."""
    means = metrics.groupby("policy")[name].mean().astype(float).dropna()
    if means.nunique() < 2:
        return {}  # nothing to choose
    best = float(means.min() if lower_is_better else means.max())
    first = str(means.index[means == best][0])
    values = {str(policy): float(value) for policy, value in means.items()}
    return {policy: _mark(metrics, name, first, policy, value == best) for policy, value in values.items()}


def _mark(metrics: pd.DataFrame, name: str, best: str, policy: str, is_best: bool) -> str:
    if is_best:
        return "*"
    return "=" if compare(metrics, name, a=best, b=policy).p >= SIGNIFICANT else ""


def pairs(metrics: pd.DataFrame) -> pd.DataFrame:
    """Every pair of policies by every metric: one row each, with p and its test."""
    rows = []
    for (experiment, workload), group in metrics.groupby(["experiment", "workload"], sort=True):
        place = {"experiment": experiment, "workload": workload}
        for a, b in combinations(sorted(group["policy"].unique()), 2):
            rows += [place | asdict(compare(group, name, a=a, b=b)) for name, _ in measured(group)]
    columns = ["experiment", "workload", *(field.name for field in fields(Comparison))]
    return pd.DataFrame(rows, columns=columns)
