"""Processor time of emulated nodes, read from their cgroups: by it, the CPU that policies see is judged.
Where nodes are not emulated nothing is read: there is no second counter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from controller.contract import Step
from controller.testbeds.flink.accuracy import Compared
from controller.testbeds.flink.metrics import SCRAPE_S

IDLE_PERCENT = 10.0  # of a node's limit
FEW_PERCENT = 1.0  # are as good as none


class NodeCpu:
    """Rows of the time and, per node, the seconds of processor time it has had."""

    def __init__(self, used_s: Callable[[str], float | None], nodes: Sequence[str]) -> None:
        self._used_s, self._nodes = used_s, tuple(nodes)
        self.rows: list[list[float | None]] = []

    def look(self, time_s: float) -> None:
        self.rows.append([round(time_s, 3), *(self._used_s(node) for node in self._nodes)])

    def as_dict(self) -> dict[str, Any]:
        return {"nodes": list(self._nodes), "rows": self.rows}


def compared_nodes(
    steps: Sequence[Step], told: Mapping[str, Any], cores: Mapping[str, float], window_s: float
) -> Iterator[Compared]:
    """Each node's CPU in each observation. Cgroups are read once per sample, and Prometheus' figure lies on a
    line between two scrapes: what the share was half an interval before and after is all that can be told."""
    used = _curves(told)
    seen_s: float | None = None
    for step in steps:
        now = step.observation
        if now.measured_s is None or now.measured_s == seen_s:
            continue
        seen_s = now.measured_s
        for name, node in now.nodes.items():
            if name not in used:
                continue
            times_s, seconds = used[name]
            ends_s = np.linspace(seen_s - SCRAPE_S / 2, seen_s + SCRAPE_S / 2, 5)
            if times_s[0] > ends_s[0] - window_s or times_s[-1] < ends_s[-1]:
                continue
            spent_s = np.interp(ends_s, times_s, seconds) - np.interp(ends_s - window_s, times_s, seconds)
            true = np.minimum(100.0, 100 * spent_s / window_s / cores[name])
            middle, slack = (true.max() + true.min()) / 2, (true.max() - true.min()) / 2
            situation = "idle" if middle < IDLE_PERCENT else "in use"
            seen = None if node.cpu_ratio is None else 100 * node.cpu_ratio
            yield Compared("cpu of nodes (%)", situation, seen, float(middle), float(slack) + FEW_PERCENT)


def _curves(told: Mapping[str, Any]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Node → times and seconds, where both are known; none of a node that was never read."""
    rows = [[np.nan if value is None else value for value in row] for row in told.get("rows", ())]
    if not rows:
        return {}
    table = np.array(rows, dtype=float)
    found = {}
    for column, name in enumerate(told["nodes"], start=1):
        known = ~np.isnan(table[:, column])
        if known.any():
            found[str(name)] = table[known, 0], table[known, column]
    return found
