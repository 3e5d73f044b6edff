"""Prometheus: series of samples as they were scraped, and what two of them say together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from math import isfinite
from typing import Any

from controller.testbeds.flink.http import Door, Service, shaped

LONGEST_S = 3600.0  # between two samples that a rate is made of: no window is longer


@dataclass(frozen=True)
class Series:
    name: str
    labels: Mapping[str, str]
    times_s: tuple[float, ...]  # when each was scraped
    values: tuple[float, ...]

    @property
    def last(self) -> float:
        return self.values[-1]

    @property
    def last_s(self) -> float:
        return self.times_s[-1]

    def until(self, time_s: float) -> Series:
        """What was scraped by then; at least the first sample."""
        kept = max(1, sum(each <= time_s for each in self.times_s))
        return replace(self, times_s=self.times_s[:kept], values=self.values[:kept])

    def rate_per_s(self, since_s: float, least_s: float) -> float | None:
        """What a counter gained per second from its first sample after a time on to its last. None until two
        of them are far enough apart, and where it went down: then it is another counter, or none."""
        kept = [
            (time_s, value)
            for time_s, value in zip(self.times_s, self.values, strict=True)
            if time_s >= since_s
        ]
        if len(kept) < 2 or not least_s <= kept[-1][0] - kept[0][0] <= LONGEST_S or kept[0][1] < 0:
            return None
        if any(later[0] <= earlier[0] or later[1] < earlier[1] for earlier, later in pairwise(kept)):
            return None
        return (kept[-1][1] - kept[0][1]) / (kept[-1][0] - kept[0][0])


class Prometheus:
    def __init__(self, door: Door) -> None:
        self._service = Service("Prometheus", door)

    def close(self) -> None:
        self._service.close()

    def samples(self, query: str) -> tuple[Series, ...]:
        """Of a query for a range of samples (`metric[30s]`)."""
        seen = self._service.get("/api/v1/query", params={"query": query})
        with shaped(f"the answer of Prometheus at {self._service.url}", "check its address"):
            if seen["data"]["resultType"] != "matrix":
                raise ValueError("no matrix")
            return tuple(_series(each) for each in seen["data"]["result"] if each["values"])


def _series(found: Mapping[str, Any]) -> Series:
    labels = {str(name): str(value) for name, value in dict(found["metric"]).items()}
    pairs = [(_time_s(time_s), _number(value)) for time_s, value in found["values"]]
    sane = [(time_s, value) for time_s, value in pairs if isfinite(value)] or pairs[-1:]
    return Series(
        labels.pop("__name__", ""), labels, tuple(each[0] for each in sane), tuple(each[1] for each in sane)
    )


def _time_s(value: Any) -> float:
    if not isinstance(value, int | float) or not isfinite(value):
        raise TypeError(f"{value!r} is no time")
    return float(value)


def _number(value: Any) -> float:
    """Of a sample: Prometheus writes it as text."""
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return float(value)


def named(series: Iterable[Series], name: str) -> list[Series]:
    return [each for each in series if each.name == name]
