"""What the testbed is, beside what it should be."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fog.checks.probe import ask, listens, shell
from fog.emulation.state import State
from fog.manifest import Manifest, ManifestNode
from fog.network.ping import Measured, compared, late_ones_again, ping_script
from fogscale.errors import FogscaleError

_FACTS = (
    "uname -r; . /etc/os-release; echo $PRETTY_NAME; "
    "sed -nE 's/^MemTotal: +([0-9]+) kB/\\1/p' /proc/meminfo; systemctl is-system-running || true"
)
_MARK = "-- round trips --"
LONG_LOOK_PINGS = 20
PATIENCE_S = 20.0  # of a node that let us in; the longest look takes seven


@dataclass(frozen=True)
class NodeStatus:
    node: ManifestNode
    problem: str | None  # None: it answers
    kernel: str = ""
    system: str = ""
    memory_mb: int = 0
    state: str = ""  # systemd's word: running, degraded, ...


@dataclass(frozen=True)
class ServiceStatus:
    name: str
    node: str
    port: int
    version: str
    listens: bool


@dataclass(frozen=True)
class Status:
    testbed: str
    backend: str
    nodes: tuple[NodeStatus, ...]
    round_trips: tuple[Measured, ...]  # each pair once
    services: tuple[ServiceStatus, ...]
    versions: dict[str, str]

    @property
    def healthy(self) -> bool:
        return (
            all(node.problem is None for node in self.nodes)
            and all(pair.holds for pair in self.round_trips)
            and all(service.listens for service in self.services)
        )

    def document(self) -> dict[str, Any]:
        """For --json."""
        return {
            "testbed": self.testbed,
            "backend": self.backend,
            "healthy": self.healthy,
            "nodes": [
                {"name": each.node.name, "group": each.node.group, "address": each.node.address,
                 "cpus": each.node.cpus, "memory_mb": each.memory_mb, "state": each.state,
                 "problem": each.problem, "kernel": each.kernel, "system": each.system}
                for each in self.nodes
            ],
            "round_trips": [
                {"nodes": [pair.source, pair.target], "wanted_ms": pair.wanted_ms,
                 "measured_ms": pair.measured_ms, "holds": pair.holds}
                for pair in self.round_trips
            ],
            "services": [vars(service) for service in self.services],
            "versions": self.versions,
        }  # fmt: skip


def status(manifest: Manifest, folder: Path, pings: int = 5, patience_s: float = PATIENCE_S) -> Status:
    network = State(folder).network() if manifest.emulated else None
    with ThreadPoolExecutor(max_workers=len(manifest.nodes)) as pool:
        probed = list(
            pool.map(lambda node: _probe(node, manifest, network, pings, patience_s), manifest.nodes)
        )
    nodes = tuple(node for node, _ in probed)
    systems = sorted({f"{node.system}, Linux {node.kernel}" for node in nodes if node.problem is None})
    versions = {name: version(name) for name in ("fogscale", "ansible-core", "paramiko")}
    return Status(
        manifest.testbed,
        manifest.backend,
        nodes,
        tuple(pair for _, pairs in probed for pair in pairs),
        _services(manifest, network),
        {**versions, "nodes": "; ".join(systems)},
    )


def _probe(
    node: ManifestNode, manifest: Manifest, network: Path | None, pings: int, patience_s: float
) -> tuple[NodeStatus, list[Measured]]:
    """With its round trips to the nodes listed after it: those to the others are theirs to measure."""
    wanted, addresses = manifest.rtt_ms, manifest.addresses
    later = list(addresses)[list(addresses).index(node.name) + 1 :]

    def script(peers: list[str], count: int) -> str:
        return ping_script([addresses[name] for name in peers], count)

    try:
        with shell(node, network) as client:
            told = ask(client, f"{_FACTS}; echo '{_MARK}'; {script(later, pings)}", patience_s)
            facts, _, round_trips = told.partition(_MARK)

            def look_longer(peers: list[str]) -> list[Measured]:
                told = ask(client, script(peers, LONG_LOOK_PINGS), patience_s)
                return compared(node.name, told, wanted, addresses, peers)

            measured = compared(node.name, round_trips, wanted, addresses, later)
            return _facts(node, facts), late_ones_again(measured, look_longer)
    except FogscaleError as error:
        return NodeStatus(node, str(error)), compared(node.name, "", wanted, addresses, later)


def _facts(node: ManifestNode, told: str) -> NodeStatus:
    try:
        kernel, system, memory_kb, state = told.strip().split("\n")
        return NodeStatus(node, None, kernel, system, int(memory_kb) >> 10, state)
    except ValueError:
        raise FogscaleError(
            f"it tells of itself only '{told.strip()}': log in and see what it lacks"
        ) from None


def _services(manifest: Manifest, network: Path | None) -> tuple[ServiceStatus, ...]:
    return tuple(
        ServiceStatus(
            name, each["node"], int(each["port"]), str(each.get("version", "")),
            # A service that was given elsewhere has an address, and no node.
            listens(network, manifest.addresses.get(each["node"], each["node"]), int(each["port"])),
        )
        for name, each in manifest.services.items()
        if "only_for" not in each  # it would not answer us
    )  # fmt: skip
