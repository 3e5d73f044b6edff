"""What a run of site.yml does where something was changed, is in the way, was removed or was interrupted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from controller.network import RttMatrix
from fog.folders import checkout
from fog.network.latency import set_round_trips
from tests.support.flink import scale
from tests.support.fog import Fog, changes_in
from tests.support.services import eventually

pytestmark = pytest.mark.testbed

NODES = ("server1", "services1", "fog1")
RESET = """\
- hosts: fog1
  gather_facts: false
  vars_files: [{project}/playbooks/vars/artifacts.yml, {project}/playbooks/vars/cluster.yml]
  tasks:
    - ansible.builtin.include_role: {{name: kubernetes_upstream, tasks_from: reset}}
"""
# Whatever the role put on a node: files, processes (pods too), networks, routes, rules, mounts, cgroups.
LEFT_OVER = """\
ls -d /etc/kubernetes /etc/cni/net.d/10-fogscale.conflist 2>/dev/null
ls -d /var/lib/kubelet/* /var/lib/containerd/* /var/lib/cni 2>/dev/null
ls /etc/systemd/system | grep -E 'kube|pod-routes'
pgrep --list-full 'kubernetes|containerd'
ip -oneline link | grep -E 'cni|veth'
ip netns
ip route | grep -F 10.42.
iptables-save | grep -E 'KUBE-|CNI-'
mount | grep -E '/var/lib/kubelet/pods|/run/containerd/io|/run/netns/cni'
find /sys/fs/cgroup -name 'kubepods*'
true
"""


def is_ready(fog: Fog, node: str) -> bool:
    path = 'jsonpath={.status.conditions[?(@.type=="Ready")].status}'
    return fog.kubectl("get", "node", node, f"--output={path}").stdout == "True"


def test_what_was_changed_on_a_node_is_set_right_again(fog: Fog) -> None:
    """A file gone, a mode too open, units stopped, another gone after a reboot, a strange line, latencies;
    and a file that its service has not read, as where a run was cut off between the two."""
    sshd = "systemctl show --property=MainPID --value ssh"
    before = fog.ask("services1", f"touch /etc/ssh/sshd_config.d/10-fogscale.conf; {sshd}")
    fog.ask("fog1", "rm /etc/ssh/sshd_config.d/10-fogscale.conf; systemctl stop kubelet kube-proxy")
    fog.ask("fog1", "sed -i '/services1/d' /etc/hosts")
    fog.ask("services1", "chmod 644 /etc/minio/environment; systemctl disable --quiet kafka")
    fog.ask("services1", "echo '# mine' >> /etc/prometheus/fog/rules.yml")
    set_round_trips(fog.state, RttMatrix(NODES, ((0, 9, 9), (9, 0, 9), (9, 9, 0))))
    changes = fog.fogscale("up")["changed"]
    assert changes["server1"] == 1  # the round trips, which the first node stands for
    assert changes["services1"] == 6  # sshd, MinIO's file, MinIO, Kafka, the rules, Prometheus
    assert changes["fog1"] == 4  # names, sshd's file, sshd, the units
    assert fog.fogscale("status")["healthy"]
    assert fog.ask("fog1", "systemctl is-active kubelet kube-proxy").split() == ["active", "active"]
    assert "passwordauthentication no" in fog.ask("fog1", "sshd -T")
    assert fog.ask("fog1", "getent ahostsv4 services1").split()[0] == fog.manifest.addresses["services1"]
    told = fog.ask(
        "services1",
        "cd /etc; stat -c %a minio/environment; systemctl is-enabled kafka; tail -1 prometheus/fog/rules.yml",
    )
    assert told.split("\n")[:2] == ["600", "enabled"]
    assert "# mine" not in told
    assert fog.ask("services1", sshd) != before
    eventually(lambda: is_ready(fog, "fog1"))


def test_a_port_in_other_hands_stops_the_run_before_it_changes_anything(fog: Fog) -> None:
    fog.ask(
        "services1",
        "systemctl stop minio; systemd-run --quiet --unit=stranger python3 -m http.server 9000; "
        "until ss -Hltn | grep -q :9000; do sleep 0.1; done",
    )
    try:
        done = fog.playbook("site.yml", "-e", "fog_nodes=1")
        assert done.returncode != 0
        words = "services1: port 9000 is in use by python3 (stranger.service): stop it, or give the service"
        assert words in " ".join(done.stdout.split())
        assert changes_in(done.stdout) == {}
    finally:
        fog.ask("services1", "systemctl stop stranger; systemctl start minio")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        pytest.param(
            {"fog_kafka": "10.77.0.9:9092"},
            "fog1 gets no answer from 10.77.0.9:9092: fix fog_kafka",
            id="a Kafka that does not answer",
        ),
        pytest.param(
            {"fog_kafka": "broker"},
            "fog_kafka: 'broker' is no address:port of a broker",
            id="no Kafka at all",
        ),
        pytest.param(
            {"flink_image_archive": "", "flink_image": "docker.io/library/flink:2"},
            "1 cannot pull docker.io/library/flink:2 from https://registry-1.docker.io/v2/ (Status code",
            id="no way to Docker Hub",
        ),
        pytest.param(
            {"flink_image_archive": "", "flink_image": "mirror.invalid:5000/flink:2"},
            "1 cannot pull mirror.invalid:5000/flink:2 from https://mirror.invalid:5000/v2/ (Status code",
            id="no way to another registry",
        ),
    ],
)
def test_what_cannot_be_had_stops_the_run_before_it_changes_anything(
    fog: Fog, given: dict[str, str], words: str
) -> None:
    done = fog.playbook("playbooks/nodes.yml", "-e", json.dumps({"fog_nodes": 1, **given}))
    assert done.returncode != 0
    assert words in " ".join(done.stdout.split())
    assert changes_in(done.stdout) == {}


@pytest.mark.parametrize("package", ["bash", "default-jdk"])
def test_a_source_of_packages_has_to_answer_only_where_one_is_missing(fog: Fog, package: str) -> None:
    given = {"node_baseline_update_packages": True, "node_baseline_later_packages": [package]}
    source = "/etc/apt/sources.list.d/none.list"
    for name in NODES:
        fog.ask(name, f"echo deb http://mirror.invalid stable main > {source}")
        fog.ask(
            name, "touch -d yesterday /var/lib/apt/lists; rm -f /var/lib/apt/periodic/update-success-stamp"
        )
    try:
        done = fog.playbook("playbooks/nodes.yml", "-e", json.dumps({"fog_nodes": 1, **given}))
    finally:
        for name in NODES:
            fog.ask(name, f"rm {source}")
    words = "1 lacks default-jdk and cannot fetch package lists (Failed to update apt cache"
    assert (done.returncode == 0) == (package == "bash"), done.stdout
    assert (words in " ".join(done.stdout.split())) == (package != "bash"), done.stdout
    assert changes_in(done.stdout) == {}


def test_an_image_that_every_node_has_needs_no_registry(fog: Fog) -> None:
    done = fog.playbook("playbooks/nodes.yml", "-e", '{"fog_nodes": 1, "flink_image_archive": ""}')
    assert (done.returncode, changes_in(done.stdout)) == (0, {}), done.stdout


def test_a_node_can_be_taken_out_of_the_cluster_twice_without_a_trace(fog: Fog, tmp_path: Path) -> None:
    play = tmp_path / "reset.yml"
    play.write_text(RESET.format(project=checkout()))
    scale(fog, "fog1", 1)
    assert "kubepods" in fog.ask("fog1", LEFT_OVER)
    first = fog.playbook(str(play), "-e", "fog_nodes=1")
    assert (first.returncode, changes_in(first.stdout)) == (0, {"fog1": 1}), first.stdout
    assert fog.ask("fog1", LEFT_OVER) == ""
    again = fog.playbook(str(play), "-e", "fog_nodes=1")
    assert (again.returncode, changes_in(again.stdout)) == (0, {}), again.stdout
    eventually(lambda: not is_ready(fog, "fog1"))
    scale(fog, "fog1", 0)


def test_a_run_that_was_killed_is_finished_by_the_next(fog: Fog, tmp_path: Path) -> None:
    """fog1 has no cluster any more; the run that brings it back is killed once it has begun to."""
    program = Path(sys.executable).parent / "ansible-playbook"
    run = subprocess.Popen(
        [str(program), "-i", "inventory/local", "site.yml", "-e", "fog_nodes=1"],
        stdout=subprocess.PIPE, text=True, cwd=checkout(), start_new_session=True,
        env={**fog.environment, "ANSIBLE_LOCAL_TEMP": str(tmp_path)},  # which it cannot clear now
    )  # fmt: skip
    assert run.stdout is not None
    next(line for line in run.stdout if "RUNNING HANDLER [kubernetes_upstream : Restart node]" in line)
    os.killpg(run.pid, signal.SIGKILL)
    run.wait()
    run.stdout.close()
    assert "fog1" in fog.fogscale("up")["changed"]
    assert is_ready(fog, "fog1")
