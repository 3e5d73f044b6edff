"""What the testbed is, beside what it should be."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from controller.errors import FogscaleError
from controller.testbeds.fog.manifest import Manifest, ManifestNode
from controller.testbeds.fog.ping import Measured, compared, late_ones_again, ping_script
from controller.testbeds.fog.probe import ask, listens, shell
from controller.testbeds.fog.state import State

_FACTS = (
    "uname -r; . /etc/os-release; echo $PRETTY_NAME; "
    "sed -nE 's/^MemTotal: +([0-9]+) kB/\\1/p' /proc/meminfo; systemctl is-system-running || true"
)
_MARK = "-- round trips --"
LONG_LOOK_PINGS = 20


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


def status(manifest: Manifest, folder: Path, pings: int = 5) -> Status:
    network = State(folder).network() if manifest.emulated else None
    with ThreadPoolExecutor(max_workers=len(manifest.nodes)) as pool:
        probed = list(pool.map(lambda node: _probe(node, manifest, network, pings), manifest.nodes))
    order = [node.name for node in manifest.nodes]
    pairs = [
        pair for _, pairs in probed for pair in pairs if order.index(pair.source) < order.index(pair.target)
    ]
    nodes = tuple(node for node, _ in probed)
    systems = sorted({f"{node.system}, Linux {node.kernel}" for node in nodes if node.problem is None})
    versions = {name: version(name) for name in ("fogscale", "ansible-core", "paramiko")}
    return Status(
        manifest.testbed,
        manifest.backend,
        nodes,
        tuple(pairs),
        _services(manifest, network),
        {**versions, "nodes": "; ".join(systems)},
    )


def _probe(
    node: ManifestNode, manifest: Manifest, network: Path | None, pings: int
) -> tuple[NodeStatus, list[Measured]]:
    wanted, addresses = manifest.rtt_ms, manifest.addresses
    others = [address for name, address in addresses.items() if name != node.name]
    try:
        with shell(node, network) as client:
            told = ask(client, f"{_FACTS}; echo '{_MARK}'; {ping_script(others, pings)}")
            facts, _, round_trips = told.partition(_MARK)
            measured = compared(node.name, round_trips, wanted, addresses)

            def look_longer(peers: list[str]) -> list[Measured]:
                told = ask(client, ping_script((addresses[name] for name in peers), LONG_LOOK_PINGS))
                return compared(node.name, told, wanted, addresses, peers)

            measured = late_ones_again(measured, look_longer)
    except FogscaleError as error:
        return NodeStatus(node, str(error)), compared(node.name, "", wanted, addresses)
    kernel, system, memory_kb, state = facts.split("\n")[:4]
    seen = NodeStatus(node, None, kernel, system, int(memory_kb) >> 10, state)
    return seen, measured


def _services(manifest: Manifest, network: Path | None) -> tuple[ServiceStatus, ...]:
    return tuple(
        ServiceStatus(
            name, each["node"], int(each["port"]), str(each.get("version", "")),
            listens(network, manifest.addresses[each["node"]], int(each["port"])),
        )
        for name, each in manifest.services.items()
    )  # fmt: skip
