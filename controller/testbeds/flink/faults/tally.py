"""An audit that goes along with a run: which of its records are committed in the output, once or more often,
and for how long none came. It reads Kafka by itself and knows nothing of what the controller counts."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from controller.testbeds.flink.broker import Left, Offsets, Output
from controller.testbeds.flink.http import UnreachableError
from controller.testbeds.flink.notebook import Notes
from controller.testbeds.flink.program import INPUT, OUTPUT

READ_WITHIN_S = 0.2
QUIET_READS = 5  # so many without a record: all there is was read


@dataclass
class Seen:
    """Numbers of records, and how often each was committed."""

    times: dict[int | None, int] = field(default_factory=dict)
    done_at_s: list[float] = field(default_factory=list)  # when records left the job, by their own stamps

    def add(self, records: Sequence[Left]) -> None:
        for record in records:
            self.times[record.number] = self.times.get(record.number, 0) + 1
            self.done_at_s.append(record.done_ms / 1000)

    @property
    def doubled(self) -> int:
        return sum(1 for times in self.times.values() if times > 1)

    def missing(self, produced: int) -> int:
        """Of the records 0 … produced - 1."""
        return sum(1 for number in range(produced) if number not in self.times)

    def silence_s(self, since_s: float, until_s: float) -> float:
        """The longest time without a record that left the job."""
        inside = sorted(each for each in self.done_at_s if since_s <= each <= until_s)
        return max((later - earlier for earlier, later in pairwise([since_s, *inside, until_s])), default=0.0)


class Tally:
    """Of one run; made inside the testbed's network."""

    def __init__(self, access: Mapping[str, Any], notes: Notes) -> None:
        self.seen = Seen()
        self._base = notes.input
        self._input = Offsets(access, INPUT)
        self._output = Output(access, OUTPUT, notes.run, notes.output, committed=True)

    def close(self) -> None:
        self._input.close()
        self._output.close()

    def produced(self, patience_s: float = 120.0) -> int:
        """Records of the run in the input so far; they are numbered from 0 on."""
        deadline_s = time.monotonic() + patience_s
        while True:
            try:
                return sum(end - self._base.get(part, 0) for part, end in self._input.ends().items())
            except UnreachableError:
                if time.monotonic() > deadline_s:
                    raise

    def read(self) -> None:
        quiet = 0
        while quiet < QUIET_READS:
            records = self._output.read(READ_WITHIN_S)
            self.seen.add(records)
            quiet = 0 if records else quiet + 1
            if len(records) < 100:  # it comes as it is made: we have caught up
                return
