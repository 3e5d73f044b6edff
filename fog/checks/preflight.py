"""Everything that can be known to go wrong before any host is touched, in words that say what to change."""

from __future__ import annotations

import os
import platform
import re
import shutil
import socket
import subprocess
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

from fog import values
from fog.artifacts.rootfs import ARCHITECTURES
from fog.artifacts.store import ROOTFS, Store
from fog.emulation.cgroups import ROOT, V1_TREES, Group, is_v2
from fog.emulation.state import State
from fog.network.matrix import MOST_MS, rtt_matrix
from fogscale.errors import FogscaleError, unknown

BACKENDS = ("netem", "switch")
CLUSTERS = ("k3s", "kubernetes_upstream")
FEWEST_NODES = 3  # a server, a node for the services and one that computes
INOTIFY_PER_NODE, INOTIFY_ELSE = 15, 8  # measured: a node with systemd, containerd and a kubelet
DISK_MB_PER_NODE, DISK_MB_ONCE = 1536, 6144  # what a node writes; what all share, and the builds of it
SMALLEST_NODE_MB = 256
PROGRAMS = {  # program → Debian's package
    "systemd-nspawn": "systemd-container",
    "mmdebstrap": "mmdebstrap",
    "ip": "iproute2",
    "tc": "iproute2",
    "nsenter": "util-linux",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
}


@dataclass(frozen=True)
class WantedNode:
    name: str
    address: str
    cpus: float | None = None  # emulated nodes only
    memory_mb: int | None = None
    port: int = 22  # of its sshd
    user: str = "root"
    interface: str = "eth0"  # towards the other nodes


@dataclass(frozen=True)
class Wanted:
    """What the inventory asks for."""

    nodes: tuple[WantedNode, ...]
    rtt_ms: Any
    backend: str
    emulated: bool
    known_nodes: tuple[str, ...] = ()
    rtt_max_ms: float = MOST_MS
    network: str = "10.77.0.0/24"
    cluster: str = "kubernetes_upstream"
    folders: tuple[str, ...] = ()  # where the testbed keeps its things
    kafka: str = ""  # address:port of one that is given


@dataclass(frozen=True)
class Machine:
    """The machine that is to carry emulated nodes."""

    is_root: bool
    architecture: str
    memory_mb: int
    disk_mb: Mapping[str, int]  # folder → free
    inotify_instances: int
    programs: frozenset[str]
    has_cgroups: bool
    has_overlay: bool
    has_netem: bool
    is_linux: bool = True


@dataclass(frozen=True)
class Standing:
    """What of the testbed is there already, and so need not be free any more."""

    memory_mb: int = 0  # that the nodes use
    disk_mb: int = 0  # that the state folder takes
    is_cached: bool = False  # the root file system and all artifacts are


def wanted_of(given: Mapping[str, Any], emulated: bool) -> Wanted:
    """From the values of an inventory, whatever they are."""
    nodes = tuple(
        WantedNode(
            str(node["name"]),
            str(node["address"]),
            node.get("cpus"),
            node.get("memory_mb"),
            node.get("port", 22),
            str(node.get("user", "root")),
            str(node.get("interface", "eth0")),
        )
        for node in given["nodes"]
    )
    return Wanted(
        nodes, given["rtt_ms"], given["backend"], emulated, tuple(given["known_nodes"]), given["rtt_max_ms"],
        given["network"], given["cluster"], (given["state_folder"], given["cache_folder"]), given["kafka"],
    )  # fmt: skip


def inventory_problems(wanted: Wanted) -> list[str]:
    """What is wrong whatever the machine."""
    found = [*_node_problems(wanted), *_address_problems(wanted), *_folder_problems(wanted)]
    if wanted.backend not in BACKENDS:
        found.append(f"fog_network_backend: {unknown('backend', wanted.backend, BACKENDS)}")
    elif wanted.backend == "switch" and not wanted.emulated:
        found.append(
            "fog_network_backend: the switch carries frames of emulated nodes only; "
            "on real machines use netem"
        )
    if wanted.cluster not in CLUSTERS:
        found.append(f"fog_cluster: {unknown('cluster', wanted.cluster, CLUSTERS)}")
    if wanted.kafka:
        found += _complaints(values.broker, wanted.kafka, "fog_kafka: ")
    try:
        names = [node.name for node in wanted.nodes]
        rtt_matrix(wanted.rtt_ms, names, wanted.known_nodes, wanted.rtt_max_ms)
    except FogscaleError as error:
        found.append(str(error))
    return found


def _complaints(check: Callable[[Any], object], value: object, about: str = "") -> list[str]:
    try:
        check(value)
    except FogscaleError as error:
        return [f"{about}{error}"]
    return []


