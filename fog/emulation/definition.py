"""What the emulated nodes of one machine shall be, and what has to happen to get there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from fog import values
from fogscale.errors import FogscaleError, unknown

FABRICS = ("switch", "bridge")  # frames delayed in user space, or a plain bridge with netem in the nodes


@dataclass(frozen=True)
class EmulatedNode:
    name: str
    address: str
    cpus: float
    memory_mb: int

    def __post_init__(self) -> None:
        """Names and addresses become lines for `ip` and arguments of what boots a node."""
        values.node_name(self.name)
        values.address(self.address)
        if not values.in_range(self.cpus, 1e-3, values.MOST_CPUS):
            raise FogscaleError(f"node {self.name}: {self.cpus} CPUs: write a number of more than 0")
        if not values.in_range(self.memory_mb, 1, values.MOST_MEMORY_MB):
            raise FogscaleError(
                f"node {self.name}: {self.memory_mb} MB of memory: write a number of more than 0"
            )

    @property
    def hardware_address(self) -> str:
        """The same after every restart: its neighbours remember it for half a minute."""
        return ":".join(f"{byte:02x}" for byte in (0x02, 0xF0, *IPv4Address(self.address).packed))


@dataclass(frozen=True)
class Definition:
    nodes: tuple[EmulatedNode, ...]
    rootfs: str
    network: str = "10.77.0.0/24"
    fabric: str = "switch"
    own_folders: tuple[str, ...] = ()  # folders of a node that must not lie on the overlay (containerd's)
    shared_folders: Mapping[str, str] = field(default_factory=dict)  # node's folder → machine's, read only

    def __post_init__(self) -> None:
        if self.fabric not in FABRICS:
            raise FogscaleError(unknown("fabric", self.fabric, FABRICS))
        values.network(self.network)
        for folder in (self.rootfs, *self.own_folders, *self.shared_folders, *self.shared_folders.values()):
            values.folder_name(folder)

    @property
    def control_address(self) -> str:
        """The machine's own address in the fog's network: the last one."""
        return str(IPv4Network(self.network)[-2])

    @property
    def prefix_length(self) -> int:
        return IPv4Network(self.network).prefixlen

    @property
    def ports(self) -> tuple[str, ...]:
        """The switch's ports by name, in their order."""
        return ("control", *(node.name for node in self.nodes))

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2)

    @classmethod
    def from_json(cls, text: str) -> Definition:
        told: dict[str, Any] = json.loads(text)
        nodes = tuple(EmulatedNode(**node) for node in told.pop("nodes"))
        return cls(nodes, **{**told, "own_folders": tuple(told["own_folders"])})


@dataclass(frozen=True)
class Transition:
    stop: tuple[str, ...] = ()
    start: tuple[str, ...] = ()
    limit: tuple[str, ...] = ()
    rewire: bool = False  # other ports at the switch
    rebuild: bool = False  # another network altogether: everything starts anew


def transition(now: Definition | None, running: set[str], wanted: Definition) -> Transition:
    """From what was last asked for, and which of those nodes still run."""
    if now is None:
        return Transition(start=tuple(node.name for node in wanted.nodes), rewire=True)
    if (now.network, now.fabric) != (wanted.network, wanted.fabric):
        return Transition(rebuild=True)
    before = {node.name: node for node in now.nodes}
    same_base = (now.rootfs, now.own_folders, dict(now.shared_folders)) == (
        wanted.rootfs, wanted.own_folders, dict(wanted.shared_folders)
    )  # fmt: skip
    kept = {
        node.name
        for node in wanted.nodes
        if same_base
        and node.name in running
        and node.name in before
        and before[node.name].address == node.address
    }
    return Transition(
        stop=tuple(name for name in before if name not in kept),
        start=tuple(node.name for node in wanted.nodes if node.name not in kept),
        limit=tuple(node.name for node in wanted.nodes if node.name in kept and before[node.name] != node),
        rewire=now.ports != wanted.ports,
    )
