"""A whole calibration: every configuration in turn, each row kept as it comes, the network put back."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from controller.calibration.backlog import backlog_of
from controller.calibration.measuring import Bench, DryError, Pace
from controller.calibration.points import OWN, Rows, Wanted
from controller.experiment import Experiment
from controller.model import Topology
from controller.placement import grown, nearest
from controller.testbeds.flink.broker import Offsets
from controller.testbeds.flink.checks import check_operators
from controller.testbeds.flink.connection import Connection, connected
from controller.testbeds.flink.program import INPUT
from controller.testbeds.flink.settings import FlinkSettings
from controller.topology import start_placement
from fog import manifest as manifests
from fog.command import change_network
from fog.folders import state_folder
from fog.network.matrix import HEADER
from fog.services.broker import PRODUCER
from fogscale.documents import read_json
from fogscale.errors import FogscaleError
from fogscale.files import write_whole
from workloads.jobs import catalog

MOST_RECORDS = 4_000_000
NETWORK = "network.json"  # the round trips to put back

Told = Callable[[str], None]


@dataclass(frozen=True)
class Grid:
    replicas: tuple[int, ...]
    rtts_ms: tuple[float, ...]
    restarts: int  # how many
    records: int  # of the backlog, at first
    pace: Pace

    @property
    def points(self) -> list[Wanted]:
        """The same round trip between all nodes, then the testbed's own. Most replicas first: TaskManagers
        that leave cost no time."""
        several = sorted(set(self.replicas), reverse=True)
        networks = (*self.rtts_ms, OWN)
        return [Wanted(replicas=n, rtt_ms=rtt) for rtt in networks for n in several]  # type: ignore[arg-type]


def folder_of(results: Path, settings: FlinkSettings, topology: Topology) -> Path:
    """One per job with its settings, and per kind of nodes."""
    nodes = sorted({node.cores for node in topology.nodes if node.name.startswith("fog")})
    values = repr((settings.name, settings.job, sorted(settings.job_settings.items()), nodes))
    digest = blake2b(values.encode(), digest_size=4).hexdigest()
    return results / "calibration" / f"{settings.name}-{settings.job}-{digest}"


@dataclass
class Session:
    """What `fogscale calibrate --testbed` does once everything is checked."""

    experiment: Experiment
    grid: Grid
    folder: Path
    tell: Told = lambda _: None

    def __post_init__(self) -> None:
        settings = self.experiment.testbed
        if not isinstance(settings, FlinkSettings):
            raise FogscaleError("only a real testbed is measured: name an experiment of the kind flink")
        self.settings: FlinkSettings = settings
        self.topology = self.experiment.topology.build()
        job = catalog.find(settings.job)
        check_operators(self.topology, job, settings.job)
        if len(job.scaled) != 1:
            raise FogscaleError(
                f"job '{settings.job}' scales {', '.join(job.scaled)} together: calibrate one that scales one"
            )
        self.operator, self.records = job.scaled[0], job.records
        self.rows = Rows(self.folder / "rows.jsonl")
        most = self.topology.operator(self.operator).n_max or len(self.topology.nodes)
        for replicas in self.grid.replicas:
            if not 1 <= replicas <= most:
                raise FogscaleError(f"--replicas: {replicas} is not between 1 and {most}: leave it out")

    def measure(self) -> None:
        missing = self.rows.missing(self.grid.points)
        networks = dict.fromkeys(each.rtt_ms for each in missing)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._keep_network()
        try:
            for network in networks:
                self._measure_at(network, [each for each in missing if each.rtt_ms == network])
            self._restore_network()
            left = self.grid.restarts - len(self.rows.restarts)
            if left > 0:
                self._measure_restarts(left)
        finally:
            self._restore_network()
            (self.folder / NETWORK).unlink(missing_ok=True)

    def nodes_of(self, replicas: int) -> tuple[str, ...]:
        """The nearest, as policies choose them."""
        wanted = self.experiment
        start = start_placement(self.topology, wanted.start, wanted.pins, wanted.initial_placement)
        return tuple(grown(self.topology, start, {self.operator: replicas}, nearest)[self.operator])

    def _measure_at(self, rtt_ms: float | str, wanted: Sequence[Wanted]) -> None:
        if rtt_ms == OWN:
            self._restore_network()
        else:
            self._set_network(float(rtt_ms))
        with connected(self.settings.name) as connection:
            for each in wanted:
                number = len(self.rows.points) + 1
                self.tell(f"point {number} of {len(self.grid.points)}: {each}")
                self.rows.add(self._with_enough(connection, each))

    def _with_enough(self, connection: Connection, wanted: Wanted) -> Any:
        """Where the job runs dry, the backlog was too small: a larger one is sent."""
        records = self.grid.records
        while True:
            try:
                return self._bench(connection, records).point(wanted, self.nodes_of(wanted.replicas))
            except DryError:
                if records * 3 > MOST_RECORDS:
                    raise
                records *= 3
                self.tell(f"the job was through before it was measured: sending {records} records")

    def _measure_restarts(self, left: int) -> None:
        few, more = self.nodes_of(2), self.nodes_of(3)
        sets = [more if place % 2 else few for place in range(left + 1)]
        with connected(self.settings.name) as connection:
            bench = self._bench(connection, self.grid.records)
            for row in bench.restarts(self.settings.style, sets, self.tell):
                self.rows.add(row)

    def _bench(self, connection: Connection, records: int) -> Bench:
        access = connection.access.kafka.access(PRODUCER)
        offsets = Offsets(access, INPUT)
        try:
            backlog = backlog_of(self.folder, self.records, records, access, offsets)
        finally:
            offsets.close()
        bench = Bench(connection, self.settings, self.topology, self.operator, backlog, self.grid.pace)
        bench.check_free()
        return bench

    # The network: what it was lies beside the rows, so that also a killed calibration puts it back later

    def _keep_network(self) -> None:
        path = self.folder / NETWORK
        if not path.exists():
            built = manifests.read(state_folder(self.settings.name), self.settings.name)
            kept = {"fog_rtt_ms": built.rows_ms, "fog_rtt_max_ms": built.rtt_max_ms}
            write_whole(path, json.dumps(kept))

    def _set_network(self, rtt_ms: float) -> None:
        built = manifests.read(state_folder(self.settings.name), self.settings.name)
        self.tell(f"setting all round trips to {rtt_ms:g} ms")
        self._change(
            {"fog_rtt_ms": uniform_rows(built.rows_ms, rtt_ms), "fog_rtt_max_ms": max(300.0, rtt_ms)}
        )

    def _restore_network(self) -> None:
        path = self.folder / NETWORK
        if path.exists():
            kept = read_json(path)
            built = manifests.read(state_folder(self.settings.name), self.settings.name)
            if dict(built.rows_ms) != kept["fog_rtt_ms"]:
                self.tell("putting the testbed's own round trips back")
                self._change(kept)

    def _change(self, wanted: Mapping[str, Any]) -> None:
        change_network(self.settings.name, wanted)


def uniform_rows(rows_ms: Mapping[str, Any], rtt_ms: float) -> dict[str, Any]:
    """The same round trip from every fog node to every other node; server and services stay together."""
    names = list(rows_ms[HEADER])

    def between(a: str, b: str) -> float:
        is_far = a.startswith("fog") or b.startswith("fog")
        return rtt_ms if a != b and is_far else float(rows_ms[a][names.index(b)])

    return {HEADER: names, **{a: [between(a, b) for b in names] for a in names}}
