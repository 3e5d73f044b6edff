"""The folder that holds everything of one testbed: keys, sockets, the nodes' disks, the manifest."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Any

from fogscale.errors import FogscaleError
from fogscale.files import opened_lock

NOT_RUNNING = "the emulated nodes are not running: bring them up with 'fogscale testbed up'"


class State:
    def __init__(self, folder: Path) -> None:
        self.folder = folder.expanduser().absolute()
        self.key = self.folder / "key"
        self.known_hosts = self.folder / "known_hosts"
        self.enter = self.folder / "enter"
        self.ssh = self.folder / "ssh"
        self.ssh_config = self.folder / "ssh_config"
        self.ssh_sockets = self.folder / "ssh-sockets"
        self.manifest = self.folder / "testbed.json"
        self.round_trips = self.folder / "rtt_ms.json"
        self.processes = self.folder / "supervisor.json"
        self.supervisor_log = self.folder / "supervisor.log"
        self.switch_log = self.folder / "switch.log"

    @property
    def group(self) -> str:
        """The name of its cgroups: found again from the folder alone, also after a crash."""
        return f"fogscale-{hashlib.sha256(str(self.folder).encode()).hexdigest()[:10]}"

    def node(self, name: str) -> Path:
        return self.folder / "nodes" / name

    def create(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.folder.chmod(0o700)
        self.ssh_sockets.mkdir(exist_ok=True, mode=0o700)

    def remove(self) -> None:
        remove_tree(self.folder)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Two commands at once would build into each other."""
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        path = self.folder.with_name(f".{self.folder.name}.lock")
        with self._lock(path):
            try:
                yield
            finally:
                path.unlink(missing_ok=True)

    def _lock(self, path: Path) -> FileIO:
        while True:
            file = opened_lock(path)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.close()
                raise FogscaleError(
                    f"another command is working on {self.folder}: wait until it has finished"
                ) from None
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                    return file
            file.close()  # its holder removed it after we had opened it: that lock keeps nobody out

    def supervisor(self) -> int | None:
        """The process whose namespaces are the fog's, if it lives."""
        try:
            seen = json.loads(self.processes.read_text())
        except (FileNotFoundError, ValueError):
            return None
        init = int(seen["init"])
        return init if started(init) == seen["init_started"] else None

    def network(self) -> Path:
        """The namespace from which the fog can be reached."""
        supervisor = self.supervisor()
        if supervisor is None:
            raise FogscaleError(NOT_RUNNING)
        return Path(f"/proc/{supervisor}/ns/net")

    def ask_supervisor(self, request: dict[str, Any], timeout_s: float = 60.0) -> dict[str, Any]:
        return ask(self.folder, "supervisor.sock", request, timeout_s)

    def ask_switch(self, request: dict[str, Any], timeout_s: float = 5.0) -> dict[str, Any]:
        return ask(self.folder, "switch.sock", request, timeout_s)


def started(process: int) -> int | None:
    """When a process started, in ticks since boot: with its number, what tells it from a later one."""
    try:
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19])
    except (FileNotFoundError, ProcessLookupError):
        return None


@contextmanager
def socket_path(folder: Path, name: str) -> Iterator[str]:
    """A path of a socket that is short enough for the kernel however deep the folder lies."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}/{name}"
    finally:
        os.close(descriptor)


def ask(folder: Path, name: str, request: dict[str, Any], timeout_s: float) -> dict[str, Any]:
    """One JSON request, one JSON answer."""
    try:
        with socket.socket(socket.AF_UNIX) as client, socket_path(folder, name) as path:
            client.settimeout(timeout_s)
            client.connect(path)
            client.sendall(json.dumps(request).encode())
            parts = list(iter(lambda: client.recv(1 << 16), b""))
        answer: dict[str, Any] = json.loads(b"".join(parts))
    except (OSError, ValueError) as error:
        raise FogscaleError(f"{NOT_RUNNING} ({name}: {error})") from None
    if "error" in answer:
        raise FogscaleError(answer["error"])
    return answer


def remove_tree(folder: Path) -> None:
    """Never across a mount: that would empty what is mounted there."""
    inside = f"{folder}/"
    mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    for mount in mounts:
        if f"{mount}/".startswith(inside):
            raise FogscaleError(f"something is mounted on {mount}: unmount it (umount {mount}) and try again")
    if folder.exists():
        shutil.rmtree(folder)
