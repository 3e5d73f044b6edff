"""EDF's formulas a second time: as they are printed, state by state, in plain Python.

Whatever a manager sees, does and is denied, it must have learned the same, and score its requests the same.
"""

from __future__ import annotations

from collections import defaultdict, deque
from itertools import product

import numpy as np
import pytest

from controller.models.scaling_process import ACTIONS, States, Weights
from controller.policies.edf.application_manager import TokenBucket
from controller.policies.edf.learning import Rules
from controller.policies.edf.model_based import ModelBased
from controller.policies.edf.operator_manager import View
from controller.policies.edf.q_learning import QLearning
from controller.policies.edf.requests import Request
from controller.policies.edf.threshold import Threshold

K_MAX, LEVELS, QUANTUM_PER_S, BOUND_MS = 4, 6, 50.0, 100.0
ALPHA, GAMMA = 0.1, 0.99
W_PERF, W_RES, W_RCF = 0.3, 0.5, 0.2
STATES = States(1, K_MAX, LEVELS, QUANTUM_PER_S)
RULES = Rules(Weights(W_PERF, W_RES, W_RCF), GAMMA, ALPHA, exploration=0.2)
ALL_STATES = list(product(range(1, K_MAX + 1), range(LEVELS + 1)))


def allowed(k):
    return [a for a in (-1, 0, 1) if 1 <= k + a <= K_MAX]


class AsPrinted:
    """§5.2, with nothing but dictionaries."""

    def __init__(self):
        self.q = {(s, a): 0.0 for s in ALL_STATES for a in allowed(s[0])}
        self.largest = 1.0

    def least(self, s):
        return min(self.q[s, a] for a in allowed(s[0]))

    def cost(self, s, a, following, slow):
        """Eq. 1."""
        assert following[0] == s[0] + a
        return W_RCF * (a != 0) + W_PERF * slow + W_RES * (s[0] + a) / K_MAX

    def visit(self, s):
        gains = [self.q[s, 0] - self.q[s, a] for a in allowed(s[0])]
        self.largest = max(self.largest, *gains)

    def score(self, s, a):
        return (self.q[s, 0] - self.q[s, a]) / self.largest


class QLearningAsPrinted(AsPrinted):
    def learn(self, s, a, following, slow):
        """Eq. 2."""
        target = self.cost(s, a, following, slow) + GAMMA * self.least(following)
        self.q[s, a] = (1 - ALPHA) * self.q[s, a] + ALPHA * target


class ModelBasedAsPrinted(AsPrinted):
    def __init__(self):
        super().__init__()
        self.changes = defaultdict(int)  # n_jj'
        self.unknown = dict.fromkeys(ALL_STATES, 0.0)  # ĉ_u

    def probability(self, j, following):
        left = sum(self.changes[j, other] for other in range(LEVELS + 1))
        return self.changes[j, following] / left if left else float(j == following)

    def known(self, s, a):
        """Eq. 4."""
        return W_RCF * (a != 0) + W_RES * (s[0] + a) / K_MAX

    def learn(self, s, a, following, slow):
        """Algorithm 2."""
        self.changes[s[1], following[1]] += 1
        paid = self.cost(s, a, following, slow) - self.known(s, a)
        estimate = (1 - ALPHA) * self.unknown[following] + ALPHA * paid  # Eq. 5
        k, rate = following
        for k2, rate2 in ALL_STATES:
            if k >= k2 and rate <= rate2:
                self.unknown[k2, rate2] = max(self.unknown[k2, rate2], estimate)
            if k <= k2 and rate >= rate2:
                self.unknown[k2, rate2] = min(self.unknown[k2, rate2], estimate)
        before = {state: self.least(state) for state in ALL_STATES}
        for (k2, rate2), a2 in self.q:
            self.q[(k2, rate2), a2] = sum(
                self.probability(rate2, j)
                * (self.known((k2, rate2), a2) + self.unknown[k2 + a2, j] + GAMMA * before[k2 + a2, j])
                for j in range(LEVELS + 1)
            )


