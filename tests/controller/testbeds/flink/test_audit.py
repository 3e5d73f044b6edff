"""What was produced against what came out, where results are of many records."""

from __future__ import annotations

import pytest

from controller.testbeds.flink.audit import by_sums
from workloads.jobs.output import tally_of

SENT = range(10)
REFUSED = tally_of([9])


def judged(*told):
    """By two operators, the first of which told of these records and the second of all."""
    of = {"": REFUSED, "a": tally_of(told), "b": tally_of(range(9))}
    return by_sums("r", of, SENT, drained=True, counted_by=["a", "b"])


@pytest.mark.parametrize(
    ("told", "lost", "doubled"),
    [
        pytest.param(range(9), 0, 0, id="all"),
        pytest.param(range(8), 1, 0, id="one too few"),
        pytest.param([*range(9), 3], 0, 1, id="one too many"),
        pytest.param([*range(8), 3], 1, 1, id="another one instead"),
        pytest.param([], 9, 0, id="none"),
    ],
)
def test_one_operator_that_is_off_is_enough(told, lost, doubled):
    audit = judged(*told)
    assert (audit.lost, audit.doubled) == (lost, doubled)
    assert audit.clean == (lost == doubled == 0)
    assert (audit.produced, audit.by_sums) == (10, True)


def test_what_is_lost_in_one_operator_is_not_made_up_by_what_is_doubled_in_another():
    of = {"a": tally_of(range(9)), "b": tally_of([*SENT, 0])}
    audit = by_sums("r", of, SENT, drained=True, counted_by=["a", "b"])
    assert (audit.lost, audit.doubled) == (1, 1)


def test_nothing_at_all_is_all_lost():
    audit = by_sums("r", {}, SENT, drained=False, counted_by=["a", "b"])
    assert (audit.lost, audit.found, audit.clean) == (10, 0, False)
