"""Break-even of EKF against GW: amounts × prices.

Eq. 20–23 compare percentages (1.078 c_v < 1.132 c_s), as if a VM hour and a violation came in equal numbers.
What has to be compared are the amounts: EKF pays off where

    c_v · (VM hours more) < c_s · (violations fewer),   so   c_s > c_v · (VM hours more) / (violations fewer),

and likewise with the seconds of processing time that all images together are spared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from paper_figures.campaign import BASE
from paper_figures.published import load as load_published
from workloads import catalog

FOLDER = Path(__file__).parent
CORE_HOUR_PRICE = 0.0612  # $, Google Cloud Platform, Frankfurt (§4.3)
PRINTED_PRICE = 0.059  # $ per violation, Eq. 21
METRICS = ("instance_time_s", "late_records", "kind_time_s.image")

Amounts = Mapping[str, Mapping[str, Mapping[str, float]]]
"""By scenario, policy and metric."""


@dataclass(frozen=True)
class Trade:
    """What EKF needs more and saves, compared to GW, in one run of each scenario that is named."""

    origin: str
    scenario: str
    more_vm_h: float
    fewer_violations: float
    fewer_image_s: float

    def price_per_violation(self, core_hour_price: float = CORE_HOUR_PRICE) -> float | None:
        """Above this EKF pays off; 0 where it needs no more VM time, None where it saves no violation."""
        return _break_even(self.more_vm_h * core_hour_price, self.fewer_violations)

    def price_per_image_s(self, core_hour_price: float = CORE_HOUR_PRICE) -> float | None:
        return _break_even(self.more_vm_h * core_hour_price, self.fewer_image_s)


def _break_even(costs: float, saved: float) -> float | None:
    if saved <= 0:
        return None
    return max(0.0, costs) / saved


def trades(tables: Path) -> list[Trade]:
    """As published and by our means, for each scenario and for all of them."""
    published = load_published(FOLDER).tables
    metrics = pd.read_parquet(tables / "metrics.parquet")
    base = metrics[metrics["variation"] == BASE]
    ours: dict[str, dict[str, dict[str, float]]] = {
        scenario: {
            policy: {
                metric: float(
                    base.loc[(base["scenario"] == scenario) & (base["policy"] == policy), metric].mean()
                )
                for metric in METRICS
            }
            for policy in ("gw", "ekf")
        }
        for scenario in published
    }
    return [*_trades("published", published), *_trades("ours", ours)]


def _trades(origin: str, amounts: Amounts) -> list[Trade]:
    single = [_trade(origin, scenario, of["gw"], of["ekf"]) for scenario, of in amounts.items()]
    total = Trade(
        origin,
        "all",
        sum(trade.more_vm_h for trade in single),
        sum(trade.fewer_violations for trade in single),
        sum(trade.fewer_image_s for trade in single),
    )
    return [*single, total]


def _trade(origin: str, scenario: str, gw: Mapping[str, float], ekf: Mapping[str, float]) -> Trade:
    images = catalog.load(scenario).profile.total_records
    return Trade(
        origin,
        scenario,
        (ekf["instance_time_s"] - gw["instance_time_s"]) / 3600,
        gw["late_records"] - ekf["late_records"],
        (gw["kind_time_s.image"] - ekf["kind_time_s.image"]) * images,
    )
