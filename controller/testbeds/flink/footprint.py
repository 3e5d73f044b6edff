"""What the controller itself takes of the machine while it drives a job: memory and processor time."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

_STATM = Path("/proc/self/statm")  # pages: the second figure is what is resident
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
MB = 1_000_000


@dataclass
class Footprint:
    """Of this process alone: the producer is one of its own."""

    resident_bytes: int = 0  # the most that was seen
    _begun_s: float = field(default_factory=time.monotonic)
    _begun_cpu_s: float = field(default_factory=time.process_time)

    def look(self) -> None:
        self.resident_bytes = max(self.resident_bytes, int(_STATM.read_text().split()[1]) * _PAGE_BYTES)

    def as_dict(self) -> dict[str, float]:
        self.look()
        seconds = max(time.monotonic() - self._begun_s, 1e-9)
        return {
            "resident_mb": round(self.resident_bytes / MB, 1),
            "core_ratio": round((time.process_time() - self._begun_cpu_s) / seconds, 4),
            "seconds": round(seconds, 1),
        }
