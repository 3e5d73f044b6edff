"""`fogscale calibrate`: what follows from a paper's facts, beside what its experiment states."""

from __future__ import annotations

import pytest

from controller.experiment import load
from fogscale.errors import FogscaleError
from paper_figures.calibrate import Derived, calibrate, changes, write
from paper_figures.published import papers


@pytest.mark.parametrize(
    "paper", [folder.name for folder in papers() if (folder / "calibration.py").exists()]
)
def test_every_experiment_states_what_follows_from_its_facts(paper):
    assert calibrate(paper)[1] == []


def test_another_law_is_shown_setting_by_setting():
    _, derived = calibrate("gesscale", "usl")
    assert Derived("testbed.capacity.map.law", "power_latency", "usl") in derived
    assert {one.setting.rpartition(".")[0] for one in derived} == {"testbed.capacity.map"}


@pytest.mark.parametrize(
    ("stated", "derived", "expected"),
    [
        ({"a": 1.0}, {"a": 1.009}, []),
        ({"a": 1.0}, {"a": 1.02}, [Derived("a", 1.0, 1.02)]),
        ({"a": {"b": 1, "c": "x"}}, {"a": {"b": 1, "c": "y"}}, [Derived("a.c", "x", "y")]),
        ({"a": [1.0, 2.0]}, {"a": [1.0, 2.0, 3.0]}, [Derived("a", [1.0, 2.0], [1.0, 2.0, 3.0])]),
        ({"a": [{"b": 1.0}]}, {"a": [{"b": 1.001}]}, []),
        ({}, {"new": 3}, [Derived("new", None, 3)]),
        ({"gone": 3}, {}, [Derived("gone", 3, None)]),
    ],
)
def test_changes_are_those_beyond_rounding(stated, derived, expected):
    assert list(changes(stated, derived)) == expected


def test_what_is_written_is_an_experiment_with_the_derived_settings(tmp_path):
    experiment, _ = calibrate("gesscale", "table")
    write(experiment, tmp_path / "mine.yml")
    assert load(tmp_path / "mine.yml").testbed == experiment.testbed
    with pytest.raises(FogscaleError, match=r"mine\.yml exists"):
        write(experiment, tmp_path / "mine.yml")


def test_an_unknown_law_or_a_paper_without_calibration_is_one_line(tmp_path):
    with pytest.raises(FogscaleError, match="knows no capacity law foo: try"):
        calibrate("gesscale", "foo")
    for name in ("experiment.yml", "published.yml"):
        (tmp_path / name).write_text("")
    with pytest.raises(FogscaleError, match=r"has no calibration\.py"):
        calibrate(str(tmp_path))
