"""Services together: what their secrets and their ports must not do, whichever service it is."""

from __future__ import annotations

import base64
import re
import stat
from pathlib import Path

import pytest

from fog.emulation.cgroups import Group
from fog.folders import checkout
from fog.services import broker, objects
from tests.support.fog import Fog
from tests.support.services import ask_prometheus, eventually, inside, object_store, secrets
from tests.support.services import broker as kafka_of

pytestmark = pytest.mark.testbed

NODES = ("server1", "services1", "fog1")
# Programs of the services; sshd and the cluster have tests of their own.
PROGRAMS = {"java", "minio", "prometheus", "prometheus-node", "fog-cgroup-expo"}
_LISTENING = re.compile(r"^\S+\s+\S+\s+\S+\s+(\S+):(\d+)\s.*users:\(\(\"([^\"]+)\"", re.MULTILINE)


def test_no_process_of_the_fog_is_in_the_network_of_the_machine(fog: Fog) -> None:
    """So none can listen there, on whatever address."""
    own = Path("/proc/self/ns/net").readlink()
    processes = {
        line
        for top in Group(fog.state.group).tops
        for file in top.rglob("cgroup.procs")
        for line in file.read_text().split()
    }
    networks = [path.readlink() for each in processes if (path := Path(f"/proc/{each}/ns/net")).exists()]
    assert len(networks) > 20
    assert own not in networks


@pytest.mark.parametrize("node", NODES)
def test_services_listen_on_the_fogs_network_and_on_loopback_only(fog: Fog, node: str) -> None:
    allowed = {fog.manifest.addresses[node], "127.0.0.1", "[::1]", f"[::ffff:{fog.manifest.addresses[node]}]",
               "[::ffff:127.0.0.1]"}  # fmt: skip
    found = [row for row in _LISTENING.findall(fog.ask(node, "ss -Hltnp")) if row[2] in PROGRAMS]
    assert len(found) >= 2
    assert [row for row in found if row[0] not in allowed] == []


def test_secrets_on_this_machine_are_for_their_owner_only(fog: Fog) -> None:
    folder = fog.state.folder / "secrets"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {name.split("/")[1].split("_")[0] for name in secrets(fog)} >= {"kafka", "minio", "prometheus"}
    for name in secrets(fog):
        assert stat.S_IMODE((fog.state.folder / name).stat().st_mode) == 0o600, name
    passwords = [value for name, value in secrets(fog).items() if not name.endswith("_access")]
    assert len(set(passwords)) == len(passwords)
    assert min(map(len, passwords)) >= 32


def with_patterns(fog: Fog, command: str) -> str:
    """A command of services1 that finds all secrets in $patterns, which is gone afterwards."""
    words = base64.b64encode("\n".join(secrets(fog).values()).encode()).decode()
    script = f"umask 077; patterns=$(mktemp -p /dev/shm); base64 -d > $patterns; {command}; rm $patterns"
    return fog.ask("services1", f"echo {words} | sh -c '{script}'")


def test_secrets_on_nodes_cannot_be_read_by_others(fog: Fog) -> None:
    """Root finds them, nobody else does: tried as that user, so that the modes of folders count too."""
    search = "grep -rlaF -s -f - --devices=skip /etc /run /var/lib /var/log /tmp /var/tmp /usr/local || true"
    nobody = "setpriv --reuid=65534 --regid=65534 --clear-groups"
    found = with_patterns(fog, f"({search}) < $patterns").split()
    assert {"/etc/kafka/server.properties", "/etc/minio/environment"} <= set(found)
    assert with_patterns(fog, f"({nobody} {search}) < $patterns").split() == []
    assert "/etc/passwd" in fog.ask(
        "services1", f"cd /; echo root: | {nobody} grep -rlF -s -f - /etc || true"
    )


