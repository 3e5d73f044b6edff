"""What the published tables say by themselves: no run of ours is in any of these numbers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import ttest_ind

from analysis.statistics import holm
from controller.experiment import load as load_experiment
from controller.testbeds.simulated.settings import Kind, simulation_of
from paper_figures.claims import from_published_table
from paper_figures.ekf import table_2
from paper_figures.ekf.deviations import published_runs, published_sd
from paper_figures.published import Claim, Published
from paper_figures.published import load as load_published
from workloads import catalog

FOLDER = Path(__file__).parent
DIGITS = {"instance_time_s": 100.0, "reconfigurations": 0.1, "late_records": 100.0}  # others: 0.1 s
DRAWS, DRAW_SEED = 400, 2019


# Violations


@dataclass(frozen=True)
class Bound:
    """Markov's inequality: of records that take m in the mean, at most m/d take more than d."""

    scenario: str
    policy: str
    violations: float  # published, of a run
    offered: float  # records of a run
    most_late_ratio: float  # that the published mean times allow

    @property
    def most(self) -> float:
        return self.offered * self.most_late_ratio

    @property
    def needed(self) -> float:
        """How many records a run must have for so many violations."""
        return self.violations / self.most_late_ratio


def bounds() -> list[Bound]:
    kinds = simulation_of(load_experiment(FOLDER / "experiment.yml").testbed).kinds
    return [
        Bound(
            scenario,
            policy,
            row["late_records"],
            catalog.load(scenario).profile.total_records,
            sum(_most_late(kind, row[f"kind_time_s.{name}"]) for name, kind in kinds.items()),
        )
        for scenario, table in load_published(FOLDER).tables.items()
        for policy, row in table.items()
    ]


def _most_late(kind: Kind, mean_s: float) -> float:
    return kind.share * min(1.0, mean_s / kind.deadline_s)


# Table 2


def remainders(divisor: int = 6) -> Counter[int]:
    """Of the numbers of violations in Table 2."""
    return Counter(round(1000 * value) % divisor for value in table_2.published().values())


# Orders


def rankings(published: Published) -> Counter[tuple[str, ...]]:
    """From lowest to highest, in each table and for each metric; turned round where EKF is not the lowest."""
    found: Counter[tuple[str, ...]] = Counter()
    for table in published.tables.values():
        for metric in published.metrics:
            ranking = tuple(sorted(table, key=lambda policy: table[policy][metric]))
            found[ranking if ranking[0] == "ekf" else ranking[::-1]] += 1
    return found


def ceiling_by_deviations(published: Published, level: float = 0.05) -> tuple[float, float, float]:
    """How many orders as many new runs of a system with exactly the published means and deviations would
    confirm, by Welch's test with Holm's correction: the mean, and 5 and 95 % of the draws."""
    rng, runs = np.random.default_rng(DRAW_SEED), published_runs()
    agree = np.zeros(DRAWS)
    for scenario, table in published.tables.items():
        cells = {
            (policy, metric): rng.normal(value, published_sd(scenario, policy, metric), (DRAWS, runs))
            for policy, row in table.items()
            for metric, value in row.items()
        }
        orders = [order for order in published.orders() if order.scenario == scenario]
        a = np.array([cells[order.a, order.metric] for order in orders])
        b = np.array([cells[order.b, order.metric] for order in orders])
        p = ttest_ind(a, b, axis=2, equal_var=False).pvalue
        corrected = np.array([holm(drawn) for drawn in p.T]).T
        said = np.sign([order.published_b - order.published_a for order in orders])
        same = np.sign(b.mean(axis=2) - a.mean(axis=2)) == said[:, None]
        agree += ((corrected < level) & same).sum(axis=0)
    low, high = np.quantile(agree, [0.05, 0.95])
    return float(agree.mean()), float(low), float(high)


# Claims


@dataclass(frozen=True)
class Odd:
    """A number of the text that the tables do not give."""

    claim: Claim
    from_table: float  # %
    low: float  # what the tables allow, if every value in them was rounded
    high: float

    @property
    def may_be_rounding(self) -> bool:
        said = self.claim.published or 0.0
        return self.low - 0.05 <= said <= self.high + 0.05


def odd_claims(published: Published) -> list[Odd]:
    """In the order of the text."""
    found = []
    for claim in published.claims:
        value = from_published_table(claim, published)
        if value is not None and claim.published is not None and abs(value - claim.published) > 0.0501:
            found.append(Odd(claim, value, *_allowed(claim, published)))
    return found


def _allowed(claim: Claim, published: Published) -> tuple[float, float]:
    """The least and the most that the claim's formula gives if every value of the tables was rounded."""
    tables = published.tables.values() if claim.scenario is None else [published.tables[claim.scenario]]
    (metric,), half = claim.change.metrics, 0.0
    of = against = 0.0
    for table in tables:
        of, against = of + table[claim.change.of][metric], against + table[claim.change.against][metric]
        half += DIGITS.get(metric, 0.1) / 2
    ends = [
        claim.sign * 100 * ((of + off) / (against - off) - 1)
        for off in (-half, half)  # the quotient is farthest off where both are, in opposite ways
    ]
    return min(ends), max(ends)
