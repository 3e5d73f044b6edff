"""From journals to the report, and the decision log on the way."""

from __future__ import annotations

import pandas as pd
import pytest

from analysis.analyze import analyze, first_runs
from analysis.decisions import decision_log
from analysis.runs import read_journals
from analysis.schema import DECISIONS, RECEIPTS
from controller.contract import Step
from controller.experiment import Run
from controller.journal import Journal
from controller.model import Note, Plan
from controller.run import execute
from tests.support.jobs import chain, placed, seen
from tests.support.runs import load_csv, run_values

pytestmark = pytest.mark.spark


def test_analyze_leaves_parquet_tables_and_a_report(spark, tmp_path, journal_lines, write_journal):
    for policy, seed in (("static", 1), ("static", 2), ("gesscale", 1)):
        path = write_journal("\n".join(journal_lines(policy=policy, seed=seed)) + "\n", policy, seed)
        path.with_name("run.yml").write_text(f"policy: {policy}\nseed: {seed}\n")
    folder = tmp_path / "results"
    analysis = analyze(folder, spark, published={"gesscale": {"cost": 999.5}})

    assert analysis.report == folder / "report.html"
    assert analysis.metrics["policy"].tolist() == ["gesscale", "static", "static"]
    assert analysis.metrics["reconfigurations"].tolist() == [1, 1, 1]
    assert pd.read_csv(folder / "metrics.csv")["cost"].tolist() == pytest.approx([230 / 60] * 3)
    assert (folder / "metrics.md").exists()
    assert (folder / "metrics.tex").exists()
    assert (folder / "parquet" / "samples").is_dir()
    text = analysis.report.read_text()
    assert "gesscale, static on ramp" in text
    assert "map 2 → 3" in text
    assert "published 999.5" in text
    assert "policy: gesscale" in text
    assert "seed: 2" not in text  # the configuration of the runs shown, not of all

    again = analyze(folder, spark, published={"gesscale": {"cost": 999.5}})  # over its own leavings
    pd.testing.assert_frame_equal(again.metrics, analysis.metrics)
    assert again.report.read_text() == text


def test_a_run_in_which_nothing_changes_is_analysed_too(spark, tmp_path):
    """No plan, no receipt; and of the folder only what was asked for counts."""
    load = load_csv(tmp_path, [60, 90, 60])
    wanted, *others = (Run.model_validate(run_values("static", load, seed=seed)) for seed in (1, 2))
    for run in (wanted, *others):
        execute(run, tmp_path)
    found = analyze(tmp_path, spark, only=[wanted.id]).metrics
    assert (found["seed"].tolist(), found["reconfigurations"].tolist()) == ([1], [0])


def test_first_runs_takes_the_lowest_seed_of_each_policy():
    frame = pd.DataFrame({
        "run_id": ["a10", "a9", "b3"], "experiment": "e", "workload": "w",
        "policy": ["a", "a", "b"], "seed": [10, 9, 3],
    })  # fmt: skip
    assert first_runs(frame) == ["a9", "b3"]


def test_the_decision_log_joins_plans_with_their_outcomes(spark, tmp_path, journal_lines, write_journal):
    write_journal("\n".join(journal_lines()) + "\n")
    tables = read_journals(spark, str(tmp_path / "results"))
    (row,) = decision_log(tables.decisions, tables.receipts).collect()
    assert (row.time_s, row.change, row.outcome, row.downtime_s) == (0.0, "map 2 → 3", "done", 60.0)


def test_a_receipt_answers_the_last_plan_before_it_was_asked_for(spark):
    """On a real testbed some milliseconds pass between what a policy saw and the start of its plan."""
    plans = [("r", 90.7, ["b"]), ("r", 226.1, ["c"]), ("r", 300.0, ["d"]), ("other", 90.7, ["b"])]
    decisions = [
        {
            "run_id": run,
            "time_s": time_s,
            "requested": {"map": ["a"]},
            "placement": {"map": nodes},
            "reason": "why",
        }
        for run, time_s, nodes in plans
    ]
    receipts = [
        {"run_id": "r", "requested_s": 90.72, "finished_s": 124.0, "outcome": "done", "downtime_s": 32.0},
        {"run_id": "r", "requested_s": 226.15, "finished_s": 230.0, "outcome": "failed", "downtime_s": 0.0},
    ]
    rows = decision_log(
        spark.createDataFrame([[row.get(name) for name in DECISIONS.names] for row in decisions], DECISIONS),
        spark.createDataFrame([[row.get(name) for name in RECEIPTS.names] for row in receipts], RECEIPTS),
    ).collect()
    assert [(row.run_id, row.time_s, row.outcome, row.downtime_s) for row in rows] == [
        ("other", 90.7, None, None),
        ("r", 90.7, "done", 32.0),
        ("r", 226.1, "failed", 0.0),
        ("r", 300.0, None, None),
    ]


def test_the_decision_log_tells_what_was_exchanged_inside_a_policy(spark, tmp_path):
    named = {"experiment": "demo", "policy": "agents", "workload": "ramp", "seed": 1}
    journal = Journal.open(tmp_path / "journal.jsonl", named, chain())
    asked = Note("request", "map-1", "map-2", {"load": 0.5, "step": "up"})
    plan = Plan(placed("fog1", "fog2"), reason="more", notes=(asked,))
    for time_s, given, notes in ((0.0, plan, (Note("bare"),)), (60.0, None, (asked,)), (120.0, None, ())):
        journal.append(Step(seen(["fog1"], time_s=time_s), given, 60.0, (), notes=notes))
    journal.end(True, (), {})
    journal.close()
    tables = read_journals(spark, str(tmp_path))
    rows = decision_log(tables.decisions, tables.receipts).collect()
    said = "request: map-1 → map-2 (load 0.5, step up)"
    assert [(row.time_s, row.planned, row.notes) for row in rows] == [
        (0.0, True, [said, "bare"]),
        (60.0, False, [said]),
    ]


@pytest.mark.parametrize(
    ("requested", "placement", "expected"),
    [
        pytest.param({"map": ["a"]}, {"map": ["a", "b"]}, "map 1 → 2", id="more"),
        pytest.param({"map": ["a", "b"]}, {"map": ["b", "c"]}, "map moved", id="other nodes"),
        pytest.param({"map": ["a", "b"]}, {"map": ["b", "a"]}, "", id="the same nodes in another order"),
        pytest.param(
            {"a": ["x"], "b": ["y"]}, {"a": ["x", "z"], "b": []}, "a 1 → 2, b 1 → 0", id="two at once"
        ),
        pytest.param({}, {"map": ["a"]}, "map 0 → 1", id="from nothing"),
    ],
)
def test_change_in_words(spark, requested, placement, expected):
    row = {"run_id": "r", "time_s": 0.0, "requested": requested, "placement": placement, "reason": "why"}
    decisions = spark.createDataFrame([[row.get(name) for name in DECISIONS.names]], DECISIONS)
    (logged,) = decision_log(decisions, spark.createDataFrame([], RECEIPTS)).collect()
    assert (logged.change, logged.outcome) == (expected, None)
