"""How true the figures were that policies saw in a real run: each against the broker's own offsets and the
stamps of the output, which the run's samples hold and Prometheus has no part in."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import median

from controller.contract import Step
from controller.model import Sample

WITHIN = 0.03  # of the true value
LEAST_PER_S = 1.0  # less is idle: a share of next to nothing says nothing
SETTLES_S = 30.0  # after a rescale
FEW_RECORDS = 20  # a lag below it is as good as none


@dataclass(frozen=True)
class Compared:
    """One figure of one observation."""

    figure: str
    situation: str
    seen: float | None  # None: the policy was told that it is not known
    true: float
    slack: float  # what the truth itself cannot tell: what happened when between two samples

    @property
    def error(self) -> float | None:
        """By how much the figure is off, beyond what the truth cannot tell, as a share of it."""
        if self.seen is None:
            return None
        off = max(0.0, abs(self.seen - self.true) - self.slack)
        return off / max(abs(self.true), LEAST_PER_S)


@dataclass(frozen=True)
class Accuracy:
    figure: str
    situation: str
    observations: int
    unknown: int  # None: not claimed
    median_error: float | None
    within: float | None  # share of the figures that were claimed and are within 3 %


class Truth:
    """Counts of the samples, at any moment between them."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        self._samples = samples
        self._times_s = [each.time_s for each in samples]

    def covers(self, since_s: float, until_s: float) -> bool:
        return bool(self._times_s) and self._times_s[0] <= since_s and until_s <= self._times_s[-1]

    def at(self, count: Callable[[Sample], float], time_s: float) -> float:
        later = min(max(1, bisect_left(self._times_s, time_s)), len(self._samples) - 1)
        a, b = self._samples[later - 1], self._samples[later]
        share = (time_s - a.time_s) / (b.time_s - a.time_s) if b.time_s > a.time_s else 1.0
        return count(a) + min(1.0, max(0.0, share)) * (count(b) - count(a))

    def doubt(self, count: Callable[[Sample], float], time_s: float) -> float:
        """By how much the count may be off there. Between two samples it may have gone on for a while as it
        did before the first, and then as it did after the second; and records come by chance (two standard
        deviations of a Poisson process whose ends are known)."""
        here = bisect_left(self._times_s, time_s)
        if not 0 < here < len(self._samples):
            return 0.0
        a, b = self._samples[here - 1], self._samples[here]
        span_s, gained = b.time_s - a.time_s, count(b) - count(a)
        share = (time_s - a.time_s) / span_s if span_s > 0 else 0.0
        before, after = self._per_s(count, here - 2), self._per_s(count, here)
        kinked = share * gained
        if min(before, after) * span_s <= gained <= max(before, after) * span_s:
            pieces = before * share * span_s, gained - after * (1 - share) * span_s
            kinked = max(pieces) if after > before else min(pieces)
        return abs(kinked - share * gained) + 2 * sqrt(max(0.0, gained * share * (1 - share)))

    def _per_s(self, count: Callable[[Sample], float], first: int) -> float:
        """From one sample to the next; where there is none, of the span beside it."""
        first = min(max(0, first), len(self._samples) - 2)
        a, b = self._samples[first], self._samples[first + 1]
        return (count(b) - count(a)) / (b.time_s - a.time_s) if b.time_s > a.time_s else 0.0

    def per_s(self, count: Callable[[Sample], float], since_s: float, until_s: float) -> float:
        return (self.at(count, until_s) - self.at(count, since_s)) / (until_s - since_s)

    def doubt_per_s(self, count: Callable[[Sample], float], since_s: float, until_s: float) -> float:
        return (self.doubt(count, since_s) + self.doubt(count, until_s)) / (until_s - since_s)


def _offered(sample: Sample) -> float:
    return sample.offered_records


def _processed(sample: Sample) -> float:
    return sample.processed_records


def compared(
    steps: Sequence[Step], samples: Sequence[Sample], operator: str, window_s: float
) -> Iterator[Compared]:
    """Of every observation that holds figures: what is offered, what the operator does, what waits."""
    truth = Truth(samples)
    rescaled_s = -SETTLES_S
    runs_since_s = 0.0  # as it does now: the monitor does not look further back either
    seen_s: float | None = None
    for step in steps:
        now = step.observation
        if now.reconfiguring or any(receipt.outcome != "refused" for receipt in now.receipts):
            rescaled_s = now.time_s
            finished = (receipt.finished_s for receipt in now.receipts if receipt.outcome == "done")
            runs_since_s = max(runs_since_s, *finished, 0.0)
        at_s = now.time_s if now.measured_s is None else now.measured_s
        if now.measured_s is not None and now.measured_s == seen_s:
            continue  # shown a second time
        seen_s = now.measured_s
        if not truth.covers(at_s - window_s, at_s):
            continue
        situation = _situation(truth, at_s, window_s, at_s - rescaled_s)
        metrics = now.operators[operator]
        offered = truth.per_s(_offered, at_s - window_s, at_s)
        since_s = max(at_s - window_s, min(runs_since_s, at_s - window_s / 2))
        processed = truth.per_s(_processed, since_s, at_s)
        lag = truth.at(_offered, at_s) - truth.at(_processed, at_s)
        doubts = (
            truth.doubt_per_s(_offered, at_s - window_s, at_s),
            truth.doubt_per_s(_processed, since_s, at_s),
            FEW_RECORDS + truth.doubt(_offered, at_s) + truth.doubt(_processed, at_s),
        )
        yield Compared("offered_rate_per_s", situation, metrics.offered_rate_per_s, offered, doubts[0])
        yield Compared("throughput_per_s", situation, metrics.throughput_per_s, processed, doubts[1])
        yield Compared("lag_records", situation, now.lag_records, lag, doubts[2])


def _situation(truth: Truth, at_s: float, window_s: float, since_rescale_s: float) -> str:
    offered = truth.per_s(_offered, at_s - window_s, at_s)
    processed = truth.per_s(_processed, at_s - window_s, at_s)
    lag = truth.at(_offered, at_s) - truth.at(_processed, at_s)
    if since_rescale_s < SETTLES_S:
        return "right after a rescale"
    if offered < LEAST_PER_S and processed < LEAST_PER_S:
        return "idle"
    if lag > max(FEW_RECORDS, 5 * offered):
        return "catch-up" if processed > offered else "saturated"
    return "steady"


def accuracy(found: Sequence[Compared]) -> list[Accuracy]:
    """By figure and situation."""
    keys = sorted({(each.figure, each.situation) for each in found})
    return [_one(figure, situation, found) for figure, situation in keys]


def _one(figure: str, situation: str, found: Sequence[Compared]) -> Accuracy:
    mine = [each for each in found if (each.figure, each.situation) == (figure, situation)]
    errors = [each.error for each in mine if each.error is not None]
    return Accuracy(
        figure,
        situation,
        observations=len(mine),
        unknown=len(mine) - len(errors),
        median_error=median(errors) if errors else None,
        within=sum(error <= WITHIN for error in errors) / len(errors) if errors else None,
    )
