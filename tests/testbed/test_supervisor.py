"""Emulated nodes without Ansible: what is left when something dies, and how a second run finishes."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

from controller.testbeds.fog.definition import Definition, EmulatedNode
from controller.testbeds.fog.nodes import bring_up, take_down
from controller.testbeds.fog.state import State
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


def traces_of(state: State, node: str) -> list[str]:
    from controller.testbeds.fog.cgroups import Group

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


def test_the_switch_is_started_again_with_its_round_trips(base: Path, rootfs: Path) -> None:
    from controller.network import RttMatrix
    from controller.testbeds.fog.latency import set_round_trips

    state, matrix = State(base / "t"), RttMatrix(("a", "b"), ((0, 40), (40, 0)))
    try:
        bring_up(definition(rootfs, ONE, TWO), state)
        assert set_round_trips(state, matrix)
        switch = next(
            line.split()[0] for line in traces(state.folder).processes if "testbeds.fog.switch" in line
        )
        os.kill(int(switch), signal.SIGKILL)
        assert not set_round_trips(state, matrix)  # waits for the new one, which has them already
        assert not bring_up(definition(rootfs, ONE, TWO), state).changed
    finally:
        take_down(state)
