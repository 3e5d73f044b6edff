"""What a calibration measures, one row each, on disk as soon as it is known: an interrupted one goes on."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from fogscale.errors import FogscaleError
from fogscale.settings import Settings, one_line

OWN = "own"  # the testbed's own round trips, not the same one between all nodes


class Wanted(Settings):
    """A configuration to be measured."""

    replicas: int
    rtt_ms: float | Literal["own"]  # between any two of the nodes, or as the testbed was built

    def __str__(self) -> str:
        network = "its own round trips" if self.rtt_ms == OWN else f"{self.rtt_ms:g} ms"
        return f"{self.replicas} replicas, {network}"


class Point(Settings):
    """How fast a saturated, warm job was. What monitoring showed meanwhile stands beside it."""

    kind: Literal["point"] = "point"
    replicas: int
    rtt_ms: float | Literal["own"]
    nodes: tuple[str, ...]
    largest_rtt_ms: float  # within these nodes: ND_max of Gesscale's Eq. 1
    channel_rtt_ms: float  # the largest between them and the operators before and behind
    rate_per_s: float  # records that left the job
    records: int
    seconds: float
    warm_after_s: float
    steady: bool  # two spans in a row were alike before it was measured
    cpu_ratio: float | None = None
    busy_ratio: float | None = None
    back_pressure_ratio: float | None = None
    source_back_pressure_ratio: float | None = None
    record_bytes: float | None = None  # of a record on its way from the source
    load_1min: float | None = None  # of the machine, by its kernel
    taken_at: str = ""

    @property
    def wanted(self) -> Wanted:
        return Wanted(replicas=self.replicas, rtt_ms=self.rtt_ms)


class Restart(Settings):
    """One rescale of a job that has a backlog."""

    kind: Literal["restart"] = "restart"
    style: str
    before: int
    after: int
    silent_s: float  # the longest time without a processed record
    catch_up_ratio: float | None = None  # the rate of the first seconds after it, of the warm rate
    catch_up_s: float | None = None  # how long it was below 95 % of that
    metrics_missing_s: float | None = None  # from the first record after it until monitoring was whole again
    cpu_while_down_ratio: float | None = None  # of the new set's nodes
    load_1min: float | None = None
    taken_at: str = ""


class Rows:
    """The file; a torn last line is left out."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, row: Point | Restart) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        whole = self._whole()
        with self._path.open("ab") as file:
            file.truncate(len(whole))
            file.write(row.model_dump_json().encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    @property
    def points(self) -> list[Point]:
        return [row for row in self._read() if isinstance(row, Point)]

    @property
    def restarts(self) -> list[Restart]:
        return [row for row in self._read() if isinstance(row, Restart)]

    def missing(self, wanted: Sequence[Wanted]) -> list[Wanted]:
        done = {(point.replicas, point.rtt_ms) for point in self.points}
        return [each for each in wanted if (each.replicas, each.rtt_ms) not in done]

    def _whole(self) -> bytes:
        """Up to the end of the last whole line."""
        content = self._path.read_bytes() if self._path.exists() else b""
        return content[: content.rfind(b"\n") + 1]

    def _read(self) -> Iterator[Point | Restart]:
        for number, line in enumerate(self._whole().split(b"\n")[:-1], start=1):
            try:
                values = json.loads(line)
                yield (Restart if values["kind"] == "restart" else Point).model_validate(values)
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                reason = one_line(error) if isinstance(error, ValidationError) else str(error)
                raise FogscaleError(
                    f"{self._path}, line {number} is damaged ({reason}): remove that line"
                ) from None
