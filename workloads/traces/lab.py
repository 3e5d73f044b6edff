"""A stand-in for the Lab scenario of the EKF paper (PVLDB 2019, §3.2), whose trace was never published.

Known of it: it "contains both rapid and smooth changes"; rates and timings are similar to those of Pyramid
(0 to 60 images/s, 130 s a level); a run lasts 2700 s; and it takes 9.9 VM-seconds where Pyramid, with 29.7
images/s in the mean, takes 8.0 (Tables 3 and 5, PURE), hence a mean of about 36. All else is drawn by a seed.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from workloads.profile import FloatArray
from workloads.traces.formula import PositiveRate, PositiveSeconds, formula_profile, levels_within
from workloads.workload import Workload, register

SOURCE = "generated stand-in for the unpublished Lab trace of the EKF paper (§3.2): span and kind of changes"
SHORTEST, LONGEST = 0.5, 1.5  # of a level, as shares of the mean level


@register("lab")
def lab(
    mean_per_s: PositiveRate = 36.0,
    level_s: PositiveSeconds = 130.0,  # in the mean
    smooth_ratio: Annotated[float, Field(ge=0, le=1)] = 0.5,  # of all changes; the others are jumps
    span_s: PositiveSeconds = 2700.0,
    seed: Annotated[int, Field(ge=0)] = 1,
) -> Workload:
    """A stand-in for the lab's own images: 45 minutes of jumps and of smooth changes (EKF paper, §3.2)."""
    rng = np.random.default_rng(seed)
    most = levels_within(span_s, SHORTEST * level_s, "lab") + 2
    ends_s = np.cumsum(rng.uniform(SHORTEST, LONGEST, most) * level_s)
    ends_s = np.append(ends_s[ends_s < span_s], span_s)
    levels = rng.beta(1.5, 1.0, len(ends_s) + 1)  # busy more often than idle
    smooth = rng.random(len(ends_s)) < smooth_ratio
    before = np.where(smooth, levels[:-1], levels[1:])  # a jump is over at once

    def cumulative(t_s: FloatArray) -> FloatArray:
        return _eased(t_s, ends_s, before, levels[1:])

    scale = mean_per_s * span_s / cumulative(np.array([span_s]))[0]
    return Workload(formula_profile("lab", SOURCE, lambda t_s: scale * cumulative(t_s), span_s))


def _eased(t_s: FloatArray, ends_s: FloatArray, before: FloatArray, after: FloatArray) -> FloatArray:
    """The integral of half cosine waves, each from one level to the next: x + (y - x) (1 - cos πu) / 2."""
    starts_s = np.concatenate(([0.0], ends_s[:-1]))
    lengths_s = ends_s - starts_s
    whole = np.concatenate(([0.0], np.cumsum(lengths_s * (before + after) / 2)))
    part = np.minimum(np.searchsorted(ends_s, t_s, side="right"), len(ends_s) - 1)
    u = (t_s - starts_s[part]) / lengths_s[part]
    way = (after - before)[part] / 2
    within = lengths_s[part] * (before[part] * u + way * (u - np.sin(np.pi * u) / np.pi))
    return np.asarray(whole[part] + within)
