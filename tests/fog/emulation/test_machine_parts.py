"""Cgroups, ports, the root file system's definition, the state folder: what can be judged without root."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import shutil
import stat
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import IO

import pytest

from fog import manifest
from fog.artifacts import rootfs
from fog.artifacts import store as artifacts
from fog.checks.ports import port_conflicts
from fog.emulation import nodes
from fog.emulation import state as states
from fog.emulation.cgroups import DEVICES, Group, limits
from fog.emulation.definition import Definition, EmulatedNode
from fog.emulation.state import State, remove_tree, started
from fog.emulation.supervisor import pause_s
from fog.folders import checkout
from fog.interruption import processes
from fogscale.errors import FogscaleError


def test_limits_are_written_in_the_words_of_each_cgroup_version() -> None:
    assert limits(0.5, 1024, v2=True) == {
        "cpu.max": "50000 100000",
        "memory.max": "1073741824",
        "memory.swap.max": "0",
    }
    assert limits(2.0, 512, v2=False) == {
        "cpu/cpu.cfs_period_us": "100000",
        "cpu/cpu.cfs_quota_us": "200000",
        "memory/memory.limit_in_bytes": "536870912",
        "memory/memory.swappiness": "0",
    }


def test_version_two_passes_controllers_down_before_it_sets_limits(tmp_path: Path) -> None:
    """On a folder that looks like cgroup v2: this shows what is written, not that a kernel obeys."""
    for folder in (tmp_path, tmp_path / "fog"):
        folder.mkdir(exist_ok=True)
        (folder / "cgroup.controllers").write_text("cpu memory pids hugetlb\n")
    (tmp_path / "fog/fog2").mkdir()
    (tmp_path / "fog/fog2/memory.swap.max").write_text("max")
    Group("fog", tmp_path).create("fog1", 1.0, 256)
    Group("fog", tmp_path).create("fog2", 1.0, 256)
    assert not (tmp_path / "fog/fog1/memory.swap.max").exists()  # a kernel that knows no swap
    assert (tmp_path / "fog/fog2/memory.swap.max").read_text() == "0"
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+cpu +memory +pids"
    assert (tmp_path / "fog/cgroup.subtree_control").read_text() == "+cpu +memory +pids"
    assert (tmp_path / "fog/fog1/cpu.max").read_text() == "100000 100000"
    assert (tmp_path / "fog/fog1/memory.max").read_text() == str(256 << 20)


def test_version_one_lists_the_devices_before_there_is_a_node(tmp_path: Path) -> None:
    """On a folder that looks like cgroup v1; tests/testbed/test_node_limits.py shows that a kernel obeys."""
    for tree in ("cpu", "memory", "devices"):
        (tmp_path / tree).mkdir()
    Group("fog", tmp_path).create("fog1", 1.0, 256)
    assert (tmp_path / "devices/fog/devices.deny").read_text() == "a"
    (tmp_path / "devices/fog/devices.deny").unlink()
    Group("fog", tmp_path).create("fog2", 1.0, 256)
    assert not (
        tmp_path / "devices/fog/devices.deny"
    ).exists()  # once: the kernel takes it without nodes only
    assert not any("rw" in each for each in DEVICES if each.startswith("b") or "1:11" in each)


SS = """\
LISTEN 0 128 0.0.0.0:22 0.0.0.0:* users:(("sshd",pid=1,fd=3))
LISTEN 0 4096 *:6443 *:* users:(("k3s-server",pid=2,fd=9))
LISTEN 0 50 [::ffff:10.0.0.1]:9092 *:* users:(("java",pid=7,fd=1))
LISTEN 0 50 [::ffff:10.0.0.1]:9404 *:* users:(("java",pid=70,fd=1))
LISTEN 0 50 0.0.0.0:9090 *:* users:(("nginx",pid=8,fd=1),("nginx",pid=9,fd=1))
LISTEN 0 50 127.0.0.1:9000 0.0.0.0:*
"""


UNITS = {"1": "ssh.service", "2": "k3s.service", "7": "kafka.service", "70": "tomcat.service"}


def test_a_port_in_other_hands_is_named_with_its_holder() -> None:
    """Two services can be the same program."""
    kafka = ["kafka.service"]
    wanted = {"6443": ["k3s.service"], 9404: kafka, 9092: kafka, 9000: ["minio.service"], 9090: [], 8081: []}
    assert port_conflicts(SS, UNITS, wanted) == [
        "port 9000 is in use by a program it does not name: stop it, or give the service another port",
        "port 9090 is in use by nginx: stop it, or give the service another port",
        "port 9404 is in use by java (tomcat.service): stop it, or give the service another port",
    ]


def test_a_root_file_system_is_kept_by_what_it_holds() -> None:
    recipe = rootfs.Recipe("bookworm", ("systemd", "curl"))
    assert replace(recipe, packages=("curl", "systemd", "curl")).key == recipe.key
    assert replace(recipe, mirror="file:///mirror").key == recipe.key
    others = [replace(recipe, packages=("systemd",)), replace(recipe, suite="trixie"),
              replace(recipe, disabled_units=("x.service",))]  # fmt: skip
    assert len({each.key for each in (recipe, *others)}) == 4


def test_an_option_is_no_package() -> None:
    assert rootfs.packages_of(["libstdc++6", "g++-12.1"]) == ("libstdc++6", "g++-12.1")
    for name in ("--hook=rm", "a b", "", "x;y", "a,b"):
        with pytest.raises(FogscaleError, match="is no name of a Debian package"):
            rootfs.packages_of([name])


def test_a_built_root_file_system_is_used_again_without_a_build(tmp_path: Path) -> None:
    recipe = rootfs.Recipe("bookworm", ("systemd",))
    recipe.folder(tmp_path).mkdir()
    assert rootfs.ensure(recipe, tmp_path) == (recipe.folder(tmp_path), False)


def test_a_failed_build_says_why_and_leaves_nothing_that_counts_as_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = ["sh", "-c", "echo E: Unable to locate package nonsense; exit 25"]
    monkeypatch.setattr(rootfs, "check_tools", lambda: None)
    monkeypatch.setattr(rootfs, "bootstrap_command", lambda *_: failing)
    recipe = rootfs.Recipe("bookworm", ("nonsense",))
    with pytest.raises(FogscaleError, match="Unable to locate package nonsense"):
        rootfs.ensure(recipe, tmp_path)
    assert not recipe.folder(tmp_path).exists()


def test_who_is_not_root_is_told_how_to_be_it_before_anything_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of all that is missing: the cheapest artifact is not built either."""
    monkeypatch.setattr(rootfs.os, "geteuid", lambda: 1000)
    shelf = artifacts.store(checkout(), tmp_path)
    with pytest.raises(FogscaleError, match="is built by root: run the same command with sudo"):
        artifacts.collect(shelf, ["flink_placement", artifacts.ROOTFS])
    assert list(tmp_path.iterdir()) == []


