"""Mechanisms 3 and 4: the closed forms against plain recursions, and records conserved in any DAG."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.model import Operator
from controller.testbeds.simulated.flow import Dag, back_pressured, queue_lengths, queued

counts = st.integers(0, 500)


@settings(max_examples=200, deadline=None)
@given(st.floats(0, 1e5), st.lists(counts, min_size=1, max_size=60), st.floats(0, 600))
def test_queue_lengths_are_lindleys_recursion(backlog, arrivals, capacity):
    expected, waiting = [], backlog
    for arriving in arrivals:
        waiting = max(0.0, waiting + arriving - capacity)
        expected.append(waiting)
    lengths = queue_lengths(backlog, np.array(arrivals, dtype=float), capacity)
    np.testing.assert_allclose(lengths, expected, rtol=1e-9, atol=1e-6)


@pytest.mark.parametrize(
    ("backlog", "arrivals", "capacity", "expected"),
    [
        pytest.param(0, [5, 5, 5], 10, [0, 0, 0], id="idle"),
        pytest.param(0, [15, 15, 0], 10, [5, 10, 0], id="a burst"),
        pytest.param(25, [0, 0, 0], 10, [15, 5, 0], id="catching up"),
        pytest.param(3, [4, 5], 0, [7, 12], id="stopped"),
    ],
)
def test_queue_lengths_by_hand(backlog, arrivals, capacity, expected):
    assert queue_lengths(backlog, np.array(arrivals, dtype=float), capacity).tolist() == expected


@dataclass
class Case:
    operators: tuple[Operator, ...]
    entries: list[str]
    capacity: np.ndarray
    backlog: np.ndarray
    arrivals: np.ndarray  # a row per entry, in the order of the operators

    @property
    def dag(self) -> Dag:
        return Dag.of(self.operators, self.entries)


@st.composite
def cases(draw, most_entries=3, backlog_everywhere=False):
    """Up to six operators, each fed by any of those before it, thinning or multiplying what it passes on."""
    size = draw(st.integers(1, 6))
    operators = []
    for i in range(size):
        above = draw(st.sets(st.integers(0, i - 1), max_size=3)) if i else set()
        selectivity = draw(st.sampled_from([0.0, 0.25, 0.5, 1.0, 1.0, 2.0, 3.0]))
        shares = draw(st.just(()) | st.tuples(*(st.sampled_from([0.1, 0.7, 1.0]) for _ in above)))
        names = tuple(f"o{j}" for j in sorted(above))
        operators.append(Operator(f"o{i}", names, selectivity=selectivity, shares=shares))
    entries = draw(st.sets(st.integers(0, size - 1), min_size=1, max_size=most_entries))
    steps = draw(st.integers(1, 12))
    # A capacity of 0 is an operator that is stopped.
    capacity = draw(
        st.lists(st.sampled_from([0.0, 1.0, 10.0, 75.5, 200.0, 1e4]), min_size=size, max_size=size)
    )
    held = st.floats(0, 1000)
    backlog = [draw(held) if backlog_everywhere or i in entries else 0.0 for i in range(size)]
    arrivals = [draw(st.lists(counts, min_size=steps, max_size=steps)) for _ in entries]
    return Case(
        tuple(operators),
        [f"o{i}" for i in sorted(entries)],
        np.array(capacity),
        np.array(backlog),
        np.array(arrivals, dtype=float),
    )


def within(tolerance, values):
    return bool((np.asarray(values) >= -tolerance).all())


def passed_on(case, processed):
    """What each operator was given by those above it, per step."""
    index = {operator.name: i for i, operator in enumerate(case.operators)}
    inflow = np.zeros_like(processed)
    for i, operator in enumerate(case.operators):
        for place, above in enumerate(operator.upstream):
            share = operator.shares[place] if operator.shares else 1.0
            inflow[i] += share * case.operators[index[above]].selectivity * processed[index[above]]
    for row, name in enumerate(case.entries):
        inflow[index[name]] += case.arrivals[row]
    return inflow


@settings(max_examples=150, deadline=None)
@given(cases(backlog_everywhere=True))
def test_queued_every_operator_keeps_the_books(case):
    """At each operator and step: what waited plus what came is what was processed plus what waits."""
    processed, backlog = queued(case.dag, case.capacity, case.backlog, case.arrivals)
    before = np.column_stack([case.backlog, backlog[:, :-1]])
    np.testing.assert_allclose(before + passed_on(case, processed), processed + backlog, rtol=1e-9, atol=1e-6)
    assert within(1e-6, processed)
    assert within(1e-6, backlog)
    assert within(1e-6, case.capacity[:, None] - processed)


@settings(max_examples=150, deadline=None)
@given(cases(backlog_everywhere=True))
def test_queued_nobody_idles_while_something_waits(case):
    processed, backlog = queued(case.dag, case.capacity, case.backlog, case.arrivals)
    busy = processed >= case.capacity[:, None] - 1e-6
    assert (busy | (backlog <= 1e-6)).all()


@settings(max_examples=150, deadline=None)
@given(cases())
def test_back_pressured_records_wait_at_their_entry_only(case):
    processed, backlog = back_pressured(case.dag, case.capacity, case.backlog, case.arrivals)
    entries = [i for i, operator in enumerate(case.operators) if operator.name in case.entries]
    others = [i for i in range(len(case.operators)) if i not in entries]
    assert not backlog[others].any()
    before = np.column_stack([case.backlog, backlog[:, :-1]])
    # An entry may be fed by others too; what it keeps back is only what comes from outside.
    np.testing.assert_allclose(before + passed_on(case, processed), processed + backlog, rtol=1e-9, atol=1e-5)
    assert within(1e-6, processed)
    assert within(1e-6, backlog)


@settings(max_examples=150, deadline=None)
@given(cases())
def test_back_pressured_nobody_exceeds_its_capacity(case):
    processed, _ = back_pressured(case.dag, case.capacity, case.backlog, case.arrivals)
    assert within(1e-5, case.capacity[:, None] * (1 + 1e-9) - processed)


@settings(max_examples=150, deadline=None)
@given(cases(most_entries=1))
def test_back_pressured_one_entry_waits_only_for_a_saturated_operator(case):
    processed, backlog = back_pressured(case.dag, case.capacity, case.backlog, case.arrivals)
    waits = backlog.sum(axis=0) > 1e-4
    some_saturated = (processed >= case.capacity[:, None] * (1 - 1e-9) - 1e-6).any(axis=0)
    assert (some_saturated | ~waits).all()


def test_back_pressured_two_entries_share_a_bottleneck_by_what_they_bring():
    """a brings 300 and b 100 into a join that does 200: 150 and 50."""
    operators = (Operator("a"), Operator("b"), Operator("join", ("a", "b")))
    arrivals = np.array([[300.0], [100.0]])
    flow = back_pressured(Dag.of(operators, ["a", "b"]), np.array([1e3, 1e3, 200.0]), np.zeros(3), arrivals)
    np.testing.assert_allclose(flow.processed[:, 0], [150, 50, 200])
    np.testing.assert_allclose(flow.backlog[:, 0], [150, 50, 0])


def test_back_pressured_a_shared_bottleneck_does_not_idle_while_records_wait():
    """First a brings 200 into a join that does 200, then b does: nothing ever has to wait."""
    operators = (Operator("a"), Operator("b"), Operator("join", ("a", "b")))
    arrivals = np.array([[200.0, 0.0], [0.0, 200.0]])
    flow = back_pressured(Dag.of(operators, ["a", "b"]), np.array([1e3, 1e3, 200.0]), np.zeros(3), arrivals)
    np.testing.assert_allclose(flow.processed[2], [200, 200])


def test_an_operator_sees_what_reaches_it_by_all_ways():
    """source doubles every record; left halves; join gets 1 from left and 2 from right per offered record."""
    operators = (
        Operator("source", selectivity=2.0),
        Operator("left", ("source",), selectivity=0.5),
        Operator("right", ("source",)),
        Operator("join", ("left", "right")),
    )
    dag = Dag.of(operators, ["source"])
    flow = back_pressured(dag, np.array([1e3, 1e3, 1e3, 30.0]), np.zeros(4), np.array([[25.0]]))
    np.testing.assert_allclose(flow.processed[:, 0], [10, 20, 20, 30])
    np.testing.assert_allclose(flow.backlog[:, 0], [15, 0, 0, 0])
