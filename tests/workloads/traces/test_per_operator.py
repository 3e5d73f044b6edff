"""A workload of its own for each operator, each at its own pace."""

import numpy as np
import pytest

from fogscale.errors import FogscaleError
from workloads.catalog import load
from workloads.replay import arrivals, offered_rate_per_s, replay_span_s


def offered(profile, replay, step_s=60.0):
    return offered_rate_per_s(profile, replay, step_s)


def test_each_operator_gets_its_workload_at_its_own_pace():
    """Two days of taxi rides at speed 10 with 3 copies last 288 min, the ramp an hour."""
    taxi, ramp = load("taxi"), load("ramp")
    both = load("per_operator", of={"source": "taxi", "clock": "ramp"})
    assert replay_span_s(both.profile, both.replay) == pytest.approx(288 * 60)
    np.testing.assert_allclose(
        offered(both.inputs["source"], both.replay), offered(taxi.profile, taxi.replay), rtol=1e-6
    )
    clock = offered(both.inputs["clock"], both.replay)
    np.testing.assert_allclose(clock[:60], offered(ramp.profile, ramp.replay), rtol=1e-6)
    assert clock[60:].sum() == pytest.approx(0, abs=1e-6)  # nothing after its end


def test_the_whole_is_the_sum_of_what_the_operators_get():
    both = load("per_operator", of={"a": "square", "b": {"name": "ramp", "parameters": {}}})
    total = sum(profile.total_records for profile in both.inputs.values())
    assert both.profile.total_records == pytest.approx(total)


@pytest.mark.parametrize(("of", "copies"), [({"a": "taxi", "b": "taxi"}, 3), ({"a": "taxi", "b": "ramp"}, 1)])
def test_copies_stay_together_where_all_have_them(of, copies):
    both = load("per_operator", of=of)
    assert both.replay.copies == copies
    counts = arrivals(both.inputs["a"], both.replay, 1.0, np.random.default_rng(1))
    assert (counts % copies == 0).all()


def test_a_part_that_drives_operators_itself_is_refused():
    with pytest.raises(FogscaleError, match="'brownian' for 'source' drives op1, op2"):
        load("per_operator", of={"source": "brownian"})


def test_no_operator_at_all_is_refused():
    with pytest.raises(FogscaleError, match="parameter 'of' is"):
        load("per_operator", of={})