def test_the_state_folder_belongs_to_its_owner_alone(tmp_path: Path) -> None:
    state = State(tmp_path / "deep" / "local")
    state.create()
    assert stat.S_IMODE(state.folder.stat().st_mode) == 0o700
    assert State(tmp_path / "deep" / "local").group == state.group != State(tmp_path / "other").group


def test_two_commands_at_once_do_not_build_into_each_other(tmp_path: Path) -> None:
    state = State(tmp_path / "local")
    with state.locked(), pytest.raises(FogscaleError, match="another command is working"), state.locked():
        pass
    with state.locked():
        assert list(tmp_path.iterdir()) == [tmp_path / ".local.lock"]
    assert list(tmp_path.iterdir()) == []


def test_a_lock_that_its_holder_removed_while_we_waited_for_it_locks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opened before it was removed: another command may have made and locked a new one since."""
    state, flock = State(tmp_path / "local"), fcntl.flock
    removed = []

    def late(file: IO[str], operation: int) -> None:
        if not removed:
            removed.append((tmp_path / ".local.lock").unlink())
        flock(file, operation)

    monkeypatch.setattr(states.fcntl, "flock", late)
    with state.locked(), pytest.raises(FogscaleError, match="another command is working"), state.locked():
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_supervisor_that_does_not_answer_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else it would come up later, beside the next one."""
    state = State(tmp_path / "local")
    state.create()
    silent = tmp_path / "python"
    silent.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/started\necho booting\nsleep 300\n")
    silent.chmod(0o755)
    monkeypatch.setattr(nodes.sys, "executable", str(silent))
    with pytest.raises(FogscaleError, match="did not start: booting"):
        nodes._start_supervisor(state, patience_s=8.0)
    group = int((tmp_path / "started").read_text())
    assert [each for each in processes() if each.session == group] == []


