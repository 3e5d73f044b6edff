"""Joined workloads: one after the other, each at its own pace."""

import numpy as np
import pytest

from fogscale.errors import FogscaleError
from workloads.catalog import load
from workloads.replay import offered_rate_per_s, replay_span_s


def offered(workload, step_s=1.0):
    return offered_rate_per_s(workload.profile, workload.replay, step_s)


def test_one_after_the_other():
    joined = load("joined", of=["square", "pyramid"])
    expected = np.concatenate([offered(load("square")), offered(load("pyramid"))])
    np.testing.assert_allclose(offered(joined), expected, atol=1e-6)


def test_parts_keep_their_own_pace():
    ramp, taxi, joined = load("ramp"), load("taxi"), load("joined", of=["ramp", "taxi"])
    assert replay_span_s(joined.profile, joined.replay) == pytest.approx(3600 + 288 * 60)
    np.testing.assert_allclose(
        offered(joined, 60), np.concatenate([offered(ramp, 60), offered(taxi, 60)]), rtol=1e-6
    )


@pytest.mark.parametrize(("of", "copies"), [(["taxi", "taxi"], 3), (["taxi", "sine"], 1)])
def test_copies_stay_together_where_all_have_them(of, copies):
    joined = load("joined", of=of)
    assert joined.replay.copies == copies
    total = sum(offered(load(name), 60).sum() for name in of)
    assert offered(joined, 60).sum() == pytest.approx(total)


def test_operators_are_joined_each():
    joined = load("joined", of=["brownian", {"name": "brownian", "parameters": {"seed": 2}}])
    again = load("brownian", seed=2).inputs["op4"]
    np.testing.assert_allclose(joined.inputs["op4"].counts[200:], again.counts, atol=1e-6)


def test_parts_that_enter_elsewhere_are_refused():
    with pytest.raises(FogscaleError, match="its parts enter at different operators"):
        load("joined", of=["brownian", "taxi"])


def test_nothing_to_join_is_refused():
    with pytest.raises(FogscaleError, match="parameter 'of' is"):
        load("joined", of=[])
