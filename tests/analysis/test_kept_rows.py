"""What was simulated is kept: an interrupted campaign goes on, and nothing stale is ever used."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyspark import cloudpickle

from analysis import kept_rows
from analysis.campaign import run_campaign
from analysis.kept_rows import KeptRows, keys_of
from controller.experiment import load, runs_of
from fogscale.cli import default_experiment
from fogscale.errors import FogscaleError
from tests.analysis import test_campaign
from tests.analysis.test_campaign import documents, fake_simulate
from tests.support.runs import load_csv, run_values

cloudpickle.register_pickle_by_value(test_campaign)  # the workers do not have the tests


def simulated_seeds(log: Path) -> list[int]:
    return sorted(map(int, log.read_text().split())) if log.exists() else []


def costs(campaign):
    rows = campaign.samples.select("run_id", "time_s", "replicas").collect()
    campaign.release()
    return sorted((row.run_id, row.time_s, row.replicas["map"]) for row in rows)


@pytest.mark.spark
def test_only_what_is_missing_is_simulated(spark, tmp_path):
    log, kept = tmp_path / "log", tmp_path / "kept"
    runs = documents(6, log=str(log))
    once = costs(run_campaign(spark, runs, fake_simulate, kept=kept))
    assert simulated_seeds(log) == list(range(6))
    again = costs(run_campaign(spark, runs, fake_simulate, kept=kept))
    assert simulated_seeds(log) == list(range(6)), "nothing was simulated twice"
    assert again == once == costs(run_campaign(spark, documents(6), fake_simulate))
    more = documents(8, log=str(log))
    assert len(costs(run_campaign(spark, more, fake_simulate, kept=kept))) == 8 * 3
    assert simulated_seeds(log) == list(range(8))
    costs(run_campaign(spark, more, fake_simulate, kept=kept, fresh=True))
    assert simulated_seeds(log) == sorted([*range(8), *range(8)])


@pytest.mark.spark
def test_a_run_that_fails_leaves_what_the_others_found(spark, tmp_path):
    log, kept = tmp_path / "log", tmp_path / "kept"
    good = documents(4, log=str(log))
    failing = documents(9, fail_after=[str(kept), 2])[8]
    with pytest.raises(FogscaleError, match="out of steam"):
        run_campaign(spark, [failing, *good], fake_simulate, kept=kept)
    found, begun = len(list(kept.glob("*.parquet"))), len(simulated_seeds(log))
    assert found >= 2
    costs(run_campaign(spark, good, fake_simulate, kept=kept))
    assert len(simulated_seeds(log)) - begun == len(good) - found, "what was found is not simulated again"


@pytest.mark.spark
def test_the_folder_is_never_larger_than_the_last_campaign(spark, tmp_path):
    kept = tmp_path / "kept"
    costs(run_campaign(spark, documents(5), fake_simulate, kept=kept))
    (kept / ".0123.77.unfinished").write_text("what a killed process left")
    costs(run_campaign(spark, documents(2), fake_simulate, kept=kept))
    assert sorted(path.suffix for path in kept.iterdir() if path.name != ".in_use") == [".parquet"] * 2


@pytest.mark.spark
def test_two_runs_that_are_the_same_are_refused(spark, tmp_path):
    with pytest.raises(FogscaleError, match="is in the campaign twice"):
        run_campaign(spark, documents(2) + documents(1), fake_simulate, kept=tmp_path)


def test_a_folder_is_used_by_one_campaign_at_a_time(tmp_path):
    rows = KeptRows(tmp_path / "kept")
    with rows.alone(), pytest.raises(FogscaleError, match="in use by another fogscale"), rows.alone():
        pass
    with rows.alone():
        pass


# Names


def key_of(values):
    [key] = keys_of([json.dumps(values)])
    return key


def test_other_settings_other_code_and_other_loads_have_other_names(tmp_path, monkeypatch):
    load = load_csv(tmp_path, [60] * 5)
    values = run_values("static", load)
    seen = {key_of(values)}
    assert key_of(values) in seen, "the same run has the same name"
    seen.add(key_of(values | {"seed": 2}))
    load.write_text(load.read_text().replace("3600", "3601"), encoding="utf-8")
    seen.add(key_of(values))
    monkeypatch.setattr(kept_rows, "code_version", lambda: "another")
    seen.add(key_of(values))
    assert len(seen) == 4


def test_the_code_of_a_policy_from_elsewhere_counts(tmp_path, monkeypatch):
    source = tmp_path / "policy_from_elsewhere.py"
    code = (
        "from dataclasses import dataclass\n"
        "from controller.policies import register\n"
        "from controller.policies.static import Static\n"
        "@register('from_elsewhere')\n"
        "@dataclass(frozen=True)\n"
        "class Elsewhere(Static):\n    pass\n"
    )
    source.write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    from controller import policies

    policies.names()
    monkeypatch.setattr(policies.registry, "registered", dict(policies.registry.registered))
    __import__("policy_from_elsewhere")
    values = run_values("from_elsewhere", load_csv(tmp_path, [60]))
    before = key_of(values)
    source.write_text(code + "# another line\n")
    kept_rows._code_of.cache_clear()
    assert key_of(values) != before


def test_the_version_of_the_code_is_that_of_what_simulates():
    parts = kept_rows._SIMULATES
    root = Path(kept_rows.__file__).parent.parent
    assert all((root / part).exists() for part in parts)
    assert "analysis" not in parts, "an analysis that was fixed repeats no simulation"


# After kill -9

CAMPAIGN = """
import sys
from pathlib import Path
from analysis.campaign import run_campaign
from analysis.spark import session
runs = Path(sys.argv[1]).read_text().splitlines()
spark = session("kept rows", master="local[2]")
print("SIMULATING", flush=True)
run_campaign(spark, runs, kept=Path(sys.argv[2])).release()
print("DONE", flush=True)
spark.stop()
"""


@pytest.mark.spark
def test_a_campaign_that_was_killed_goes_on(spark, tmp_path):
    runs = [one.model_dump_json() for one in runs_of(load(default_experiment()), seeds=range(1, 25))]
    kept, listed = tmp_path / "kept", tmp_path / "runs"
    listed.write_text("\n".join(runs))
    command = [sys.executable, "-c", CAMPAIGN, str(listed), str(kept)]
    first = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    deadline = time.monotonic() + 240
    while len(list(kept.glob("*.parquet"))) < 10 and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    left = {path: path.stat().st_mtime_ns for path in kept.glob("*.parquet")}
    assert 10 <= len(left) < len(runs)
    campaign = run_campaign(spark, runs, kept=kept)
    found = campaign.runs.count()
    rows = {(row.run_id, row.time_s, row.processed_records) for row in campaign.samples.collect()}
    campaign.release()
    assert found == len(runs)
    assert {path: path.stat().st_mtime_ns for path in left} == left, "what was there is used as it is"
    whole = run_campaign(spark, runs)
    assert {(row.run_id, row.time_s, row.processed_records) for row in whole.samples.collect()} == rows
    whole.release()
