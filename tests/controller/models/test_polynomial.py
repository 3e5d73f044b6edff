"""The performance model of the thesis, against plain least squares and polynomials known beforehand."""

import json

import msgspec
import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.models.polynomial import Polynomial, Samples, Seen, UnfitError, orthogonal, trained
from fogscale.errors import FogscaleError
from tests.support.slow_records import staircase


def monomials(samples, degree):
    return np.stack(
        [
            (samples.workload_per_s / 4400) ** (total - j) * samples.replicas**j
            for total in range(degree + 1)
            for j in range(total + 1)
        ],
        axis=1,
    )


def plain_fit(samples, degree):
    """What the thesis does, without any scaling but of the workload, by singular values."""
    design = monomials(samples, degree)
    return design @ np.linalg.lstsq(design, samples.slow_ratio, rcond=1e-13)[0]


def rmse(values):
    return np.sqrt(np.mean(values**2))


# Recovery


@settings(max_examples=40, deadline=None)
@given(
    degree=st.integers(1, 5),
    top_per_s=st.floats(1.0, 1e6),
    servers=st.integers(7, 9),
    seed=st.integers(0, 10_000),
)
def test_known_polynomials_are_recovered(degree, top_per_s, servers, seed):
    rng = np.random.default_rng(seed)
    workload = rng.uniform(0, top_per_s, 300)
    replicas = rng.integers(1, servers + 1, 300).astype(float)
    powers = [(total - j, j) for total in range(degree + 1) for j in range(total + 1)]
    weights = rng.uniform(0.5, 1.5, len(powers)) * rng.choice([-1, 1], len(powers))

    def truth(w, n):
        return sum(
            a * (w / top_per_s) ** i * (n / servers) ** j for a, (i, j) in zip(weights, powers, strict=True)
        )

    model, _ = trained(Samples(workload, replicas, truth(workload, replicas)))
    asked = rng.uniform(workload.min(), workload.max(), 50)
    for n in range(1, servers + 1):
        assert model.value(asked, float(n)) == pytest.approx(truth(asked, n), abs=1e-6)
    assert model.degree == degree
    assert model.rmse < 1e-9


@pytest.mark.parametrize("degree", range(1, 6))
def test_a_fit_is_that_of_plain_least_squares(degree):
    samples = staircase()
    model, _ = trained(samples, max_degree=degree)
    fitted = model.value(samples.workload_per_s, samples.replicas)
    assert fitted == pytest.approx(plain_fit(samples, degree), abs=1e-6)


# Algorithm 3


def test_the_degree_of_least_rmse_is_chosen():
    samples = staircase()
    errors = {d: rmse(samples.slow_ratio - plain_fit(samples, d)) for d in range(1, 6)}
    model, _ = trained(samples, max_degree=5)
    assert model.degree == min(errors, key=errors.get) == 5  # on its own data the highest always wins
    assert model.rmse == pytest.approx(errors[5], rel=1e-6)


def test_cross_validation_leaves_each_sample_out_once():
    """Against 120 fits to 119 samples, for each degree."""
    samples = staircase(120, noise=0.02)
    errors = {}
    for degree in range(1, 5):
        design = monomials(samples, degree)
        left_out = []
        for i in range(120):
            others = np.arange(120) != i
            fit = np.linalg.lstsq(design[others], samples.slow_ratio[others], rcond=1e-13)[0]
            left_out.append(samples.slow_ratio[i] - design[i] @ fit)
        errors[degree] = rmse(np.array(left_out))
    chosen = trained(samples, "cross_validated", max_degree=4)[0].degree
    assert chosen == min(errors, key=errors.get)


def test_cross_validation_prefers_the_simple_truth_to_a_wild_fit():
    rng = np.random.default_rng(5)
    workload, replicas = rng.uniform(0, 1000, 200), rng.integers(1, 4, 200).astype(float)
    noisy = Samples(workload, replicas, workload / 10_000 + 0.02 * rng.standard_normal(200))
    assert trained(noisy, "cross_validated")[0].degree == 1
    assert trained(noisy, "in_sample")[0].degree == 8


def test_as_printed_the_model_is_a_constant():
    samples = staircase()
    model, _ = trained(samples, "printed")
    assert model.degree == 0
    assert model.value([0.0, 4000.0], 3.0) == pytest.approx(samples.slow_ratio.mean())


# Conditioning


def test_scaled_inputs_are_well_conditioned_where_raw_powers_are_not():
    samples = staircase()
    model, _ = trained(samples)
    raw = np.stack([samples.workload_per_s**i * samples.replicas**j for i, j in model.powers], axis=1)
    design = model.design(samples.workload_per_s, samples.replicas)
    columns, _, kept = orthogonal(design)
    assert np.linalg.cond(raw) > 1e20  # beyond what double precision can solve
    assert np.linalg.cond(design) < 1e10
    assert np.linalg.cond(columns) == pytest.approx(1.0)  # what is solved with
    assert kept.all()


