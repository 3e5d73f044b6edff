"""The stability check, against a loop that resamples and refits one by one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.models.polynomial import Samples, trained
from controller.models.stability import drawn, refitted, stability
from tests.support.slow_records import staircase


def check(model, samples, *, capacity_per_s=1100.0, workload_per_s=200.0, replicas=1, seed=7, **options):
    rng = np.random.default_rng(seed)
    return stability(model, samples, capacity_per_s, workload_per_s, replicas, rng, **options)


@pytest.mark.parametrize("degree", [1, 3, 6])
def test_refits_are_those_of_a_loop_over_resamples(degree):
    samples = staircase()
    model, _ = trained(samples, max_degree=degree)
    design = model.design(samples.workload_per_s, samples.replicas)
    counts = drawn(600, 40, np.random.default_rng(3))
    batched = refitted(design, samples.slow_ratio, 40, np.random.default_rng(3))
    for b in range(40):
        rows = np.repeat(np.arange(600), counts[b])
        assert len(rows) == 600
        one = np.linalg.lstsq(design[rows], samples.slow_ratio[rows], rcond=None)[0]
        assert design @ batched[:, b] == pytest.approx(design @ one, abs=1e-6)


def test_the_spread_is_the_deviation_over_refits_averaged_over_points():
    samples = staircase()
    model, _ = trained(samples, max_degree=4)
    design = model.design(samples.workload_per_s, samples.replicas)
    ahead = model.design(np.linspace(200.0, 1100.0, 50), 1.0)
    counts = drawn(600, 250, np.random.default_rng(7))
    refits = []
    for row in counts:
        root = np.sqrt(row)[:, None]
        refits.append(np.linalg.lstsq(root * design, root[:, 0] * samples.slow_ratio, rcond=None)[0])
    found = check(model, samples)
    assert found.spread == pytest.approx(np.mean(np.std([design @ fit for fit in refits], axis=0)), rel=1e-6)
    assert found.spread_ahead == pytest.approx(
        np.mean(np.std([ahead @ fit for fit in refits], axis=0)), rel=1e-6
    )


def test_rows_beyond_one_block_count_too():
    samples = staircase(1300)
    model, _ = trained(samples, max_degree=2)
    design = model.design(samples.workload_per_s, samples.replicas)
    row = drawn(1300, 1, np.random.default_rng(3))[0]
    root = np.sqrt(row)[:, None]
    one = np.linalg.lstsq(root * design, root[:, 0] * samples.slow_ratio, rcond=None)[0]
    assert refitted(design, samples.slow_ratio, 1, np.random.default_rng(3))[:, 0] == pytest.approx(
        one, abs=1e-6
    )


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 1000))
def test_a_model_of_noiseless_data_is_stable(seed):
    samples = staircase()
    exact = samples._replace(slow_ratio=0.02 + 1e-5 * samples.workload_per_s / samples.replicas.max())
    model, _ = trained(exact)
    found = check(model, exact, seed=seed, resamples=50)
    assert found.stable
    assert found.spread == pytest.approx(0.0, abs=1e-9)


def test_the_same_seed_gives_the_same_answer():
    samples = staircase()
    model, _ = trained(samples)
    for algorithm_4 in ("refit", "printed"):
        first, again, other = (
            check(model, samples, seed=seed, algorithm_4=algorithm_4) for seed in (1, 1, 2)
        )
        assert first == again
        assert first != other


def test_phase_1_finds_data_that_are_too_noisy():
    rng = np.random.default_rng(1)
    workload, replicas = rng.uniform(0, 2000, 100), rng.integers(1, 3, 100).astype(float)
    noisy = Samples(workload, replicas, rng.uniform(0, 1, 100))
    model, _ = trained(noisy)
    found = check(model, noisy, workload_per_s=1000.0)
    assert not found.stable
    assert found.spread > 0.05


def test_phase_2_finds_workload_the_data_say_nothing_about():
    """Seen up to 600 records/s; one TaskManager is said to bear 1100."""
    rng = np.random.default_rng(1)
    workload = rng.uniform(0, 600, 450)
    samples = Samples(workload, np.ones(450), 0.03 * workload / 600 + 0.003 * rng.standard_normal(450))
    model, _ = trained(samples)
    found = check(model, samples, workload_per_s=600.0)
    assert found.spread < 0.05 < found.spread_ahead
    assert not found.stable
    assert check(model, samples, workload_per_s=600.0, capacity_per_s=600.0).stable


def test_without_a_capacity_there_is_no_phase_2():
    samples = staircase()
    model, _ = trained(samples)
    found = check(model, samples, capacity_per_s=None)
    assert not found.stable
    assert "capacity" in found.reason


def test_as_printed_it_measures_how_much_slow_records_vary():
    """A perfect model of data from 0 to 1 is refused, any model of flat data is accepted."""
    workload = np.linspace(0, 1000, 400)
    steep = Samples(workload, np.ones(400), workload / 1000)
    model, _ = trained(steep)
    found = check(model, steep, algorithm_4="printed")
    assert found.spread == pytest.approx(np.std(steep.slow_ratio), rel=0.02)
    assert not found.stable
    assert check(model, steep).stable
