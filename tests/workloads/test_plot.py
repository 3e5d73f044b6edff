"""The picture of a workload shows the replay's own numbers, with units, for any span and start."""

import numpy as np
import pytest

from workloads.catalog import load
from workloads.plot import draw
from workloads.profile import RateProfile
from workloads.replay import ReplaySettings
from workloads.workload import Workload


def lines_by_label(figure):
    return {line.get_label(): line for line in figure.axes[0].get_lines()}


def test_the_line_is_the_offered_rate():
    workload = load("taxi")
    expected = lines_by_label(draw(workload))["expected rate"]
    assert expected.get_ydata().max() == pytest.approx(workload.profile.peak_per_s * 30, rel=0.01)
    assert expected.get_xdata()[-1] == pytest.approx(288, rel=0.001)


def test_axes_carry_units():
    workload = load("worldcup98")
    below, above = draw(workload).axes
    assert below.get_xlabel() == "Replay time (min)"
    assert below.get_ylabel() == "Offered rate (records/s)"
    assert above.get_xlabel() == "Trace time (from 1998-06-09 22:00, UTC)"


def test_the_title_tells_how_it_is_replayed():
    workload = load("worldcup98")
    name, replay, source = draw(workload).get_suptitle().split("\n")
    assert (name, source) == ("worldcup98", workload.profile.source)
    assert replay == "144 min at speed 10, scale 0.0164, mean 95.6 and peak 311 records/s"


@pytest.mark.parametrize("step_s", [0.5, 60.0, 86400.0])
def test_any_undated_profile_can_be_saved(tmp_path, step_s):
    profile = RateProfile(
        "a $^$ in a file name is no formula", "a source " * 40, np.array([5.0, 0.0, 9.0]), step_s
    )
    draw(Workload(profile, ReplaySettings(speed=2.0, copies=2))).savefig(tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_a_long_source_loses_its_middle():
    profile = RateProfile("x", "begin " + "-" * 300 + " end", np.array([5.0]), 60.0)
    source = draw(Workload(profile)).get_suptitle().split("\n")[2]
    assert len(source) <= 121
    assert source.startswith("begin")
    assert source.endswith("end")


def test_operators_driven_on_their_own_have_a_line_each():
    workload = load("brownian")
    figure = draw(workload)
    lines = lines_by_label(figure)
    assert list(lines) == list(workload.inputs)
    for operator, profile in workload.inputs.items():
        assert lines[operator].get_ydata().max() == pytest.approx(profile.peak_per_s)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == list(workload.inputs)
    assert figure.axes[0].get_xlabel() == "Replay time (s)"


def test_trace_time_is_left_out_where_it_is_replay_time():
    assert len(draw(load("pyramid")).axes) == 1
    assert len(draw(load("worldcup98_synthetic")).axes) == 2
