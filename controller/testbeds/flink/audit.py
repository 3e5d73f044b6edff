"""Nothing lost, nothing doubled: what was produced against what a reader of committed records finds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from fogscale.errors import FogscaleError
from workloads.jobs.output import Tally, parse, tally_of
from workloads.producer.audit import Log, Reading, judge, read


@dataclass(frozen=True)
class Audit:
    run: str
    produced: int
    found: int  # in the output topic, read committed
    lost: int
    doubled: int
    unexpected: int  # with a number that was never sent
    drained: bool  # everything was processed before the time for it was up
    by_sums: bool = False  # results are of many records: what is lost and doubled is at least so much

    @property
    def clean(self) -> bool:
        return not (self.lost or self.doubled or self.unexpected)

    @property
    def text(self) -> str:
        return f"{self.produced} records produced, {self.lost} lost, {self.doubled} doubled"

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "clean": self.clean}


@dataclass
class Tallies(Reading):
    """What all results of each operator speak of; what was refused on its own stands under no operator."""

    of: dict[str, Tally] = field(default_factory=lambda: defaultdict(Tally))

    def take(self, message: Any) -> None:
        try:
            result = parse(message.value() or b"")
        except FogscaleError:
            self.foreign += 1
            return
        if result.run == self.only:
            by = result.by if result.number is None else ""
            self.of[by] = self.of[by] + result.tally


def audited(
    access: Mapping[str, Any],
    topic: str,
    run: str,
    start: Mapping[int, int],
    sent: range,
    drained: bool,
    counted_by: Sequence[str] = (),
) -> Audit:
    """By reading the topic anew, from where it ended when the run began: independent of what was counted
    meanwhile. Order is not judged: a job whose instances share the records cannot keep it. `counted_by`: the
    operators that each count every record, where results are of many."""
    config = {name: str(value) for name, value in access.items()}
    reading = Tallies(only=run) if counted_by else Reading(only=run)
    read(access["bootstrap.servers"], topic, config=config, start=start, reading=reading)
    if isinstance(reading, Tallies):
        return by_sums(run, reading.of, sent, drained, counted_by)
    verdict = judge(run, reading.runs.get(run, Log()), sent)
    return Audit(
        run, len(sent), verdict.records, verdict.lost, verdict.duplicated, verdict.unexpected, drained
    )


def by_sums(
    run: str, of: Mapping[str, Tally], sent: range, drained: bool, counted_by: Sequence[str]
) -> Audit:
    """As much is lost, and doubled, as the operator that is farthest off shows. Where as many records are
    told of as were sent, but not these, one at least was lost and another one doubled."""
    refused, wanted = of.get("", Tally()), tally_of(sent)
    found = [refused + of.get(name, Tally()) for name in counted_by]
    off = [each.records - wanted.records for each in found]
    others = any(each != wanted for each in found) and not any(off)
    return Audit(
        run,
        len(sent),
        found=min(each.records for each in found),
        lost=max(0, -min(off), int(others)),
        doubled=max(0, *off, int(others)),
        unexpected=0,
        drained=drained,
        by_sums=True,
    )
