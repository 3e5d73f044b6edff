"""What CONTRIBUTING shows works when it is pasted."""

from __future__ import annotations

import re
import sys
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from controller import policies
from controller.experiment import load, runs_of
from controller.journal import read
from controller.model import NodeMetrics, Observation, OperatorMetrics
from controller.run import execute

PROJECT = Path(__file__).parents[1]
TEXT = (PROJECT / "CONTRIBUTING.md").read_text(encoding="utf-8")


POLICY, TESTBED, METRIC = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


@pytest.fixture
def pasted(monkeypatch):
    module = ModuleType("pasted_policy")
    monkeypatch.setitem(sys.modules, "pasted_policy", module)
    policies.names()  # all that there are, before this one is added for a while
    monkeypatch.setattr(policies.registry, "registered", dict(policies.registry.registered))
    exec(compile(POLICY, "CONTRIBUTING.md", "exec"), module.__dict__)
    return module.Busy


def test_the_policy_scales_up_and_down_and_says_why(pasted, tmp_path):
    day = tmp_path / "day.csv"
    counts = [1200] * 30 + [4800] * 60 + [300] * 90  # replayed ten times as fast: 60, 240 and 15 records/s
    day.write_text("time_s,records\n" + "".join(f"{600 * at},{count}\n" for at, count in enumerate(counts)))
    experiment = load(PROJECT / "paper_figures/gesscale/experiment.yml")
    (run,) = runs_of(experiment, ["gesscale"], [1], str(day))
    run = run.model_copy(update={"policy": "busy", "policy_parameters": {}})
    execute(run, tmp_path)
    steps = read(tmp_path / run.folder / "journal.jsonl").steps
    reasons = [step.plan.reason for step in steps if step.plan is not None]
    assert any("+1: busy" in reason for reason in reasons), reasons
    assert any("-1: busy" in reason for reason in reasons), reasons


def test_the_table_names_fields_that_exist():
    known = {field.name for kind in (Observation, OperatorMetrics, NodeMetrics) for field in fields(kind)}
    section = TEXT[TEXT.index("What it sees") : TEXT.index("## A testbed")]
    named = set(re.findall(r"`([a-z_]+)`", section))
    assert {field.name for field in fields(OperatorMetrics)} <= named
    assert named - known <= {"reconfiguring", "operators", "n_min", "n_max", "scalable", "selectivity"}


def test_the_testbed_suite_builds_what_an_experiment_names(monkeypatch):
    experiment = PROJECT / "paper_figures/gesscale/experiment.yml"
    names: dict[str, Any] = {"__name__": "pasted_suite"}
    exec(compile(TESTBED.replace("mine.yml", str(experiment)), "CONTRIBUTING.md", "exec"), names)
    with names["TestMine"]().build() as testbed:
        assert testbed.observe().time_s == 0


@pytest.mark.spark
def test_the_metric_is_the_most_there_was(spark):
    names: dict[str, Any] = {}
    exec(compile(METRIC, "CONTRIBUTING.md", "exec"), names)
    samples = spark.createDataFrame([(1,), (3,), (2,)], "supply int")
    assert samples.agg(*names["columns"]()).collect()[0].asDict() == {"peak_replicas": 3}
