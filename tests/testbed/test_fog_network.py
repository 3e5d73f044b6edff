"""What fog_network refuses before anything is changed, asked on the nodes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.fog import Fog, changes_in

pytestmark = pytest.mark.testbed

PREFLIGHT = """
- hosts: fog1
  gather_facts: false
  tasks:
    - ansible.builtin.include_role: {name: fog_network, tasks_from: preflight}
"""


def refused(fog: Fog, folder: Path, interface: str) -> str:
    playbook = folder / "preflight.yml"
    playbook.write_text(PREFLIGHT)
    given = f"{{fog_nodes: 1, fog_network_backend: netem, fog_network_interface: {interface}}}"
    done = fog.playbook(str(playbook), "-e", given)
    assert changes_in(done.stdout) == {}
    return " ".join(done.stdout.split()) if done.returncode else ""


def test_an_interface_that_is_not_there_is_named(fog: Fog, tmp_path: Path) -> None:
    assert "fog1 has no interface wlan7: name the one towards the other nodes" in refused(
        fog, tmp_path, "wlan7"
    )


def test_a_kernel_without_netem_is_refused(fog: Fog, tmp_path: Path) -> None:
    """Whatever this machine's kernel has, the nodes have."""
    trial = "tc qdisc add dev lo root handle 1: htb && tc qdisc add dev lo parent 1: netem"
    has_netem = subprocess.run(["unshare", "--net", "sh", "-c", trial], check=False, capture_output=True)
    words = refused(fog, tmp_path, "eth0")
    assert bool(words) == (has_netem.returncode != 0)
    assert not words or "the kernel of fog1 has no netem, htb or u32 (" in words
