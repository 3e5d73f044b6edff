"""The thesis' bells against numerical integration of their formula."""

import numpy as np
import pytest
from scipy.integrate import quad

from fogscale.errors import FogscaleError
from workloads.catalog import load


def rate_per_s(t_s, peak_per_s, span_s, deviation_s):
    bell = np.exp(-((t_s - span_s / 2) ** 2) / (2 * deviation_s**2))
    foot = np.exp(-((span_s / 2) ** 2) / (2 * deviation_s**2))
    return peak_per_s * (bell - foot) / (1 - foot)


@pytest.mark.parametrize(("name", "span_s"), [("gaussian", 18_000), ("gaussian_low_variance", 5_400)])
def test_spans_peaks_and_format_are_those_of_the_thesis(name, span_s):
    workload = load(name)
    assert workload.profile.span_s == span_s
    assert workload.profile.peak_per_s == pytest.approx(4500, rel=1e-6)
    assert (workload.replay.speed, workload.replay.copies, workload.replay.scale) == (1, 1, 1)
    assert workload.records == "click"


@pytest.mark.parametrize(
    ("start_s", "end_s"), [(0, 1), (0, 3600), (8999, 9001), (12_345, 12_346), (0, 18_000)]
)
def test_any_stretch_holds_the_integral_of_the_rate(start_s, end_s):
    expected, _ = quad(rate_per_s, start_s, end_s, args=(4500, 18_000, 3_000), epsabs=1e-9)
    assert load("gaussian").profile.between([start_s, end_s])[0] == pytest.approx(
        expected, rel=1e-9, abs=1e-7
    )


def test_it_begins_and_ends_with_nothing():
    counts = load("gaussian").profile.counts
    assert counts[0] < 0.3
    assert counts[-1] == pytest.approx(counts[0], rel=1e-6)
    assert (np.diff(counts[:9000]) > 0).all()


def test_parameters_shape_it():
    profile = load("gaussian", peak_per_s=500, span_s="1 h", deviation_ratio=0.1).profile
    expected, _ = quad(rate_per_s, 0, 3600, args=(500, 3600, 360))
    assert (profile.span_s, profile.total_records) == (3600, pytest.approx(expected, rel=1e-9))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"peak_per_s": 0}, "parameter 'peak_per_s' is 0: Input should be greater than 0"),
        ({"peak_per_s": float("inf")}, "parameter 'peak_per_s' is inf: Input should be a finite number"),
        ({"span_s": "soon"}, "parameter 'span_s' is 'soon': 'soon' is not a duration"),
        ({"deviation": 0.2}, "unknown parameter 'deviation': did you mean deviation_ratio?"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    with pytest.raises(FogscaleError) as error:
        load("gaussian", **parameters)
    assert str(error.value).startswith(f"workload 'gaussian': {message}")
