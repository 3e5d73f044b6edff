"""Real beside simulated: figures from samples by hand, their bounds, and a run held against its own twin."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest

from controller import loop
from controller.calibration.figures import BOUNDS, Figures, figures_of
from controller.calibration.profile import Profile, profiles_in, simulation_for
from controller.calibration.validation import pairs_of
from controller.experiment import load, runs_of, varied
from controller.journal import Journal
from controller.model import Sample
from controller.recording import JOURNAL
from controller.run import prepare

LOCAL = load(Path(str(files("controller.testbeds.flink") / "local.yml")))


def sample(time_s: float, replicas: int, lag: int, reconfigurations: int = 0) -> Sample:
    return Sample(time_s, 100, 100 - lag, lag, {"map": replicas}, reconfigurations)


def test_figures_are_sums_over_samples():
    """2 replicas for a minute, none for half a minute, 4 for two and a half; the load lasts three minutes."""
    samples = [sample(0, 2, 0), sample(60, 0, 50, 1), sample(90, 4, 90, 1), sample(240, 4, 0, 1)]
    assert figures_of(samples, "map", 180) == Figures(
        mean_replicas=(2 * 60 + 4 * 90) / 180, reconfigurations=1, cost=2 + 4 * 2.5, lag_max=90
    )


@pytest.mark.parametrize(
    ("name", "real", "simulated", "holds"),
    [
        ("mean_replicas", 3.0, 3.3, True),
        ("mean_replicas", 3.0, 3.31, False),
        ("reconfigurations", 4, 6, True),
        ("reconfigurations", 4, 1, False),
        ("cost", 50, 45, True),
        ("cost", 50, 44.9, False),
        ("lag_max", 1000, 1250, True),
        ("lag_max", 1000, 740, False),
    ],
)
def test_bounds(name, real, simulated, holds):
    assert next(each for each in BOUNDS if each.name == name).holds(real, simulated) is holds


def profile_of(job: str) -> Profile:
    return next(each for each in profiles_in() if each.job == job)


def recorded_as_real(folder: Path, seconds: str, ended: bool = True) -> Path:
    """A journal of the simulated run under the manifest of the real one: its own twin."""
    import yaml

    real = runs_of(varied(LOCAL, {"testbed.span_s": seconds}), ["static"], [3])[0]
    twin = real.model_copy(update={"testbed": simulation_for(real.testbed, profile_of("taxi"))})
    place = folder / real.folder
    place.mkdir(parents=True)
    prepared = prepare(twin)
    journal = Journal.open(place / JOURNAL, prepared.header(), prepared.topology)
    testbed, policy = prepared.ready()
    with testbed:
        loop.run(testbed, policy, journal)
    journal.close()
    (place / "run.yml").write_text(yaml.safe_dump({"run": real.model_dump(mode="json")}))
    if not ended:
        lines = (place / JOURNAL).read_text().splitlines(keepends=True)
        (place / JOURNAL).write_text("".join(lines[:-1]))
    return place


def test_a_run_is_no_different_from_itself(tmp_path):
    place = recorded_as_real(tmp_path, "1h")
    (pair,), left_out = pairs_of([place], profiles_in())
    assert left_out == []
    assert [row["off"] for row in pair.rows()] == ["+0.0%", "+0", "+0.0%", "+0.0%"]
    assert all(row["within"] for row in pair.rows())


def test_what_cannot_be_compared_is_left_out_with_its_reason(tmp_path):
    unfinished = recorded_as_real(tmp_path, "1h", ended=False)
    assert "has not ended" in pairs_of([unfinished], profiles_in())[1][0]
    whole = recorded_as_real(tmp_path / "other", "1h")
    assert "no profile of job 'taxi'" in pairs_of([whole], [])[1][0]


def test_the_command_prints_and_draws(tmp_path, capsys, monkeypatch):
    from analysis.validation_command import validate

    validate([recorded_as_real(tmp_path, "1h")], None, tmp_path / "out", as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert len(told["figures"]) == len(BOUNDS)
    page = Path(told["page"]).read_text(encoding="utf-8")
    assert "4 of 4 figures of 1 runs are within" in page
    assert page.count("<svg") == 1
