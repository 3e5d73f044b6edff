"""Brings the emulated nodes of one machine up and down. Both can be called again at any time."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fog.emulation import namespaces
from fog.emulation.cgroups import Group
from fog.emulation.definition import Definition, EmulatedNode
from fog.emulation.state import State, remove_tree, started
from fog.emulation.supervisor import clear_away
from fogscale.errors import FogscaleError

# Runs a command inside the fog's network; nothing else leads there.
ENTER = """\
#!/bin/sh
seen={processes}
field() {{ sed -nE "s/.*\\"$1\\": ([0-9]+).*/\\1/p" "$seen" 2>/dev/null; }}
init=$(field init)
if [ -z "$init" ] || [ "$(cut -d' ' -f22 "/proc/$init/stat" 2>/dev/null)" != "$(field init_started)" ]; then
  echo "the emulated nodes are not running: bring them up with 'fogscale testbed up'" >&2
  exit 255
fi
exec nsenter --net="/proc/$init/ns/net" -- "$@"
"""

SSH = """\
#!/bin/sh
exec {enter} ssh "$@"
"""

# For people and their tools, who find the nodes by name; Ansible uses the script above, which is quicker.
SSH_CONFIG = """\
Host {names}
  User root
  IdentityFile {key}
  IdentitiesOnly yes
  UserKnownHostsFile {known_hosts}
  StrictHostKeyChecking yes
  ProxyCommand env {package} {enter} {python} -m fog.network.relay %h %p
"""


@dataclass(frozen=True)
class Outcome:
    started: tuple[str, ...] = ()
    stopped: tuple[str, ...] = ()
    limited: tuple[str, ...] = ()
    wrote: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        return bool(self.started or self.stopped or self.limited or self.wrote)


def bring_up(definition: Definition, state: State, patience_s: float = 90.0) -> Outcome:
    _need_root()
    state.create()
    with state.locked():
        wrote = write_access(definition, state)
        if state.supervisor() is None:
            _start_supervisor(state)
        answer = state.ask_supervisor({"want": definition.to_json()})
        if answer.get("rebuild"):
            _end_supervisor(state)
            _start_supervisor(state)
            answer = state.ask_supervisor({"want": definition.to_json()})
        for name in answer["stopped"]:
            if name not in {node.name for node in definition.nodes}:
                remove_tree(state.node(name))
        wait_for_ssh(definition, state, patience_s)
    return Outcome(tuple(answer["started"]), tuple(answer["stopped"]), tuple(answer["limited"]), wrote)


def take_down(state: State) -> bool:
    """Leaves nothing: True if there was anything."""
    _need_root()
    with state.locked():
        group = Group(state.group)
        was_there = state.folder.exists() or any(top.exists() for top in group.tops)
        close_ssh(state)
        _end_supervisor(state)
        if not group.remove():
            raise FogscaleError(
                f"processes are left in the cgroups {group.name}: end them, then take the testbed down again"
            )
        state.remove()
    return was_there


def _need_root() -> None:
    if os.geteuid() != 0:
        raise FogscaleError("emulated nodes need root: run the same command with sudo")


def write_access(definition: Definition, state: State) -> tuple[str, ...]:
    """Keys and what ssh needs to know the nodes; returns what was new."""
    wrote = [str(state.key)] if _generate_key(state.key, "fogscale") else []
    for node in definition.nodes:
        state.node(node.name).mkdir(parents=True, exist_ok=True)
        host_key = state.node(node.name) / "host_key"
        if _generate_key(host_key, node.name):
            wrote.append(str(host_key))
    for path, text, mode in (
        (state.known_hosts, "".join(_known_host(node, state) for node in definition.nodes), 0o600),
        (state.enter, ENTER.format(processes=state.processes), 0o700),
        (state.ssh, SSH.format(enter=state.enter), 0o700),
        (state.ssh_config, ssh_config(definition, state), 0o600),
    ):
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
            path.chmod(mode)
            wrote.append(str(path))
    return tuple(wrote)


def ssh_config(definition: Definition, state: State) -> str:
    addresses = "".join(f"Host {node.name}\n  HostName {node.address}\n" for node in definition.nodes)
    common = SSH_CONFIG.format(
        names=" ".join(f"{node.name} {node.address}" for node in definition.nodes), key=state.key,
        known_hosts=state.known_hosts, package=_quoted(f"PYTHONPATH={Path(__file__).parents[2]}"),
        enter=state.enter, python=_quoted(sys.executable),
    )  # fmt: skip
    return addresses + common


def _quoted(word: str) -> str:
    """For a shell, by way of ssh. (Names of the testbed's own folders need it not: preflight sees to it.)"""
    return shlex.quote(word).replace("%", "%%")


def _known_host(node: EmulatedNode, state: State) -> str:
    kind, key = (state.node(node.name) / "host_key.pub").read_text().split()[:2]
    return f"{node.address},{node.name} {kind} {key}\n"


def _generate_key(path: Path, comment: str) -> bool:
    if path.exists() and path.with_suffix(".pub").exists():
        return False
    path.unlink(missing_ok=True)  # half of a pair, from an interrupted run
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(path)],
        check=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return True


