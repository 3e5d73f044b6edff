"""Every format keeps the promise of format.py: a record depends on its seed, number and time alone."""

import pickle
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fogscale.errors import FogscaleError
from workloads.records.format import Share
from workloads.records.registry import FORMATS, create

START_MS = 1_357_517_000_000  # in the first hours of 7 January 2013
EVERY_FORMAT = pytest.mark.parametrize("name", FORMATS)


def times_ms(first, records):
    return START_MS + 37 * np.arange(first, first + records, dtype=np.int64)


def rows(batch):
    return list(zip(batch.numbers.tolist(), batch.keys, batch.values, strict=True))


@EVERY_FORMAT
@given(seed=st.integers(0, 2**40), first=st.integers(0, 2**40), cuts=st.sets(st.integers(1, 299), max_size=6))
@settings(deadline=None, max_examples=20)
def test_batches_may_be_cut_anywhere(name, seed, first, cuts):
    records = create(name)
    whole = rows(records.batch(seed, first, times_ms(first, 300)))
    edges = [0, *sorted(cuts), 300]
    parts = []
    for start, end in pairwise(edges):
        parts += rows(records.batch(seed, first + start, times_ms(first + start, end - start)))
    assert parts == whole
    assert [number for number, _, _ in whole] == list(range(first, first + 300))


@EVERY_FORMAT
@given(total=st.integers(1, 9), first=st.integers(0, 10**6))
@settings(deadline=None, max_examples=20)
def test_shares_are_a_partition_in_order(name, total, first):
    records = create(name)
    whole = rows(records.batch(3, first, times_ms(first, 400)))
    shares = [
        rows(records.batch(3, first, times_ms(first, 400), Share(number, total))) for number in range(total)
    ]
    assert sorted(row for share in shares for row in share) == whole
    assert all(share == sorted(share) for share in shares)


@EVERY_FORMAT
def test_a_key_is_always_of_one_share_and_shares_are_alike_in_size(name):
    records = create(name)
    owner, sizes = {}, []
    for number in range(4):
        batch = records.batch(1, 0, times_ms(0, 40_000), Share(number, 4))
        sizes.append(len(batch.keys))
        for key in batch.keys:
            assert owner.setdefault(key, number) == number
    assert max(sizes) < 1.35 * min(sizes)


@EVERY_FORMAT
def test_seeds_differ(name):
    records = create(name)
    once, again, other = (records.batch(seed, 0, times_ms(0, 100)) for seed in (1, 1, 2))
    assert rows(once) == rows(again)
    assert once.values != other.values


@EVERY_FORMAT
def test_another_process_makes_the_same(name):
    """Tables are made anew there, and Python's own hashes differ."""
    code = (
        "import sys, pickle, numpy as np\n"
        "records, times = pickle.load(sys.stdin.buffer)\n"
        "sys.stdout.buffer.write(b'\\n'.join(records.batch(5, 1000, times).values))"
    )
    sent = pickle.dumps((create(name), times_ms(1000, 50)))
    made = subprocess.run([sys.executable, "-c", code], input=sent, capture_output=True, check=True)
    assert made.stdout == b"\n".join(create(name).batch(5, 1000, times_ms(1000, 50)).values)


@EVERY_FORMAT
def test_no_records_make_an_empty_batch(name):
    assert rows(create(name).batch(1, 7, times_ms(7, 0))) == []


@EVERY_FORMAT
def test_the_time_is_no_part_of_who_sends_it(name):
    early = create(name).batch(1, 0, times_ms(0, 200))
    late = create(name).batch(1, 0, times_ms(0, 200) + 86_400_000)
    assert early.keys == late.keys
    assert early.values != late.values


def test_unknown_formats_and_parameters_get_the_nearest():
    with pytest.raises(FogscaleError, match=r"unknown record format 'taxi_rides': did you mean taxi_ride\?"):
        create("taxi_rides")
    with pytest.raises(
        FogscaleError, match=r"records click: unknown parameter 'fraud': did you mean fraud_ratio\?"
    ):
        create("click", fraud=0.1)
    with pytest.raises(FogscaleError, match="records click: fraud_ratio must be a number, not 'much'"):
        create("click", fraud_ratio="much")
    with pytest.raises(FogscaleError, match="fraud_ratio must be within 0 and 1, not 2"):
        create("click", fraud_ratio=2)
