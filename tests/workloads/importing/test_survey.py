"""What a sample tells: spans of files, vendors who round, and slices of time that hold as much each."""

from datetime import UTC, datetime

import pytest

from workloads.importing.survey import Cell, Span, file_spans, rounded_vendors, slicing


def minute(text):
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) // 60


def second(text):
    return 60 * minute(text)


def cell(when, rows=1, file=0, vendor="", whole=0):
    return Cell(file, vendor, minute(when), rows, whole)


def test_stray_stamps_do_not_widen_the_span_of_a_file():
    cells = [
        cell("2013-05-31 23:59", 5), cell("2013-06-01 00:00", 900), cell("2013-06-30 23:59", 95),
        cell("2008-01-01 00:00", 1), cell("2041-01-01 00:00", 1),
    ]  # fmt: skip
    assert file_spans(cells, by_month=True) == {0: Span(second("2013-06-01"), second("2013-07-01"))}


def test_each_file_has_its_own_span_however_few_rows_it_has():
    cells = [cell("2012-12-15 00:00", 100_000), cell("2013-01-01 00:00", 3, file=1)]
    assert file_spans(cells, by_month=True) == {
        0: Span(second("2012-12-01"), second("2013-01-01")),
        1: Span(second("2013-01-01"), second("2013-02-01")),
    }


def test_days_with_a_day_around_where_files_are_daily():
    """A file that was cut off a minute after midnight keeps that minute."""
    cells = [cell("1998-06-10 12:00", 990), cell("1998-06-11 00:00", 1), cell("1998-06-14 12:00", 1)]
    assert file_spans(cells, by_month=False) == {0: Span(second("1998-06-09"), second("1998-06-12"))}


@pytest.mark.parametrize(
    ("rows", "whole", "is_rounded"),
    [
        pytest.param(7122, 7122, True, id="all of them"),
        pytest.param(1000, 510, True, id="half of them, as where two vendors are mixed"),
        pytest.param(7178, 112, False, id="one in sixty, which is chance"),
        pytest.param(1, 1, False, id="a single row proves nothing"),
        pytest.param(20, 1, False, id="nor does one of twenty"),
    ],
)
def test_who_rounds_to_minutes(rows, whole, is_rounded):
    cells = [cell("2013-06-01 00:00", rows, vendor="VTS", whole=whole), cell("2013-06-01 00:00", 60, whole=1)]
    assert rounded_vendors(cells) == ({"VTS"} if is_rounded else set())


def test_slices_hold_about_as_many_rows_each_in_the_order_of_time():
    cells = [
        cell(f"2013-06-0{day} {hour:02d}:00", 10 if hour < 12 else 30)
        for day in range(1, 9)
        for hour in range(24)
    ]
    cut = slicing(cells, {0: Span(second("2013-06-01"), second("2013-07-01"))}, 4)
    rows = [0] * cut.count
    for each in cells:
        rows[cut.slices[(each.minute * 60 - cut.start_s) // cut.bin_s]] += each.rows
    assert cut.count == 4
    assert list(cut.slices) == sorted(cut.slices)
    assert max(rows) - min(rows) <= 60


def test_a_single_minute_cannot_be_sliced():
    cut = slicing([cell("2013-06-01 00:00", 1000)], {0: Span(0, 1 << 40)}, 8)
    assert (cut.count, cut.slices) == (1, (0,))


def test_years_are_cut_into_a_bounded_number_of_bins():
    cells = [cell("2010-01-01 00:00", 5), cell("2013-12-31 23:59", 5)]
    cut = slicing(cells, file_spans(cells, by_month=True), 2)
    assert len(cut.slices) <= 4096
    assert (cut.slices[0], cut.slices[-1]) == (0, 1)


def test_without_any_row_there_is_one_slice():
    assert slicing([], {}, 3).count == 1
