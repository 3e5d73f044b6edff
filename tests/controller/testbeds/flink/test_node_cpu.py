"""The CPU that policies see, against the nodes' own counters: by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controller.contract import Step
from controller.model import NodeMetrics
from controller.testbeds.flink.node_cpu import NodeCpu, compared_nodes
from tests.support.jobs import seen

WINDOW_S = 10.0


def told(per_s, until_s=60):
    """Of fog1, which takes so many seconds of processor time a second; fog2 cannot be read."""
    clock = iter(range(0, until_s + 1, 5))
    used = NodeCpu(lambda node: per_s * now_s if node == "fog1" else None, ["fog1", "fog2"])
    for now_s in clock:
        used.look(now_s)
    return used.as_dict()


def step(time_s, cpu_ratio):
    nodes = {"fog1": NodeMetrics(cpu_ratio), "fog2": NodeMetrics(0.5)}
    return Step(replace(seen(["fog1"]), time_s=time_s, measured_s=time_s, nodes=nodes), None, 5.0, ())


def found(steps, per_s):
    return list(compared_nodes(steps, told(per_s), {"fog1": 0.2, "fog2": 0.2}, WINDOW_S))


def test_half_a_limit_of_a_fifth_of_a_core_is_a_tenth_of_a_second_per_second():
    (one,) = found([step(30.0, 0.5)], 0.1)
    assert (one.situation, one.error, one.true) == ("in use", 0.0, pytest.approx(50))
    (low,) = found([step(30.0, 0.4)], 0.1)
    assert low.error == pytest.approx((10 - 1) / 50)


def test_what_is_not_claimed_is_no_error_and_what_is_not_covered_no_comparison():
    (one,) = found([step(30.0, None)], 0.1)
    assert one.error is None
    assert found([step(5.0, 0.5), step(58.0, 0.5)], 0.1) == []
    assert list(compared_nodes([step(30.0, 0.5)], {}, {"fog1": 0.2}, WINDOW_S)) == []


def test_a_load_that_changes_while_the_scrape_is_due_may_be_seen_before_or_after():
    rows = [[float(at), 0.2 * max(0, at - 30)] for at in range(0, 61, 5)]  # idle, then busy from 30 s on
    only = {"nodes": ["fog1"], "rows": rows}
    before, after = (
        next(iter(compared_nodes([step(30.0, ratio)], only, {"fog1": 0.2}, WINDOW_S)))
        for ratio in (0.0, 0.25)
    )
    assert (before.error, after.error) == (0.0, 0.0)
    late = next(iter(compared_nodes([step(30.0, 0.8)], only, {"fog1": 0.2}, WINDOW_S)))
    assert late.error > 0.5
