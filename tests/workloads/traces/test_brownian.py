"""Five random walks: independent, of the size they are told, and never below zero."""

import numpy as np
import pytest

from fogscale.errors import FogscaleError
from workloads.catalog import load


def test_five_operators_for_200_steps_from_2450():
    workload = load("brownian")
    assert list(workload.inputs) == ["op1", "op2", "op3", "op4", "op5"]
    for profile in workload.inputs.values():
        assert (len(profile.counts), profile.step_s) == (200, 1)
        assert profile.counts[0] == 2450  # 7 instances of capacity 500, loaded by 0.7
        assert (profile.counts >= 0).all()


def test_the_whole_is_the_sum():
    workload = load("brownian", seed=5)
    total = np.sum([profile.counts for profile in workload.inputs.values()], axis=0)
    np.testing.assert_allclose(workload.profile.counts, total)


def test_changes_are_normal_and_uncorrelated():
    # So high that no walk is folded at zero, hence the changes are what was drawn.
    workload = load("brownian", start_per_s=1e6, steps=2000)
    changes = np.diff([profile.counts for profile in workload.inputs.values()], axis=1)
    assert changes.std() == pytest.approx(400, rel=5 / np.sqrt(2 * changes.size))
    correlation = np.corrcoef(changes)[np.triu_indices(5, k=1)]
    assert np.abs(correlation).max() < 5 / np.sqrt(changes.shape[1])


def test_one_more_operator_leaves_the_others_alone():
    three = load("brownian", operators=["a", "b", "c"]).inputs
    two = load("brownian", operators=["a", "b"]).inputs
    np.testing.assert_array_equal(three["b"].counts, two["b"].counts)
    assert list(three) == ["a", "b", "c"]


def test_seeds_differ_and_repeat():
    walks = [load("brownian", seed=seed).inputs["op3"].counts for seed in (1, 1, 2)]
    np.testing.assert_array_equal(walks[0], walks[1])
    assert (walks[0] != walks[2]).any()


def test_longer_steps_keep_the_rate():
    profile = load("brownian", step_s=10).inputs["op1"]
    assert (profile.span_s, profile.counts[0]) == (2000, 24_500)


def test_two_operators_of_one_name_are_refused():
    with pytest.raises(FogscaleError, match="two operators have the same name"):
        load("brownian", operators=["a", "a"])
