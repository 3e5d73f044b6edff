"""Extended Kalman filters (EKF paper, §2.3–2.4), one per instance and all stepped together.

The paper's f(x, u) = x + a·D + b·ΔD and h(x) = x have F = H = I, and Eq. 17 squares element by element: all
covariances are diagonal. So Eq. 10–14 are worked out per element of arrays [instance, metric]: ten array
operations at most, however many instances there are. A matrix inverse per instance would cost more and say
the same (a test compares the two).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.models.instance_load import is_complete

Matrix = NDArray[np.float64]
Covariance = Literal["updated", "printed"]
Transition = Literal["deviations", "printed"]
Timing = Literal["current", "printed"]
_LOOK_EVERY = 32  # steps
LEAST_SAMPLES = 3  # of a dead time, for Eq. 16–17 to mean anything


class SystemInput(NamedTuple):
    """u of Eq. 5: what the rate adds to the state beside its sensitivities a and b."""

    level_per_s: float  # D, or how far it is from its recent mean
    change_per_s: float  # ΔD


_NOTHING = SystemInput(0.0, 0.0)


class RateInput:
    """u_t from the rates seen so far.

    Taken literally, a·D pushes the state on at constant load, step by step and for ever. On *deviations*, D
    stands for D minus its exponentially weighted mean: nothing at constant load, whatever its level, and just
    how a metric goes on moving that monitoring smooths over `memory_s`. Eq. 10 prints u_{t−1}; but D_t
    is known as soon as z_t is, and both are measured over the same time: `current` uses it.
    """

    def __init__(
        self, memory_s: float = 10.0, transition: Transition = "deviations", timing: Timing = "current"
    ) -> None:
        self.memory_s, self.transition, self.timing = memory_s, transition, timing
        self._mean_per_s: float | None = None
        self._last: tuple[float, float] | None = None  # time, rate
        self._last_input = _NOTHING

    def step(self, time_s: float, rate_per_s: float | None, among: int = 1) -> SystemInput:
        """u_t; of a rate that is dealt out `among` instances, the share of each. Instances that join or leave
        are no change of the rate."""
        level_per_s, change_per_s = self._input_now(time_s, rate_per_s)
        now = SystemInput(level_per_s / among, change_per_s / among)
        before, self._last_input = self._last_input, now
        return now if self.timing == "current" else before

    def _input_now(self, time_s: float, rate_per_s: float | None) -> SystemInput:
        if rate_per_s is None:  # a change across a gap has shown in the measurements already
            self._last = None
            return _NOTHING
        change_per_s = 0.0 if self._last is None else rate_per_s - self._last[1]
        mean_per_s = rate_per_s if self._mean_per_s is None else self._mean_per_s
        deviation_per_s = rate_per_s - mean_per_s
        if self._last is not None:
            mean_per_s += deviation_per_s * (1.0 - exp((self._last[0] - time_s) / self.memory_s))
        self._mean_per_s, self._last = mean_per_s, (time_s, rate_per_s)
        return SystemInput(rate_per_s if self.transition == "printed" else deviation_per_s, change_per_s)


@dataclass(frozen=True, slots=True)
class KalmanSettings:
    measurement_variance: tuple[float, ...]  # R, per metric
    dead_time_s: float = 10.0
    ease_in_s: float = 10.0
    system_noise_floor: float = 1e-5  # ε: P₀ may be no larger than R, and Q = P₀ − R would stop the filter
    covariance: Covariance = "updated"
    censored: bool = False  # a measurement within the noise of 1 says "at least", see `_innovation`


class KalmanFilters:
    """One filter per instance. An instance's filter is born with its first measurement, collects for the dead
    time, filters unseen for the ease-in time, and dies with its instance."""

    def __init__(self, settings: KalmanSettings) -> None:
        self.settings = settings
        self._r = np.maximum(settings.measurement_variance, 1e-12)  # a noiseless metric leaves no 0/0
        self._full = 1.0 - 3.0 * np.sqrt(self._r)
        self._ids: tuple[str, ...] = ()
        none = np.empty((0, len(self._r)))
        self._estimate = self._error = self._system_noise = none  # x̂, P, Q
        self._samples = self._weighted_sum = self._weighted_squares = none  # of the dead time: n, Σi·z, Σi·z²
        self._born_s = self._usable_from_s = none  # NaN: not yet
        self._all_usable = False
        self._steps = 0
        self._settled_gain: Matrix | None = None

    def step(
        self, time_s: float, ids: tuple[str, ...], measured: Matrix, shift: Sequence[float] | Matrix
    ) -> Matrix:
        """x̂_t [instance, metric], NaN where there is none to use yet. `shift` is a·D + b·ΔD per metric. What
        was not measured (NaN) is predicted, not updated."""
        if ids != self._ids:
            self._regroup(ids)
        if not (self._all_usable and is_complete(measured)):
            return self._careful_step(time_s, measured, shift)
        prior, gain = self._prior(shift), self._settled_gain
        if gain is None:
            gain, error = self._gain_and_error()
            self._steps += 1
            if self._steps % _LOOK_EVERY == 0 and np.allclose(error, self._error, rtol=1e-13, atol=0.0):
                self._settled_gain = gain  # P no longer moves: half of the arithmetic is done for good
            self._error = error
        self._estimate = prior + gain * self._innovation(measured, prior)  # Eq. 14
        return self._estimate

    def divide(self, ratio: float) -> None:
        """The load of all instances is dealt out among more or fewer: each estimate changes by this ratio."""
        self._estimate = self._estimate * ratio

    def _innovation(self, measured: Matrix, prior: Matrix) -> Matrix:
        """z − ẑ with the paper's h(x) = x; or censored, with h(x) = min(x, 1): what is full reads so whatever
        more there is to do, so that such a measurement pulls no higher estimate down."""
        innovation: Matrix = measured - prior
        if self.settings.censored:
            innovation[(measured >= self._full) & (innovation < 0.0)] = 0.0
        return innovation

    def _prior(self, shift: Sequence[float] | Matrix) -> Matrix:
        """Eq. 10. A load is never negative; it may exceed 1."""
        if not any(shift):
            return self._estimate
        prior = self._estimate + shift
        return np.maximum(prior, 0.0) if min(shift) < 0.0 else prior

    def _gain_and_error(self) -> tuple[Matrix, Matrix]:
        error = self._error + self._system_noise  # Eq. 12 with F = I
        gain = error / (error + self._r)  # Eq. 13 with H = I
        if self.settings.covariance == "printed":  # P only grows, the gain goes to 1: no filter in the end
            return gain, error
        return gain, error - gain * error  # P ← (I − GH)·P, which the paper leaves out

    def _careful_step(self, time_s: float, measured: Matrix, shift: Sequence[float] | Matrix) -> Matrix:
        """The same where some elements are young or not measured."""
        self._settled_gain = None
        known = np.isfinite(measured)
        self._born_s = np.where(np.isnan(self._born_s) & known, time_s, self._born_s)
        self._start_filters(time_s)
        filtering = ~np.isnan(self._usable_from_s)
        self._collect(np.where(known & ~filtering, measured, np.nan))

        prior, prior_error = self._prior(shift), self._error + self._system_noise
        gain, error = self._gain_and_error()
        posterior = prior + gain * self._innovation(np.where(known, measured, 0.0), prior)
        self._estimate = np.where(filtering, np.where(known, posterior, prior), self._estimate)
        self._error = np.where(filtering, np.where(known, error, prior_error), self._error)
        usable = time_s >= self._usable_from_s  # False for NaN
        self._all_usable = bool(usable.all())
        return np.where(usable, self._estimate, np.nan)

    def _start_filters(self, time_s: float) -> None:
        """Eq. 16–18 for the elements whose dead time is over."""
        over = time_s - self._born_s >= self.settings.dead_time_s - 1e-9
        starting = over & (self._samples >= LEAST_SAMPLES) & np.isnan(self._usable_from_s)
        if not starting.any():
            return
        n = np.where(starting, self._samples, LEAST_SAMPLES)
        triangular = n * (n + 1) / 2  # Δ_n
        x0 = self._weighted_sum / triangular
        # Σ i·(z − x̂₀)² = Σ i·z² − Δ_n·x̂₀², and rounding must not make it negative.
        p0 = np.maximum(self._weighted_squares - triangular * x0**2, 0.0) / (triangular - 1)
        q = np.maximum(p0 - self._r, self.settings.system_noise_floor)
        self._estimate = np.where(starting, x0, self._estimate)
        self._error = np.where(starting, p0, self._error)
        self._system_noise = np.where(starting, q, self._system_noise)
        self._usable_from_s = np.where(starting, time_s + self.settings.ease_in_s - 1e-9, self._usable_from_s)

    def _collect(self, measured: Matrix) -> None:
        collected = np.isfinite(measured)
        value = np.where(collected, measured, 0.0)
        self._samples = self._samples + collected
        self._weighted_sum = self._weighted_sum + self._samples * value
        self._weighted_squares = self._weighted_squares + self._samples * value**2

    def _regroup(self, ids: tuple[str, ...]) -> None:
        """Rows follow their instances; those that left are forgotten, new ones begin empty."""
        row_of = {name: row for row, name in enumerate(self._ids)}
        rows = [row_of.get(name, -1) for name in ids]

        def regrouped(old: Matrix, fresh: float) -> Matrix:
            padded = np.vstack([old, np.full((1, len(self._r)), fresh)])  # row −1 is a new one
            return np.asarray(padded[rows])

        self._ids = ids
        self._estimate, self._error = regrouped(self._estimate, 0.0), regrouped(self._error, 0.0)
        self._system_noise = regrouped(self._system_noise, 0.0)
        self._samples = regrouped(self._samples, 0.0)
        self._weighted_sum = regrouped(self._weighted_sum, 0.0)
        self._weighted_squares = regrouped(self._weighted_squares, 0.0)
        self._born_s = regrouped(self._born_s, np.nan)
        self._usable_from_s = regrouped(self._usable_from_s, np.nan)
        self._all_usable, self._settled_gain = False, None