def test_a_switch_that_dies_young_is_started_again_ever_later() -> None:
    pauses = [0.0]
    for _ in range(7):
        pauses.append(pause_s(lived_s=0.2, before_s=pauses[-1]))
    assert pauses == [0, 0.1, 0.2, 0.4, 0.8, 1.6, 2, 2]
    assert pause_s(lived_s=3600, before_s=2) == 0


def test_a_connection_that_does_not_close_does_not_stop_a_teardown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = State(tmp_path / "local")
    state.create()
    (state.ssh_sockets / "fog1").touch()
    (tmp_path / "ssh").write_text(f"#!/bin/sh\ntouch {tmp_path}/asked\nexec sleep 300\n")
    (tmp_path / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    nodes.close_ssh(state, timeout_s=8.0)  # a shell may take a while to start on a busy machine
    assert (tmp_path / "asked").exists()


def test_a_checkout_with_odd_characters_in_its_path_is_quoted_for_ssh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By ssh itself, which reads the file and then has a shell run the command."""
    monkeypatch.setattr(nodes.sys, "executable", "/opt/my venv/50%/python")
    definition = Definition((EmulatedNode("fog1", "10.77.0.11", 1.0, 256),), "/rootfs")
    config = tmp_path / "config"
    config.write_text(nodes.ssh_config(definition, State(tmp_path / "local")))
    command = ["ssh", "-G", "-F", str(config), "fog1"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    (line,) = [line for line in told.splitlines() if line.startswith("proxycommand ")]
    words = shlex.split(line.replace("%%", "%"))
    assert "/opt/my venv/50%/python" in words
    assert words[-2:] == ["%h", "%p"]


def test_a_number_that_another_process_took_over_is_not_the_supervisor(tmp_path: Path) -> None:
    state = State(tmp_path)
    assert state.supervisor() is None
    mine = {"keeper": 1, "init": os.getpid(), "init_started": started(os.getpid())}
    state.processes.write_text(json.dumps(mine))
    assert state.supervisor() == os.getpid()
    state.processes.write_text(json.dumps({**mine, "init_started": 1}))
    assert state.supervisor() is None


def test_asking_nodes_that_do_not_run_says_how_to_start_them(tmp_path: Path) -> None:
    with pytest.raises(FogscaleError, match="fogscale testbed up"):
        State(tmp_path).ask_supervisor({})
    with pytest.raises(FogscaleError, match="fogscale testbed up"):
        State(tmp_path).network()


def test_a_folder_with_something_mounted_inside_is_not_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "rmtree", lambda _: pytest.fail("would have removed it"))
    with pytest.raises(FogscaleError, match="something is mounted on /proc"):
        remove_tree(Path("/proc"))


def test_a_testbed_that_is_not_built_says_how_to_build_it(tmp_path: Path) -> None:
    with pytest.raises(FogscaleError, match="fogscale testbed up --testbed pi"):
        manifest.read(tmp_path, "pi")
