"""What node_baseline promises, asked on the nodes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from testinfra.host import Host

pytestmark = pytest.mark.testbed

NODES = ("server1", "services1", "fog1")
Hosts = Callable[[str], Host]


@pytest.mark.parametrize("name", NODES)
def test_sshd_runs_and_is_told_to_accept_keys_only(host: Hosts, name: str) -> None:
    node = host(name)
    assert node.service("ssh").is_running
    told = node.run("sshd -T").stdout.splitlines()
    assert {"passwordauthentication no", "permitrootlogin without-password", "x11forwarding no"} <= set(told)


@pytest.mark.parametrize("name", NODES)
def test_nodes_reach_each_other_by_name(host: Hosts, name: str) -> None:
    for other in NODES:
        assert host(name).addr(other).is_resolvable
        assert host(name).run(f"ping -c 1 -W 2 {other}").rc == 0


def test_there_is_no_swap(host: Hosts) -> None:
    assert host("fog1").file("/proc/swaps").content_string.count("\n") == 1


def test_services_of_packages_wait_for_their_roles(host: Hosts, rootfs: Path) -> None:
    for package in ("containerd", "prometheus", "prometheus-node-exporter"):
        assert host("services1").package(package).is_installed
        links = [folder / f"{package}.service" for folder in rootfs.glob("etc/systemd/system/*.wants")]
        assert len(links) > 1
        assert not any(link.is_symlink() for link in links)  # they dangle here: exists() would not see them


def test_containers_get_a_file_system_of_their_own(host: Hosts) -> None:
    """containerd cannot lay its overlays on the node's overlay."""
    assert host("fog1").mount_point("/var/lib/containerd").filesystem != "overlay"
    assert host("fog1").mount_point("/").filesystem == "overlay"