def test_no_secret_is_in_a_process_list_or_a_journal(fog: Fog) -> None:
    seen = with_patterns(
        fog,
        'for p in /proc/[0-9]*; do tr "\\\\0" " " < $p/cmdline; echo; done 2>/dev/null > /dev/shm/list; '
        "journalctl --no-pager >> /dev/shm/list; grep -c kafka.Kafka /dev/shm/list; "
        "grep -cF -f $patterns /dev/shm/list; rm /dev/shm/list",
    )
    lines, hits = map(int, seen.split())
    assert lines > 0
    assert hits == 0


def test_a_second_run_changes_nothing_and_tells_no_secret(fog: Fog) -> None:
    """Also where everything is told: with -vvv and differences."""
    done = fog.playbook("site.yml", "-e", f"fog_nodes={fog.manifest.fog_nodes}", "-vvv", "--diff")
    assert done.returncode == 0, done.stdout[-3000:]
    assert set(re.findall(r"changed=(\d+)", done.stdout)) == {"0"}
    told = done.stdout + done.stderr
    assert [name for name, value in secrets(fog).items() if value in told] == []


def test_where_a_kafka_is_given_none_runs_on_the_services_node(fog: Fog) -> None:
    """Whatever answers is taken for it: here the API server."""
    given = f"fog_kafka={fog.manifest.addresses['server1']}:6443"
    services = ("playbooks/services.yml", "--limit", "services", "-e", f"fog_nodes={fog.manifest.fog_nodes}")
    before = fog.ask("services1", "ls /var/lib/kafka/data")
    try:
        done = fog.playbook(*services, "-e", given)
        assert done.returncode == 0, done.stdout[-3000:]
        assert fog.ask("services1", "systemctl is-active kafka || true").strip() == "inactive"
        assert fog.ask("services1", "systemctl is-enabled kafka || true").strip() == "disabled"
        assert fog.ask("services1", "ls /var/lib/kafka/data") == before  # it may be wanted again
        assert "job_name: kafka" not in fog.ask("services1", "cat /etc/prometheus/fog/prometheus.yml")
    finally:
        made = fog.playbook(*services)
    assert made.returncode == 0, made.stdout[-3000:]
    eventually(lambda: ask_prometheus(fog, 'up{job="kafka"} == 1'))


def test_everything_a_service_left_is_removed_and_can_be_made_again(fog: Fog, tmp_path: Path) -> None:
    """On emulated nodes teardown just ends the nodes; this is what it does on real ones."""
    file = tmp_path / "reset.yml"
    file.write_text(f"""\
- hosts: services
  gather_facts: false
  vars_files: [{checkout()}/playbooks/vars/secrets.yml, {checkout()}/playbooks/vars/services.yml]
  tasks:
    - ansible.builtin.include_role: {{name: "{{{{ item }}}}", tasks_from: reset}}
      loop: [hotspots, minio, kafka, prometheus]
""")
    nodes = f"fog_nodes={fog.manifest.fog_nodes}"
    removed = fog.playbook(str(file), "-e", nodes)
    try:
        assert removed.returncode == 0, removed.stdout[-3000:]
        left = "ls -d /{etc,var/lib,var/lib/private}/{kafka,minio,prometheus/fog} /opt/fogscale/hotspots"
        assert fog.ask("services1", f"bash -c '{left} 2>/dev/null || true'") == ""
        listening = {row[2] for row in _LISTENING.findall(fog.ask("services1", "ss -Hltnp"))}
        assert listening & PROGRAMS == set()
        assert fog.playbook(str(file), "-e", nodes).returncode == 0  # also where nothing is left
    finally:
        made = fog.playbook("playbooks/services.yml", "-e", nodes)
    assert made.returncode == 0, made.stdout[-3000:]
    assert inside(fog, lambda: broker.problems(kafka_of(fog), ["input", "output"], 8)) == []
    assert inside(fog, lambda: objects.problems(object_store(fog))) == []
    eventually(lambda: ask_prometheus(fog, 'up{job="kafka"} == 1'))
