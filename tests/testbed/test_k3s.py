"""The roles k3s_server and k3s_agent, as far as they can be tried without k3s itself.

k3s cannot be downloaded where this runs. A stand-in takes the program's place: it tells systemd that it is
ready, and no more. So this is a test of installation, settings, units, a second run and removal; no cluster
comes of it.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from controller.testbeds.fog.builders import sum_of
from tests.support.fog import Fog

pytestmark = pytest.mark.testbed

STAND_IN = '''#!/usr/bin/python3
"""Stands in for k3s in a test of its installation."""
import os, pathlib, signal, socket, sys
if sys.argv[1] in ("server", "agent"):
    if sys.argv[1] == "server":
        kubeconfig = pathlib.Path("/etc/rancher/k3s/k3s.yaml")
        kubeconfig.write_text("clusters:\\n- cluster:\\n    server: https://127.0.0.1:6443\\n")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.connect(os.environ["NOTIFY_SOCKET"])
        notify.send(b"READY=1")
    signal.pause()
'''

# Of docs.k3s.io/cli/server and /cli/agent; a server knows the options of an agent too.
AGENT_OPTIONS = {
    "token", "token-file", "server", "data-dir", "node-name", "with-node-id", "node-label", "node-taint",
    "protect-kernel-defaults", "selinux", "lb-server-port", "pause-image", "snapshotter", "private-registry",
    "node-ip", "node-external-ip", "resolv-conf", "flannel-iface", "flannel-conf", "kubelet-arg",
    "kube-proxy-arg", "bind-address",
}  # fmt: skip
SERVER_OPTIONS = AGENT_OPTIONS | {
    "agent-token", "agent-token-file", "cluster-init", "write-kubeconfig", "write-kubeconfig-mode",
    "https-listen-port", "advertise-address", "advertise-port", "tls-san", "cluster-cidr", "service-cidr",
    "cluster-dns", "cluster-domain", "flannel-backend", "disable", "disable-network-policy",
    "secrets-encryption", "egress-selector-mode",
}  # fmt: skip

PLAY = """
- hosts: server
  gather_facts: false
  vars_files: [{checkout}/playbooks/vars/cluster.yml]
  roles: [k3s_server]
- hosts: services:fog
  gather_facts: false
  vars_files: [{checkout}/playbooks/vars/cluster.yml]
  roles: [k3s_agent]
"""
REMOVAL = """
- hosts: server:services:fog
  gather_facts: false
  tasks:
    - ansible.builtin.include_role:
        name: "{{{{ 'k3s_server' if 'server' in group_names else 'k3s_agent' }}}}"
        tasks_from: reset
