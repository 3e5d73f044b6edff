"""What the testbed does, as `fogscale testbed up` built it: one server, one services node, one fog node."""

from __future__ import annotations

import hashlib
import os
import socket
import stat
import subprocess
from pathlib import Path

import paramiko
import pytest
import yaml

from fog.checks.preflight import answers_ssh
from fog.checks.probe import ask, shell
from fog.emulation import namespaces
from fog.folders import checkout
from fogscale.errors import FogscaleError
from tests.support.fog import Fog, changes_in
from tests.support.services import secrets

pytestmark = pytest.mark.testbed

NODES = ("server1", "services1", "fog1")


def test_every_node_has_a_systemd_that_is_content(fog: Fog) -> None:
    for name in NODES:
        assert fog.ask(name, "systemctl is-system-running --wait").strip() == "running"
        assert fog.ask(name, "cat /proc/1/comm").strip() == "systemd"
        assert fog.ask(name, "hostname").strip() == name


def test_nodes_know_each_other_by_name(fog: Fog) -> None:
    assert fog.ask("fog1", "getent ahostsv4 services1").split()[0] == fog.manifest.addresses["services1"]


def test_status_measures_every_pair_within_its_tolerance(fog: Fog) -> None:
    status = fog.fogscale("status")
    assert status["healthy"], status
    assert {tuple(pair["nodes"]): pair["wanted_ms"] for pair in status["round_trips"]} == {
        ("server1", "services1"): 0,
        ("server1", "fog1"): 5,
        ("services1", "fog1"): 5,
    }
    nodes = [(node["name"], node["group"], node["state"], node["memory_mb"]) for node in status["nodes"]]
    assert nodes == [
        ("server1", "server", "running", 2048),
        ("services1", "services", "running", 3072),
        ("fog1", "fog", "running", 1024),
    ]
    known = yaml.safe_load((checkout() / "playbooks/vars/artifacts.yml").read_text())["artifacts"]
    services = {each["name"]: each for each in status["services"]}
    assert {name: (each["node"], each["port"]) for name, each in services.items()} == {
        "cluster": ("server1", 6443), "flink": ("server1", 8081), "kafka": ("services1", 9092),
        "minio": ("services1", 9000), "prometheus": ("services1", 9090),
    }  # fmt: skip
    assert all(each["listens"] for each in services.values())
    assert services["kafka"]["version"] == known["kafka"]["version"]
    assert set(status["versions"]) == {"fogscale", "ansible-core", "paramiko", "nodes"}
    assert status["versions"]["nodes"].startswith("Debian GNU/Linux 12")


