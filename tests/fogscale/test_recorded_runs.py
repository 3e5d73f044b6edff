"""The runs of a command: which of them are done, and what is said of those that are not."""

import pytest

from controller.experiment import Run
from fogscale import recorded_runs
from fogscale.errors import FogscaleError
from fogscale.recorded_runs import FEW, Recorded, record
from tests.support.runs import load_csv, run_values


@pytest.fixture
def runs(tmp_path):
    load = load_csv(tmp_path, [50, 250])
    return [Run.model_validate(run_values("static", load, seed=seed)) for seed in range(1, FEW + 2)]


def test_a_failure_among_several_is_counted_and_the_first_told(runs):
    recorded = Recorded(runs[:3], [None, "policy 'a' did this", "policy 'a' did that"])
    assert recorded.done == runs[:1]
    assert recorded.failed
    with pytest.raises(FogscaleError, match=r"^2 of 3 runs failed; the first: policy 'a' did this$"):
        recorded.tell_failures()


def test_the_failure_of_a_single_run_is_told_as_it_is(runs):
    with pytest.raises(FogscaleError, match=r"^policy 'a' did this$"):
        Recorded(runs[:1], ["policy 'a' did this"]).tell_failures()
    Recorded(runs[:1], [None]).tell_failures()


def test_a_run_that_is_asked_for_twice_is_one(runs, tmp_path):
    assert record([runs[0], runs[0]], tmp_path / "out", fresh=False, spark_follows=False).done == runs[:1]


@pytest.mark.parametrize(
    ("count", "spark_follows", "at_once"),
    [
        pytest.param(1, True, False, id="one run needs no Spark"),
        pytest.param(2, True, True, id="two share the Spark that analyses them"),
        pytest.param(FEW, False, False, id="a few have ended before Spark has started"),
        pytest.param(FEW + 1, False, True, id="more are worth its start"),
    ],
)
def test_spark_simulates_where_that_is_quicker(runs, tmp_path, monkeypatch, count, spark_follows, at_once):
    asked = []
    monkeypatch.setattr(recorded_runs, "_at_once", lambda runs, *_: asked.append(runs) or [None] * len(runs))
    record(runs[:count], tmp_path / "out", False, spark_follows)
    assert bool(asked) == at_once
    assert len(list((tmp_path / "out").rglob("journal.jsonl"))) == (0 if at_once else count)


def test_where_workers_do_not_see_the_folder_runs_go_one_after_the_other(runs, tmp_path, monkeypatch):
    monkeypatch.setattr(recorded_runs, "_at_once", lambda *_: None)
    assert len(record(runs, tmp_path / "out", False, spark_follows=True).done) == FEW + 1
    assert len(list((tmp_path / "out").rglob("journal.jsonl"))) == FEW + 1


def test_mistakes_are_found_before_spark_starts(runs, tmp_path, monkeypatch):
    monkeypatch.setattr(recorded_runs, "_at_once", lambda *_: pytest.fail("it started"))
    wrong = [run.model_copy(update={"measured_operator": "mpa"}) for run in runs]
    with pytest.raises(FogscaleError, match="did you mean map"):
        record(wrong, tmp_path / "out", False, spark_follows=True)
