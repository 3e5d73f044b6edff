"""A rate profile replayed: how many records arrive in each step of the run, by chance (Poisson) or evenly.

Trace time is the profile's own; replay time is the run's: at speed 10, one replay second holds ten trace
seconds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from fogscale.errors import FogscaleError
from workloads.profile import FloatArray, RateProfile

MOST_STEPS = 50_000_000  # a year and a half of seconds; more would not fit into memory
MOST_RECORDS_PER_STEP = 1e15  # far beyond any testbed, and still counted exactly by a float

Arrivals = Literal["poisson", "even"]


@dataclass(frozen=True, slots=True)
class ReplaySettings:
    speed: float = 1.0  # trace seconds per replay second
    copies: int = 1  # identical records that arrive together for each record of the trace
    scale: float = 1.0  # share of the trace's records that is replayed; above 1, more than the trace has
    arrivals: Arrivals = "poisson"  # even: as a load generator sends, one after another at equal distances
    # Stamps of a trace may be rounded: this share of its records has stamps that are whole multiples of
    # `rounded_to_s`, in trace time, so that all of one such stretch arrive together, at its beginning.
    rounded_ratio: float = 0.0
    rounded_to_s: float = 60.0

    def __post_init__(self) -> None:
        if not 0 <= self.rounded_ratio <= 1:
            raise FogscaleError(
                f"replay rounded_ratio is a share of the records, from 0 to 1, not {self.rounded_ratio}"
            )
        if not (math.isfinite(self.rounded_to_s) and self.rounded_to_s > 0):
            raise FogscaleError(f"replay rounded_to_s must be a time above 0, not {self.rounded_to_s}")
        for name, value in (("speed", self.speed), ("scale", self.scale)):
            if not (math.isfinite(value) and value > 0):
                raise FogscaleError(
                    f"replay {name} must be a number above 0, not {value}: use 1 for the trace as it is"
                )
        if not isinstance(self.copies, int) or self.copies < 1:
            raise FogscaleError(f"replay copies must be a whole number of at least 1, not {self.copies}")


def replay_span_s(profile: RateProfile, settings: ReplaySettings) -> float:
    """How long the replay lasts, in replay time."""
    return profile.span_s / settings.speed


def peak_rate_per_s(profile: RateProfile, settings: ReplaySettings) -> float:
    """The highest rate over one replay second, or over one step of the trace where that is longer, copies
    included. Of a sparse trace, the busiest step alone would be far above what arrives in any second."""
    if profile.step_s >= settings.speed:
        return profile.peak_per_s * settings.speed * settings.copies * settings.scale
    return float(offered_rate_per_s(profile, settings, 1.0).max())


def offered_rate_per_s(profile: RateProfile, settings: ReplaySettings, step_s: float) -> FloatArray:
    """The expected arrivals per replay second in each step, copies included.

    A last step that the trace fills only in part has a lower rate, so that rate × step_s sums to the total.
    """
    return _expected_records(profile, settings, step_s) * (settings.copies / step_s)


def arrivals(
    profile: RateProfile, settings: ReplaySettings, step_s: float, rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Records that arrive in each step. A share of a Poisson stream is one too, so scale only thins it."""
    expected = _expected_records(profile, settings, step_s)
    if settings.arrivals == "even":
        return _evenly(expected, float(rng.random())) * np.int64(settings.copies)
    return rng.poisson(expected) * np.int64(settings.copies)


def _evenly(expected: FloatArray, phase: float) -> npt.NDArray[np.int64]:
    """A record whenever the expected total passes a whole number; the first comes after a random part of the
    distance between two. The total is never off by more than one."""
    return np.diff(np.floor(np.cumsum(expected) + phase), prepend=0.0).astype(np.int64)


def _expected_records(profile: RateProfile, settings: ReplaySettings, step_s: float) -> FloatArray:
    """Records of the trace expected in each step, before copies."""
    if not (math.isfinite(step_s) and step_s > 0):
        raise FogscaleError(f"replay step_s must be a number above 0, not {step_s}")
    # A span of whole steps can come out a rounding error longer; that must not add an empty step.
    steps = max(1, math.ceil(replay_span_s(profile, settings) / step_s - 1e-9))
    if steps > MOST_STEPS:
        raise FogscaleError(
            f"workload '{profile.name}' lasts {steps:.1e} steps of {step_s:g} s: raise its speed, or check"
            " that its times are seconds, not milliseconds"
        )
    edges_s = np.arange(steps + 1) * (step_s * settings.speed)
    expected = profile.between(edges_s) * settings.scale
    if settings.rounded_ratio > 0:
        expected *= 1 - settings.rounded_ratio
        expected += settings.rounded_ratio * settings.scale * _bunched(profile, settings, step_s, steps)
    if expected.max() * settings.copies > MOST_RECORDS_PER_STEP:
        raise FogscaleError(
            f"workload '{profile.name}' offers {expected.max() * settings.copies:.1e} records in one step:"
            " lower scale, speed or copies"
        )
    return expected


def _bunched(profile: RateProfile, settings: ReplaySettings, step_s: float, steps: int) -> FloatArray:
    """The same records where each stretch of `rounded_to_s` arrives at its beginning, all at once."""
    stretches = math.ceil(profile.span_s / settings.rounded_to_s - 1e-9)
    begins_s = np.arange(stretches + 1) * settings.rounded_to_s
    step_of = np.floor(begins_s[:-1] / (step_s * settings.speed) + 1e-9).astype(np.int64)
    together = np.zeros(steps)
    np.add.at(together, step_of, profile.between(begins_s))
    return together