def test_latencies_change_while_a_connection_is_open_and_are_then_what_verify_wants(
    fog: Fog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Verify tells no secret either, even where Ansible logs all it does."""
    file, log = tmp_path / "matrix.yml", tmp_path / "ansible.log"
    rows = {"nodes": list(NODES), "server1": [0, 20, 120], "services1": [20, 0, 300], "fog1": [120, 300, 0]}
    file.write_text(yaml.safe_dump({"fog_rtt_ms": rows}))
    with shell(fog.node("fog1"), fog.state.network()) as client:
        fog.fogscale("network", "--set", str(file))
        status = fog.fogscale("status")
        assert [pair["wanted_ms"] for pair in status["round_trips"]] == [20, 120, 300]
        assert status["healthy"], status
        monkeypatch.setenv("ANSIBLE_LOG_PATH", str(log))
        monkeypatch.setenv("ANSIBLE_VERBOSITY", "3")
        fog.fogscale("verify")
        assert ask(client, "echo still here") == "still here\n"
    told = log.read_text()
    assert "TASK [minio : " in told
    assert [name for name, value in secrets(fog).items() if value in told] == []
    monkeypatch.undo()
    done = fog.playbook("playbooks/network.yml", "-e", f"fog_nodes={fog.manifest.fog_nodes}")
    assert done.returncode == 0, done.stdout[-3000:]  # back to the inventory's
    assert [pair["wanted_ms"] for pair in fog.fogscale("status")["round_trips"]] == [0, 5, 5]


def test_a_matrix_without_a_pair_is_refused_before_anything_changes(fog: Fog, tmp_path: Path) -> None:
    file = tmp_path / "matrix.yml"
    file.write_text("fog_rtt_ms: {nodes: [server1, fog1], server1: [0, 9], fog1: [9, 0]}\n")
    done = fog.fogscale("network", "--set", str(file), check=False)
    assert done.returncode == 2
    assert "the pair services1-server1 is missing" in done.stderr
    assert fog.fogscale("status")["healthy"]


def test_nodes_of_a_wrong_architecture_are_refused_before_anything_changes(fog: Fog) -> None:
    wish = '{"node_baseline_architectures": ["riscv64"], "fog_nodes": 1}'
    done = fog.playbook("playbooks/nodes.yml", "-e", wish)
    assert done.returncode != 0
    assert "but the fog needs one of riscv64 (a 64-bit system)" in " ".join(done.stdout.split())
    assert changes_in(done.stdout) == {}


def test_only_the_key_of_the_testbed_opens_a_node(fog: Fog) -> None:
    node = fog.node("fog1")
    assert stat.S_IMODE(fog.state.key.stat().st_mode) == 0o600
    other = paramiko.Ed25519Key.from_private_key_file(str(fog.state.node("fog1") / "host_key"))
    for offered in ({"pkey": other}, {"password": "root"}, {"password": ""}):
        client = paramiko.SSHClient()
        client.load_host_keys(str(fog.state.known_hosts))
        with pytest.raises(paramiko.AuthenticationException), client:
            client.connect(
                node.address, username="root", allow_agent=False, look_for_keys=False,
                sock=namespaces.connect(fog.state.network(), node.address, 22), **offered,
            )  # fmt: skip


def _offered_methods(fog: Fog) -> list[str]:
    address = fog.node("fog1").address
    transport = paramiko.Transport(namespaces.connect(fog.state.network(), address, 22))
    transport.start_client(timeout=10)
    try:
        transport.auth_none("root")
    except paramiko.BadAuthenticationType as error:
        return list(error.allowed_types)
    finally:
        transport.close()
    return []


def test_keys_are_the_only_way_sshd_offers(fog: Fog) -> None:
    assert _offered_methods(fog) == ["publickey"]


def test_nodes_cannot_be_reached_from_outside_nor_reach_out(fog: Fog) -> None:
    for address in fog.manifest.addresses.values():
        # A gateway of the machine may accept connections to anywhere; no node greets through it.
        assert not answers_ssh(address, timeout_s=1.5)
    with socket.create_server(("0.0.0.0", 0)) as server:
        port = server.getsockname()[1]
        for address in _addresses_of_this_machine():
            said = fog.ask(
                "fog1", f"timeout 2 bash -c '</dev/tcp/{address}/{port}' 2>&1 && echo open || echo closed"
            )
            assert said.splitlines()[-1] == "closed"


def _addresses_of_this_machine() -> list[str]:
    told = subprocess.run(["ip", "-o", "-4", "addr"], capture_output=True, text=True, check=True).stdout
    found = [line.split()[3].split("/")[0] for line in told.splitlines()]
    return [address for address in found if not address.startswith("127.")]


def test_memory_beyond_the_limit_kills_the_process_not_the_node(fog: Fog) -> None:
    said = fog.ask("fog1", "python3 -c 'x = bytearray(1500 << 20)' 2>/dev/null; echo $?; free -m | sed -n 2p")
    assert said.splitlines()[0] == "137"
    assert said.split()[2] == "1024"
    assert fog.ask("services1", "python3 -c 'x = bytearray(1500 << 20)'; echo $?").strip() == "0"


def test_cpu_beyond_the_limit_is_not_given(fog: Fog) -> None:
    # Two loops want two CPUs for two seconds; the node has one.
    script = (
        "import os,resource,subprocess as s;"
        "[p.wait() for p in [s.Popen(['timeout','2','sh','-c','while :; do :; done']) for _ in '12']];"
        "u=resource.getrusage(resource.RUSAGE_CHILDREN);print(u.ru_utime+u.ru_stime)"
    )
    used_s = float(fog.ask("fog1", f'python3 -c "{script}"'))
    assert 0.1 < used_s < 2.4


def test_large_transfers_arrive_whole(fog: Fog) -> None:
    """Segmentation is postponed across the switch: a wrong header or checksum would show here."""
    data = os.urandom(1 << 20) * 24
    serve = (
        "import hashlib,socket;s=socket.create_server(('',7777));print('up',flush=True);"
        "c=s.accept()[0];h=hashlib.sha256();"
        "[h.update(b) for b in iter(lambda:c.recv(65536),b'')];print(h.hexdigest())"
    )
    with shell(fog.node("services1"), fog.state.network()) as client:
        _, output, _ = client.exec_command(f'python3 -c "{serve}"')
        assert output.readline() == "up\n"
        (fog.state.node("fog1") / "own/var-lib-containerd/blob").write_bytes(data)
        fog.ask(
            "fog1",
            "bash -c 'cat /var/lib/containerd/blob > /dev/tcp/services1/7777'; rm /var/lib/containerd/blob",
        )
        assert output.readline().strip() == hashlib.sha256(data).hexdigest()


def test_a_node_may_not_touch_the_machines_clock_or_modules(fog: Fog) -> None:
    for command in ("date -s 2001-01-01", "modprobe dummy"):
        with pytest.raises(FogscaleError, match="ended with"):
            fog.ask("fog1", command)


def test_a_raspberry_pi_gets_its_kernel_options_and_the_reboot_they_need(fog: Fog) -> None:
    fog.ask(
        "fog1",
        "mkdir -p /boot/firmware; echo 'console=tty1 root=PARTUUID=1 rootwait' > /boot/firmware/cmdline.txt",
    )
    begun = fog.ask("fog1", "cut -d ' ' -f 22 /proc/1/stat")
    try:
        done = fog.playbook("playbooks/nodes.yml", "--limit", "localhost,fog1", "-e", "fog_nodes=1")
        assert done.returncode == 0, done.stdout
        line = "console=tty1 root=PARTUUID=1 rootwait cgroup_memory=1 cgroup_enable=memory\n"
        assert fog.ask("fog1", "cat /boot/firmware/cmdline.txt") == line
        assert fog.ask("fog1", "cut -d ' ' -f 22 /proc/1/stat") != begun  # it did boot again
        again = fog.playbook("playbooks/nodes.yml", "--limit", "localhost,fog1", "-e", "fog_nodes=1")
        assert "changed=0" in next(line for line in again.stdout.splitlines() if line.startswith("fog1 "))
    finally:
        fog.ask("fog1", "rm -r /boot/firmware")


def test_a_node_that_does_not_answer_is_named(fog: Fog) -> None:
    fog.ask("fog1", "systemctl stop ssh.service")
    try:
        status = fog.fogscale("status", check=False)
        assert status.returncode == 1
        assert "node fog1 (10.77.0.11) does not answer" in status.stdout
    finally:
        _open_a_shell_and_start_sshd(fog)


def _open_a_shell_and_start_sshd(fog: Fog) -> None:
    """Without ssh: through the node's namespaces, as root of the machine can."""
    from fog.emulation.cgroups import Group

    inside = next(
        process
        for process in Group(fog.state.group).processes("fog1")
        if Path(f"/proc/{process}/comm").read_text().strip() == "systemd-journal"
    )
    subprocess.run(["nsenter", "-a", "-t", str(inside), "systemctl", "start", "ssh.service"], check=True)
