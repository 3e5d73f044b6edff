"""Pictures of cameras, grey and in the plain format PGM: some 30 kB each, for a job that is bound by bytes.

A comment in the picture's head names the camera and tells the event time, in milliseconds; the key is the
camera. What the pixels show is noise, which no compression makes smaller.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from fogscale.errors import FogscaleError
from workloads.records.draws import uniform
from workloads.records.format import IntArray
from workloads.records.keyed import Indices, KeyedRecords, Keys

TEMPLATE = b"P5\n# %b at %d ms\n%d %d\n255\n%b"
CAMERAS = 500
NOISE_BYTES = 1 << 20
LARGEST_SIDE = 1000  # a picture of a million bytes is the most that a broker takes unless told otherwise
# Streams of random values, one per property.
CAMERA, NOISE = range(2)


@dataclass(frozen=True, slots=True)
class Image(KeyedRecords):
    """Grey pictures (PGM) of 30 kB, keyed by camera."""

    name = "image"
    width: int = 200
    height: int = 150

    def __post_init__(self) -> None:
        for side, pixels in (("width", self.width), ("height", self.height)):
            if not isinstance(pixels, int) or not 1 <= pixels <= LARGEST_SIDE:
                raise FogscaleError(
                    f"records image: {side} must be a whole number of pixels from 1 to {LARGEST_SIDE},"
                    f" not {pixels}"
                )

    def all_keys(self, seed: int) -> Keys:
        return _cameras()

    def choose_keys(self, seed: int, numbers: IntArray) -> Indices:
        return (uniform(seed, CAMERA, numbers) * CAMERAS).astype(np.intp)

    def render(self, seed: int, numbers: IntArray, event_times_ms: IntArray, chosen: Indices) -> list[bytes]:
        noise, size = _noise(seed), self.width * self.height
        starts = (uniform(seed, NOISE, numbers) * (len(noise) - size)).astype(np.int64).tolist()
        cameras = _cameras().keys[chosen].tolist()
        return [
            TEMPLATE % (camera, time_ms, self.width, self.height, noise[start : start + size])
            for camera, time_ms, start in zip(cameras, event_times_ms.tolist(), starts, strict=True)
        ]


@lru_cache(maxsize=1)
def _cameras() -> Keys:
    return Keys([b"camera-%03d" % camera for camera in range(CAMERAS)])


@lru_cache(maxsize=4)
def _noise(seed: int) -> bytes:
    """Pictures are cut out of it: drawing each pixel anew would take longer than sending it."""
    return np.random.default_rng([seed, 4]).bytes(NOISE_BYTES)
