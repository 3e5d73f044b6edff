"""The decision process of one operator, on tables small enough to be worked out by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.models.scaling_process import (
    KEEP,
    States,
    Weights,
    backed_up,
    cost_of,
    first_values,
    greedy,
    known_costs,
    optimum,
)

TWO = States(k_min=1, k_max=2, levels=1, quantum_per_s=50.0)
WEIGHTS = Weights(performance=0.4, resources=0.4, reconfiguration=0.2)
ALTERNATES = np.array([[0.0, 1.0], [1.0, 0.0]])  # low, high, low, …


@pytest.mark.parametrize(
    ("rate_per_s", "level"),
    [
        pytest.param(0.0, 0, id="nothing arrives"),
        pytest.param(24.9, 0, id="nearer to 0"),
        pytest.param(25.0, 1, id="halfway counts as the next"),
        pytest.param(500.0, 10, id="the last level"),
        pytest.param(1e9, 10, id="beyond the range counts as the last level"),
    ],
)
def test_rates_become_levels(rate_per_s, level):
    assert States(1, 3, 10, 50.0).level(rate_per_s) == level


def test_a_rate_beyond_the_range_is_told_apart():
    states = States(1, 3, 10, 50.0)
    assert states.covers(524.9)
    assert not states.covers(525.0)


def test_changing_and_replicas_cost_what_they_weigh():
    inf = np.inf
    expected = [[inf, 0.4 * 1 / 2, 0.2 + 0.4 * 2 / 2], [0.2 + 0.4 * 1 / 2, 0.4 * 2 / 2, inf]]
    assert known_costs(TWO, WEIGHTS) == pytest.approx(np.array(expected))


def test_who_cannot_be_scaled_has_one_action():
    states = States(1, 1, 2, 50.0)
    assert known_costs(states, WEIGHTS).tolist() == [[np.inf, 0.4, np.inf]]
    assert (greedy(first_values(states)) == KEEP).all()


def test_a_backup_by_hand():
    """From (1, low) the next state is high. One replica is too slow there (0.4), two are not."""
    unknown = np.array([[0.0, 0.4], [0.0, 0.0]])
    known = known_costs(TWO, WEIGHTS)
    once = backed_up(first_values(TWO), known, unknown, ALTERNATES, 0.5)
    assert once[0, 0].tolist() == pytest.approx([np.inf, 0.2 + 0.4, 0.6 + 0.0])
    assert once[1, 1].tolist() == pytest.approx([0.4 + 0.0, 0.4 + 0.0, np.inf])
    twice = backed_up(once, known, unknown, ALTERNATES, 0.5)
    # min over actions of the first backup: (1, high): 0.2; (2, high): 0.4
    assert twice[0, 0].tolist() == pytest.approx([np.inf, 0.6 + 0.5 * 0.2, 0.6 + 0.5 * 0.4])


def test_a_single_state_costs_a_geometric_series():
    states = States(1, 1, 0, 50.0)
    values = optimum(states, WEIGHTS, np.zeros((1, 1)), np.eye(1), 0.9)
    assert values[0, 0, KEEP] == pytest.approx(0.4 / (1 - 0.9))


def test_the_optimum_adds_a_replica_where_slowness_lasts():
    unknown = np.array([[0.0, 0.4], [0.0, 0.0]])  # one replica is too slow at the high rate
    values = optimum(TWO, WEIGHTS, unknown, np.eye(2), 0.99)
    assert greedy(values).tolist() == [[KEEP, 2], [0, KEEP]]  # high: two replicas, low: one


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000))
def test_value_iteration_agrees_with_the_linear_system_and_nobody_does_better(seed):
    rng = np.random.default_rng(seed)
    states = States(1, 3, 3, 50.0)
    unknown = rng.uniform(0, 0.4, states.shape)
    moves = rng.dirichlet(np.ones(4), size=4)
    known = known_costs(states, WEIGHTS)
    values = optimum(states, WEIGHTS, unknown, moves, 0.9)
    best = cost_of(greedy(values), known, unknown, moves, 0.9)
    assert best == pytest.approx(values.min(axis=2), abs=1e-6)
    any_actions = np.array([[rng.choice(np.flatnonzero(row)) for _ in range(4)] for row in states.allowed()])
    assert (cost_of(any_actions, known, unknown, moves, 0.9) >= best - 1e-9).all()


def test_of_equal_actions_the_one_that_changes_nothing_is_taken():
    assert (greedy(first_values(States(1, 3, 2, 50.0))) == KEEP).all()
