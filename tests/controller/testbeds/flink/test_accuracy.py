"""Figures that policies saw, against truth: by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controller.contract import Step
from controller.model import OperatorMetrics, Plan, Receipt, Sample
from controller.testbeds.flink.accuracy import accuracy, compared
from tests.support.jobs import placed, seen

WINDOW_S = 10.0


def samples(offered_per_s, processed_per_s, until_s=60):
    return [
        Sample(
            time_s=float(at), offered_records=offered_per_s * at, processed_records=processed_per_s * at,
            lag_records=(offered_per_s - processed_per_s) * at, replicas={"map": 1}, reconfigurations=0,
        )
        for at in range(0, until_s + 1, 5)
    ]  # fmt: skip


def step(time_s, offered, throughput, lag, receipts=()):
    metrics = OperatorMetrics(offered_rate_per_s=offered, throughput_per_s=throughput)
    now = seen(["fog1"], receipts=receipts)
    now = replace(now, time_s=time_s, measured_s=time_s, lag_records=lag, operators={"map": metrics})
    return Step(now, None, 5.0, ())


def by_figure(steps, truth):
    found = accuracy(list(compared(steps, truth, "map", WINDOW_S)))
    return {(each.figure, each.situation): each for each in found}


def test_a_figure_is_within_three_per_cent_or_it_is_not():
    steps = [step(20.0, 100.0, 97.5, 0.0), step(30.0, 104.0, None, 0.0)]
    found = by_figure(steps, samples(100, 100))
    offered, throughput = found["offered_rate_per_s", "steady"], found["throughput_per_s", "steady"]
    assert (offered.observations, offered.unknown, offered.within) == (2, 0, 0.5)
    assert offered.median_error == pytest.approx(0.02)  # of 0 and 4 %
    assert (throughput.unknown, throughput.within) == (1, 1.0)  # 2.5 % low, and one that was not claimed
    assert throughput.median_error == pytest.approx(0.025)


def test_situations_are_told_apart_by_truth_not_by_what_was_seen():
    behind = samples(100, 50)  # 1500 wait after half a minute, three times as many as come in five seconds
    (found,) = {situation for _, situation in by_figure([step(30.0, 0.0, 0.0, 0.0)], behind)}
    assert found == "saturated"
    (found,) = {situation for _, situation in by_figure([step(30.0, 0.0, 0.0, 0.0)], samples(0, 0))}
    assert found == "idle"
    receipt = Receipt(Plan(placed("fog1")), "done", 20.0, 25.0)
    after = [step(30.0, 100.0, 100.0, 0.0, (receipt,)), step(61.0, 1.0, 1.0, 1.0)]
    assert {situation for _, situation in by_figure(after, samples(100, 100))} == {"right after a rescale"}


def test_what_works_off_a_backlog_is_not_idle():
    (found,) = {situation for _, situation in by_figure([step(30.0, 0.0, 0.0, 0.0)], samples(0, 50))}
    assert found != "idle"


def test_what_happened_when_between_two_samples_is_not_known():
    """Nothing is processed until 27.5 s, then 100 a second; samples tell only that it was 250 by 30 s."""
    truth = [
        Sample(float(at), 100 * at, max(0, round(100 * (at - 27.5))), 0, {"map": 1}, 0)
        for at in range(0, 61, 5)
    ]
    found = [
        next(
            each for each in compared([step(at_s, 0, 0, 0)], truth, "map", WINDOW_S)
            if each.figure == "throughput_per_s"
        )
        for at_s in (25.0, 27.5, 30.0)
    ]  # fmt: skip
    assert [each.true * WINDOW_S for each in found] == pytest.approx([0, 125, 250])
    by_chance = 2 * (250 / 4) ** 0.5
    assert [each.slack * WINDOW_S for each in found] == pytest.approx([0, 125 + by_chance, 0])


def test_a_lag_is_held_against_the_moment_of_which_it_is():
    late = list(compared([step(27.0, 100, 50, 1350)], samples(100, 50), "map", WINDOW_S))
    (lag,) = (each for each in late if each.figure == "lag_records")
    assert (lag.true, lag.error) == (pytest.approx(1350), 0.0)
    off = list(compared([step(27.0, 100, 50, 1200)], samples(100, 50), "map", WINDOW_S))
    (lag,) = (each for each in off if each.figure == "lag_records")
    by_chance = 2 * (500 * 0.4 * 0.6) ** 0.5 + 2 * (250 * 0.4 * 0.6) ** 0.5
    assert lag.error == pytest.approx((150 - 20 - by_chance) / 1350)


def test_what_is_shown_twice_counts_once():
    again = step(25.0, 100.0, 100.0, 0.0)
    again = Step(replace(again.observation, measured_s=20.0), None, 5.0, ())
    found = by_figure([step(20.0, 100.0, 100.0, 0.0), again], samples(100, 100))
    assert found["lag_records", "steady"].observations == 1
