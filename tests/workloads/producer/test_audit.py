"""The audit finds what was lost, doubled and reordered, and nothing else."""

import random
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.producer.audit import Log, Reading, judge, verdicts, whole_run


def log_of(entries):
    log = Log()
    for partition, key, number in entries:
        log.add(partition, key, number)
    return log


def clean_entries(count, keys=5, partitions=3):
    """Partition after partition, as a reader may see them."""
    entries = [(number % keys % partitions, number % keys, number) for number in range(count)]
    return sorted(entries, key=lambda entry: entry[0])


def test_a_clean_topic_is_clean():
    verdict = judge("r", log_of(clean_entries(100)), range(100))
    assert verdict.clean
    assert verdict.text == "100 records: 0 lost, 0 duplicated, 0 out of order"


@pytest.mark.parametrize("missing", [0, 17, 99])
def test_a_lost_record_is_named(missing):
    entries = [entry for entry in clean_entries(100) if entry[2] != missing]
    verdict = judge("r", log_of(entries), range(100))
    assert (verdict.lost, verdict.first_lost, verdict.clean) == (1, missing, False)


def test_loss_at_the_end_shows_only_if_the_end_is_known():
    entries = [entry for entry in clean_entries(100) if entry[2] < 98]
    assert judge("r", log_of(entries), range(100)).lost == 2
    assert judge("r", log_of(entries)).lost == 0
    assert "not known" in judge("r", log_of(entries)).text


def test_an_empty_topic_has_lost_everything():
    verdict = judge("r", Log(), range(5, 10))
    assert (verdict.lost, verdict.first_lost, verdict.records) == (5, 5, 0)


def test_a_duplicate_is_no_reordering():
    entries = [(0, 0, 1), (0, 0, 2), (0, 0, 3), (0, 0, 2)]
    verdict = judge("r", log_of(entries), range(1, 4))
    assert (verdict.duplicated, verdict.out_of_order, verdict.lost) == (1, 0, 0)


def test_order_counts_within_a_key_only():
    assert judge("r", log_of([(0, 0, 2), (0, 1, 1), (0, 0, 3)]), range(1, 4)).clean
    assert judge("r", log_of([(0, 0, 2), (0, 0, 1), (0, 0, 3)]), range(1, 4)).out_of_order == 1


def test_a_key_on_two_partitions_is_found():
    assert judge("r", log_of([(0, 0, 0), (1, 0, 1), (0, 1, 2)]), range(3)).split_keys == 1


def test_numbers_never_sent_are_found():
    assert judge("r", log_of([(0, 0, 0), (0, 0, 1), (0, 0, 7)]), range(2)).unexpected == 1


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        pytest.param([6, 7, 8], range(6, 9), id="the first leg, or one of a run that is not here"),
        pytest.param([4, 5, 6, 7, 8], range(4, 9), id="both legs"),
        pytest.param([5, 6, 7, 8], range(4, 9), id="both legs, and the first has lost something"),
        pytest.param([], range(6, 9), id="nothing at all"),
    ],
)
def test_records_of_an_earlier_leg_of_the_same_run_are_expected(numbers, expected):
    assert whole_run(log_of([(0, 0, number) for number in numbers]), range(6, 9), 4) == expected


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 12)), max_size=40),
    st.integers(0, 3),
    st.integers(4, 14),
)
def test_the_verdict_is_that_of_a_plain_loop(entries, start, stop):
    seen, latest = set(), {}
    duplicated = out_of_order = 0
    for _, key, number in entries:
        if number in seen:
            duplicated += 1
            continue
        seen.add(number)
        out_of_order += number < latest.get(key, -1)
        latest[key] = max(number, latest.get(key, -1))
    places = {}
    for partition, key, _ in entries:
        places.setdefault(key, set()).add(partition)
    lost = [number for number in range(start, stop) if number not in seen]
    verdict = judge("r", log_of(entries), range(start, stop))
    assert (verdict.lost, verdict.duplicated, verdict.out_of_order) == (len(lost), duplicated, out_of_order)
    assert verdict.first_lost == (lost[0] if lost else None)
    assert verdict.split_keys == sum(len(where) > 1 for where in places.values())
    assert verdict.unexpected == len(seen - set(range(start, stop)))


def test_seeded_faults_in_a_large_topic_are_counted_exactly():
    rng = random.Random(3)
    entries = clean_entries(20_000, keys=100, partitions=4)
    lost = set(rng.sample(range(20_000), 37))
    entries = [entry for entry in entries if entry[2] not in lost]
    entries += rng.sample(entries, 11)
    verdict = judge("r", log_of(entries), range(20_000))
    assert (verdict.lost, verdict.duplicated, verdict.first_lost) == (37, 11, min(lost))
    assert verdict.out_of_order == 0


@dataclass
class Message:
    """As the library hands one out."""

    mark: bytes | None

    def headers(self):
        return None if self.mark is None else [("fogscale", self.mark)]

    def key(self):
        return b"k"

    def partition(self):
        return 0


def test_runs_in_one_topic_are_judged_apart():
    reading = Reading()
    for run, number in (("a", 0), ("b", 0), ("a", 1), ("b", 2)):
        reading.take(Message(f"{run}:{number}".encode()))
    reading.take(Message(None))
    assert {verdict.run: verdict.lost for verdict in verdicts(reading)} == {"a": 0, "b": 1}
    assert [verdict.lost for verdict in verdicts(reading, {"a": range(5)})] == [3]
    assert reading.foreign == 1
