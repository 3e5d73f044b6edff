from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fog.emulation.definition import Definition, EmulatedNode, Transition, transition
from fogscale.errors import FogscaleError

A, B, C = (EmulatedNode(name, f"10.77.0.{i}", 1.0, 512) for i, name in enumerate("abc", start=1))
NOW = Definition((A, B), "/rootfs", own_folders=("/var/lib/containerd",), shared_folders={"/opt": "/srv"})
BOTH = {"a", "b"}


@pytest.mark.parametrize(
    ("now", "running", "wanted", "expected"),
    [
        pytest.param(None, set(), NOW, Transition(start=("a", "b"), rewire=True), id="everything is new"),
        pytest.param(NOW, BOTH, NOW, Transition(), id="nothing to do"),
        pytest.param(NOW, {"a"}, NOW, Transition(stop=("b",), start=("b",)), id="a dead node returns"),
        pytest.param(NOW, BOTH, replace(NOW, nodes=(A, B, C)),
                     Transition(start=("c",), rewire=True), id="more"),
        pytest.param(NOW, BOTH, replace(NOW, nodes=(A,)),
                     Transition(stop=("b",), rewire=True), id="one less"),
        pytest.param(
            NOW, BOTH, replace(NOW, nodes=(A, replace(B, cpus=0.5))), Transition(limit=("b",)),
            id="limits change while the node runs",
        ),
        pytest.param(
            NOW, BOTH, replace(NOW, nodes=(A, replace(B, address="10.77.0.9"))),
            Transition(stop=("b",), start=("b",)),
            id="another address needs a restart",
        ),
        pytest.param(
            NOW, BOTH, replace(NOW, rootfs="/other"), Transition(stop=("a", "b"), start=("a", "b")),
            id="another root file system restarts all",
        ),
        pytest.param(NOW, BOTH, replace(NOW, fabric="bridge"), Transition(rebuild=True), id="another fabric"),
        pytest.param(NOW, BOTH, replace(NOW, network="10.78.0.0/24"),
                     Transition(rebuild=True), id="other network"),
    ],
)  # fmt: skip
def test_transition(
    now: Definition | None, running: set[str], wanted: Definition, expected: Transition
) -> None:
    assert transition(now, running, wanted) == expected


def test_a_definition_survives_its_journey_to_the_supervisor() -> None:
    assert Definition.from_json(NOW.to_json()) == NOW


def test_a_node_keeps_its_hardware_address_and_shares_it_with_nobody() -> None:
    assert A.hardware_address == "02:f0:0a:4d:00:01"
    assert replace(A, name="other", cpus=9.0).hardware_address == A.hardware_address != B.hardware_address


def test_the_machine_takes_the_last_address_of_the_network() -> None:
    assert NOW.control_address == "10.77.0.254"
    assert replace(NOW, network="10.5.0.0/16").control_address == "10.5.255.254"


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "a\nlink del eth0"}, {"name": "a;b"}, {"address": "1.2.3.4; reboot"},
        {"cpus": float("nan")}, {"cpus": float("inf")}, {"memory_mb": 0},
    ],
)  # fmt: skip
def test_a_node_that_could_say_more_than_a_name_an_address_and_a_size_is_refused(
    changes: dict[str, Any],
) -> None:
    with pytest.raises(FogscaleError):
        replace(A, **changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"network": "10.77.0.0/24;x"}, {"rootfs": "/srv/a:b"}, {"own_folders": ("/var/lib/x,y",)},
        {"shared_folders": {"/opt/a:b": "/srv"}}, {"shared_folders": {"/opt": "/srv/a b"}},
    ],
)  # fmt: skip
def test_a_folder_or_network_with_a_meaning_for_mounts_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(FogscaleError):
        replace(NOW, **changes)


def test_an_unknown_fabric_is_refused() -> None:
    with pytest.raises(FogscaleError, match="did you mean switch"):
        Definition((A,), "/rootfs", fabric="swich")
