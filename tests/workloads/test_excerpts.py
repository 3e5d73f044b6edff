"""Which rows are left of traces that were cut and joined: neighbours, in order, and none of them twice."""

import pytest

from workloads.excerpts import Excerpt, one_after_the_other, without_first

HALVES = (Excerpt("a", 0.5, 0.0, 100.0), Excerpt("b", 0.5, 40.0, 10.0))


@pytest.mark.parametrize(
    ("lost", "left"),
    [
        pytest.param(0.0, HALVES, id="nothing"),
        pytest.param(
            0.25, (Excerpt("a", 1 / 3, 50.0, 50.0), Excerpt("b", 2 / 3, 40.0, 10.0)), id="half of the first"
        ),
        pytest.param(0.5, (Excerpt("b", 1.0, 40.0, 10.0),), id="the first"),
        pytest.param(0.9, (Excerpt("b", 1.0, 48.0, 2.0),), id="most of both"),
        pytest.param(1.0, (), id="everything"),
    ],
)
def test_what_is_cut_off_at_the_start_is_gone(lost, left):
    found = without_first(HALVES, lost)
    assert [each.folder for each in found] == [each.folder for each in left]
    for each, expected in zip(found, left, strict=True):
        assert (each.share, each.first_row, each.rows) == pytest.approx(
            (expected.share, expected.first_row, expected.rows)
        )


def test_joined_workloads_share_the_records_as_they_offer_them():
    whole = (Excerpt("c", 1.0, 0.0, 7.0),)
    joined = one_after_the_other([(HALVES, 30.0), (whole, 0.0), (whole, 10.0)])
    assert [(each.folder, each.share) for each in joined] == [("a", 0.375), ("b", 0.375), ("c", 0.25)]
