"""Runs recorded many at once: the same files as one after the other, and the same mistakes."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark import cloudpickle

import fogscale as fs
from analysis.recorded_campaign import record_campaign
from controller import policies
from controller.experiment import Run
from controller.run import execute
from fogscale.errors import FogscaleError
from tests.support.runs import load_csv, run_values

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # the workers do not have the tests

pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class Divides(fs.MemorylessPolicy):
    """By zero, after two minutes."""

    period_s: float = 60.0
    needs = frozenset()

    def decide(self, observation: fs.Observation) -> fs.Plan | None:
        return 1 / (observation.time_s < 120) and None


def documents(folder: Path, *names: str, seeds: int = 2) -> list[str]:
    load = load_csv(folder, [50, 250, 350, 120, 60, 60])
    values = [run_values(name, load, seed=seed) for name in names for seed in range(1, seeds + 1)]
    return [Run.model_validate(value).model_dump_json() for value in values]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_they_leave_the_same_bytes_as_one_after_the_other(spark, tmp_path):
    runs = documents(tmp_path, "thr_nlaware", "static")
    for run in runs:
        execute(Run.model_validate_json(run), tmp_path / "alone")
    assert record_campaign(spark, runs, tmp_path / "at once", fresh=False) == [None] * 4
    alone = contents(tmp_path / "alone")
    assert contents(tmp_path / "at once") == alone
    assert len([name for name in alone if name.endswith("journal.jsonl")]) == 4


def test_what_was_interrupted_goes_on_unless_it_shall_start_over(spark, tmp_path):
    runs = documents(tmp_path, "thr_nlaware")
    record_campaign(spark, runs, tmp_path / "out", fresh=False)
    before = contents(tmp_path / "out")
    torn = min((tmp_path / "out").rglob("journal.jsonl"))
    torn.write_bytes(torn.read_bytes()[:-200])
    record_campaign(spark, runs, tmp_path / "out", fresh=False)
    assert contents(tmp_path / "out") == before

    record_campaign(spark, runs, tmp_path / "out", fresh=True)
    assert len(list((tmp_path / "out").rglob("journal.1.old"))) == 2


def test_a_policys_mistake_ends_its_run_and_no_other(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(policies, "of_script", lambda: {"divides": Divides})
    runs = documents(tmp_path, "static", "divides", "thr_nlaware", seeds=1)
    static, divides, thresholds = record_campaign(spark, runs, tmp_path / "out", fresh=False)
    assert (static, thresholds) == (None, None)
    assert divides is not None
    assert divides.startswith("policy 'divides'")
    assert "ZeroDivisionError" in divides


def test_what_a_user_can_fix_is_said_as_if_it_had_run_alone(spark, tmp_path):
    (tmp_path / "file").write_text("in the way")
    runs = documents(tmp_path, "static")
    with pytest.raises(FogscaleError) as alone:
        execute(Run.model_validate_json(runs[0]), tmp_path / "file")
    with pytest.raises(FogscaleError) as at_once:
        record_campaign(spark, runs, tmp_path / "file", fresh=False)
    assert str(at_once.value).replace("seed=2", "seed=1") == str(alone.value)
