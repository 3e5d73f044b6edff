"""Prometheus: series of samples as they were scraped, and what two of them say together."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
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

    def at(self, time_s: float) -> float | None:
        """At any moment between two scrapes: figures of services that were scraped one after the other are
        compared as they were at one moment. None before the first scrape and after the last one."""
        if not self.times_s[0] <= time_s <= self.times_s[-1]:
            return None
        after = bisect_left(self.times_s, time_s)
        if self.times_s[after] == time_s:
            return self.values[after]
        early_s, early = self.times_s[after - 1], self.values[after - 1]
        share = (time_s - early_s) / (self.times_s[after] - early_s)
        return early + share * (self.values[after] - early)

    def rate_per_s(self, since_s: float, until_s: float) -> float | None:
        """What a counter gained per second between two moments. None where it was not scraped before the
        first and after the last, and where it went down: then it is another counter, or none."""
        first, last = self.at(since_s), self.at(until_s)
        if first is None or last is None or first < 0 or not 0 < until_s - since_s <= LONGEST_S:
            return None
        begin, end = bisect_right(self.times_s, since_s) - 1, bisect_left(self.times_s, until_s) + 1
        if any(later < earlier for earlier, later in pairwise(self.values[begin:end])):
            return None
        return (last - first) / (until_s - since_s)


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
    if any(later[0] <= earlier[0] for earlier, later in pairwise(pairs)):
        raise ValueError("samples out of order")
    sane = [(time_s, value) for time_s, value in pairs if isfinite(value)] or pairs[-1:]
    return Series(
        labels.pop("__name__", ""), labels, tuple(each[0] for each in sane), tuple(each[1] for each in sane)
    )


def _time_s(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise TypeError(f"{value!r} is no time")
    return float(value)


def _number(value: Any) -> float:
    """Of a sample: Prometheus writes it as text."""
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return float(value)


def named(series: Iterable[Series], name: str) -> list[Series]:
    return [each for each in series if each.name == name]
