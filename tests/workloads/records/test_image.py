"""Pictures as any reader of PGM takes them."""

import re
import zlib

import numpy as np
import pytest

from fogscale.errors import FogscaleError
from workloads.records.registry import create

START_MS = 1_370_000_000_000


def pictures(count, **parameters):
    return create("image", **parameters).batch(1, 0, START_MS + np.arange(count, dtype=np.int64))


def test_a_picture_has_a_head_and_as_many_pixels_as_it_says():
    batch = pictures(50)
    for key, value, number in zip(batch.keys, batch.values, range(50), strict=True):
        head = re.match(rb"P5\n# (camera-\d{3}) at (\d+) ms\n200 150\n255\n", value)
        assert (head[1], int(head[2])) == (key, START_MS + number)
        assert len(value) - head.end() == 30_000
        assert len(zlib.compress(value)) > 29_900  # compression does not help


def test_no_two_pictures_are_alike():
    assert len(set(pictures(500).values)) == 500


def test_the_size_is_a_parameter():
    assert (
        len(pictures(1, width=20, height=10).values[0])
        == len(pictures(1, width=20, height=11).values[0]) - 20
    )
    with pytest.raises(FogscaleError, match="height must be a whole number of pixels from 1 to 1000, not 0"):
        create("image", height=0)
