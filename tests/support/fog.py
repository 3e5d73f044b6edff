"""A real testbed for tests: built by the command a user gives, and what it must not leave behind."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fog.artifacts import store as artifacts
from fog.checks.preflight import PROGRAMS, Machine, this_machine
from fog.checks.probe import ask, shell
from fog.emulation.cgroups import ROOT, V1_TREES
from fog.emulation.state import State
from fog.folders import cache_folder, checkout
from fog.manifest import Manifest, ManifestNode, read

DEEPEST = 3  # folders below those where programs keep their things


@dataclass(frozen=True)
class Fog:
    base: Path

    @property
    def state(self) -> State:
        return State(self.base / "local")

    @property
    def manifest(self) -> Manifest:
        return read(self.state.folder, "local")

    def node(self, name: str) -> ManifestNode:
        return next(node for node in self.manifest.nodes if node.name == name)

    def ask(self, node: str, command: str) -> str:
        with shell(self.node(node), self.state.network()) as client:
            return ask(client, command)

    def fogscale(self, *arguments: str, check: bool = True) -> Any:
        """The JSON that `fogscale testbed …` prints, or the finished process where it may fail."""
        done = subprocess.run(
            [sys.executable, "-m", "fogscale.cli", "testbed", *arguments, "--json"],
            capture_output=True, text=True, check=False, env=self.environment, cwd=checkout(),
        )  # fmt: skip
        if not check:
            return done
        assert done.returncode == 0, done.stderr + done.stdout
        return json.loads(done.stdout)

    def playbook(
        self, *arguments: str, inventory: str = "inventory/local"
    ) -> subprocess.CompletedProcess[str]:
        program = Path(sys.executable).parent / "ansible-playbook"
        return subprocess.run(
            [str(program), "-i", inventory, *arguments],
            capture_output=True, text=True, check=False, env=self.environment, cwd=checkout(),
        )  # fmt: skip

    def enter(self, *argv: str, timeout_s: float = 60.0) -> subprocess.CompletedProcess[str]:
        """Runs a program of this machine inside the fog's network."""
        return subprocess.run(
            [str(self.state.enter), *argv],
            capture_output=True, text=True, check=False, timeout=timeout_s, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def kubectl(
        self, *arguments: str, kubeconfig: str = "kubeconfig", check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """As whoever holds that kubeconfig of the state folder: by default the administrator."""
        program = artifacts.store(checkout(), cache_folder()).folder("kubernetes") / "kubernetes"
        done = self.enter(
            str(program), "kubectl", "--kubeconfig", str(self.state.folder / kubeconfig), *arguments
        )
        assert done.returncode == 0 or not check, done.stderr
        return done

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "FOGSCALE_STATE": str(self.base), "ANSIBLE_NOCOLOR": "1"}


def changes_in(output: str) -> dict[str, int]:
    """Node → how many tasks changed something there, by what a playbook printed."""
    counts = re.findall(r"^(\w+) +: ok=\d+ +changed=(\d+)", output, re.MULTILINE)
    return {name: int(count) for name, count in counts if int(count)}


@dataclass(frozen=True)
class Traces:
    """What a testbed could leave on the machine. Others work on it too, so only what is new counts."""

    processes: frozenset[str] = field(default_factory=frozenset)
    namespaces: frozenset[str] = field(default_factory=frozenset)
    mounts: frozenset[str] = field(default_factory=frozenset)
    networks: frozenset[str] = field(default_factory=frozenset)
    firewall: frozenset[str] = field(default_factory=frozenset)
    cgroups: frozenset[str] = field(default_factory=frozenset)
    files: frozenset[str] = field(default_factory=frozenset)

    def since(self, before: Traces) -> dict[str, list[str]]:
        new = {name: sorted(getattr(self, name) - getattr(before, name)) for name in vars(self)}
        return {name: values for name, values in new.items() if values}


def traces(base: Path) -> Traces:
    processes, namespaces = set(), set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            namespaces |= {
                str((folder / "ns" / kind).readlink()) for kind in ("net", "mnt", "pid", "uts", "ipc")
            }
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        if str(base) in words or " -m fog." in words:
            processes.add(f"{folder.name} {words}")
    trees = [ROOT, *(ROOT / tree for tree in V1_TREES)]
    return Traces(
        frozenset(processes),
        frozenset(namespaces),
        frozenset(line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()),
        frozenset(_lines("ip", "netns") | _lines("ip", "-o", "link")),
        frozenset(line for line in _lines("iptables-save") if not line.startswith("#")),
        frozenset(str(path) for tree in trees if tree.is_dir() for path in tree.glob("fogscale-*")),
        frozenset(_files()),
    )


def _files() -> Iterator[str]:
    """Where services leave them. Tests beside this one have files in temporary folders and at home."""
    for top in ("/etc", "/run", "/var/lib"):
        for folder, folders, names in os.walk(top):
            if folder.count("/") - top.count("/") >= DEEPEST:
                folders.clear()
            yield from (f"{folder}/{name}" for name in names)


def _lines(*argv: str) -> set[str]:
    try:
        return set(subprocess.run(argv, capture_output=True, text=True, check=False).stdout.splitlines())
    except FileNotFoundError:
        return set()


def missing() -> str | None:
    """Why no testbed can be built here."""
    machine: Machine = this_machine([])
    if not machine.is_root:
        return "not root"
    lacking = sorted(set(PROGRAMS) - machine.programs)
    if lacking:
        return f"{', '.join(lacking)} not installed"
    return None if machine.has_cgroups and machine.has_overlay else "no cgroups or no overlay file system"


def left_after(base: Path, before: Traces, patience_s: float = 20.0) -> dict[str, list[str]]:
    """What is new since `before` and stays: the kernel takes a moment to end the processes of a namespace,
    and other tests beside this one come and go with files of their own."""
    deadline = time.monotonic() + patience_s
    left = traces(base).since(before)
    while left and time.monotonic() < deadline:
        time.sleep(0.1)
        now = traces(base).since(before)
        left = {
            kind: stayed
            for kind, seen in left.items()
            if (stayed := [each for each in seen if each in now.get(kind, ())])
        }
    return left
