"""Generalised Weierstrass transform (EKF paper, §3.3, Eq. 19): a Gaussian mean over the past.

Only the half of the kernel that lies in the past is in effect, within a rectangular window; it is normalised
over the samples there are, so a constant comes out as it is from the first sample on.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from controller.models.instance_load import is_complete

Matrix = NDArray[np.float64]


class WeierstrassFilters:
    """One filter per instance, all on one ring of samples: a step is one product of weights and ring."""

    def __init__(self, metrics: int, variance_s2: float = 9.0, window_s: float = 60.0) -> None:
        self.metrics, self.variance_s2, self.window_s = metrics, variance_s2, window_s
        self._exponent = -0.5 / variance_s2
        self._ids: tuple[str, ...] = ()
        self._next = 0
        self._times_s = np.full(64, -np.inf)
        self._ring = np.zeros((64, 0))  # values of all instances, then whether each was measured

    def step(self, time_s: float, ids: tuple[str, ...], measured: Matrix) -> Matrix:
        """Smoothed values [instance, metric]; NaN where nothing was measured within the window."""
        if ids != self._ids:
            self._regroup(ids)
        if time_s - self._times_s[self._next] <= self.window_s:
            self._grow()
        complete, values = is_complete(measured), measured.size
        row = self._ring[self._next]
        if complete:
            row[:values], row[values:] = measured.ravel(), 1.0
        else:
            known = np.isfinite(measured).ravel()
            row[:values], row[values:] = np.where(known, measured.ravel(), 0.0), known
        self._times_s[self._next] = time_s
        self._next = (self._next + 1) % len(self._times_s)

        age_s = time_s - self._times_s
        weights = np.exp(age_s * age_s * self._exponent)
        weights *= age_s <= self.window_s
        sums = weights @ self._ring
        weighted, weight = sums[:values], sums[values:]
        if not complete:  # otherwise the sample just taken has a weight of 1
            weight = np.where(weight > 0.0, weight, np.nan)
        return (weighted / weight).reshape(measured.shape)

    def _grow(self) -> None:
        """More samples than expected fall into the window: twice the ring, oldest first."""
        size = len(self._times_s)
        order = (np.arange(size) + self._next) % size
        self._times_s = np.concatenate([self._times_s[order], np.full(size, -np.inf)])
        self._ring = np.vstack([self._ring[order], np.zeros_like(self._ring)])
        self._next = size

    def _regroup(self, ids: tuple[str, ...]) -> None:
        """Columns follow their instances; new ones begin without a past."""
        old = self._ring.reshape(len(self._ring), 2, len(self._ids), self.metrics)
        new = np.zeros((len(self._ring), 2, len(ids), self.metrics))
        column_of = {name: column for column, name in enumerate(self._ids)}
        for column, name in enumerate(ids):
            if name in column_of:
                new[:, :, column] = old[:, :, column_of[name]]
        self._ring, self._ids = new.reshape(len(new), -1), ids
