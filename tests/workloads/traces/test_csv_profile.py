"""A user's CSV: what is read from it, and one line with the fix for everything that can be wrong with it."""

import numpy as np
import pytest

from fogscale.errors import FogscaleError
from workloads.catalog import load
from workloads.traces.csv_profile import read_csv_profile


@pytest.fixture
def csv(tmp_path):
    def write(text, *, encoding="utf-8"):
        path = tmp_path / "day.csv"
        path.write_bytes(text.encode(encoding))
        return path

    return write


def test_seconds_and_counts(csv):
    profile = read_csv_profile(csv("second,count\n0,5\n1,7\n2,0\n"))
    assert profile.counts.tolist() == [5, 7, 0]
    assert (profile.name, profile.step_s, profile.start, profile.smooth) == ("day", 1, None, False)
    assert profile.source.endswith("day.csv")


def test_iso_stamps_give_the_start(csv):
    profile = read_csv_profile(csv("time,count\n2013-05-01 00:00,5\n2013-05-01 00:05,7\n"))
    assert (profile.step_s, profile.start) == (300, "2013-05-01T00:00:00")


def test_a_stamp_with_a_zone_keeps_it(csv):
    profile = read_csv_profile(csv("time,count\n1998-06-09T22:00:00Z,5\n1998-06-09T23:00:00Z,7\n"))
    assert (profile.step_s, profile.start) == (3600, "1998-06-09T22:00:00+00:00")


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        pytest.param("time, count\n0, 5\n1, 7\n", [5, 7], id="spaces after commas"),
        pytest.param(
            "time,count\r\n0,5\r\n1,7\r\n\r\n", [5, 7], id="from Windows, with a blank line at the end"
        ),
        pytest.param('"time","count"\n"0","5"\n"1","7"\n', [5, 7], id="quoted"),
        pytest.param('\ufeff"time, local",count\n0,5\n1,7\n', [5, 7], id="with a byte order mark"),
        pytest.param("time,count\n0,.5\n1,1e3\n", [0.5, 1000], id="fractions and exponents"),
        pytest.param("time,count\n893971817,5\n893971818,7", [5, 7], id="seconds since 1970"),
    ],
)
def test_harmless_variants_are_read(csv, text, counts):
    assert read_csv_profile(csv(text)).counts.tolist() == counts


def test_an_hourly_file_is_smoothed_like_the_built_in_days(csv):
    built_in = load("taxi").profile
    stamps = np.datetime64("2013-05-01T00:00") + np.arange(48) * np.timedelta64(1, "h")
    lines = (f"{stamp},{count:.0f}" for stamp, count in zip(stamps, built_in.counts, strict=True))
    profile = read_csv_profile(csv("hour,dropoffs\n" + "\n".join(lines)))
    t_s = np.linspace(0, built_in.span_s, 1000)
    np.testing.assert_array_equal(profile.cumulative(t_s), built_in.cumulative(t_s))
    assert profile.start == built_in.start


@pytest.mark.parametrize(("step_s", "smooth"), [(599, False), (600, True)])
def test_smoothing_begins_at_ten_minutes(csv, step_s, smooth):
    assert read_csv_profile(csv(f"s,n\n0,5\n{step_s},7\n")).smooth is smooth


def test_stamps_rounded_to_milliseconds_are_equal_gaps(csv):
    assert read_csv_profile(csv("s,n\n0,1\n0.333,1\n0.667,1\n1,1\n")).step_s == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("", ": the file is empty or begins with an empty line: write a header", id="empty"),
        pytest.param("\n\n", ": the file is empty or begins with an empty line", id="only blank lines"),
        pytest.param("time,count\n", ": at least two lines of data are needed", id="only a header"),
        pytest.param("time,count\n0,5\n", ": at least two lines of data are needed", id="one interval"),
        pytest.param(
            "0,5\n1,7\n", ", line 1: this is data, but the first line must be a header", id="no header"
        ),
        pytest.param("count\n5\n7\n", ", line 1: 1 column(s) instead of two: write a time", id="one column"),
        pytest.param("time;count\n0;5\n", ", line 1: 1 column(s) instead of two", id="semicolons"),
        pytest.param("a,b,c\n0,5,1\n", ", line 1: 3 column(s) instead of two", id="three columns"),
        pytest.param("t,n\n0,5\n1\n", ", line 3: 1 column(s) instead of two", id="a line cut short"),
        pytest.param("t,n\n0,5\n1,\n", ", line 3: the count '' is no number: write digits", id="no count"),
        pytest.param("t,n\n0,5\n1,many\n", ", line 3: the count 'many' is no number", id="count in words"),
        pytest.param(
            "t,n\n0,5\n1,-7\n", ", line 3: the count -7 must be finite and at least 0", id="negative"
        ),
        pytest.param("t,n\n0,5\n1,nan\n", ", line 3: the count nan must be finite", id="NaN"),
        pytest.param("t,n\n0,5\n1,inf\n", ", line 3: the count inf must be finite", id="infinite"),
        pytest.param(
            "t,n\nnoon,5\n1,7\n", ", line 2: the time 'noon' does not parse: write an ISO", id="no stamp"
        ),
        pytest.param(
            "t,n\n2013-05-01,5\n2013-05-32,7\n",
            ", line 3: the time '2013-05-32' does not parse: write an ISO stamp like 2013-05-01 00:00:00",
            id="no such day",
        ),
        pytest.param(
            "t,n\n0,5\n2013-05-01,7\n",
            ", line 3: the time '2013-05-01' does not parse: write a finite number of seconds",
            id="seconds, then a stamp",
        ),
        pytest.param("t,n\n0,5\nnan,7\n", ", line 3: the time 'nan' does not parse", id="time NaN"),
        pytest.param(
            "t,n\n0,5\n1,7\n1,7\n", ", line 4: the time '1' is not after the line before", id="a stamp twice"
        ),
        pytest.param(
            "t,n\n5,5\n4,7\n", ", line 3: the time '4' is not after the line before: sort", id="backwards"
        ),
        pytest.param(
            "t,n\n0,5\n60,5\n120,5\n\n240,7\n300,7\n",
            ", line 6: 120 s after the line before, but the interval is 60 s: write one line per interval",
            id="a missing interval, after a blank line",
        ),
        pytest.param(
            "t,n\n0,5\n0.001,5\n0.003,7\n",
            ", line 4: 0.002 s after the line before, but the interval is 0.001 s",
            id="a missing millisecond",
        ),
        pytest.param("t,n\n0,0\n1,0\n", ": every count is 0, so there is nothing to replay", id="no records"),
        pytest.param(
            "t,n\n0,5\n1," + "7" * 200_000, ", line 3: field larger than field limit", id="a huge field"
        ),
    ],
)
def test_bad_files_are_answered_in_one_line(csv, text, problem):
    path = csv(text)
    with pytest.raises(FogscaleError) as error:
        read_csv_profile(path)
    assert str(error.value).startswith(f"{path}{problem}")
    assert "\n" not in str(error.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FogscaleError, match=r"gone\.csv: No such file or directory: give the path"):
        read_csv_profile(tmp_path / "gone.csv")


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(FogscaleError, match="Is a directory: give the path"):
        read_csv_profile(tmp_path)


def test_a_file_in_another_encoding_is_named(csv):
    with pytest.raises(FogscaleError, match=r"day\.csv: not a text file in UTF-8: save it"):
        read_csv_profile(csv("time,größe\n0,5\n", encoding="latin-1"))
