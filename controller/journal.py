"""The journal of a run: append-only JSON lines, one per turn of the loop.

A line is written with one call, so a crash tears at most the last one; a torn tail is cut off when the
journal is opened again, and nothing before it is ever rewritten.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from controller.contract import Step
from controller.errors import FogscaleError
from controller.model import (
    Node,
    NodeMetrics,
    Observation,
    Operator,
    OperatorMetrics,
    Plan,
    Receipt,
    Sample,
    Topology,
)
from controller.network import Rtt, RttCoordinates, RttDelays, RttMatrix, RttScaled, RttUniform

VERSION = 1

_RTT_KINDS: dict[str, type[Any]] = {
    "matrix": RttMatrix,
    "coordinates": RttCoordinates,
    "delays": RttDelays,
    "uniform": RttUniform,
}
_encode = msgspec.json.Encoder().encode


class _ObservationRecord(msgspec.Struct):
    """An observation without its topology, which is journalled once and again only when it changes."""

    time_s: float
    placement: dict[str, tuple[str, ...]]
    requested: dict[str, tuple[str, ...]]
    operators: dict[str, OperatorMetrics]
    nodes: dict[str, NodeMetrics]
    measured_s: float | None
    lag_records: float | None
    response_time_ms: float | None
    receipts: tuple[Receipt, ...]


class _StepRecord(msgspec.Struct):
    kind: str
    time_s: float
    observation: _ObservationRecord
    plan: Plan | None
    waited_s: float
    samples: tuple[Sample, ...]


_decode_step = msgspec.json.Decoder(_StepRecord).decode


def topology_record(topology: Topology) -> dict[str, Any]:
    return {
        "nodes": topology.nodes,
        "operators": topology.operators,
        "rtt_ms": _rtt_record(topology.rtt_ms),
        "elastic": topology.elastic,
    }


def _rtt_record(rtt: Any) -> dict[str, Any]:
    if isinstance(rtt, RttScaled):
        return {"kind": "scaled", "factor": rtt.factor, "base": _rtt_record(rtt.base)}
    for kind, rtt_type in _RTT_KINDS.items():
        if isinstance(rtt, rtt_type):
            return {"kind": kind, **msgspec.to_builtins(rtt)}
    raise TypeError(f"{type(rtt).__name__} cannot be journalled: use a class of controller.network")


def topology_of(record: Mapping[str, Any]) -> Topology:
    return Topology(
        nodes=msgspec.convert(record["nodes"], tuple[Node, ...]),
        operators=msgspec.convert(record["operators"], tuple[Operator, ...]),
        rtt_ms=_rtt_of(record["rtt_ms"]),
        elastic=record["elastic"],
    )


def _rtt_of(record: Mapping[str, Any]) -> Rtt:
    if record["kind"] == "scaled":
        return RttScaled(_rtt_of(record["base"]), record["factor"])
    values = {name: value for name, value in record.items() if name != "kind"}
    rtt: Rtt = msgspec.convert(values, _RTT_KINDS[record["kind"]])
    return rtt


def _step_line(step: Step) -> bytes:
    seen = step.observation
    return _encode(
        _StepRecord(
            kind="step",
            time_s=seen.time_s,
            observation=_ObservationRecord(
                seen.time_s,
                seen.placement,  # type: ignore[arg-type]  # encoded as it is, any mapping will do
                seen.requested,  # type: ignore[arg-type]
                seen.operators,  # type: ignore[arg-type]
                seen.nodes,  # type: ignore[arg-type]
                seen.measured_s,
                seen.lag_records,
                seen.response_time_ms,
                seen.receipts,
            ),
            plan=step.plan,
            waited_s=step.waited_s,
            samples=step.samples,
        )
    )


@dataclass(frozen=True)
class Recorded:
    """What a journal holds."""

    run: dict[str, Any]
    topology: Topology
    steps: tuple[Step, ...]
    final_samples: tuple[Sample, ...]
    ended: bool
    finished: bool
    complete_bytes: int  # up to the end of the last whole line

    @property
    def samples(self) -> Iterator[Sample]:
        for step in self.steps:
            yield from step.samples
        yield from self.final_samples


def read(path: Path) -> Recorded | None:
    """The journal at path, or None where nothing whole has been written yet."""
    lines, complete_bytes = _whole_lines(path)
    if not lines:
        return None
    start = _decoded(path, 1, lines[0])
    if start.get("kind") != "start":
        raise FogscaleError(f"{path}, line 1: not the start of a journal; move the file away and run again")
    if start["version"] != VERSION:
        raise FogscaleError(f"{path}: written in format {start['version']}, this fogscale reads {VERSION}")
    topology = topology_of(start["topology"])
    current = topology
    steps: list[Step] = []
    final_samples: tuple[Sample, ...] = ()
    ended = finished = False
    for number, line in enumerate(lines[1:], start=2):
        if line.startswith(b'{"kind":"step"'):
            steps.append(_step_of(path, number, line, current))
            continue
        record = _decoded(path, number, line)
        if record["kind"] == "topology":
            current = topology_of(record["topology"])
        elif record["kind"] == "end":
            ended, finished = True, record["finished"]
            final_samples = msgspec.convert(record["samples"], tuple[Sample, ...])
    return Recorded(start["run"], topology, tuple(steps), final_samples, ended, finished, complete_bytes)


def _whole_lines(path: Path) -> tuple[list[bytes], int]:
    content = path.read_bytes() if path.exists() else b""
    complete_bytes = content.rfind(b"\n") + 1
    return content[:complete_bytes].splitlines(), complete_bytes


def _decoded(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        record = msgspec.json.decode(line, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise _corrupt(path, number) from error
    if "kind" not in record:
        raise _corrupt(path, number)
    return record


def _step_of(path: Path, number: int, line: bytes, topology: Topology) -> Step:
    try:
        record = _decode_step(line)
    except msgspec.DecodeError as error:
        raise _corrupt(path, number) from error
    seen = record.observation
    observation = Observation(
        time_s=seen.time_s,
        topology=topology,
        placement=seen.placement,
        requested=seen.requested,
        operators=seen.operators,
        nodes=seen.nodes,
        measured_s=seen.measured_s,
        lag_records=seen.lag_records,
        response_time_ms=seen.response_time_ms,
        receipts=seen.receipts,
    )
    return Step(observation, record.plan, record.waited_s, record.samples)


def _corrupt(path: Path, number: int) -> FogscaleError:
    return FogscaleError(
        f"{path}, line {number}: not a journal record; keep the lines before it "
        f"(head -n {number - 1}) in a new file of that name, or move the file away and run again"
    )


@dataclass
class Journal:
    """Appends the turns of one run to a file, or to memory when there is no file."""

    path: Path | None
    recorded: Recorded | None
    lines: list[bytes] = field(default_factory=list)  # only without a file
    _file: BinaryIO | None = None
    _topology: Topology | None = None

    @classmethod
    def open(cls, path: Path | None, run: Mapping[str, Any], topology: Topology) -> Journal:
        """Starts a journal, or continues the one a crash left behind."""
        if path is None:
            journal = cls(None, None)
        else:
            recorded = read(path)
            if recorded is not None:
                _check_same_run(path, recorded, run)
            journal = cls(path, recorded, _file=_opened_for_append(path, recorded))
        last_seen = topology
        if journal.recorded is None:
            journal._write(
                _encode(
                    {"kind": "start", "version": VERSION, "run": run, "topology": topology_record(topology)}
                )
            )
        elif journal.recorded.steps:
            last_seen = journal.recorded.steps[-1].observation.topology
        journal._topology = last_seen
        return journal

    def append(self, step: Step) -> None:
        topology = step.observation.topology
        if topology is not self._topology and topology != self._topology:
            self._write(_encode({"kind": "topology", "topology": topology_record(topology)}))
        self._topology = topology
        self._write(_step_line(step))

    def end(self, finished: bool, samples: Iterable[Sample]) -> None:
        self._write(_encode({"kind": "end", "finished": finished, "samples": tuple(samples)}))
        if self._file is not None:
            os.fsync(self._file.fileno())

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _write(self, line: bytes) -> None:
        if self._file is None:
            self.lines.append(line)
        else:
            self._file.write(line + b"\n")


def _opened_for_append(path: Path, recorded: Recorded | None) -> BinaryIO:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("ab", buffering=0)  # unbuffered: what was written survives a kill -9
    except OSError as error:
        raise FogscaleError(
            f"cannot write {path}: {error.strerror}; choose another folder with --out"
        ) from error
    file.truncate(recorded.complete_bytes if recorded else 0)
    return file


def _check_same_run(path: Path, recorded: Recorded, run: Mapping[str, Any]) -> None:
    wanted = msgspec.json.decode(_encode(run))
    for name in sorted({*wanted, *recorded.run}):
        if wanted.get(name) != recorded.run.get(name):
            raise FogscaleError(
                f"{path} holds a run with another '{name}': use --fresh to keep it under another name "
                f"and start over, or choose another folder with --out"
            )


@dataclass
class SampleLog:
    """Keeps the truth and nothing else: a campaign of hundreds of runs has no use for every observation."""

    samples: list[Sample] = field(default_factory=list)
    recorded: None = None

    def append(self, step: Step) -> None:
        self.samples.extend(step.samples)

    def end(self, finished: bool, samples: Iterable[Sample]) -> None:
        self.samples.extend(samples)
