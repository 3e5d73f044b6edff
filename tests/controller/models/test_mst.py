"""Gesscale's performance model: Eq. 1–3 worked by hand, exact without noise, and how good with it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.models.mst import BETA_RANGE, Measurement, MstModel, calibrated, single_point

LADDER_MS = {1: 0.0, 2: 50.0, 3: 100.0, 4: 150.0, 5: 200.0, 6: 300.0}
"""The largest round trip among the n nearest nodes of the paper's testbed."""
alphas = st.floats(50, 500)
betas = st.floats(0.5, 1.0)
gammas = st.floats(0.0, 0.1)


def measured(model: MstModel, *configurations: tuple[int, float]) -> list[Measurement]:
    return [Measurement(n, rtt_ms, model.mst_per_s(n, rtt_ms)) for n, rtt_ms in configurations]


# The equations


def test_eq_1():
    """100 · 4^0.5 − 0.2 · 50 = 190."""
    assert MstModel(100, 0.5, 0.2).mst_per_s(4, 50) == pytest.approx(190)


def test_eq_2():
    assert MstModel(100).mst_per_s(4, 50) == 400


def test_eq_3():
    assert MstModel(100, gamma_per_s_per_ms=0.2).mst_per_s(4, 50) == 390


# The ladder


def test_without_a_measurement_there_is_no_model():
    assert calibrated([]) is None


def test_one_measurement_gives_eq_2():
    """180 records/s on two replicas are 90 each, whatever the network did."""
    model = calibrated([Measurement(2, 50, 180)])
    assert model == single_point(Measurement(2, 50, 180)) == MstModel(90, 1.0, 0.0)


def test_two_measurements_give_eq_3():
    """100 on one node; two do not 200 but 190, for which 50 ms are to blame: γ = 10 / 50."""
    model = calibrated([Measurement(1, 0, 100), Measurement(2, 50, 190)])
    assert model.alpha_per_s == pytest.approx(100)
    assert model.beta == 1
    assert model.gamma_per_s_per_ms == pytest.approx(0.2)


def test_three_measurements_give_eq_1():
    """From 1 to 4 nodes at no delay the rate doubles: β = 0.5. 100 ms then cost 20 records/s: γ = 0.2."""
    model = calibrated([Measurement(1, 0, 100), Measurement(4, 0, 200), Measurement(4, 100, 180)])
    assert model.alpha_per_s == pytest.approx(100, rel=1e-5)
    assert model.beta == pytest.approx(0.5, abs=1e-5)
    assert model.gamma_per_s_per_ms == pytest.approx(0.2, rel=1e-4)


def test_two_measurements_that_the_network_cannot_explain_leave_it_out():
    """230 on two nodes is more than twice 100: γ would be negative, so it is 0 and α the least squares,
    (1·100 + 2·230) / (1 + 4) = 112."""
    model = calibrated([Measurement(1, 0, 100), Measurement(2, 50, 230)])
    assert model.gamma_per_s_per_ms == 0
    assert model.alpha_per_s == pytest.approx(112)


def test_perfect_parallelism_is_found_at_the_end_of_the_range():
    model = calibrated(measured(MstModel(80, 1.0, 0.0), (1, 0), (2, 50), (4, 20)))
    assert model.beta == pytest.approx(1.0, abs=1e-6)
    assert model.mst_per_s(6, 0) == pytest.approx(480)


def test_more_than_perfect_parallelism_is_not_believed():
    model = calibrated(measured(MstModel(80, 1.3, 0.0), (1, 0), (2, 50), (4, 100)))
    assert model.beta == 1.0


@pytest.mark.parametrize("repeats", [1, 2, 5])
def test_a_configuration_measured_again_is_still_one_point(repeats):
    """Three measurements, but two configurations: Eq. 3, and the mean of the repeated one counts once."""
    again = [Measurement(2, 50, 190 + offset) for offset in range(-repeats, repeats + 1)]
    assert calibrated([Measurement(1, 0, 100), *again]) == calibrated(
        [Measurement(1, 0, 100), Measurement(2, 50, 190)]
    )


def test_the_same_number_of_replicas_on_other_nodes_is_another_point():
    model = calibrated([Measurement(2, 10, 198), Measurement(2, 60, 188)])
    assert model.gamma_per_s_per_ms == pytest.approx(0.2)
    assert model.alpha_per_s == pytest.approx(100)


def test_the_order_of_measurements_does_not_matter():
    points = measured(MstModel(91.4, 0.85, 0.26), (2, 50), (3, 100), (4, 150), (5, 200))
    assert calibrated(points) == calibrated(reversed(points))


def test_a_constant_round_trip_is_no_trouble():
    """Nothing tells γ from α then, but what was measured must come out again."""
    points = measured(MstModel(91.4, 0.85, 0.0), (2, 0), (3, 0), (4, 0))
    model = calibrated(points)
    for point in points:
        assert model.mst_per_s(point.replicas, 0) == pytest.approx(point.throughput_per_s, rel=1e-4)


def test_an_operator_that_did_nothing_is_no_trouble():
    model = calibrated([Measurement(1, 0, 0), Measurement(2, 50, 0), Measurement(3, 100, 0)])
    assert model.mst_per_s(3, 100) == 0


# Without noise