def _node_problems(wanted: Wanted) -> list[str]:
    found = []
    for node in wanted.nodes:
        found += _complaints(values.node_name, node.name)
        found += _complaints(values.port, node.port, f"node {node.name}: ansible_port: ")
        found += _complaints(values.user_name, node.user, f"node {node.name}: ansible_user: ")
        found += _complaints(
            values.interface_name, node.interface, f"node {node.name}: fog_network_interface: "
        )
    if wanted.emulated:
        found += [f"node '{node.name}' would clash with the fog's own network: rename it"
                  for node in wanted.nodes if node.name in ("control", "switch", "nodes")]  # fmt: skip
        found += [
            f"node {node.name}: give it more than 0 CPUs and at least {SMALLEST_NODE_MB} MB "
            f"(it has {node.cpus} and {node.memory_mb})"
            for node in wanted.nodes
            if not _has_a_size(node)
        ]
    if len(wanted.nodes) < FEWEST_NODES:
        found.append(
            f"{len(wanted.nodes)} nodes are too few: a fog needs a server, a services node and at least one "
            "fog node"
        )
    return found


def _has_a_size(node: WantedNode) -> bool:
    return (
        bool(node.cpus and node.memory_mb)
        and values.in_range(node.cpus or 0, 1e-3, values.MOST_CPUS)
        and values.in_range(node.memory_mb or 0, SMALLEST_NODE_MB, values.MOST_MEMORY_MB)
    )


def _address_problems(wanted: Wanted) -> list[str]:
    found = [
        complaint
        for node in wanted.nodes
        for complaint in _complaints(values.address, node.address, f"node {node.name}: ansible_host: ")
    ]
    if found:
        return found
    found = [
        f"{count} nodes have the address {address}: give each its own ansible_host"
        for address, count in Counter(node.address for node in wanted.nodes).items()
        if count > 1
    ]
    if not wanted.emulated:
        return found
    try:
        network = values.network(wanted.network)
    except FogscaleError as error:
        return [*found, f"fog_network_cidr: {error}"]
    return found + _misplaced(wanted, network)


def _misplaced(wanted: Wanted, network: IPv4Network) -> list[str]:
    if network.num_addresses < len(wanted.nodes) + 3:  # its first, its last and this machine's are taken
        return [f"fog_network_cidr: {network} has no room for {len(wanted.nodes)} nodes: write a larger one"]
    found = []
    if not network.is_private:
        found.append(
            f"the network {wanted.network} is not private: use one within 10.0.0.0/8, e.g. 10.77.0.0/24"
        )
    taken = {network[0], network[-1], network[-2]}
    for node in wanted.nodes:
        address = IPv4Address(node.address)
        if address not in network or address in taken:
            found.append(
                f"node {node.name}: its address {node.address} must lie within {network} (not its last two)"
            )
    return found


def _folder_problems(wanted: Wanted) -> list[str]:
    return [complaint for folder in wanted.folders for complaint in _complaints(values.folder_name, folder)]


def machine_problems(wanted: Wanted, machine: Machine, standing: Standing | None = None) -> list[str]:
    """What this machine lacks for emulated nodes."""
    if not machine.is_linux:
        return ["emulated nodes need Linux: run this on a Linux machine, or use Raspberry Pis (inventory/pi)"]
    found = []
    if not machine.is_root:
        found.append("emulated nodes need root (namespaces, mounts): run the same command with sudo")
    if machine.architecture not in ARCHITECTURES:
        found.append(unknown("architecture of this machine", machine.architecture, ARCHITECTURES))
    missing = sorted({package for program, package in PROGRAMS.items() if program not in machine.programs})
    if missing:
        found.append(f"programs are missing: apt-get install {' '.join(missing)}")
    if not machine.has_cgroups:
        found.append(
            f"no cgroups for CPU and memory are mounted on {ROOT}: boot with them, or mount them there"
        )
    if not machine.has_overlay:
        found.append(
            "this kernel has no overlay file system: load it (modprobe overlay) or use another kernel"
        )
    if wanted.backend == "netem" and machine.is_root and not machine.has_netem:
        found.append(
            "this kernel has no netem: set fog_network_backend: switch, or load it (modprobe sch_netem)"
        )
    return found + _size_problems(wanted, machine, standing or Standing())


