"""Reads what the jobs write, and judges from it alone whether a run's records were each counted exactly once.

A value is JSON; java/src/main/java/fogscale/jobs/Output.java says what is in it. A result is of one record
and carries its number, or of several and carries their tally: how many, the sum of their numbers, and a sum
of scrambled numbers. Both add up: over all results of an operator they equal what was produced only if
nothing is lost and nothing doubled (a chance of 2⁻⁶⁴ aside). A result of one record has the input's header
too, so that `fogscale audit` reads the topic of such a job as well.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fogscale.errors import FogscaleError

_WRAP = 1 << 64


@dataclass(frozen=True, slots=True)
class Tally:
    """Which records a result speaks of; sums are modulo 2⁶⁴."""

    records: int = 0
    sum: int = 0
    mix: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.records + other.records, (self.sum + other.sum) % _WRAP, (self.mix + other.mix) % _WRAP
        )


@dataclass(frozen=True, slots=True)
class Result:
    by: str  # the operator that made it
    run: str
    number: int | None  # of the record; None: of several
    tally: Tally
    first_due_ms: int  # of the earliest record
    due_ms: int  # when the latest record was due by the producer's clock
    read_ms: int  # when the job read the latest
    done_ms: int  # when the result went to Kafka; it can be read once its transaction is committed
    value: Any  # the job's own result

    @property
    def latency_ms(self) -> int:
        """From when the latest record was due until the result was written."""
        return self.done_ms - self.due_ms

    @property
    def fault(self) -> str | None:
        """Why the record could not be used, if so."""
        return self.value.get("fault") if isinstance(self.value, dict) else None


def parse(value: bytes) -> Result:
    try:
        read = json.loads(value)
        number = read.get("number")
        return Result(
            by=read["by"],
            run=read["run"],
            number=number,
            tally=tally_of([number])
            if number is not None
            else Tally(read["records"], read["sum"], read["mix"]),
            first_due_ms=read.get("firstDueMs", read["dueMs"]),
            due_ms=read["dueMs"],
            read_ms=read["readMs"],
            done_ms=read["doneMs"],
            value=read["result"],
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        start = value[:60].decode(errors="replace")
        raise FogscaleError(f"'{start}…' was not written by a job of fogscale ({error!r})") from None


def tally_of(numbers: Iterable[int]) -> Tally:
    """Of records with these numbers; scrambled by SplitMix64, as in Tally.java."""
    all_numbers = np.fromiter(numbers, np.int64).astype(np.uint64)
    x = all_numbers + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return Tally(len(all_numbers), int(all_numbers.sum()), int(x.sum()))


@dataclass(frozen=True, slots=True)
class Balance:
    """What one operator counted, held against what was produced."""

    expected: Tally
    found: Tally
    doubled: int | None  # None: not to be told apart, since results are of several records
    lost: int | None

    @property
    def clean(self) -> bool:
        return self.expected == self.found and not self.doubled and not self.lost

    @property
    def text(self) -> str:
        if self.lost is not None:
            return f"{self.found.records} records: {self.lost} lost, {self.doubled} doubled"
        if self.clean:
            return f"{self.found.records} records: 0 lost, 0 doubled"
        more = self.found.records - self.expected.records
        wrong = f"{abs(more)} too {'many' if more > 0 else 'few'}" if more else "some lost, as many doubled"
        return f"{self.found.records} records: {wrong}"


def balance(results: Iterable[Result], run: str, expected: range) -> Balance:
    """Over results that together speak of every record once: one operator's, and what was refused before."""
    found, numbers, has_tallies = Tally(), [], False
    for result in results:
        if result.run == run:
            found += result.tally
            has_tallies |= result.number is None
            numbers += [] if result.number is None else [result.number]
    if has_tallies:
        return Balance(tally_of(expected), found, None, None)
    distinct = set(numbers)
    return Balance(
        tally_of(expected), found, len(numbers) - len(distinct), len(set(expected).difference(distinct))
    )
