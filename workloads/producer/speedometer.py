"""What the progress bar says beside the bar."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from workloads.producer.pacing import Tally

OVER_S = 2.0


class Speedometer:
    """The rate of the last two seconds, and the rate that the schedule wanted in them."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: list[tuple[float, int, int]] = []  # time, acknowledged, due

    def text(self, tallies: Sequence[Tally]) -> str:
        acknowledged = sum(tally.acknowledged for tally in tallies)
        backlog = sum(tally.backlog for tally in tallies)
        errors = max((tally.broker_errors for tally in tallies), default=0)
        now_s = self._clock()
        self._seen = [point for point in self._seen if point[0] >= now_s - OVER_S][-50:]
        self._seen.append((now_s, acknowledged, acknowledged + backlog))
        then_s, acknowledged_then, due_then = self._seen[0]
        over_s = now_s - then_s
        if over_s <= 0:
            return ""
        rate = (acknowledged - acknowledged_then) / over_s
        wanted = (acknowledged + backlog - due_then) / over_s
        told = f"{rate:,.0f}/s of {wanted:,.0f}/s, backlog {backlog:,}"
        return f"{told}, broker errors {errors}" if errors else told
