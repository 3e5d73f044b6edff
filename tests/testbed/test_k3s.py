"""The roles k3s_server and k3s_agent, as far as they can be tried without k3s itself.

k3s cannot be downloaded where this runs. A stand-in takes the program's place: it tells systemd that it is
ready, tells its version and answers as kubectl does when nodes are labelled, waited for or forgotten, and no
more. So this is a test of installation, settings, units, a second run and removal; no cluster comes of it.
"""

from __future__ import annotations

import json
import platform
import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path

import pytest
import yaml

from fog.artifacts.builders import sum_of
from tests.support.fog import Fog, changes_in
from tests.support.services import eventually
from tests.support.web import numbers

pytestmark = pytest.mark.testbed

STAND_IN = '''#!/usr/bin/python3
"""Stands in for k3s in a test of its installation."""
import os, pathlib, signal, socket, sys, time
labels, late = pathlib.Path("/var/lib/rancher/k3s/labels"), pathlib.Path("/run/late")
if sys.argv[1] == "--version":
    print("k3s version VERSION (stand-in)")
if sys.argv[1:4] == ["kubectl", "label", "--overwrite"]:
    kept = labels / sys.argv[5]
    labels.mkdir(parents=True, exist_ok=True)
    wanted = " ".join(sys.argv[6:])
    is_known = kept.exists() and kept.read_text() == wanted
    print(f"node/{sys.argv[5]} " + ("not labeled" if is_known else "labeled"))
    kept.write_text(wanted)
if sys.argv[1:3] == ["kubectl", "wait"] and late.exists() and f"node/{late.read_text().strip()}" in sys.argv:
    sys.exit("error: timed out waiting for the condition")
if sys.argv[1:4] == ["kubectl", "get", "nodes"]:
    print(*(each.name for each in labels.iterdir()))
if sys.argv[1:4] == ["kubectl", "delete", "node"]:
    [(labels / name).unlink() for name in sys.argv[4:]]
if sys.argv[1] in ("server", "agent"):
    while sys.argv[1] == "agent" and late.exists():
        time.sleep(0.1)
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
- hosts: server:services:fog
  gather_facts: false
  any_errors_fatal: true
  vars_files: [{checkout}/playbooks/vars/artifacts.yml, {checkout}/playbooks/vars/cluster.yml]
  tasks:
    - ansible.builtin.include_tasks: {checkout}/playbooks/tasks/k3s.yml
"""
PREFLIGHT = """
- hosts: server:services:fog
  gather_facts: false
  vars_files: [{checkout}/playbooks/vars/artifacts.yml, {checkout}/playbooks/vars/cluster.yml]
  tasks:
    - ansible.builtin.include_role:
        name: "{{{{ 'k3s_server' if 'server' in group_names else 'k3s_agent' }}}}"
        tasks_from: preflight
"""
REMOVAL = """
- hosts: server:services:fog
  gather_facts: false
  tasks:
    - ansible.builtin.include_role:
        name: "{{{{ 'k3s_server' if 'server' in group_names else 'k3s_agent' }}}}"
        tasks_from: reset
"""

# Where k3s imports them from.
IMAGES = Path("/var/lib/rancher/k3s/agent/images/k3s-airgap-images-amd64.tar.zst")


def for_both(**values: str) -> dict[str, str]:
    return {f"{role}_{name}": value for role in ("k3s_server", "k3s_agent") for name, value in values.items()}


@dataclass(frozen=True)
class Nodes:
    fog: Fog
    folder: Path

    def play(self, text: str, **variables: object) -> tuple[int, str, dict[str, int]]:
        """Exit code, output, and how much changed on each node."""
        from fog.folders import checkout

        playbook = self.folder / "play.yml"
        playbook.write_text(text.format(checkout=checkout()))
        given = {"fog_nodes": 1, "fog_cluster": "k3s", "fog_artifact_names": [], **variables}
        done = self.fog.playbook(str(playbook), "-e", json.dumps(given))
        return done.returncode, done.stdout + done.stderr, changes_in(done.stdout)

    def program(self, text: str = "", vouched_for: bool = True) -> dict[str, str]:
        """A stand-in of the pinned version, with images, as files of this machine."""
        from fog.folders import checkout

        pinned = yaml.safe_load((checkout() / "playbooks/vars/artifacts.yml").read_text())["artifacts"]["k3s"]
        file = self.folder / f"stand-in{len(text)}"
        file.write_text(STAND_IN.replace("VERSION", pinned["version"]) + text)
        images = self.folder / IMAGES.name
        images.write_text("images")
        given = for_both(binary_file=str(file), sha256=sum_of(file) if vouched_for else "")
        return given | for_both(images_file=str(images))


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


def test_without_a_way_to_the_release_it_stops_before_anything_is_changed(nodes: Nodes) -> None:
    given = {"fog_nodes": 1, "fog_cluster": "k3s", "fog_artifact_names": [], "emulated_memory_mb": 256}
    done = nodes.fog.playbook("playbooks/nodes.yml", "-e", json.dumps(given))
    assert done.returncode != 0
    # Whoever is heard first ends the run for all.
    assert re.search(r"\b(server1|services1|fog1) cannot download https://", " ".join(done.stdout.split()))
    assert changes_in(done.stdout) == {}


ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
COMPLAINT = f"sudo: unable to resolve host fog1\r\n{platform.machine()}\r\n"


@pytest.mark.parametrize(
    "told",
    [
        pytest.param({}, id="by itself"),
        pytest.param({"k3s_server_told": {"stdout": COMPLAINT}}, id="by a sudo that complains first"),
    ],
)
def test_a_node_without_a_way_to_the_release_says_what_it_needs(
    nodes: Nodes, told: dict[str, object]
) -> None:
    code, output, changed = nodes.play(PREFLIGHT, **told)
    assert code != 0
    words = " ".join(output.split())
    for name, role in (("server1", "k3s_server"), ("fog1", "k3s_agent")):
        assert f"{name} cannot download https://" in words
        assert f"download the release yourself and name it as {role}_binary_file" in words
    assert f"/sha256sum-{ARCHITECTURE}.txt (Status code was -1" in words
    assert changed == {}


@pytest.fixture
def release(nodes: Nodes) -> Iterator[str]:
    """A server in the fog's network whose paths are the numbers that it answers with."""
    with numbers(partial(ask, nodes, "server1"), "10.77.0.1") as address:
        yield address


@pytest.mark.parametrize(
    ("address", "others", "refusal"),
    [
        pytest.param("checksum_url", {}, 403, id="its checksum file"),
        pytest.param("url", for_both(sha256="ab" * 32), 503, id="the program, where its sum is known"),
    ],
)
def test_a_release_counts_as_there_only_if_the_node_is_given_it(
    nodes: Nodes, release: str, address: str, others: dict[str, str], refusal: int
) -> None:
    asked = {f"k3s_server_{address}": f"{release}/200", f"k3s_agent_{address}": f"{release}/{refusal}"}
    code, output, changed = nodes.play(PREFLIGHT, **for_both(version="v0.0.0+k3s1"), **others, **asked)
    assert code != 0
    told = " ".join(output.split())
    assert f"fog1 cannot download {release}/{refusal} (" in told
    assert "server1 cannot" not in told
    assert changed == {}


def test_a_file_that_nobody_vouches_for_is_not_installed(nodes: Nodes) -> None:
    code, output, changed = nodes.play(PREFLIGHT, **nodes.program(vouched_for=False))
    assert code != 0
    for words in ("which no checksum confirms", "as k3s_server_checksum_file", "as k3s_agent_sha256"):
        assert words in " ".join(output.split())
    assert changed == {}


@pytest.mark.parametrize("images", ["images", "others"])
def test_files_are_checked_against_the_checksum_file_of_the_release(nodes: Nodes, images: str) -> None:
    given = nodes.program(vouched_for=False)
    sums = nodes.folder / "sha256sum.txt"
    program = sum_of(Path(given["k3s_server_binary_file"]))
    listed = {"k3s": program, "k3s-arm64": program, IMAGES.name: sha256(images.encode()).hexdigest()}
    sums.write_text("".join(f"{value}  {name}\n" for name, value in listed.items()))
    given |= for_both(checksum_file=str(sums))
    code, output, _ = nodes.play(PREFLIGHT, **given)
    assert (code == 0) == (images == "images"), output
    assert ("tar.zst has the SHA-256 " in " ".join(output.split())) == (images != "images")


@pytest.fixture(scope="module")
def installed(nodes: Nodes) -> Nodes:
    code, output, changed = nodes.play(PLAY, **nodes.program())
    assert code == 0, output
    assert set(changed) == {"server1", "services1", "fog1"}
    return nodes


def ask(nodes: Nodes, name: str, command: str) -> str:
    from fog.checks.probe import ask as told
    from fog.checks.probe import shell
    from fog.manifest import ManifestNode

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
    assert agent["bind-address"] == "10.77.0.11"  # of its kubelet


@pytest.mark.parametrize(("name", "unit"), [("server1", "k3s"), ("fog1", "k3s-agent")])
def test_systemd_finds_nothing_wrong_with_the_units_and_runs_them(
    installed: Nodes, name: str, unit: str
) -> None:
    assert ask(installed, name, f"systemd-analyze verify {unit}.service 2>&1") == ""
    asked = f"systemctl is-active {unit}; systemctl is-enabled {unit}"
    eventually(lambda: ask(installed, name, asked) == "active\nenabled\n")


@pytest.mark.parametrize("name", ["server1", "fog1"])
def test_images_are_where_k3s_imports_them_from(installed: Nodes, name: str) -> None:
    assert ask(installed, name, f"stat -c %a {IMAGES}; cat {IMAGES}") == "644\nimages"


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


@pytest.mark.parametrize("source", ["the same file", "no way to the release"])
def test_a_second_run_changes_nothing(installed: Nodes, source: str) -> None:
    given = installed.program() if source == "the same file" else {}
    for play in [PLAY] if given else [PREFLIGHT, PLAY]:
        code, output, changed = installed.play(play, **given)
        assert (code, changed) == (0, {}), output


def test_another_program_restarts_it(installed: Nodes) -> None:
    before = ask(installed, "fog1", "systemctl show -p MainPID k3s-agent")
    code, output, changed = installed.play(PLAY, **installed.program("# newer\n"))
    assert code == 0, output
    assert set(changed) == {"server1", "services1", "fog1"}
    eventually(lambda: ask(installed, "fog1", "systemctl show -p MainPID k3s-agent") != before)


def test_an_agent_that_cannot_join_ends_the_run_and_the_next_one_finds_it(installed: Nodes) -> None:
    """As where a card was replaced: the server refuses the agent until it has forgotten the node."""
    program = installed.program("# newest\n")
    for name in ("server1", "fog1"):
        ask(installed, name, "echo fog1 > /run/late")
    code, output, _ = installed.play(PLAY, k3s_server_patience_s=5, **program)
    assert code != 0
    words = " ".join(output.split())
    assert "fog1 is not Ready (error: timed out waiting for the condition): look at 'journalctl" in words
    assert "run 'k3s kubectl delete node fog1' on server1 and then site.yml again" in words
    for name in ("server1", "fog1"):
        ask(installed, name, "rm /run/late")
    code, output, changed = installed.play(PLAY, **program)
    assert (code, changed) == (0, {}), output
    eventually(lambda: ask(installed, "fog1", "systemctl is-active k3s-agent || true") == "active\n")


def test_a_node_that_left_the_inventory_leaves_the_cluster(installed: Nodes) -> None:
    ask(installed, "server1", "touch /var/lib/rancher/k3s/labels/fog9")
    assert installed.play(PLAY)[2] == {"server1": 1}
    kept = ask(installed, "server1", "ls /var/lib/rancher/k3s/labels").split()
    assert kept == ["fog1", "server1", "services1"]


def test_other_labels_are_a_change(installed: Nodes) -> None:
    ask(installed, "server1", "echo -n old > /var/lib/rancher/k3s/labels/fog1")
    assert installed.play(PLAY)[2] == {"server1": 1}


def test_a_program_with_another_sum_is_refused_before_it_is_copied(installed: Nodes) -> None:
    before = ask(installed, "server1", "sha256sum /usr/local/bin/k3s")
    wrong = installed.folder / "wrong"
    wrong.write_text("not k3s")
    code, output, changed = installed.play(PLAY, **for_both(binary_file=str(wrong), sha256="ab" * 32))
    assert code != 0
    assert f"wrong has the SHA-256 {sum_of(wrong)}, not abab" in " ".join(output.split())
    assert changed == {}
    assert ask(installed, "server1", "sha256sum /usr/local/bin/k3s") == before


def test_removal_leaves_nothing_and_can_be_repeated(installed: Nodes) -> None:
    # As on a Raspberry Pi, whose only iptables is that of k3s.
    bundled = "/var/lib/rancher/k3s/data/current/bin/aux"
    for name in ("server1", "fog1"):
        ask(
            installed, name,
            f"mkdir -p {bundled} /etc/rancher/node /var/log/pods/one /var/log/containers && "
            f"mv /usr/sbin/iptables-save /usr/sbin/iptables-restore {bundled} && "
            "iptables -N KUBE-SERVICES && iptables -A INPUT -j KUBE-SERVICES && iptables -N OTHERS && "
            "ip link add cni0 type bridge && ip netns add cni-1 && "
            "ip link add veth1 master cni0 type veth peer name eth0 netns cni-1 && "
            "tree=/sys/fs/cgroup; [ ! -d $tree/memory ] || tree=$tree/memory; mkdir -p $tree/kubepods/pod1",
        )  # fmt: skip
    code, output, changed = installed.play(REMOVAL)
    assert code == 0, output
    assert changed == {"server1": 1, "services1": 1, "fog1": 1}
    for name in ("server1", "fog1"):
        left = ask(
            installed, name,
            "ls -d /usr/local/bin/k3s /etc/rancher /var/lib/rancher/* /var/log/pods /var/log/containers; "
            "iptables -S | grep KUBE; iptables -S OTHERS > /dev/null || echo too much; "
            "ip netns; ip -oneline link | grep -E 'cni|veth'; find /sys/fs/cgroup -name 'kubepods*'; "
            "ls /etc/systemd/system/ | grep k3s; systemctl list-units --all --no-legend 'k3s*'; "
            "pgrep -f '^/usr/bin/python3 /usr/local/bin/k3s' || true",
        )  # fmt: skip
        assert left == ""
    assert installed.play(REMOVAL)[2] == {}


def test_teardown_of_real_machines_removes_what_was_copied_to_them(nodes: Nodes) -> None:
    """As if these nodes were Raspberry Pis, on which a services node, a server and a fog node were built."""
    names = ("server1", "services1", "fog1")
    for name in names:
        ask(
            nodes,
            name,
            "mkdir -p /etc/fogscale/flink /opt/fogscale/kafka-1 && touch /etc/fogscale/flink/flink.yaml",
        )
    given = {"fog_nodes": 1, "fog_cluster": "k3s", "fog_emulated": False}
    teardown = ("playbooks/teardown.yml", "--limit", "server:services:fog", "-e", json.dumps(given))
    done = nodes.fog.playbook(*teardown)
    assert done.returncode == 0, done.stdout
    left = "ls -d /etc/fogscale /opt/fogscale /etc/ssh/sshd_config.d/10-fogscale.conf 2> /dev/null; "
    for name in names:
        assert ask(nodes, name, f"{left} grep 'nodes of the fog' /etc/hosts || true") == ""
    again = nodes.fog.playbook(*teardown)
    assert (again.returncode, changes_in(again.stdout)) == (0, {}), again.stdout