def _start_supervisor(state: State, patience_s: float = 15.0) -> None:
    clear_away(state)
    with state.supervisor_log.open("a") as log:
        state.supervisor_log.chmod(0o600)
        keeper = subprocess.Popen(
            [sys.executable, "-m", "fog.emulation.supervisor", str(state.folder)],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd="/",
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        )  # fmt: skip
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline and keeper.poll() is None:
        if state.supervisor() is not None:
            with suppress(FogscaleError):
                state.ask_supervisor({}, timeout_s=2)
                keeper.returncode = 0  # it stays: Popen must not warn about it
                return
        time.sleep(0.02)
    with suppress(ProcessLookupError):
        os.killpg(keeper.pid, signal.SIGKILL)
    keeper.wait()
    clear_away(state)
    raise FogscaleError(
        f"the supervisor of the nodes did not start: {last_line(state.supervisor_log)} "
        f"(all of it: {state.supervisor_log}); run the same command again"
    )


def _end_supervisor(state: State) -> None:
    """The kernel ends all that lives in its namespaces with it; the keeper then removes the cgroups."""
    init = state.supervisor()
    if init is not None:
        begun = started(init)
        os.kill(init, signal.SIGKILL)
        deadline = time.monotonic() + 15
        while time.monotonic() < deadline and (started(init) == begun or state.processes.exists()):
            time.sleep(0.02)
    clear_away(state)


def close_ssh(state: State, timeout_s: float = 5.0) -> None:
    """Connections that Ansible keeps open for the next task are processes too. One that does not hear ends by
    itself when its node is gone."""
    for path in state.ssh_sockets.glob("*") if state.ssh_sockets.is_dir() else ():
        command = ["ssh", "-o", f"ControlPath={path}", "-O", "exit", "fog"]
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(command, capture_output=True, check=False, timeout=timeout_s)


def wait_for_ssh(definition: Definition, state: State, patience_s: float) -> None:
    deadline = time.monotonic() + patience_s
    network = state.network()
    waiting = list(definition.nodes)
    while waiting:
        waiting = [node for node in waiting if not _greets(network, node.address)]
        if not waiting:
            return
        if time.monotonic() > deadline:
            break
        running: dict[str, Any] = state.ask_supervisor({})["nodes"]
        dead = [node for node in waiting if not running.get(node.name)]
        if dead:
            waiting = dead
            break
        time.sleep(0.1)
    name = waiting[0].name
    log = state.node(name) / "console.log"
    raise FogscaleError(
        f"node {name} does not answer: its console says '{last_line(log)}' (all of it: {log}); run the same "
        f"command again, and if that does not help, 'fogscale testbed down' before it"
    )


def _greets(network: Path, address: str) -> bool:
    try:
        with namespaces.connect(network, address, 22, timeout_s=1.0) as connection:
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False


def last_line(log: Path) -> str:
    with suppress(OSError):
        lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
        return lines[-1] if lines else "nothing"
    return "nothing"
