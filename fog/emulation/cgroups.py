"""CPU and memory limits of a node, in cgroups of its own, version 1 or 2."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from fog.emulation.devices import allow_only

ROOT = Path("/sys/fs/cgroup")
PERIOD_US = 100_000
# Version 1 has one tree per controller. "systemd" and "unified" carry no limits: systemd inside a node
# keeps its units in them. cpuset is there because containers in a node ask for it.
V1_TREES = (
    "cpu", "cpuacct", "cpuset", "memory", "pids", "blkio", "freezer", "devices", "systemd", "unified",
)  # fmt: skip
# What nodes and containers in them may open: null, zero, full, random, urandom, tty, ptmx, terminals and tun.
# Others can be made as files, as runc wants to, but not opened: not the machine's disks, not its log.
DEVICES = (
    "c *:* m", "b *:* m",
    "c 1:3 rwm", "c 1:5 rwm", "c 1:7 rwm", "c 1:8 rwm", "c 1:9 rwm",
    "c 5:0 rwm", "c 5:2 rwm", "c 136:* rwm", "c 10:200 rwm",
)  # fmt: skip
# All nodes together, against whatever else the machine does: ten times the usual weight. By Linux' autogroups
# each session of other work counts as much as all of a testbed would, however nice its processes are.
WEIGHTS = {"cpu.shares": "10240", "cpu.weight": "1000"}  # of version 1 and 2
V2_SWAP = "memory.swap.max"  # not there where the kernel knows no swap
V2_CONTROLLERS = ("cpu", "cpuset", "memory", "pids", "io")


def is_v2(root: Path = ROOT) -> bool:
    return (root / "cgroup.controllers").exists()


def limits(cpus: float, memory_mb: int, v2: bool) -> dict[str, str]:
    """File → content, relative to the node's cgroup (of version 1: to the tree's, which comes first).

    A node has no swap, whatever this machine has.
    """
    quota_us = int(cpus * PERIOD_US)
    memory_bytes = memory_mb << 20
    if v2:
        return {
            "cpu.max": f"{quota_us} {PERIOD_US}",
            "memory.max": str(memory_bytes),
            V2_SWAP: "0",
        }
    return {
        "cpu/cpu.cfs_period_us": str(PERIOD_US),
        "cpu/cpu.cfs_quota_us": str(quota_us),
        "memory/memory.limit_in_bytes": str(memory_bytes),
        "memory/memory.swappiness": "0",
    }


class Group:
    """The cgroups of one testbed, `name`, with one child per node."""

    def __init__(self, name: str, root: Path = ROOT) -> None:
        self.name = name
        self.root = root
        self.v2 = is_v2(root)

    @property
    def tops(self) -> list[Path]:
        if self.v2:
            return [self.root / self.name]
        return [self.root / tree / self.name for tree in V1_TREES if (self.root / tree).is_dir()]

    def create(self, node: str, cpus: float, memory_mb: int) -> None:
        """Made or changed: limits also apply to what already runs."""
        for top in self.tops:
            self._create_top(top)
            self._enable_children(top)
            (top / node).mkdir(exist_ok=True)
            if top.parent.name == "cpuset":
                self._inherit_cpuset(top / node)
        for file, content in limits(cpus, memory_mb, self.v2).items():
            tree, _, name = file.rpartition("/")
            path = self.root / tree / self.name / node / name
            if name != V2_SWAP or path.exists():
                path.write_text(content)

    def _create_top(self, top: Path) -> None:
        """A node cannot see this one, and no list of its own devices can go beyond it. Version 1 takes a list
        only while there is no node yet."""
        if top.is_dir():
            return
        top.mkdir()
        for file, weight in WEIGHTS.items():
            if (top / file).exists():
                (top / file).write_text(weight)
        if self.v2:
            try:
                allow_only(top, DEVICES)
            except BaseException:
                top.rmdir()  # else it would pass for one that has its list
                raise
        elif top.parent.name == "devices":
            (top / "devices.deny").write_text("a")
            for each in DEVICES:
                (top / "devices.allow").write_text(each)

    def _enable_children(self, top: Path) -> None:
        if not self.v2:
            if top.parent.name == "cpuset":
                self._inherit_cpuset(top)
            return
        for parent in (self.root, top):
            offered = (parent / "cgroup.controllers").read_text().split()
            wanted = " ".join(f"+{name}" for name in V2_CONTROLLERS if name in offered)
            (parent / "cgroup.subtree_control").write_text(wanted)

    @staticmethod
    def _inherit_cpuset(group: Path) -> None:
        """A new cpuset is empty, and nothing can run in an empty one."""
        for file in ("cpuset.cpus", "cpuset.mems"):
            if not (group / file).read_text().strip():
                (group / file).write_text((group.parent / file).read_text())

    def enter(self, node: str) -> None:
        """Moves the calling process."""
        for top in self.tops:
            (top / node / "cgroup.procs").write_text("0")

    def processes(self, node: str) -> list[int]:
        """As numbered in the caller's PID namespace; 0 stands for those of another one."""
        found: set[int] = set()
        for top in self.tops:
            for file in (top / node).rglob("cgroup.procs"):
                with suppress(FileNotFoundError):
                    found.update(int(line) for line in file.read_text().split())
        return sorted(found)

    def memory_used_mb(self) -> int:
        file = "memory.current" if self.v2 else "memory.usage_in_bytes"
        tops = [top for top in self.tops if self.v2 or top.parent.name == "memory"]
        with suppress(OSError):
            return sum(int((top / file).read_text()) for top in tops) >> 20
        return 0

    def cpu_used_s(self, node: str) -> float | None:
        """Processor time since the node was created; None where it is not there."""
        with suppress(OSError):
            if self.v2:
                words = (self.root / self.name / node / "cpu.stat").read_text().split()
                return int(words[words.index("usage_usec") + 1]) / 1e6
            return int((self.root / "cpuacct" / self.name / node / "cpuacct.usage").read_text()) / 1e9
        return None

    def kill(self, node: str) -> None:
        for process in self.processes(node):
            if process > 0:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)

    def remove(self, node: str = "", patience_s: float = 5.0) -> bool:
        """Removes a node's cgroups, or all; waits until the kernel has taken the dead out of them."""
        deadline = time.monotonic() + patience_s
        while True:
            left = [top / node for top in self.tops if not _remove_tree(top / node)]
            if not left or time.monotonic() > deadline:
                return not left
            time.sleep(0.02)


def _remove_tree(group: Path) -> bool:
    """Cgroups are removed as empty folders, leaves first; their files are no files."""
    for folder, _, _ in os.walk(group, topdown=False):
        try:
            Path(folder).rmdir()
        except FileNotFoundError:
            continue
        except OSError:
            return False
    return True
