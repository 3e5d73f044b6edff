"""Faban's load variation files: the thesis' example, and the line of every mistake."""

import pytest

from fogscale.errors import FogscaleError
from workloads.catalog import load


@pytest.fixture
def variation(tmp_path):
    def write(text):
        path = tmp_path / "load.txt"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("10, 500\n20, 700\n10, 600\n", id="Figure 12"),
        pytest.param("\ufeff10,500\r\n\r\n 20 ,700\r\n10,600", id="from Windows, with a blank line"),
    ],
)
def test_the_example_of_the_thesis(variation, text):
    workload = load("variation_file", path=variation(text))
    profile = workload.profile
    assert (profile.name, profile.span_s, workload.records) == ("load", 40, "click")
    seconds = [profile.between([t_s, t_s + 1])[0] for t_s in (0, 9, 10, 29, 30, 39)]
    assert seconds == pytest.approx([500, 500, 700, 700, 600, 600])


def test_a_thread_may_send_more_than_one_record_a_second(variation):
    profile = load("variation_file", path=variation("10, 5"), rate_per_thread_per_s=2.5).profile
    assert profile.total_records == pytest.approx(125)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(
            "10, 500\n20; 700\n", ", line 2: '20; 700' is not a pair of whole numbers", id="semicolon"
        ),
        pytest.param("10, 500\n\n20\n", ", line 3: '20' is not a pair", id="one number, after a blank line"),
        pytest.param("10, 500, 3\n", ", line 1: '10, 500, 3' is not a pair", id="three numbers"),
        pytest.param("1.5, 500\n", ", line 1: '1.5, 500' is not a pair of whole numbers", id="a fraction"),
        pytest.param("seconds, threads\n", ", line 1: 'seconds, threads' is not a pair", id="a header"),
        pytest.param("10, 500\n0, 5\n", ", line 2: 0 s of 5 threads: write 1 to 1000000000 s", id="no time"),
        pytest.param("10, -5\n", ", line 1: 10 s of -5 threads", id="fewer than no threads"),
        pytest.param(f"{10**30}, 5\n", f", line 1: {10**30} s of 5 threads: write 1 to", id="too long"),
        pytest.param("", ": no line lets a thread run", id="empty"),
        pytest.param("10, 0\n", ": no line lets a thread run", id="no load"),
        pytest.param(b"\xff\xfe1", ": not a text file in UTF-8", id="another encoding"),
    ],
)
def test_bad_files_are_answered_in_one_line(variation, text, problem):
    path = variation(text)
    with pytest.raises(FogscaleError) as error:
        load("variation_file", path=path)
    assert str(error.value).startswith(f"{path}{problem}")
    assert "\n" not in str(error.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FogscaleError, match=r"gone\.txt: No such file or directory: give the path"):
        load("variation_file", path=tmp_path / "gone.txt")