def _size_problems(wanted: Wanted, machine: Machine, standing: Standing) -> list[str]:
    found = []
    count = len(wanted.nodes)
    memory_mb = sum(node.memory_mb or 0 for node in wanted.nodes)
    if memory_mb > machine.memory_mb + standing.memory_mb:
        found.append(
            f"{count} nodes may use {memory_mb} MB of memory but {machine.memory_mb + standing.memory_mb} MB "
            f"are free: lower emulated_memory_mb or fog_nodes"
        )
    nodes_mb = max(0, count * DISK_MB_PER_NODE - standing.disk_mb)
    needed_mb = nodes_mb + (0 if standing.is_cached else DISK_MB_ONCE)
    for folder, free_mb in machine.disk_mb.items():
        if free_mb < needed_mb:
            found.append(
                f"{folder} has {free_mb} MB of disk left, {count} nodes need {needed_mb} MB more: make room, "
                f"or name another disk with FOGSCALE_STATE and XDG_CACHE_HOME"
            )
    instances = INOTIFY_ELSE + count * INOTIFY_PER_NODE
    if instances > machine.inotify_instances:
        found.append(
            f"{count} nodes need {instances} inotify instances but fs.inotify.max_user_instances is "
            f"{machine.inotify_instances}: sysctl -w fs.inotify.max_user_instances=512, or lower fog_nodes"
        )
    return found


def reachability_problems(
    nodes: Sequence[WantedNode],
    answers: Callable[[str, int], bool],
    inventory: str = "inventory/pi/hosts.yml",
) -> list[str]:
    """Real machines that do not answer; when none does, there are probably none."""
    with ThreadPoolExecutor(max_workers=32) as pool:
        reached = list(pool.map(lambda node: answers(node.address, node.port), nodes))
    silent = [node for node, there in zip(nodes, reached, strict=True) if not there]
    if not silent:
        return []
    if len(silent) == len(nodes):
        return [
            f"none of the {len(nodes)} Raspberry Pis answers (e.g. {silent[0].name} at "
            f"{silent[0].address}): switch them on or fix the addresses in {inventory}; "
            f"without Pis, build the same fog on this machine: ansible-playbook -i inventory/local site.yml"
        ]
    names = ", ".join(f"{node.name} ({node.address})" for node in silent)
    return [f"no answer on the SSH port from {names}: switch on, or fix the addresses in {inventory}"]


def answers_ssh(address: str, port: int = 22, timeout_s: float = 3.0) -> bool:
    try:
        with socket.create_connection((address, port), timeout_s) as connection:
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False


def this_machine(folders: Sequence[str]) -> Machine:
    """Reads what `machine_problems` judges."""
    return Machine(
        is_root=os.geteuid() == 0,
        is_linux=platform.system() == "Linux",
        architecture=platform.machine(),
        memory_mb=_memory_mb(),
        disk_mb={folder: shutil.disk_usage(_existing(Path(folder))).free >> 20 for folder in folders},
        inotify_instances=int(_read("/proc/sys/fs/inotify/max_user_instances") or 0),
        programs=frozenset(program for program in PROGRAMS if shutil.which(program)),
        has_cgroups=_has_cgroups(),
        has_overlay="\toverlay\n" in _read("/proc/filesystems")
        or _succeeds("modprobe", "--dry-run", "overlay"),
        has_netem=_has_netem(),
    )


def standing(state: State, store: Store, artifacts: Sequence[str]) -> Standing:
    return Standing(
        Group(state.group).memory_used_mb(),
        _disk_used_mb(state.folder),
        all(store.folder(name).is_dir() for name in [ROOTFS, *artifacts]),
    )


def _disk_used_mb(folder: Path) -> int:
    """`du` is content with files that come and go meanwhile, and says nothing of a folder that is missing."""
    told = subprocess.run(
        ["du", "-s", "-x", "-m", str(folder)], capture_output=True, text=True, check=False
    ).stdout
    return int(told.split()[0]) if told else 0


def _has_cgroups() -> bool:
    if is_v2():
        return {"cpu", "memory"} <= set(_read(ROOT / "cgroup.controllers").split())
    return all(
        (ROOT / tree / "cgroup.procs").exists() for tree in V1_TREES if tree in ("cpu", "memory", "pids")
    )


def _has_netem() -> bool:
    """Tried for real, in a network that vanishes with the command."""
    return _succeeds("unshare", "--net", "tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms")


def _memory_mb() -> int:
    match = re.search(r"^MemAvailable:\s+(\d+) kB", _read("/proc/meminfo"), re.MULTILINE)
    return int(match.group(1)) >> 10 if match else 0


def _existing(folder: Path) -> Path:
    return folder if folder.exists() or folder == folder.parent else _existing(folder.parent)


def _read(path: str | Path) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def _succeeds(*argv: str) -> bool:
    try:
        return (
            subprocess.run(argv, capture_output=True, check=False, stdin=subprocess.DEVNULL).returncode == 0
        )
    except FileNotFoundError:
        return False
