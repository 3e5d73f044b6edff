"""The same import on a real standalone master and worker gives the same trace."""

import json
import os
import subprocess
import sys

import pytest

from tests.support.cluster import standalone_cluster
from tests.support.imports import events_of, import_files
from tests.support.taxi_files import FOIL_HEADER, foil


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as address:
        yield address


@pytest.mark.cluster
@pytest.mark.spark
def test_the_same_import_on_a_standalone_master_and_worker(spark, cluster, tmp_path):
    """The command itself, with only SPARK_MASTER set, from a folder where neither project nor workers are."""
    path = tmp_path / "trips.csv"
    lines = [foil(n, "2013-06-08 09:00:00", f"2013-06-08 09:{1 + n % 59:02d}:00", "VTS") for n in range(900)]
    path.write_text("\n".join([FOIL_HEADER, *lines, lines[5], "broken"]))
    here = import_files(spark, "taxi", [path], tmp_path / "here" / "trips")
    done = subprocess.run(
        [sys.executable, "-m", "fogscale.cli", "trace", "import", "taxi", "trips.csv", "--out", "there",
         "--json"],
        env=os.environ | {"SPARK_MASTER": cluster}, cwd=tmp_path, capture_output=True, text=True, timeout=400,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    there = json.loads(done.stdout)
    assert there["rows"] == here["rows"] == {
        "in": 902, "kept": 900, "quarantined": 2, "by_reason": {"malformed line": 1, "exact duplicate": 1},
    }  # fmt: skip
    assert {key: there[key] for key in here} == here
    ours, theirs = events_of(tmp_path / "here" / "trips"), events_of(tmp_path / "there" / "trips")
    assert ours.equals(theirs), "to the row and in the same order"