"""


@dataclass(frozen=True)
class Nodes:
    fog: Fog
    folder: Path

    def play(self, text: str, **variables: str) -> tuple[int, str, dict[str, int]]:
        """Exit code, output, and how much changed on each node."""
        from controller.testbeds.fog.folders import checkout

        playbook = self.folder / "play.yml"
        playbook.write_text(text.format(checkout=checkout()))
        given = {"fog_nodes": 1, "fog_cluster": "k3s", "fog_artifact_names": [], **variables}
        done = self.fog.playbook(str(playbook), "-e", json.dumps(given))
        counts = re.findall(r"^(\w+) +: ok=\d+ +changed=(\d+)", done.stdout, re.MULTILINE)
        changed = {name: int(count) for name, count in counts if int(count)}
        return done.returncode, done.stdout + done.stderr, changed

    @property
    def program(self) -> dict[str, str]:
        file = self.folder / "stand-in"
        file.write_text(STAND_IN)
        return {"k3s_server_binary_file": str(file), "k3s_agent_binary_file": str(file)}


@pytest.fixture(scope="module")
def nodes(can_emulate: None) -> Iterator[Nodes]:
    """Three nodes of their own: k3s and upstream Kubernetes do not share any."""
    folder = Path(tempfile.mkdtemp(prefix="k3s-", dir="/tmp"))
    nodes = Nodes(Fog(folder), folder)
    try:
        done = nodes.fog.playbook(
            "playbooks/nodes.yml", "-e", "{fog_nodes: 1, fog_artifact_names: [], emulated_memory_mb: 256}"
        )
        assert done.returncode == 0, done.stdout
        yield nodes
    finally:
        nodes.fog.playbook("playbooks/teardown.yml", "-e", "{fog_nodes: 1, fog_artifact_names: []}")
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def installed(nodes: Nodes) -> Nodes:
    code, output, changed = nodes.play(PLAY, **nodes.program)
    assert code == 0, output
    assert set(changed) == {"server1", "services1", "fog1"}
    return nodes


def ask(nodes: Nodes, name: str, command: str) -> str:
    from controller.testbeds.fog.manifest import ManifestNode
    from controller.testbeds.fog.probe import ask as told
    from controller.testbeds.fog.probe import shell

    addresses = {"server1": "10.77.0.1", "services1": "10.77.0.2", "fog1": "10.77.0.11"}
    state = nodes.fog.state
    node = ManifestNode(name, "", addresses[name], "root", str(state.key), str(state.known_hosts))
    with shell(node, state.network()) as client:
        return told(client, command)


def test_settings_use_only_options_that_k3s_documents(installed: Nodes) -> None:
    server = yaml.safe_load(ask(installed, "server1", "cat /etc/rancher/k3s/config.yaml"))
    agent = yaml.safe_load(ask(installed, "fog1", "cat /etc/rancher/k3s/config.yaml"))
    assert set(server) <= SERVER_OPTIONS
    assert set(agent) <= AGENT_OPTIONS
    assert server["node-label"] == ["fogscale.io/role=server"]
    assert agent["node-label"] == ["fogscale.io/role=fog"]
    assert agent["server"] == "https://10.77.0.1:6443"
    assert (server["bind-address"], agent["node-ip"]) == ("10.77.0.1", "10.77.0.11")


def test_systemd_finds_nothing_wrong_with_the_units_and_runs_them(installed: Nodes) -> None:
    for name, unit in (("server1", "k3s"), ("fog1", "k3s-agent")):
        assert ask(installed, name, f"systemd-analyze verify {unit}.service 2>&1") == ""
        assert (
            ask(installed, name, f"systemctl is-active {unit}; systemctl is-enabled {unit}")
            == "active\nenabled\n"
        )


def test_all_nodes_have_the_same_secret_which_nobody_else_can_read(installed: Nodes) -> None:
    tokens = {ask(installed, name, "cat /etc/rancher/k3s/token") for name in ("server1", "services1", "fog1")}
    kept = installed.fog.state.folder / "secrets/k3s_token"
    assert tokens == {kept.read_text().strip()}
    assert len(tokens.pop()) == 48
    assert kept.stat().st_mode & 0o777 == 0o600
    modes = ask(installed, "fog1", "stat -c %a /etc/rancher/k3s/token /etc/rancher/k3s/config.yaml")
    assert modes.split() == ["600", "600"]


def test_the_kubeconfig_leads_to_the_server(installed: Nodes) -> None:
    kubeconfig = installed.fog.state.folder / "kubeconfig"
    assert "server: https://10.77.0.1:6443" in kubeconfig.read_text()
    assert kubeconfig.stat().st_mode & 0o777 == 0o600


def test_a_second_run_changes_nothing_and_another_program_restarts_it(installed: Nodes) -> None:
    code, output, changed = installed.play(PLAY, **installed.program)
    assert (code, changed) == (0, {}), output
    other = installed.folder / "other"
    other.write_text(STAND_IN + "# newer\n")
    before = ask(installed, "fog1", "systemctl show -p MainPID k3s-agent")
    code, output, changed = installed.play(
        PLAY, k3s_server_binary_file=str(other), k3s_agent_binary_file=str(other)
    )
    assert code == 0, output
    assert set(changed) == {"server1", "services1", "fog1"}
    assert ask(installed, "fog1", "systemctl show -p MainPID k3s-agent") != before


def test_a_program_with_another_sum_is_refused_before_it_is_copied(installed: Nodes) -> None:
    before = ask(installed, "server1", "sha256sum /usr/local/bin/k3s")
    wrong = installed.folder / "wrong"
    wrong.write_text("not k3s")
    code, output, changed = installed.play(
        PLAY, k3s_server_binary_file=str(wrong), k3s_server_sha256="ab" * 32, k3s_agent_binary_file=str(wrong)
    )
    assert code != 0
    assert f"wrong has the SHA-256 {sum_of(wrong)}, not abab" in " ".join(output.split())
    assert changed == {}
    assert ask(installed, "server1", "sha256sum /usr/local/bin/k3s") == before


def test_removal_leaves_nothing_and_can_be_repeated(installed: Nodes) -> None:
    code, output, changed = installed.play(REMOVAL)
    assert code == 0, output
    assert changed == {"server1": 1, "services1": 1, "fog1": 1}
    for name in ("server1", "fog1"):
        left = ask(
            installed, name,
            "ls -d /usr/local/bin/k3s /etc/rancher/k3s /var/lib/rancher/k3s 2>/dev/null; "
            "ls /etc/systemd/system/ | grep k3s; systemctl list-units --all --no-legend 'k3s*'; "
            "pgrep -f '^/usr/bin/python3 /usr/local/bin/k3s' || true",
        )  # fmt: skip
        assert left == ""
    assert installed.play(REMOVAL)[2] == {}
