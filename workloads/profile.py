"""How many records a workload offers over its own (trace) time, as a curve that can be read anywhere.

PCHIP (Fritsch and Butland 1984) is written out here because scipy.interpolate costs 50 MB and more CPU than a
whole simulated run; with steps of equal length it is a few lines. The tests hold it against scipy's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fogscale.errors import FogscaleError

FloatArray = npt.NDArray[np.float64]

SMOOTH_PARTS = 60  # a smooth step is inspected in this many parts: by the minute where a step is an hour


@dataclass(frozen=True, eq=False)
class RateProfile:
    """Records per step of trace time. Within a step they come evenly or, if smooth, along a curve."""

    name: str
    source: str  # where the numbers come from, in one line
    counts: FloatArray  # records in each step
    step_s: float
    start: str | None = None  # ISO stamp of the first step; None where the trace has no date
    smooth: bool = False

    def __post_init__(self) -> None:
        counts = np.array(self.counts, dtype=np.float64)
        if counts.ndim != 1 or counts.size == 0:
            raise FogscaleError(f"workload '{self.name}': give one list of counts, with at least one count")
        if not (np.isfinite(counts) & (counts >= 0)).all():
            raise FogscaleError(f"workload '{self.name}': every count must be a number of at least 0")
        if not (np.isfinite(self.step_s) and self.step_s > 0):
            raise FogscaleError(f"workload '{self.name}': step_s must be above 0, not {self.step_s}")
        counts.flags.writeable = False  # frozen, as the rest
        object.__setattr__(self, "counts", counts)

    @property
    def span_s(self) -> float:
        return len(self.counts) * self.step_s

    @property
    def total_records(self) -> float:
        return float(self._records_before[-1])

    @property
    def mean_per_s(self) -> float:
        return self.total_records / self.span_s

    @cached_property
    def peak_per_s(self) -> float:
        """The highest mean rate over one step, or over one minute of a smooth hour."""
        parts = SMOOTH_PARTS if self.smooth else 1
        edges_s = np.linspace(0.0, self.span_s, len(self.counts) * parts + 1)
        return float(self.between(edges_s).max() * parts / self.step_s)

    def cumulative(self, t_s: npt.ArrayLike) -> FloatArray:
        """Records offered from the start until each t_s, of which there are none outside the span."""
        position = np.clip(np.asarray(t_s, dtype=np.float64) / self.step_s, 0.0, len(self.counts))
        step = position.astype(np.intp)
        x = position - step  # 0..1 within the step
        within = np.zeros_like(x)
        for coefficients in reversed(self._coefficients):
            within = (within + coefficients.take(step)) * x
        return self._records_before.take(step) + within

    def between(self, edges_s: npt.ArrayLike) -> FloatArray:
        """Records between each edge and the next; rounding must not make an empty stretch negative."""
        return np.maximum(np.diff(self.cumulative(edges_s)), 0.0)

    @cached_property
    def _records_before(self) -> FloatArray:
        return np.concatenate(([0.0], np.cumsum(self.counts)))

    @cached_property
    def _coefficients(self) -> tuple[FloatArray, ...]:
        """Of x, x² and x³ per step: the line from 0 to its count, or the Hermite cubic with its edge slopes.

        One empty step follows the last, so that the end of the span is read without rounding.
        """
        counts = np.append(self.counts, 0.0)
        if not self.smooth:
            return (counts,)
        slopes = np.append(_edge_slopes(self.counts), 0.0)
        left, right = slopes[:-1], slopes[1:]
        return left, 3 * counts - 2 * left - right, left + right - 2 * counts


def summed(name: str, source: str, profiles: Iterable[RateProfile]) -> RateProfile:
    """All of them together, as fine as the finest of them is read."""
    parts = list(profiles)
    spans_s = {part.span_s for part in parts}
    if len(spans_s) != 1:
        raise FogscaleError(
            f"workload '{name}': its profiles must all last equally long, at least one of them"
        )
    edges_s = np.linspace(0.0, spans_s.pop(), max(map(fine_steps, parts)) + 1)
    counts = np.sum([part.between(edges_s) for part in parts], axis=0)
    return RateProfile(name, source, counts, float(edges_s[1]), parts[0].start)


def fine_steps(profile: RateProfile) -> int:
    """Steps in which a profile can be cut anew without losing its shape."""
    return len(profile.counts) * (SMOOTH_PARTS if profile.smooth else 1)


def _edge_slopes(counts: FloatArray) -> FloatArray:
    """PCHIP slopes of the cumulative curve at the step edges, in records per step.

    Inside, the harmonic mean of the two neighbours: 0 beside an empty step, and small enough that the curve
    never falls. At both ends, the three-point formula cut at 0.
    """
    if len(counts) == 1:
        return np.repeat(counts, 2)
    before, after = counts[:-1], counts[1:]
    total = before + after
    share = np.divide(after, total, out=np.zeros_like(total), where=total > 0)
    first = max(0.0, (3 * counts[0] - counts[1]) / 2)
    last = max(0.0, (3 * counts[-1] - counts[-2]) / 2)
    return np.concatenate(([first], 2 * before * share, [last]))
