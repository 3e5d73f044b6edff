"""A steady stream of records into a topic of the testbed."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

from confluent_kafka import Producer

from tests.support.fog import Fog
from tests.support.services import broker, inside

TICK_S = 0.02


@dataclass
class Load:
    """Sends while it is entered; `rate_per_s` may be changed meanwhile."""

    fog: Fog
    topic: str
    partitions: int
    rate_per_s: float
    sent: int = 0
    _done: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Load:
        self._thread = threading.Thread(target=lambda: inside(self.fog, self._send))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _send(self) -> None:
        producer = Producer(broker(self.fog).access("producer"))
        due, last_s = 0.0, time.monotonic()
        while not self._done.wait(TICK_S):
            now_s = time.monotonic()
            due, last_s = due + self.rate_per_s * (now_s - last_s), now_s
            while self.sent < due:
                producer.produce(
                    self.topic,
                    b"a record of some fifty bytes, which nobody reads",
                    partition=self.sent % self.partitions,
                )
                self.sent += 1
            producer.poll(0)
        producer.flush(10)
