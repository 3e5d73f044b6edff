"""Lateness adds up over processes, and its quantiles are those of all records."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.producer.lateness import Lateness, Unacknowledged

SECONDS = st.lists(st.floats(0, 5000), min_size=1, max_size=200)


@given(SECONDS, SECONDS, st.floats(0.01, 1))
def test_quantiles_of_two_processes_are_those_of_all_records(a, b, q):
    one, other = Lateness(), Lateness()
    one.add(np.array(a))
    other.add(np.array(b))
    one.merge(other)
    everything = np.array(a + b)
    exact = np.quantile(everything, q, method="inverted_cdf")
    assert exact * 0.999 <= one.quantile_s(q) <= max(exact * 1.024, 0.001)
    assert one.max_s == everything.max()
    assert one.late_records == (everything > 1).sum()


def test_without_records_there_is_no_quantile():
    assert Lateness().quantile_s(0.5) is None


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 6)), max_size=30))
def test_records_are_acknowledged_first_in_first_out(moves):
    waiting, sent, acknowledged = Unacknowledged(), [], 0
    for more, fewer in moves:
        fresh = [float(len(sent) + i) for i in range(more)]
        waiting.hand_over(np.array(fresh))
        sent += fresh
        total = min(len(sent), acknowledged + fewer)
        assert waiting.acknowledge(total).tolist() == sent[acknowledged:total]
        acknowledged = total
        assert waiting.oldest_due_s == (sent[acknowledged] if acknowledged < len(sent) else None)


def test_an_acknowledgement_never_counts_twice():
    waiting = Unacknowledged()
    waiting.hand_over(np.array([1.0, 2.0, 3.0]))
    assert waiting.acknowledge(2).tolist() == [1.0, 2.0]
    assert waiting.acknowledge(2).tolist() == []
    assert waiting.acknowledge(3).tolist() == pytest.approx([3.0])
