"""What happened to a run, for its journal: what was away and for how long, what was lost and came back."""

from __future__ import annotations

import threading
from collections.abc import Callable

from controller.model import Note

LONGEST_REASON = 200


class Incidents:
    """Told by several threads, taken by one."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._untaken: list[Note] = []
        self._away_since_s: dict[str, float] = {}
        self._lock = threading.Lock()

    def tell(self, kind: str, what: str, **data: str | float) -> None:
        short = {
            key: value[:LONGEST_REASON] if isinstance(value, str) else value for key, value in data.items()
        }
        with self._lock:
            self._untaken.append(Note(kind, sender=what, data={"at_s": round(self._now_s(), 1), **short}))

    def away(self, what: str, reason: str) -> None:
        """Told once, however often it is noticed."""
        if what not in self._away_since_s:
            self._away_since_s[what] = self._now_s()
            self.tell("away", what, reason=reason)

    def back(self, what: str) -> None:
        since_s = self._away_since_s.pop(what, None)
        if since_s is not None:
            self.tell("back", what, seconds=round(self._now_s() - since_s, 1))

    def take(self) -> tuple[Note, ...]:
        """Since the last call."""
        with self._lock:
            taken, self._untaken = self._untaken, []
        return tuple(taken)
