"""Scaled workloads: every rate times the factor, all else as it was."""

import numpy as np
import pytest

from fogscale.errors import FogscaleError
from workloads.catalog import load
from workloads.replay import offered_rate_per_s


def test_all_rates_are_multiplied():
    taxi, half = load("taxi"), load("scaled", of="taxi", factor=0.5)
    assert half.replay == taxi.replay
    assert (half.profile.start, half.records) == (taxi.profile.start, taxi.records)
    np.testing.assert_allclose(
        offered_rate_per_s(half.profile, half.replay, 7.0),
        offered_rate_per_s(taxi.profile, taxi.replay, 7.0) / 2,
    )


def test_parts_take_parameters_and_may_be_scaled_themselves():
    of = {
        "name": "scaled",
        "parameters": {"of": {"name": "square", "parameters": {"high_per_s": 5}}, "factor": 2},
    }
    assert load("scaled", of=of, factor=3).profile.peak_per_s == pytest.approx(30)


def test_each_operator_is_scaled():
    walks, tripled = load("brownian").inputs, load("scaled", of="brownian", factor=3).inputs
    for operator in walks:
        np.testing.assert_allclose(tripled[operator].counts, 3 * walks[operator].counts)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"of": "taxi"}, "workload 'scaled' needs the parameter 'factor'"),
        ({"of": "taxy", "factor": 2}, "unknown workload 'taxy': did you mean taxi?"),
        ({"of": "taxi", "factor": 0}, "workload 'scaled': parameter 'factor' is 0"),
        ({"of": {"nam": "taxi"}, "factor": 2}, "unknown key 'nam': did you mean name?"),
        ({"of": {"name": "sine", "parameters": {"mean": 3}}, "factor": 2}, "did you mean mean_per_s?"),
    ],
)
def test_mistakes_are_named(parameters, message):
    with pytest.raises(FogscaleError) as error:
        load("scaled", **parameters)
    assert message in str(error.value)
