"""`fogscale trace import` as a user meets it: what it prints, and every mistake in one line."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from fogscale.errors import FogscaleError
from tests.support.imports import events_of, import_files
from tests.support.taxi_files import FOIL_HEADER, HERE, foil


def fogscale(*arguments, cwd, env=None):
    command = [sys.executable, "-m", "fogscale.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=400, cwd=cwd, env=env)


@pytest.fixture
def trips(tmp_path):
    path = tmp_path / "trip_data_6.csv"
    path.write_text("\n".join([FOIL_HEADER, *(foil(n) for n in range(40)), "broken"]))
    return path


@pytest.mark.spark
def test_an_import_says_what_it_is_what_was_kept_and_how_to_use_it(trips, tmp_path):
    """Also where the trace is named like a file."""
    done = fogscale("trace", "import", "taxi", trips, "--name", "june.csv", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    for words in (
        "FOIL/Whong",
        "rows in",
        "malformed line",
        "fogscale workloads show results/traces/june.csv",
    ):
        assert words in done.stdout
    shown = fogscale("workloads", "show", "results/traces/june.csv", "--json", cwd=tmp_path)
    answer = json.loads(shown.stdout)
    assert (shown.returncode, answer["name"], answer["records"]) == (0, "june.csv", 120)
    again = fogscale("trace", "import", "taxi", trips, "--name", "june.csv", cwd=tmp_path)
    assert again.returncode == 2
    assert "holds a trace already: add --fresh" in again.stderr
    fresh = fogscale(
        "trace", "import", "taxi", trips, "--name", "june.csv", "--fresh", "--json", cwd=tmp_path
    )
    answer = json.loads(fresh.stdout)
    assert answer["rows"] == {"in": 41, "kept": 40, "quarantined": 1, "by_reason": {"malformed line": 1}}
    assert answer["trace"] == "results/traces/june.csv"


@pytest.mark.spark
@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"short", "none of the 1 rows in log.bin can be kept (1 half record)"),
        (b"", "there is no row in log.bin: name files that hold some"),
    ],
)
def test_files_of_which_nothing_can_be_kept_leave_no_trace(spark, tmp_path, content, complaint):
    path = tmp_path / "log.bin"
    path.write_bytes(content)
    with pytest.raises(FogscaleError, match=re.escape(complaint)):
        import_files(spark, "worldcup98", [path], tmp_path / "traces" / "log")
    assert not list((tmp_path / "traces").iterdir())


@pytest.mark.spark
def test_a_disk_without_room_is_told_in_one_line_and_leaves_nothing(tmp_path):
    path = tmp_path / "trips.csv"
    path.write_text("\n".join([FOIL_HEADER, *(foil(n) for n in range(5000))]))
    command = [sys.executable, "-m", "fogscale.cli", "trace", "import", "taxi", str(path)]
    done = subprocess.run(
        ["bash", "-c", 'ulimit -f 600; exec "$@"', "bash", *command],
        capture_output=True, text=True, timeout=400, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "File too large" in done.stderr
    assert "see that the disk has room" in done.stderr
    assert not list((tmp_path / "results" / "traces").iterdir())


@pytest.mark.spark
def test_ctrl_c_leaves_nothing_and_says_so(tmp_path):
    path, traces = tmp_path / "trips.csv", tmp_path / "results" / "traces"
    path.write_text("\n".join(foil(n) for n in range(100_000)))
    command = [sys.executable, "-m", "fogscale.cli", "trace", "import", "taxi", str(path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as running:
        try:
            deadline_s = time.monotonic() + 120
            while not list(traces.glob(".trips.*")) and time.monotonic() < deadline_s:
                time.sleep(0.02)
            running.send_signal(signal.SIGINT)
            complaint = running.communicate(timeout=60)[1]
        finally:
            running.kill()
    assert running.returncode == 130
    said = "fogscale: interrupted; a trace that is not complete is not kept: run the same command again"
    assert complaint.splitlines()[-1] == said
    assert not list(traces.iterdir())


def test_a_file_that_is_no_log_is_named_before_spark_starts(trips, tmp_path):
    done = fogscale("trace", "import", "worldcup98", trips, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "trip_data_6.csv is no World Cup log" in done.stderr
    assert done.stderr.count("\n") == 1


def _folder(path):
    path.mkdir()


def _loop(path):
    path.symlink_to(path)  # not even root can read it


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        pytest.param(lambda _path: None, "No such file or directory: name a file you can read", id="missing"),
        pytest.param(_folder, "is a folder: name the files in it", id="a folder"),
        pytest.param(_loop, "symbolic links: name a file you can read", id="unreadable"),
        pytest.param(lambda path: path.write_text(""), "is empty: leave it out", id="empty"),
        pytest.param(lambda path: path.write_text("a,b\n"), "is of no known edition", id="something else"),
    ],
)
def test_a_file_that_cannot_be_imported_is_named_in_one_line(tmp_path, make, expected):
    make(tmp_path / "file")
    done = fogscale("trace", "import", "taxi", "file", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("fogscale: file")
    assert expected in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_file_named_twice_would_count_twice(trips, tmp_path):
    done = fogscale("trace", "import", "taxi", trips, "trip_data_6.csv", cwd=tmp_path)
    assert "is named twice: name each file once" in done.stderr


def test_a_place_that_cannot_be_written_is_named_before_spark_starts(trips, tmp_path):
    (tmp_path / "taken").write_text("a file")
    done = fogscale("trace", "import", "taxi", trips, "--out", "taken/traces", cwd=tmp_path)
    assert done.returncode == 2
    assert "cannot write into taken/traces" in done.stderr


def test_a_name_with_a_path_in_it_is_refused(trips, tmp_path):
    done = fogscale("trace", "import", "taxi", trips, "--name", "../../elsewhere", cwd=tmp_path)
    assert done.returncode == 2
    assert "--name" in done.stderr


@pytest.mark.spark
def test_events_stay_in_order_when_memory_is_short(tmp_path):
    """Every sorter of Spark must spill: whatever sorted once more, by table, would mix up the order."""
    path = tmp_path / "trips.csv"
    nowhere = ("0", "0", "0", "0")
    stamps = [f"2013-06-08 1{n % 7}:{n * 7 % 60:02d}:{n * 13 % 60:02d}" for n in range(6000)]
    lines = [foil(n, dropoff=at, places=HERE if n % 9 else nowhere) for n, at in enumerate(stamps)]
    path.write_text("\n".join(lines))
    spilling = "--conf spark.shuffle.spill.numElementsForceSpillThreshold=300 pyspark-shell"
    env = os.environ | {"PYSPARK_SUBMIT_ARGS": spilling}
    done = fogscale("trace", "import", "taxi", path, "--json", cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr[-500:]
    assert json.loads(done.stdout)["rows"]["by_reason"] == {"zero coordinates": 667}
    assert events_of(tmp_path / "results" / "traces" / "trips")["event_time"].is_monotonic_increasing