def compared(learner, printed, seed, turns=400):
    """One life of a manager: rates wander, some requests are denied, at times nothing is seen of it."""
    rng = np.random.default_rng(seed)
    replicas, rate_per_s, taken = 1, 100.0, None
    proposals = explored = 0
    for _ in range(turns):
        rate_per_s = float(np.clip(rate_per_s + rng.normal(0, 40), 0, 400))  # beyond 300/s: the last level
        s = (replicas, min(LEVELS, int(rate_per_s / QUANTUM_PER_S + 0.5)))
        slow = bool(rng.random() < min(1.0, rate_per_s / (150.0 * replicas)))
        if taken is not None:
            printed.learn(*taken, s, slow)
        printed.visit(s)
        proposal = learner.propose(View(replicas, rate_per_s, 150.0 if slow else 50.0, ()))
        action = proposal.change if proposal else 0
        assert action in allowed(replicas)
        assert is_same(learner, printed)
        if proposal is not None:
            proposals += 1
            assert proposal.score == pytest.approx(printed.score(s, action))
        explored += printed.q[s, action] > printed.least(s) + 1e-12
        change = action if rng.random() < 0.7 else 0
        learner.carried_out(change)
        for _ in range(rng.integers(2)):  # while it is changed, there is nothing to see and to do
            learner.carried_out(0)
        replicas, taken = replicas + change, (s, change)
    return proposals, explored


def is_same(learner, printed):
    ours = {
        ((k, j), a): learner.values[k - 1, j, ACTIONS.index(a)] for k, j in ALL_STATES for a in allowed(k)
    }
    return all(ours[each] == pytest.approx(value, abs=1e-9) for each, value in printed.q.items())


@pytest.mark.parametrize("seed", [1, 2])
def test_q_learning_learns_what_equation_2_says(seed):
    learner = QLearning("op", STATES, RULES, BOUND_MS, np.random.default_rng(seed))
    proposals, explored = compared(learner, QLearningAsPrinted(), seed)
    assert proposals > 50
    assert explored > 20


@pytest.mark.parametrize("seed", [1, 2])
def test_model_based_learning_learns_what_algorithm_2_says_and_is_greedy(seed):
    learner = ModelBased("op", STATES, RULES, BOUND_MS)
    printed = ModelBasedAsPrinted()
    proposals, explored = compared(learner, printed, seed, turns=150)
    assert proposals > 5
    assert explored == 0
    unknown = [[printed.unknown[k, j] for j in range(LEVELS + 1)] for k in range(1, K_MAX + 1)]
    assert learner.unknown_cost == pytest.approx(np.array(unknown))
    assert (np.diff(learner.unknown_cost, axis=1) >= -1e-12).all()  # a higher rate costs no less
    assert (np.diff(learner.unknown_cost, axis=0) <= 1e-12).all()  # one replica more costs no more


def test_thresholds_propose_what_section_5_1_says():
    rng = np.random.default_rng(1)
    high, c, most = 0.6, 0.75, 5
    told = set()
    for _ in range(2000):
        used = rng.uniform(0, 1, rng.integers(1, most + 1)).round(2) * rng.choice([0.3, 1.0])
        n = len(used)
        out = [(u - high) / (1 - high) for u in used if u > high] if n < most else []
        left = used.sum() / (n - 1) if n > 1 else np.inf
        expected = (1, max(out)) if out else (-1, (c * high - left) / (c * high)) if left < c * high else None
        proposal = Threshold(high, c, 1, most).propose(View(n, None, None, tuple(used.tolist())))
        assert (proposal is None) == (expected is None)
        if proposal is not None:
            assert proposal.change == expected[0]
            assert proposal.score == pytest.approx(expected[1])
        told.add(proposal and proposal.change)
    assert told == {None, 1, -1}


@pytest.mark.parametrize("capacity", [1, 3])
def test_the_token_bucket_is_a_queue_of_one_kind_of_token(capacity):
    """§7: full, the oldest is popped out; of the other kind, all are."""
    rng = np.random.default_rng(1)
    ours, printed = TokenBucket(capacity, 60.0, 125.0, 225.0), deque(maxlen=capacity)
    granted = 0
    for turn in range(2000):
        time_s, response_ms = 30.0 * turn, float(rng.uniform(50, 300))
        ours.refill(time_s, response_ms)
        if turn % 2 == 0 and not 125 <= response_ms <= 225:
            token = "H" if response_ms > 225 else "L"
            if token not in printed:
                printed.clear()
            printed.append(token)
        for action in rng.choice(["scale_out", "scale_in", "migrate"], rng.integers(3)):
            wanted = "L" if action == "scale_in" else "H"
            is_there = wanted in printed
            if is_there:
                printed.pop()
            assert ours.grants(Request(str(action), "a", "n", 0.5, "b", "")) == is_there
            granted += is_there
        assert ours.tokens == len(printed)
    assert granted > 200
