"""How a real run stands, in one line of a terminal: load, replicas, lag, the last decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from controller.model import Sample
from fogscale.clock import clock

MOST_CHARACTERS = 60  # what a terminal of 80 columns leaves beside the bar and the time


@dataclass(frozen=True)
class Decision:
    """The last one that changed something, or was to."""

    time_s: float
    change: str  # "map 2→3"
    outcome: str  # "…" while it goes on


def status_line(latest: Sequence[Sample], scaled: Sequence[str], last: Decision | None) -> str:
    """`latest`: the last two samples, so that there is a rate."""
    if not latest:
        return "starting"
    now = latest[-1]
    parts = []
    if len(latest) > 1 and now.time_s > latest[0].time_s:
        per_s = (now.offered_records - latest[0].offered_records) / (now.time_s - latest[0].time_s)
        parts.append(f"{per_s:.0f}/s")
    parts += [f"{name} {now.replicas.get(name, 0)}" for name in scaled]
    parts.append(f"lag {now.lag_records:,}")
    if last is not None:
        parts.append(f"{clock(last.time_s)} {last.change} {last.outcome}")
    return "  ".join(parts)[:MOST_CHARACTERS]
