"""Emulated nodes without Ansible: what is left when something dies, and how a second run finishes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from pathlib import Path

import pytest

from fog.emulation.definition import Definition, EmulatedNode
from fog.emulation.nodes import bring_up, take_down
from fog.emulation.state import State
from fogscale.errors import FogscaleError
from tests.support.fog import left_after, traces

pytestmark = pytest.mark.testbed

ONE, TWO, THREE = (
    EmulatedNode(name, f"10.99.0.{i}", 1.0, 256) for i, name in enumerate(("a", "b", "c"), start=1)
)


def definition(rootfs: Path, *nodes: EmulatedNode) -> Definition:
    return Definition(nodes, str(rootfs), network="10.99.0.0/24")


@pytest.mark.parametrize("who", ["keeper", "init"])
def test_kill_nine_of_either_parent_leaves_nothing_and_the_next_run_goes_on(
    base: Path, rootfs: Path, who: str
) -> None:
    state, wanted = State(base / "t"), definition(rootfs, ONE, TWO)
    before = traces(base)
    try:
        assert bring_up(wanted, state).started == ("a", "b")
        assert set(traces(base).since(before)) >= {
            "processes",
            "namespaces",
            "cgroups",
        }  # the traces would be seen
        (state.node("a") / "upper/kept").write_text("by the disk")
        os.kill(json.loads(state.processes.read_text())[who], signal.SIGKILL)
        assert left_after(base, before) == {}
        assert bring_up(wanted, state).started == ("a", "b")
        assert (state.node("a") / "upper/kept").exists()
        assert not bring_up(wanted, state).changed
    finally:
        take_down(state)
    assert left_after(base, before) == {}


def test_nodes_come_go_and_return_one_by_one(base: Path, rootfs: Path) -> None:
    state = State(base / "t")
    before = traces(base)
    try:
        assert bring_up(definition(rootfs, ONE, TWO), state).started == ("a", "b")
        assert bring_up(definition(rootfs, ONE, TWO, THREE), state).started == ("c",)
        smaller = bring_up(definition(rootfs, ONE, THREE), state)
        assert (smaller.started, smaller.stopped) == ((), ("b",))
        assert not state.node("b").exists()
        shutdown = next(
            process
            for process in map(int, traces_of(state, "a"))
            if b"systemd-nspawn" in Path(f"/proc/{process}/cmdline").read_bytes()
        )
        os.kill(shutdown, signal.SIGKILL)
        deadline = time.monotonic() + 10
        while state.ask_supervisor({})["nodes"]["a"] and time.monotonic() < deadline:
            time.sleep(0.05)
        again = bring_up(definition(rootfs, ONE, THREE), state)
        assert again.started == ("a",)
    finally:
        assert take_down(state)
    assert not take_down(state)
    assert left_after(base, before) == {}


def test_a_first_attempt_that_failed_half_way_is_made_good_by_the_next(
    base: Path, rootfs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel refuses one cable, after others are laid: its name is made too long on the way."""
    ip, real = tmp_path / "ip", f'{shutil.which("ip")} "$@"'
    ip.write_text(
        f"""#!/bin/sh
for last; do :; done
[ "$last" = - ] || exec {real}
sed s/p-refused/p-refused-by-kernel/ | {real}
"""
    )
    ip.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    state, before = State(base / "t"), traces(base)
    refused = EmulatedNode("refused", "10.99.0.9", 1.0, 256)
    try:
        for _ in range(2):
            with pytest.raises(FogscaleError, match=r"'ip link add p-refused .*' failed: .*: fix that"):
                bring_up(definition(rootfs, ONE, refused), state)
        assert bring_up(definition(rootfs, ONE), state).started == ("a",)
        with pytest.raises(FogscaleError, match="p-refused"):
            bring_up(definition(rootfs, ONE, refused), state)  # also where others run already
        assert bring_up(definition(rootfs, ONE, TWO), state).started == ("b",)
    finally:
        take_down(state)
    assert left_after(base, before) == {}


def traces_of(state: State, node: str) -> list[str]:
    from fog.emulation.cgroups import Group

    return [str(process) for process in Group(state.group).processes(node)]


def test_a_bridge_joins_the_nodes_where_the_kernel_makes_the_latency(base: Path, rootfs: Path) -> None:
    state = State(base / "t")
    bridged = Definition((ONE, TWO), str(rootfs), network="10.99.0.0/24", fabric="bridge")
    try:
        bring_up(bridged, state)  # it answers only when ssh does, across the bridge
        assert state.ask_supervisor({})["switch"] is False
        assert bring_up(definition(rootfs, ONE, TWO), state).started == ("a", "b")  # another fabric: all anew
        assert state.ask_supervisor({})["switch"] is True
    finally:
        take_down(state)


def switch_of(state: State) -> int:
    """Other testbeds may have theirs."""
    (process,) = (
        line.split()[0]
        for line in traces(state.folder).processes
        if "fog.network.switch" in line and str(state.folder) in line
    )
    return int(process)


def test_the_switch_is_started_again_with_its_round_trips(base: Path, rootfs: Path) -> None:
    from controller.network import RttMatrix
    from fog.network.latency import set_round_trips

    state, matrix = State(base / "t"), RttMatrix(("a", "b"), ((0, 40), (40, 0)))
    try:
        bring_up(definition(rootfs, ONE, TWO), state)
        assert set_round_trips(state, matrix)
        switch = switch_of(state)
        os.kill(switch, signal.SIGKILL)
        assert not set_round_trips(state, matrix)  # waits for the new one, which has them already
        assert switch_of(state) != switch
        assert not bring_up(definition(rootfs, ONE, TWO), state).changed
    finally:
        take_down(state)


def test_a_switch_that_cannot_start_is_tried_again_but_not_without_pause(base: Path, rootfs: Path) -> None:
    """It finds a folder where its socket belongs."""
    from controller.network import RttMatrix
    from fog.network.latency import set_round_trips

    state = State(base / "t")
    state.create()
    (state.folder / "switch.sock").mkdir()
    try:
        with pytest.raises(FogscaleError, match="node a does not answer"):
            bring_up(definition(rootfs, ONE), state, patience_s=12.0)
        attempts = state.supervisor_log.read_text().count("the switch ended with 1")
        assert 3 <= attempts <= 15
        (state.folder / "switch.sock").rmdir()
        assert not bring_up(definition(rootfs, ONE), state).started
        assert set_round_trips(state, RttMatrix(("a",), ((0,),))) is False
    finally:
        take_down(state)
