"""Nothing lost, nothing doubled: what was produced against what a reader of committed records finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from workloads.producer.audit import Log, judge, read


@dataclass(frozen=True)
class Audit:
    run: str
    produced: int
    found: int  # in the output topic, read committed
    lost: int
    doubled: int
    unexpected: int  # with a number that was never sent
    drained: bool  # everything was processed before the time for it was up

    @property
    def clean(self) -> bool:
        return not (self.lost or self.doubled or self.unexpected)

    @property
    def text(self) -> str:
        return f"{self.produced} records produced, {self.lost} lost, {self.doubled} doubled"

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "clean": self.clean}


def audited(
    access: Mapping[str, Any], topic: str, run: str, start: Mapping[int, int], sent: range, drained: bool
) -> Audit:
    """By reading the topic anew, from where it ended when the run began: independent of what was counted
    meanwhile. Order is not judged: a job whose instances share the records cannot keep it."""
    config = {name: str(value) for name, value in access.items()}
    found = read(access["bootstrap.servers"], topic, config=config, only=run, start=start)
    log = found.runs.get(run, Log())
    verdict = judge(run, log, sent)
    return Audit(
        run, len(sent), verdict.records, verdict.lost, verdict.duplicated, verdict.unexpected, drained
    )
