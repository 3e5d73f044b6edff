"""Warm starts: what one run has learned is what the next begins with, and nothing else is."""

import json

import pytest

from controller.experiment import Run
from controller.guards import guarded
from controller.journal import read as read_journal
from controller.learned import LEARNED, read, teach
from controller.policies import create
from controller.recording import JOURNAL
from controller.run import execute
from fogscale.errors import FogscaleError
from tests.support.jobs import chain
from tests.support.runs import load_csv, run_values

BOOT = {"reconfiguration": {"style": "boot", "duration_s": 5}, "memory": {"map": {"idle_ratio": 0.2}}}


@pytest.fixture
def run(tmp_path):
    """Three minutes of PURE on a load for which two replicas are too many."""
    values = run_values("pure", load_csv(tmp_path, [30.0] * 3))
    values["testbed"] = values["testbed"] | BOOT
    return Run.model_validate(values)


def test_a_run_leaves_beside_its_journal_what_was_learned(run, tmp_path):
    execute(run, tmp_path / "first")
    learned = read(tmp_path / "first" / run.folder / LEARNED, "pure")
    assert 1 <= learned["instances"]["map"] < 2


def test_the_next_run_begins_with_it_and_says_so_in_its_header(run, tmp_path):
    learned = {"version": 1, "instances": {"map": 4.2}}
    next_run = run.model_copy(update={"learned": learned})
    execute(next_run, tmp_path)
    recorded = read_journal(tmp_path / run.folder / JOURNAL)
    assert recorded.steps[0].plan.reason == "map 4, as in the last run"
    assert recorded.run["settings"]["learned"] == learned


def test_a_run_is_not_resumed_with_something_else_learned(run, tmp_path):
    execute(run, tmp_path)
    other = run.model_copy(update={"learned": {"version": 1, "instances": {"map": 4.2}}})
    with pytest.raises(FogscaleError, match="holds a run with another 'settings'"):
        execute(other, tmp_path)


def test_a_policy_that_learns_nothing_leaves_nothing_and_takes_nothing(run, tmp_path):
    static = run.model_copy(update={"policy": "static"})
    execute(static, tmp_path)
    assert not (tmp_path / static.folder / LEARNED).exists()
    with pytest.raises(FogscaleError, match="policy 'static' learns nothing"):
        execute(static.model_copy(update={"learned": {"version": 1}}), tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_guards_let_it_through():
    bare = create("pure")
    policy = guarded(bare, {"warmup_s": 60, "cooldown_s": 60})
    policy.start(chain(), None)
    teach(policy, {"version": 1, "instances": {"map": 3}}, "pure")
    assert bare._last_run == {"map": 3}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param('{"policy": "pure", "lear', "is damaged", id="cut off"),
        pytest.param('{"policy": "pure", "learned": {"a": NaN}}', "is damaged", id="no number"),
        pytest.param('{"policy": "pure", "learned": {"a": 1e400}}', "is damaged", id="too large a number"),
        pytest.param("[]", "holds nothing that a policy has learned", id="something else"),
        pytest.param(
            json.dumps({"policy": "gw", "learned": {}}), "'gw' has learned, not 'pure'", id="another"
        ),
    ],
)
def test_a_file_that_is_not_what_it_should_be_is_refused_by_name(tmp_path, text, expected):
    path = tmp_path / "given.json"
    path.write_text(text)
    with pytest.raises(FogscaleError, match=expected) as refusal:
        read(path, "pure")
    assert str(path) in str(refusal.value)


def test_a_file_that_is_missing_says_what_to_name(tmp_path):
    with pytest.raises(FogscaleError, match=r"name the learned\.json of a run that has ended"):
        read(tmp_path / "none.json", "pure")
