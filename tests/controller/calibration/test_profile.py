"""Profiles: from rows to a file and back, into a simulated experiment, into a real one's ladder."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

from controller.calibration.building import profile_of
from controller.calibration.points import OWN, Restart
from controller.calibration.profile import load_profile, profiles_in, simulated, with_ladder, write_profile
from controller.experiment import load, runs_of
from controller.run import prepare
from fogscale.errors import FogscaleError
from tests.controller.calibration.test_fitting import point

LOCAL = load(Path(str(files("controller.testbeds.flink") / "local.yml")))
RESTARTS = [
    Restart(
        style="restart",
        before=2,
        after=3,
        silent_s=silent_s,
        catch_up_ratio=0.8,
        catch_up_s=25,
        metrics_missing_s=12,
        cpu_while_down_ratio=0.9,
        taken_at="2026-11-18T08:00:00+00:00",
    )
    for silent_s in (34.0, 31.0, 37.5)
]


@pytest.fixture(scope="module")
def profile():
    """80/s for every replica, whatever the round trip; on the testbed's own round trips, 5 % less."""
    taught = [point(n, rtt_ms, 80.0 * n) for rtt_ms in (5.0, 300.0) for n in (1, 2, 3)]
    checked = [point(2, 50.0, 152.0).model_copy(update={"rtt_ms": OWN})]
    return profile_of(LOCAL, "map", [*taught, *checked], RESTARTS, "test")


def test_the_best_law_and_the_restarts_become_settings(profile):
    simulation = profile.simulation
    assert simulation.capacity["map"].law == "linear"
    assert simulation.capacity["map"].per_replica_per_s == pytest.approx(80)
    assert simulation.reconfiguration.range_s == (31.0, 37.5)
    assert (simulation.reconfiguration.catch_up_ratio, simulation.reconfiguration.catch_up_s) == (0.8, 25)
    assert simulation.reconfiguration.metrics_missing_s == 12
    assert simulation.reconfiguration.cpu_while_down_ratio == 0.9


def test_points_that_took_no_part_judge_the_law(profile):
    assert profile.fits[0].checked_ratio == pytest.approx(160 / 152 - 1, abs=1e-4)


def test_a_profile_is_what_was_written(profile, tmp_path):
    write_profile(profile, tmp_path / "new" / "mine.yml")
    again = load_profile(tmp_path / "new" / "mine.yml")
    assert again.simulation == profile.simulation
    assert again.points == profile.points
    assert again.restarts == profile.restarts


def test_an_experiment_is_simulated_with_the_same_part_of_its_load(profile):
    as_simulated = simulated(LOCAL, profile)
    real, copy = (prepare(runs_of(each, ["gesscale"], [1])[0]) for each in (LOCAL, as_simulated))
    assert as_simulated.testbed.kind == "simulated"
    assert copy.duration_s == real.duration_s == 12 * 3600 / 40
    assert len(copy.setup.inputs["source"]) == 1080


def test_a_real_testbeds_ladder_comes_from_the_profile(profile):
    assert with_ladder(LOCAL, profile).testbed.capacity_per_s == {"map": (80.0, 160.0, 240.0, 320.0, 400.0)}


def test_a_profile_of_another_job_has_no_ladder_for_it(profile):
    other = profile.model_copy(update={"job": "images"})
    with pytest.raises(FogscaleError, match="of job 'images', not 'taxi'"):
        with_ladder(LOCAL, other)


@pytest.mark.parametrize(
    ("text", "message"),
    [("[1]", "holds no profile"), ("a: [", "is not YAML"), ("nome: x", "did you mean")],
)
def test_a_file_that_is_no_profile_is_one_line(tmp_path, text, message):
    path = tmp_path / "bad.yml"
    path.write_text(text)
    with pytest.raises(FogscaleError, match=message):
        load_profile(path)


def test_every_kept_profile_is_valid_and_says_where_each_setting_comes_from():
    kept = profiles_in()
    assert kept
    for each in kept:
        told = [parameter.path for parameter in each.parameters]
        for name in each.simulation.capacity:
            assert f"simulation.capacity.{name}" in told
        assert any(path.startswith("simulation.reconfiguration") for path in told)
