"""The thesis' workload predictor (§3.3.2): a line through the last ten minutes, drawn on for the next."""

from __future__ import annotations

from collections import deque
from math import isfinite

import numpy as np
from numpy.typing import NDArray


class Trend:
    """Remembers `window_s` of workload; each prediction is a linear regression on what it then holds."""

    def __init__(self, window_s: float) -> None:
        self._window_s = window_s
        self._points: deque[tuple[float, float]] = deque()  # time, workload

    def add(self, time_s: float, workload_per_s: float) -> None:
        if isfinite(workload_per_s) and workload_per_s >= 0:
            self._points.append((time_s, workload_per_s))
        while self._points and self._points[0][0] < time_s - self._window_s:
            self._points.popleft()

    @property
    def span_s(self) -> float:
        return self._points[-1][0] - self._points[0][0] if self._points else 0.0

    def ahead(self, time_s: float, horizon_s: float, step_s: float) -> NDArray[np.float64] | None:
        """The workload `step_s`, 2·`step_s`, … `horizon_s` from now; None where the past is shorter than the
        future asked for, since noise would then set the slope."""
        if len(self._points) < 3 or self.span_s < horizon_s:
            return None
        times_s, workloads_per_s = np.array(self._points).T
        mean_s, mean_per_s = times_s.mean(), workloads_per_s.mean()
        apart_s = times_s - mean_s
        slope = (apart_s @ (workloads_per_s - mean_per_s)) / (apart_s @ apart_s)
        steps_s = step_s * np.arange(1, round(horizon_s / step_s) + 1)
        ahead: NDArray[np.float64] = mean_per_s + slope * (time_s + steps_s - mean_s)
        return np.maximum(0.0, ahead)
