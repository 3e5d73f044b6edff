"""Does the job still behave as the model says? Change detection on the model's residuals (thesis, §3.3.2)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class AbruptChange:
    """A residual above the threshold is a change: what the thesis uses."""

    threshold: float = 0.08

    def found(self, residual: float) -> bool:
        return residual > self.threshold


@dataclass
class GradualChange:
    """Page's cumulative sum: residuals that stay somewhat too large add up until they exceed a limit. The
    thesis leaves gradual changes to future work (§7)."""

    allowance: float = 0.04  # a residual below this takes from the sum
    limit: float = 0.48
    total: float = 0.0

    def found(self, residual: float) -> bool:
        self.total = max(0.0, self.total + residual - self.allowance)
        return self.total > self.limit
