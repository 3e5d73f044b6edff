"""The journal of a run: append-only JSON lines, one per turn of the loop.

A line is written before the next turn begins, so a crash tears at most the last one; a torn tail is cut off
when the journal is opened again, and nothing before it is ever rewritten.

Every line ends with a checksum over itself and the checksum before it, so that a line which was changed,
taken out, repeated or put elsewhere does not add up. It finds accidents and careless hands, not
forgers: CRC-32 costs a millionth of a second a line, and Spark knows it too.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from io import FileIO
from math import isfinite
from operator import attrgetter
from pathlib import Path
from typing import Any, get_type_hints
from zlib import crc32

import msgspec

from controller.contract import Step
from controller.model import Node, Note, Observation, Operator, Plan, Sample, Topology
from controller.network import Rtt, RttCoordinates, RttDelays, RttMatrix, RttScaled, RttUniform
from controller.recording import (
    CHAIN,
    FORMAT_VERSION,
    LARGEST_JOURNAL_BYTES,
    OLDER_NAMES,
    READ_VERSIONS,
)
from fogscale.errors import FogscaleError

_RTT_KINDS: dict[str, type[Any]] = {
    "matrix": RttMatrix,
    "coordinates": RttCoordinates,
    "delays": RttDelays,
    "uniform": RttUniform,
}


# Records


class _Record(msgspec.Struct):
    kind: str


class _Start(_Record):
    version: int
    run: dict[str, Any]
    topology: dict[str, Any]


class _Topology(_Record):
    topology: dict[str, Any]


def _observation_struct() -> Any:
    """An observation without its topology, which is journalled once and again only when it changes.

    Derived, so that a field which is new in Observation cannot be forgotten here; where an older journal
    lacks it, it has its default."""
    types = get_type_hints(Observation)
    described: list[Any] = []
    for known in fields(Observation):
        if known.default_factory is not MISSING:
            default = msgspec.field(default_factory=known.default_factory)
            described.append((known.name, types[known.name], default))
        elif known.default is not MISSING:
            described.append((known.name, types[known.name], known.default))
        elif known.name != "topology":
            described.append((known.name, types[known.name]))
    return msgspec.defstruct("_Observation", described)


_Observation = _observation_struct()
_observed = attrgetter(*_Observation.__struct_fields__)


class _Step(_Record, omit_defaults=True):
    time_s: float
    observation: _Observation  # type: ignore[valid-type]
    plan: Plan | None
    waited_s: float
    samples: tuple[Sample, ...]
    estimates: dict[str, float] = {}
    notes: tuple[Note, ...] = ()


class _End(_Record, omit_defaults=True):
    finished: bool
    samples: tuple[Sample, ...]
    findings: dict[str, Any] = {}
    records: int = (
        0  # lines of the journal, this one included; 0 where it was written before they were counted
    )


_encode = msgspec.json.Encoder().encode
_decode_kind = msgspec.json.Decoder(_Record).decode
_decode_start = msgspec.json.Decoder(_Start).decode
_decode_topology = msgspec.json.Decoder(_Topology).decode
_decode_step = msgspec.json.Decoder(_Step).decode
_decode_end = msgspec.json.Decoder(_End).decode
_UNREADABLE = (msgspec.DecodeError, ValueError, KeyError, TypeError, RecursionError)
_CHAIN = CHAIN.encode()


# The chain


def chained(line: bytes, before: int) -> tuple[bytes, int]:
    """A record with its checksum, and that checksum; `before` is that of the line before, 0 at the start."""
    checksum = crc32(line, crc32(b"%d" % before))
    return b"%b%b%d}" % (line[:-1], _CHAIN, checksum), checksum


def _link(line: bytes) -> tuple[bytes, int | None]:
    """A line without its checksum, and the checksum; None where it has none."""
    body, mark, stated = line.rpartition(_CHAIN)
    if not mark or not stated[:-1].isdigit() or stated[-1:] != b"}":
        return line, None
    return body + b"}", int(stated[:-1])


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
        return RttScaled(_rtt_of(record["base"]), float(record["factor"]))
    values = {name: value for name, value in record.items() if name != "kind"}
    rtt: Rtt = msgspec.convert(values, _RTT_KINDS[record["kind"]])
    return rtt


def _step_record(step: Step) -> _Step:
    seen = step.observation
    return _Step(
        kind="step",
        time_s=seen.time_s,
        observation=_Observation(*_observed(seen)),
        plan=step.plan,
        waited_s=step.waited_s,
        samples=step.samples,
        estimates={name: value for name, value in step.estimates.items() if isfinite(value)},
        notes=step.notes,
    )


def _step_of(record: _Step, topology: Topology) -> Step:
    seen = record.observation
    values = dict(zip(_Observation.__struct_fields__, _observed(seen), strict=True))
    observation = Observation(topology=topology, **values)
    return Step(observation, record.plan, record.waited_s, record.samples, record.estimates, record.notes)


# Reading


@dataclass(frozen=True)
class Recorded:
    """What a journal holds."""

    run: dict[str, Any]
    topology: Topology  # at the start
    last_topology: Topology
    steps: tuple[Step, ...]
    final_samples: tuple[Sample, ...]
    ended: bool
    finished: bool
    complete_bytes: int  # up to the end of the last whole line
    chain: int | None = None  # the checksum of its last line; None: an older journal, which has none
    records: int = 0  # whole lines
    findings: Mapping[str, Any] = field(default_factory=dict)  # of the testbed, besides its samples

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
    start, topology = _start_of(path, lines[0])
    chain = _following(path, 1, lines[0], 0) if start.version > 1 else None
    current = topology
    steps: list[Step] = []
    end: _End | None = None
    for number, line in enumerate(lines[1:], start=2):
        try:
            if end is not None:
                raise ValueError("it ended before")
            kind = _decode_kind(line).kind
            if kind == "step":
                steps.append(_step_of(_decode_step(_renamed(line)), current))
            elif kind == "topology":
                current = topology_of(_decode_topology(line).topology)
            elif kind == "end":
                end = _decode_end(line)
                if end.records not in (0, number):
                    raise ValueError(end.records)
            else:
                raise ValueError(kind)
        except _UNREADABLE as error:
            raise FogscaleError(
                f"{path}, line {number}: not a journal record; keep the lines before it "
                f"(head -n {number - 1}) in a new file of that name, or move the file away and run again"
            ) from error
        if chain is not None:
            chain = _following(path, number, line, chain)
    return Recorded(
        run=start.run,
        topology=topology,
        last_topology=current,
        steps=tuple(steps),
        final_samples=end.samples if end else (),
        findings=end.findings if end else {},
        ended=end is not None,
        finished=end is not None and end.finished,
        complete_bytes=complete_bytes,
        chain=chain,
        records=len(lines),
    )


def _following(path: Path, number: int, line: bytes, before: int) -> int:
    """The checksum of a line, which must fit that of the line before it."""
    body, stated = _link(line)
    if stated is None or chained(body, before)[1] != stated:
        raise FogscaleError(does_not_add_up(str(path), number))
    return stated


def unchecked(path: str) -> str:
    return f"{path} was written before lines had checksums: it is read as it stands, unchecked"


def too_large(path: Path) -> str:
    return (
        f"{path} has {path.stat().st_size >> 20} MiB, and {LARGEST_JOURNAL_BYTES >> 20} can be read: move its"
        " folder away, or run for a shorter time"
    )


def does_not_add_up(path: str, line: int) -> str:
    """The first line that is not what was written after those before it."""
    advice = f"keep the lines before it (head -n {line - 1}) in a new file of that name and run again"
    if line == 1:
        advice = "move the file away and run again"
    return (
        f"{path}, line {line}: its checksum does not fit, so something was changed, left out or repeated:"
        f" restore the file, or {advice}"
    )


def _renamed(line: bytes) -> bytes:
    for older, name in OLDER_NAMES.items():
        line = line.replace(f'"{older}":'.encode(), f'"{name}":'.encode())
    return line


def _whole_lines(path: Path) -> tuple[list[bytes], int]:
    try:
        if path.exists() and not path.is_file():
            raise FogscaleError(f"{path} is no file: move it away or use --out")
        if path.exists() and path.stat().st_size > LARGEST_JOURNAL_BYTES:
            raise FogscaleError(too_large(path))
        content = path.read_bytes() if path.exists() else b""
    except OSError as error:
        raise FogscaleError(f"cannot read {path}: {error.strerror}; move it away or use --out") from error
    complete_bytes = content.rfind(b"\n") + 1
    return content[:complete_bytes].split(b"\n")[:-1], complete_bytes


def _start_of(path: Path, line: bytes) -> tuple[_Start, Topology]:
    try:
        start = _decode_start(line)
        if start.kind != "start":
            raise ValueError(start.kind)
        if start.version not in READ_VERSIONS:
            raise FogscaleError(
                f"{path}: written in format {start.version}, this fogscale reads {FORMAT_VERSION}"
            )
        return start, topology_of(start.topology)
    except _UNREADABLE as error:
        raise FogscaleError(
            f"{path}, line 1: not the start of a journal; move the file away and run again"
        ) from error


# Writing


@dataclass
class Journal:
    """Appends the turns of one run to a file, or to memory when there is no file."""

    path: Path | None
    recorded: Recorded | None
    lines: list[bytes] = field(default_factory=list)  # only without a file
    _file: FileIO | None = None
    _topology: Topology | None = None
    _chain: int | None = 0  # the checksum of the last line; None in an older journal, which goes on without
    _records: int = 0  # lines

    @classmethod
    def open(cls, path: Path | None, run: Mapping[str, Any], topology: Topology) -> Journal:
        """Starts a journal, or continues the one a crash left behind."""
        if path is None:
            journal = cls(None, None)
        else:
            _check_same_run(path, read(path), run)  # before anything is touched
            file = _opened_alone(path)
            recorded = read(path)
            file.truncate(recorded.complete_bytes if recorded else 0)
            journal = cls(path, recorded, _file=file)
            if recorded is not None:
                journal._chain, journal._records = recorded.chain, recorded.records
        if journal.recorded is None:
            journal._write(_Start("start", FORMAT_VERSION, dict(run), topology_record(topology)))
        journal._topology = journal.recorded.last_topology if journal.recorded else topology
        return journal

    def append(self, step: Step) -> None:
        topology = step.observation.topology
        if topology is not self._topology and topology != self._topology:
            self._write(_Topology("topology", topology_record(topology)))
        self._topology = topology
        self._write(_step_record(step))

    def end(self, finished: bool, samples: Iterable[Sample], findings: Mapping[str, Any]) -> None:
        records = 0 if self._chain is None else self._records + 1
        self._write(_End("end", finished, tuple(samples), dict(findings), records))
        if self._file is not None:
            os.fsync(self._file.fileno())

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _write(self, record: _Record) -> None:
        line = _encode(record)
        self._records += 1
        if self._chain is not None:
            line, self._chain = chained(line, self._chain)
        if self._file is None:
            self.lines.append(line)
            return
        left = memoryview(line + b"\n")
        try:
            while left:  # a disk that fills up takes part of a line first, and complains only then
                left = left[self._file.write(left) :]
        except OSError as error:
            raise FogscaleError(
                f"cannot write {self.path}: {error.strerror}; make room and run the same command again"
            ) from error


def _opened_alone(path: Path) -> FileIO:
    """Opened to append, by one process at a time."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = FileIO(path, "ab")  # unbuffered: what was written survives a kill -9
    except OSError as error:
        raise FogscaleError(
            f"cannot write {path}: {error.strerror}; choose another folder with --out"
        ) from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # let go when the process ends, however it does
    except OSError as error:
        file.close()
        raise FogscaleError(f"{path} is in use by another fogscale: wait for it, or use --out") from error
    if not _is_still(path, file):  # somebody has just set it aside
        file.close()
        return _opened_alone(path)
    return file


def _is_still(path: Path, file: FileIO) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def set_aside(path: Path) -> None:
    """Nothing recorded is ever lost: an earlier journal stays beside the new one under another name."""
    if path.is_file():
        with _opened_alone(path):
            number = 1
            while (old := path.with_name(f"journal.{number}.old")).exists():
                number += 1
            path.rename(old)


def _check_same_run(path: Path, recorded: Recorded | None, run: Mapping[str, Any]) -> None:
    if recorded is None:
        return
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

    def end(self, finished: bool, samples: Iterable[Sample], findings: Mapping[str, Any]) -> None:
        self.samples.extend(samples)
