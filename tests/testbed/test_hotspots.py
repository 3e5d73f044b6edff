"""The service that the job lookup asks: fog nodes get an answer, others not even a connection."""

from __future__ import annotations

import pytest

from tests.support.fog import Fog

pytestmark = pytest.mark.testbed

LEAST_MB, MOST_MB = 10, 80


def asked_from(fog: Fog, node: str) -> str:
    address = fog.manifest.addresses["services1"]
    question = f"exec 3<>/dev/tcp/{address}/9870 && echo -73.9857,40.7484 >&3 && head -n 1 <&3"
    return fog.ask(node, f"timeout 4 bash -c '{question}' || echo ended with $?")


def test_a_fog_node_is_told_the_nearest_sight(fog: Fog) -> None:
    assert '"attraction":' in asked_from(fog, "fog1")


def test_another_node_waits_in_vain(fog: Fog) -> None:
    assert asked_from(fog, "server1").split() == ["ended", "with", "124"]
    url = f"http://{fog.manifest.addresses['services1']}:9870/"
    assert fog.enter("curl", "--silent", "--max-time", "3", url).returncode == 28  # no answer in time


def test_it_is_small(fog: Fog) -> None:
    told = fog.ask("services1", "grep VmRSS /proc/$(systemctl show -p MainPID --value hotspots)/status")
    assert LEAST_MB < int(told.split()[1]) / 1024 < MOST_MB
