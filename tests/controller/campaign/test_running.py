"""A campaign skips what is recorded, goes on with what was interrupted, and starts over what its testbed has
forgotten. The runs are simulated ones: a campaign does not know the difference."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from controller.campaign import running
from controller.campaign.records import about
from controller.contract import ForgottenRunError
from controller.experiment import Run, load, runs_of, scenario_of, varied
from controller.journal import read
from controller.loop import Progress
from controller.policies import names
from controller.recording import JOURNAL
from controller.run import execute, prepare
from fogscale.errors import FogscaleError

EXPERIMENT = Path(__file__).parents[3] / "paper_figures" / "gesscale" / "experiment.yml"


@pytest.fixture
def runs() -> list[Run]:
    return runs_of(varied(load(EXPERIMENT), {"workload.speed": 200}), ["static", "gesscale"], [1])


def carried_out(runs: list[Run], folder: Path) -> list[running.Kept]:
    shown: Any = lambda *_: nullcontext()  # noqa: E731
    return list(running.carry_out(runs, folder / "results", folder / "records", shown))


def test_what_is_recorded_is_not_run_again(
    runs: list[Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = carried_out(runs, tmp_path)
    assert [each.was_there for each in first] == [False, False]
    assert about(first[0].record)["machine"]["load_average_max"] >= 0
    monkeypatch.setattr(running, "execute", lambda *_: pytest.fail("it ran again"))
    assert [each.was_there for each in carried_out(runs, tmp_path)] == [True, True]


def test_a_run_that_ended_before_it_was_recorded_is_only_recorded(
    runs: list[Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute(runs[0], tmp_path / "results")
    monkeypatch.setattr(running, "execute", lambda *_: pytest.fail("it ran again"))
    (kept,) = carried_out(runs[:1], tmp_path)
    assert not kept.was_there
    assert kept.record.is_dir()


def test_an_interrupted_run_goes_on(runs: list[Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class InterruptedError(Exception):
        pass

    def interrupted(reached_s: float, status: str = "") -> None:
        if reached_s > 300:
            raise InterruptedError

    shown: Any = lambda *_: nullcontext(interrupted)  # noqa: E731
    with pytest.raises(InterruptedError):
        list(running.carry_out(runs[:1], tmp_path / "results", tmp_path / "records", shown))
    journal = tmp_path / "results" / runs[0].folder / JOURNAL
    so_far = journal.read_bytes()
    carried_out(runs[:1], tmp_path)
    assert journal.read_bytes().startswith(so_far)
    recorded = read(journal)
    assert recorded is not None
    assert recorded.ended


def test_a_run_that_its_testbed_has_forgotten_starts_over(
    runs: list[Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[bool] = []

    def forgetful(run: Run, results: Path, progress: Progress | None, fresh: bool = False) -> None:
        tried.append(fresh)
        if not fresh:
            raise ForgottenRunError("gone")
        execute(run, results, progress, fresh)

    monkeypatch.setattr(running, "execute", forgetful)
    carried_out(runs[:1], tmp_path)
    assert tried == [False, True]


def test_a_policy_that_asks_for_too_much_is_refused_before_anything_runs(runs: list[Run]) -> None:
    local = load(Path(__file__).parents[3] / "controller" / "testbeds" / "flink" / "local.yml")
    wanted = runs_of(scenario_of(local, None), ["gesscale", "ideal"], [1])
    with pytest.raises(FogscaleError, match="policy 'ideal' needs instant_rescale"):
        running.refuse_what_cannot_run(wanted)


def test_every_policy_is_driven_by_the_real_testbed_or_refused_with_what_it_lacks() -> None:
    """Nothing starts: a testbed that is not entered asks no network."""
    local = load(Path(__file__).parents[3] / "controller" / "testbeds" / "flink" / "local.yml")
    refused = {}
    for name in names():
        (run,) = runs_of(scenario_of(local, None), [name], [1])
        try:
            running.refuse_what_cannot_run([run])
        except FogscaleError as error:
            refused[name] = str(error)
    offered = {name for name in names() if name not in refused}
    assert {"thr_nlunaware", "thr_nlaware", "mdl_nlunaware", "gesscale", "ds2", "static"} <= offered
    assert "needs instant_rescale" in refused["ideal"]
    for name, reason in refused.items():
        assert f"policy '{name}' needs " in reason


@pytest.mark.parametrize(("testbed", "minutes"), [("local", 18), ("pi", 288)])
def test_the_experiments_of_both_inventories_can_run(testbed: str, minutes: int) -> None:
    """On Raspberry Pis at the paper's own pace, two days in 288 minutes."""
    experiment = load(Path(__file__).parents[3] / "controller" / "testbeds" / "flink" / f"{testbed}.yml")
    wanted = runs_of(scenario_of(experiment, None))
    assert [run.policy for run in wanted] == ["thr_nlunaware", "thr_nlaware", "mdl_nlunaware", "gesscale"]
    running.refuse_what_cannot_run(wanted)
    assert {prepare(run).duration_s for run in wanted} == {60 * minutes}
