"""The one process everything of an emulated fog dies with.

    keeper   in the machine's namespaces
    └─ init  PID 1 of a PID namespace, with mounts, network and host name of its own
       ├─ switch.py
       └─ systemd-nspawn, one per node

Whichever of the two ends, by `kill -9` too, the other clears away: when init dies, the kernel kills all in
its PID namespace and drops its mounts and networks, and the keeper removes the cgroups; when the keeper dies,
init kills all others and removes them.
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from fog.emulation import namespaces
from fog.emulation.cgroups import Group
from fog.emulation.container import REBOOT, command, environment, mount_disk, prepare_disk
from fog.emulation.definition import Definition, EmulatedNode, transition
from fog.emulation.state import State, socket_path, started
from fogscale.errors import FogscaleError

SWITCH_NAMESPACE = "switch"
LONG_ENOUGH_S, LONGEST_PAUSE_S = 10.0, 2.0  # of a switch's life; before it is started again


def pause_s(lived_s: float, before_s: float) -> float:
    """How long to wait before a switch is started again: not at all after a good life, else longer than
    `before_s`, the last time."""
    return 0.0 if lived_s > LONG_ENOUGH_S else min(max(0.1, 2 * before_s), LONGEST_PAUSE_S)


def keep(state: State) -> None:
    """The keeper: starts init and outlives it just long enough to clear away."""
    alive, keeper_end = os.pipe()
    namespaces.unshare(namespaces.CLONE_NEWPID)
    init = os.fork()
    if init == 0:
        os.close(keeper_end)
        _run_init(state, alive)
    os.close(alive)
    state.processes.write_text(
        json.dumps({"keeper": os.getpid(), "init": init, "init_started": started(init)})
    )
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: os.kill(init, signal.SIGKILL))
    os.waitpid(init, 0)
    clear_away(state)


def clear_away(state: State) -> None:
    """What the kernel does not remove by itself."""
    Group(state.group).remove()
    for path in (state.processes, state.folder / "supervisor.sock", state.folder / "switch.sock"):
        with suppress(OSError):
            path.unlink()


def _run_init(state: State, alive: int) -> NoReturn:
    try:
        Init(state, alive).run()
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)  # all in this PID namespace but ourselves
        with suppress(ChildProcessError):
            while True:
                os.waitpid(-1, 0)
        clear_away(state)
        os._exit(0)


class Init:
    def __init__(self, state: State, alive: int) -> None:
        self.state = state
        self.alive = alive
        self.group = Group(state.group)
        self.definition: Definition | None = None
        self.nodes: dict[str, int] = {}  # name → process of its nspawn
        self.switch: int | None = None
        self.switch_started_s = 0.0
        self.switch_pause_s = 0.0
        self.switch_due_s: float | None = None  # when one that ended is to be started again
        self.stopping = False

    def run(self) -> None:
        namespaces.unshare(
            namespaces.CLONE_NEWNS
            | namespaces.CLONE_NEWNET
            | namespaces.CLONE_NEWUTS
            | namespaces.CLONE_NEWIPC
        )
        _run("mount", "--make-rprivate", "/")
        _run("mount", "-t", "proc", "proc", "/proc")
        _run("mount", "-t", "tmpfs", "tmpfs", "/run")  # `ip netns` and nspawn keep their things there
        _ip(["link set lo up"])
        ended, wake = os.pipe()
        for end in (ended, wake):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(wake)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: setattr(self, "stopping", True))
        with socket.socket(socket.AF_UNIX) as control:
            with socket_path(self.state.folder, "supervisor.sock") as path:
                with suppress(FileNotFoundError):
                    os.unlink(path)  # noqa: PTH108
                control.bind(path)
                os.chmod(path, 0o600)  # noqa: PTH101
            control.listen(4)
            while not self.stopping:
                watched: list[int | socket.socket] = [self.alive, ended, control]
                wait_s = None if self.switch_due_s is None else max(0.0, self.switch_due_s - time.monotonic())
                readable, _, _ = select.select(watched, [], [], wait_s)
                if self.alive in readable:
                    return  # the keeper is gone
                if ended in readable:
                    os.read(ended, 4096)
                    self._reap()
                if control in readable:
                    self._answer(control)
                if (
                    self.definition
                    and self.switch_due_s is not None
                    and self.switch_due_s <= time.monotonic()
                ):
                    self._connect_fabric(self.definition)

    def _answer(self, control: socket.socket) -> None:
        with suppress(OSError):
            client, _ = control.accept()
            with client:
                client.settimeout(5)
                try:
                    answer = self._obey(json.loads(client.recv(1 << 20)))
                except (FogscaleError, OSError, ValueError, subprocess.CalledProcessError) as error:
                    traceback.print_exc()
                    answer = {
                        "error": f"the nodes' supervisor failed: {error} (see {self.state.supervisor_log}): "
                        f"fix that, then run the same command again"
                    }
                client.sendall(json.dumps(answer).encode())

    def _obey(self, request: dict[str, Any]) -> dict[str, Any]:
        if "want" in request:
            return self._reach(Definition.from_json(request["want"]))
        return {
            "nodes": {node.name: node.name in self.nodes for node in self.definition.nodes}
            if self.definition
            else {},
            "ports": self.definition.ports if self.definition else (),
            "switch": self.switch is not None,
        }

    def _reach(self, wanted: Definition) -> dict[str, Any]:
        self._reap()  # a node that just died counts as dead
        todo = transition(self.definition, set(self.nodes), wanted)
        if todo.rebuild:
            return {"rebuild": True}
        for name in todo.stop:
            self._stop(name)
        if self.definition is None:
            self._lay_control_cable(wanted)
        by_name = {node.name: node for node in wanted.nodes}
        for name in todo.limit:
            self.group.create(name, by_name[name].cpus, by_name[name].memory_mb)
        for name in todo.start:
            self._lay_cable(by_name[name], wanted)
        self.definition = wanted
        if todo.rewire or todo.start:
            self._connect_fabric(wanted)
        for name in todo.start:
            self._start(by_name[name])
        return {"started": todo.start, "stopped": todo.stop, "limited": todo.limit}

    def _lay_control_cable(self, definition: Definition) -> None:
        _remove_link("eth0")  # half laid, by an attempt that failed
        _remove_namespace(SWITCH_NAMESPACE)
        _ip([f"netns add {SWITCH_NAMESPACE}"])
        _ip(["link set lo up"], SWITCH_NAMESPACE)
        _ip(
            [
                f"link add eth0 type veth peer name {_port('control')} netns {SWITCH_NAMESPACE}",
                f"addr add {definition.control_address}/{definition.prefix_length} dev eth0",
                "link set eth0 up",
            ]
        )
        _ip([f"link set {_port('control')} up"], SWITCH_NAMESPACE)

    def _lay_cable(self, node: EmulatedNode, definition: Definition) -> None:
        port = _port(node.name)
        self._pull_cable(node.name)  # half laid, by an attempt that failed
        _ip([f"netns add {node.name}"])
        _ip(
            [f"link add {port} type veth peer name eth0 netns {node.name}", f"link set {port} up"],
            SWITCH_NAMESPACE,
        )
        _ip(
            [
                "link set lo up",
                f"link set eth0 address {node.hardware_address}",
                f"addr add {node.address}/{definition.prefix_length} dev eth0",
                "link set eth0 up",
                # Leads no further than to the machine's end of the network, which forwards nothing; without
                # any default route, Kubernetes refuses to start.
                f"route add default via {definition.control_address}",
            ],
            node.name,
        )

    def _pull_cable(self, node: str) -> None:
        """The link first: with its namespace alone it would vanish some time later."""
        _remove_link(_port(node), SWITCH_NAMESPACE)
        _remove_namespace(node)

    def _connect_fabric(self, definition: Definition) -> None:
        ports = [_port(name) for name in definition.ports]
        if definition.fabric == "bridge":
            with suppress(FogscaleError):  # it is there
                _ip(["link add fabric type bridge", "link set fabric up"], SWITCH_NAMESPACE)
            _ip([f"link set {port} master fabric" for port in ports], SWITCH_NAMESPACE)
            return
        if self.switch is not None:
            os.kill(self.switch, signal.SIGKILL)
            os.waitpid(self.switch, 0)
        self.switch_started_s, self.switch_due_s = time.monotonic(), None
        argv = [sys.executable, "-m", "fog.network.switch", "--control", "switch.sock",
                "--remember", str(self.state.round_trips), "--names", ",".join(definition.ports),
                *ports]  # fmt: skip
        self.switch = _spawn(
            ["ip", "netns", "exec", SWITCH_NAMESPACE, *argv],
            self.state.switch_log,
            # From within the folder, the socket's path is short; the package is found from the checkout.
            environment={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
            before=lambda: os.chdir(self.state.folder),
        )

    def _start(self, node: EmulatedNode) -> None:
        definition = self.definition
        assert definition is not None
        self.group.create(node.name, node.cpus, node.memory_mb)
        folder = self.state.node(node.name)
        prepare_disk(folder, node, self.state.key.with_suffix(".pub").read_text(), definition)
        mount_disk(folder, Path(definition.rootfs))
        self._boot(node)

    def _boot(self, node: EmulatedNode) -> None:
        assert self.definition is not None
        folder = self.state.node(node.name)
        self.nodes[node.name] = _spawn(
            command(folder, node, self.definition),
            folder / "console.log",
            environment=environment(),
            before=lambda: self.group.enter(node.name),
        )

    def _stop(self, name: str) -> None:
        self.group.kill(name)
        process = self.nodes.pop(name, None)
        if process is not None:
            with suppress(ChildProcessError):
                os.waitpid(process, 0)
        _run("umount", "--lazy", str(self.state.node(name) / "root"), check=False)
        self._pull_cable(name)
        self.group.remove(name)

    def _reap(self) -> None:
        with suppress(ChildProcessError):
            while True:
                process, status = os.waitpid(-1, os.WNOHANG)
                if process == 0:
                    return
                self._ended(process, os.waitstatus_to_exitcode(status))

    def _ended(self, process: int, code: int) -> None:
        if self.definition is None:
            return
        if process == self.switch:
            now_s = time.monotonic()
            self.switch_pause_s = pause_s(now_s - self.switch_started_s, self.switch_pause_s)
            print(f"the switch ended with {code}, another starts in {self.switch_pause_s:g} s", flush=True)
            self.switch, self.switch_due_s = None, now_s + self.switch_pause_s
        for node in self.definition.nodes:
            if self.nodes.get(node.name) == process:
                del self.nodes[node.name]
                if code == REBOOT:
                    self._boot(node)
                else:
                    print(f"node {node.name} ended with {code}", flush=True)


def _port(node: str) -> str:
    """An interface's name has at most 15 characters; nodes' names are checked to have at most 12."""
    return f"p-{node}"


def _spawn(argv: list[str], log: Path, environment: dict[str, str], before: Callable[[], None]) -> int:
    """Not subprocess.Popen: PID 1 reaps its children itself, and by number."""
    process = os.fork()
    if process:
        return process
    try:
        os.setsid()
        before()
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.closerange(3, 256)
        signal.set_wakeup_fd(-1)
        os.execvpe(argv[0], argv, environment)
    except BaseException:
        traceback.print_exc()
    os._exit(127)


def _run(*argv: str, check: bool = True) -> None:
    subprocess.run(argv, check=check, stdin=subprocess.DEVNULL)


def _ip(lines: list[str], namespace: str | None = None) -> None:
    where = ["-n", namespace] if namespace else []
    done = subprocess.run(
        ["ip", *where, "-b", "-"],
        input="\n".join(lines) + "\n",
        text=True,
        check=False,
        stderr=subprocess.PIPE,
    )
    if done.returncode != 0:
        failed = re.search(r"^Command failed -:(\d+)", done.stderr, re.MULTILINE)
        line = lines[int(failed.group(1)) - 1] if failed else "; ".join(lines)
        raise FogscaleError(
            f"'ip {line}' failed: {done.stderr.strip().splitlines()[0] if done.stderr else 'no reason'}"
        )


def _remove_link(name: str, namespace: str | None = None) -> None:
    """If it is there."""
    with suppress(FogscaleError):
        _ip([f"link del {name}"], namespace)


def _remove_namespace(name: str) -> None:
    """If it is there."""
    with suppress(FogscaleError):
        _ip([f"netns del {name}"])


if __name__ == "__main__":
    keep(State(Path(sys.argv[1])))