@settings(max_examples=200, deadline=None)
@given(alphas, betas, gammas, st.sets(st.integers(1, 6), min_size=3, max_size=6))
def test_without_noise_every_measured_configuration_comes_out_again(alpha, beta, gamma, replicas):
    truth = MstModel(alpha, beta, gamma)
    points = measured(truth, *((n, LADDER_MS[n]) for n in replicas))
    model = calibrated(points)
    for point in points:
        predicted_per_s = model.mst_per_s(point.replicas, point.largest_rtt_ms)
        assert predicted_per_s == pytest.approx(point.throughput_per_s, rel=1e-4)


@settings(max_examples=200, deadline=None)
@given(alphas, betas, gammas)
def test_without_noise_well_chosen_points_tell_all_others(alpha, beta, gamma):
    """One node, and four nodes near to and far from each other, tell n, latency and both apart."""
    truth = MstModel(alpha, beta, gamma)
    model = calibrated(measured(truth, (1, 0), (4, 20), (4, 300)))
    for n in range(1, 9):
        for rtt_ms in (0, 50, 300):
            expected_per_s = truth.mst_per_s(n, rtt_ms)
            assert model.mst_per_s(n, rtt_ms) == pytest.approx(expected_per_s, abs=1e-3 * alpha)


# Whatever was measured


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.builds(Measurement, st.integers(1, 20), st.floats(0, 1000), st.floats(0, 1e6)),
        min_size=1,
        max_size=8,
    )
)
def test_parameters_stay_within_their_ranges(points):
    model = calibrated(points)
    assert model.alpha_per_s >= 0
    assert model.gamma_per_s_per_ms >= 0
    assert BETA_RANGE[0] <= model.beta <= BETA_RANGE[1]
    assert np.isfinite(model.mst_per_s(6, 300))


# With noise of 1 %

TRUTHS = [MstModel(91.38, 0.85, 0.2584), MstModel(100, 0.7, 0.1), MstModel(60, 1.0, 0.05)]
truths = pytest.mark.parametrize("truth", TRUTHS, ids=["gesscale", "bent", "straight"])


def errors(truth, measured_n, predicted_n, repeats, trials=300):
    """The largest relative error over some configurations, in each of many calibrations."""
    rng = np.random.default_rng(20)
    largest = []
    for _ in range(trials):
        points = [
            Measurement(n, LADDER_MS[n], truth.mst_per_s(n, LADDER_MS[n]) * rng.normal(1, 0.01))
            for n in measured_n
            for _ in range(repeats)
        ]
        model = calibrated(points)
        wrong = [
            abs(model.mst_per_s(n, LADDER_MS[n]) / truth.mst_per_s(n, LADDER_MS[n]) - 1) for n in predicted_n
        ]
        largest.append(max(wrong))
    return np.array(largest)


@truths
def test_three_noisy_points_are_right_to_2_percent_where_they_were_taken(truth):
    """2, 3 and 4 replicas, measured once each: the paper's < 2 % holds for these three in 9 of 10
    calibrations (a single measurement is itself off by more than 2 % once in 22 times)."""
    wrong = errors(truth, (2, 3, 4), (2, 3, 4), repeats=1)
    assert np.quantile(wrong, 0.90) < 0.02
    assert np.median(wrong) < 0.0125


@truths
def test_four_measurements_of_each_make_it_sure(truth):
    assert errors(truth, (2, 3, 4), (2, 3, 4), repeats=4).max() < 0.02


@truths
def test_a_whole_ladder_is_right_to_2_percent_from_end_to_end(truth):
    """1 to 6 replicas, measured four times each."""
    assert np.quantile(errors(truth, range(1, 7), range(1, 7), repeats=4), 0.95) < 0.02


@truths
def test_what_lies_between_the_points_is_right_to_3_percent_nearly_always(truth):
    """2, 4 and 6 replicas measured four times; 3 and 5 predicted."""
    assert np.quantile(errors(truth, (2, 4, 6), (2, 3, 4, 5, 6), repeats=4), 0.95) < 0.03


@truths
def test_beyond_the_points_the_error_is_larger_but_bounded(truth):
    """One replica predicted from 2, 3 and 4: here the paper's < 2 % does not hold. On the ladder the round
    trip grows along with n, so that noise shifts weight between β and γ."""
    wrong = errors(truth, (2, 3, 4), (1,), repeats=1)
    assert np.median(wrong) < 0.06
    assert np.quantile(wrong, 0.95) < 0.15


@settings(max_examples=60, deadline=None)
@given(alphas, betas, gammas, st.integers(0, 2**32 - 1))
def test_three_points_of_sixteen_measurements_are_right_to_2_percent(alpha, beta, gamma, seed):
    """Within the calibrated range, 2 to 4 replicas, for any operator."""
    truth, rng = MstModel(alpha, beta, gamma), np.random.default_rng(seed)
    points = [
        Measurement(n, LADDER_MS[n], truth.mst_per_s(n, LADDER_MS[n]) * rng.normal(1, 0.01))
        for n in (2, 3, 4)
        for _ in range(16)
    ]
    model = calibrated(points)
    for n in (2, 3, 4):
        assert model.mst_per_s(n, LADDER_MS[n]) == pytest.approx(truth.mst_per_s(n, LADDER_MS[n]), rel=0.02)