def test_two_numbers_of_taskmanagers_leave_no_second_power_of_them():
    rng = np.random.default_rng(2)
    workload, replicas = rng.uniform(0, 2000, 400), rng.integers(1, 3, 400).astype(float)
    slow = 0.05 * (workload / 1000) ** 2 / replicas
    model, _ = trained(Samples(workload, replicas, slow))
    assert max(j for _, j in model.powers) == 1
    assert model.value(workload, replicas) == pytest.approx(slow, abs=1e-9)


# What it knows


def line():
    """A share of 0 at 0 records/s that reaches 0.2 at 4000, whatever the TaskManagers."""
    seen = (Seen(1, 100.0, 1000.0), Seen(3, 900.0, 3000.0))
    return Polynomial(1, ((0, 0), (1, 0)), (0.1, 0.1), (0.0, 4000.0), (1.0, 3.0), seen, 100, 0.0)


def test_beyond_its_data_it_says_nothing():
    asked = np.array([0.0, 100.0, 1000.0, 1001.0])
    predicted = line().slow_ratio(asked, 1)
    assert predicted[:3] == pytest.approx([0.005, 0.005, 0.05])  # below the least seen: as at the least seen
    assert np.isnan(predicted[3])
    assert np.isnan(line().slow_ratio(asked, 2)).all()  # between 1 and 3, but never seen


def test_a_share_is_never_below_0():
    model = Polynomial(1, ((0, 0),), (-0.3,), (0.0, 1.0), (1.0, 1.0), (Seen(1, 0.0, 1.0),), 10, 0.0)
    assert model.slow_ratio(np.array([0.5]), 1) == [0.0]


def test_it_knows_the_workloads_seen_with_each_number_of_taskmanagers():
    samples = Samples.of([(w, n, 0.01 * w) for w, n in [(5, 1), (9, 1), (7, 2), (20, 2), (8, 1), (11, 2)]])
    assert trained(samples)[0].seen == (Seen(1, 5.0, 9.0), Seen(2, 7.0, 20.0))


# Bad data


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        pytest.param([], "0 samples are too few", id="nothing"),
        pytest.param([(100.0, 1, 0.1)] * 5, "5 samples are too few", id="fewer than two per coefficient"),
        pytest.param([(100.0, 1 + i % 2, 0.1 * i) for i in range(50)], "one workload", id="constant load"),
        pytest.param([(100.0 * i, 1, np.nan) for i in range(50)], "not numbers", id="NaN"),
        pytest.param([(np.inf, 1, 0.1) for _ in range(50)], "not numbers", id="infinite"),
    ],
)
def test_data_that_cannot_carry_a_model_are_refused(rows, why):
    with pytest.raises(UnfitError, match=why):
        trained(Samples.of(rows))


def test_few_samples_allow_only_low_degrees():
    rows = [(100.0 * i, 1 + i % 3, 0.01 * np.sin(i)) for i in range(13)]
    assert trained(Samples.of(rows))[0].degree == 2  # 6 coefficients need 12 samples, the next 10 need 20


def test_outliers_are_left_out_when_asked():
    clean = staircase()
    slow = clean.slow_ratio.copy()
    slow[50::60] += 3.0  # ten crashes
    spoilt = clean._replace(slow_ratio=slow)
    truth = trained(clean, max_degree=4)[0].value(clean.workload_per_s, clean.replicas)
    robust, used = trained(spoilt, max_degree=4, robust=True)
    plain, all_used = trained(spoilt, max_degree=4)
    assert len(all_used.slow_ratio) == 600
    assert set(np.flatnonzero(slow > 2)).isdisjoint(np.flatnonzero(np.isin(slow, used.slow_ratio)))
    assert len(used.slow_ratio) > 560
    assert np.abs(robust.value(*clean[:2]) - truth).max() < 0.005
    assert np.abs(plain.value(*clean[:2]) - truth).max() > 0.05


# On file


@pytest.mark.parametrize(
    "through", [lambda r: yaml.safe_load(yaml.safe_dump(r)), lambda r: json.loads(json.dumps(r))]
)
def test_a_model_survives_a_file(through):
    model, _ = trained(staircase())
    assert msgspec.convert(through(msgspec.to_builtins(model)), Polynomial) == model


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"coefficients": [1.0]}, "1 coefficients for"),
        ({"workload_range_per_s": [0.0, float("nan")]}, "not finite"),
        ({"seen": []}, "must list"),
    ],
)
def test_a_damaged_model_is_refused_in_one_line(change, why):
    with pytest.raises(FogscaleError, match=why):
        msgspec.convert(msgspec.to_builtins(line()) | change, Polynomial)
