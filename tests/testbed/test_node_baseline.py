"""What node_baseline promises, asked on the nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from testinfra.host import Host

from tests.support.fog import Fog, changes_in

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
    assert "SwapTotal: 0 kB" in host("fog1").file("/proc/meminfo").content_string


RESET = """
- hosts: fog1
  gather_facts: false
  tasks:
    - ansible.builtin.include_role: {name: node_baseline, tasks_from: reset}
"""


@pytest.fixture
def newer_pi(fog: Fog) -> Iterator[Fog]:
    """fog1 with what Raspberry Pi OS (trixie) and its Imager bring along, as far as files go."""
    fog.ask(
        "fog1",
        "touch /usr/lib/systemd/system-generators/rpi-swap-generator; echo '127.0.1.1 fog1' >> /etc/hosts; "
        "echo '/var/swap none swap sw 0 0' >> /etc/fstab; mkdir -p /etc/cloud; "
        "ln -s /bin/true /usr/bin/cloud-init",
    )
    yield fog
    fog.ask(
        "fog1",
        "rm -rf /usr/lib/systemd/system-generators/rpi-swap-generator /usr/bin/cloud-init; "
        "rm -rf /etc/rpi /etc/cloud; "
        "sed -i '/^127.0.1.1/d' /etc/hosts; sed -i '/swap/d' /etc/fstab",
    )
    again = fog.playbook("playbooks/nodes.yml", "--limit", "localhost,fog1", "-e", "fog_nodes=1")
    assert again.returncode == 0, again.stdout


def test_nothing_brings_swap_or_other_names_with_the_next_boot_until_it_is_undone(
    newer_pi: Fog, tmp_path: Path
) -> None:
    ask = partial(newer_pi.ask, "fog1")
    nodes = ("playbooks/nodes.yml", "--limit", "localhost,fog1", "-e", "fog_nodes=1")
    done = newer_pi.playbook(*nodes)
    assert done.returncode == 0, done.stdout
    assert ask("cat /etc/rpi/swap.conf.d/99-fogscale.conf") == "[Main]\nMechanism=none\n"
    assert ask("grep -c '^/var/swap' /etc/fstab || true").strip() == "0"
    assert ask("ls /etc/cloud").split() == ["cloud-init.disabled"]
    assert ask("getent ahostsv4 fog1").split()[0] == "10.77.0.11"
    again = newer_pi.playbook(*nodes)
    assert "fog1" not in changes_in(again.stdout), again.stdout

    reset = tmp_path / "reset.yml"
    reset.write_text(RESET)
    for expected in ({"fog1"}, set()):
        undone = newer_pi.playbook(str(reset), "-e", "fog_nodes=1")
        assert undone.returncode == 0, undone.stdout
        assert set(changes_in(undone.stdout)) == expected
    assert ask("cat /etc/fstab").splitlines()[-1] == "/var/swap none swap sw 0 0"
    assert ask("getent ahostsv4 fog1").split()[0] == "127.0.1.1"
    assert (
        ask("ls -d /etc/rpi/swap.conf.d /etc/cloud/* /etc/ssh/sshd_config.d/10-* 2>/dev/null || true") == ""
    )


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
