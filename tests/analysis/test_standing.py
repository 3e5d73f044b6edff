"""Which policy to take: service first, then cost. All numbers can be checked by hand."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest

from analysis.standing import headline, marks, pairs, standings
from analysis.statistics import paired, welch


def runs(policy, costs, **metrics):
    served = {"processed_ratio": 1.0, "processed_records": 1000, "excess_time": 0.0}
    place = {"experiment": "demo", "workload": "taxi", "policy": policy}
    return pd.DataFrame(
        [place | {"seed": seed, "cost": cost} | served | metrics for seed, cost in enumerate(costs)]
    )


def together(*frames):
    return pd.concat(frames, ignore_index=True)


def test_those_that_keep_service_come_by_cost_and_the_others_by_what_they_miss():
    metrics = together(
        runs("cheap_and_late", [1, 2], processed_ratio=0.75),
        runs("cheaper_and_later", [1, 1], processed_ratio=0.5),
        runs("dear", [9, 11]),
        runs("fair", [7, 9], processed_ratio=0.97),
    )
    assert [place.policy for place in standings(metrics)] == [
        "fair",
        "dear",
        "cheap_and_late",
        "cheaper_and_later",
    ]
    assert [place.keeps_service for place in standings(metrics)] == [True, True, False, False]


@pytest.mark.parametrize(
    ("metrics", "share", "words"),
    [
        pytest.param({"processed_ratio": 0.9}, 0.1, "of records not in time", id="records left at the end"),
        pytest.param({"excess_time": 0.2}, 0.2, "of the span to work off the backlog", id="backlog"),
        pytest.param({"late_records": 80}, 0.08, "of records past their deadline", id="80 of 1000 late"),
        pytest.param(
            {"processed_ratio": 0.8, "processed_records": 800, "late_records": 300},
            0.3,
            "of records past their deadline",
            id="a share of what was offered, not of what was processed",
        ),
        pytest.param(
            {"steady_violation_timeshare": 30.0}, 0.3, "of time the objective was missed", id="objective"
        ),
        pytest.param(
            {"processed_ratio": 0.9, "excess_time": 0.4},
            0.4,
            "of the span to work off the backlog",
            id="worst",
        ),
    ],
)
def test_service_is_missed_by_the_worst_share(metrics, share, words):
    (place,) = standings(runs("one", [1, 1], **metrics))
    assert place.missed_ratio == pytest.approx(share)
    assert place.missed == words
    assert not place.keeps_service


@pytest.mark.parametrize(("processed_ratio", "is_kept"), [(0.96, True), (0.94, False)])
def test_five_percent_is_the_most(processed_ratio, is_kept):
    (place,) = standings(runs("one", [1], processed_ratio=processed_ratio))
    assert place.keeps_service is is_kept


def test_the_headline_names_the_cheapest_of_those_that_keep_service():
    late = runs("late", [1, 2, 3], processed_ratio=0.75)
    metrics = together(late, runs("dear", [99, 100, 101]), runs("fair", [79, 80, 81]))
    said = headline(metrics)
    assert said.startswith(
        "fair is the cheapest that keeps service: 80 replica-minutes, 20.0 % less than dear (p < 0.001"
    )
    assert said.endswith("late does not keep it.")


def test_the_headline_says_that_a_difference_may_be_chance():
    metrics = together(runs("a", [70, 80, 90]), runs("b", [71, 82, 90]))
    assert "so perhaps by chance" in headline(metrics)


def test_the_headline_says_that_only_one_keeps_service_or_none():
    good, bad = runs("good", [50, 51]), runs("bad", [1, 2], processed_ratio=0.8)
    worse = runs("worse", [1, 1], processed_ratio=0.1)
    assert "No other policy keeps it; bad comes closest (20.0 % of records not in time)" in headline(
        together(good, bad, worse)
    )
    assert headline(together(bad, worse)).startswith("No policy keeps service; bad comes closest")


def test_without_any_measurement_nothing_is_claimed():
    empty = runs("a", [np.nan], processed_ratio=np.nan, processed_records=np.nan, excess_time=np.nan)
    assert headline(together(empty, empty.assign(policy="b"))) == (
        "No policy keeps service; nothing was measured that tells."
    )


def test_marks_tell_the_best_and_what_cannot_be_told_from_it():
    metrics = together(runs("a", [10, 11, 12]), runs("b", [10, 11.5, 13]), runs("c", [90, 91, 92]))
    assert paired([10, 11, 12], [10, 11.5, 13]) > 0.05 > paired([10, 11, 12], [90, 91, 92])
    assert marks(metrics, "cost", lower_is_better=True) == {"a": "*", "b": "=", "c": ""}
    assert marks(metrics, "cost", lower_is_better=False) == {"a": "", "b": "", "c": "*"}
    assert marks(metrics, "excess_time", lower_is_better=True) == {}  # all alike: nothing to choose


def test_all_pairs_stand_in_one_table():
    metrics = together(*(runs(name, [place, place + 1]) for place, name in enumerate("abcd")))
    table = pairs(metrics)
    cost = table[table["metric"] == "cost"]
    assert list(zip(cost["a"], cost["b"], strict=True)) == [
        (a, b) for a, b in product("abcd", "abcd") if a < b
    ]
    assert cost.set_index(["a", "b"]).loc[("a", "c"), "difference"] == 2
    assert cost.set_index(["a", "b"]).loc[("a", "c"), "p"] == 0  # 2 more with either seed
    assert pairs(runs("alone", [1, 2])).empty


def test_runs_with_the_same_load_come_in_pairs_and_others_do_not():
    steady, dearer = [10, 50, 90], [11, 51.1, 90.9]  # always 1 more, whatever the load
    (same,) = pairs(together(runs("a", steady), runs("b", dearer))).query("metric == 'cost'").itertuples()
    assert (same.test, same.p) == ("paired", pytest.approx(paired(steady, dearer)))
    assert same.p < 0.05 < welch(steady, dearer)
    elsewhere = runs("b", dearer).assign(seed=[7, 8, 9])
    (other,) = pairs(together(runs("a", steady), elsewhere)).query("metric == 'cost'").itertuples()
    assert (other.test, other.p) == ("welch", pytest.approx(welch(steady, dearer)))
