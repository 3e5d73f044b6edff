from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fog.artifacts.store import store
from fog.checks.preflight import (
    PROGRAMS,
    Machine,
    Standing,
    Wanted,
    WantedNode,
    answers_ssh,
    inventory_problems,
    machine_problems,
    reachability_problems,
    standing,
)
from fog.emulation.state import State
from fog.folders import checkout

NODES = tuple(
    WantedNode(name, address, 1.0, 1024)
    for name, address in (("server1", "10.77.0.1"), ("services1", "10.77.0.2"), ("fog1", "10.77.0.11"))
)
ROWS = {
    "nodes": ["server1", "services1", "fog1"],
    "server1": [0, 0, 5],
    "services1": [0, 0, 5],
    "fog1": [5, 5, 0],
}
WANTED = Wanted(NODES, ROWS, "switch", emulated=True)
MACHINE = Machine(
    is_root=True, architecture="x86_64", memory_mb=8000, disk_mb={"/state": 20_000}, inotify_instances=128,
    programs=frozenset(PROGRAMS), has_cgroups=True, has_overlay=True, has_netem=False,
)  # fmt: skip


def test_a_good_inventory_on_a_good_machine_has_no_problems() -> None:
    assert inventory_problems(WANTED) == []
    assert (
        inventory_problems(replace(WANTED, cluster="k3s", folders=("/home/zoë/.local/state/fogscale-1",)))
        == []
    )
    assert machine_problems(WANTED, MACHINE) == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"backend": "netm"}, "did you mean netem"),
        ({"emulated": False}, "on real machines use netem"),
        ({"rtt_ms": {**ROWS, "fog1": [5, 5]}}, "pair fog1-fog1 is missing"),
        ({"rtt_max_ms": 4}, "more than 4 ms"),
        ({"nodes": NODES[:2]}, "2 nodes are too few"),
        (
            {"nodes": (*NODES[:2], replace(NODES[2], name="Fog_1"))},
            "node 'Fog_1': use at most 12 small letters",
        ),
        ({"nodes": (*NODES[:2], replace(NODES[2], name="switch"))}, "rename it"),
        (
            {"nodes": (*NODES[:2], replace(NODES[2], address="10.77.0.1"))},
            "2 nodes have the address 10.77.0.1",
        ),
        ({"nodes": (*NODES[:2], replace(NODES[2], address="10.78.0.1"))}, "must lie within 10.77.0.0/24"),
        ({"nodes": (*NODES[:2], replace(NODES[2], address="10.77.0.254"))}, "must lie within"),
        ({"nodes": (*NODES[:2], replace(NODES[2], cpus=0))}, "more than 0 CPUs"),
        ({"nodes": (*NODES[:2], replace(NODES[2], memory_mb=64))}, "at least 256 MB"),
        ({"nodes": (*NODES[:2], replace(NODES[2], cpus=float("nan")))}, "more than 0 CPUs"),
        ({"nodes": (*NODES[:2], replace(NODES[2], cpus=float("inf")))}, "more than 0 CPUs"),
        ({"nodes": (*NODES[:2], replace(NODES[2], port=0))}, "ansible_port: '0' is no port"),
        (
            {"nodes": (*NODES[:2], replace(NODES[2], address="1.2.3.4; reboot"))},
            "node fog1: ansible_host: '1.2.3.4; reboot' is no address",
        ),
        ({"nodes": (*NODES[:2], replace(NODES[2], user="pi;reboot"))}, "ansible_user: user 'pi;reboot'"),
        (
            {"nodes": (*NODES[:2], replace(NODES[2], interface="eth0 root\nqdisc"))},
            "fog_network_interface: interface 'eth0 root\\nqdisc'",
        ),
        ({"rtt_max_ms": float("nan")}, "fog_rtt_max_ms is nan: write a number of milliseconds"),
        ({"rtt_max_ms": float("inf")}, "fog_rtt_max_ms is inf"),
        ({"kafka": "broker"}, "fog_kafka: 'broker' is no address:port of a broker"),
        ({"kafka": "$(reboot):9092"}, "fog_kafka: '$(reboot):9092' is no address:port"),
        ({"network": "8.8.8.0/24"}, "is not private"),
        ({"network": "10.77.0.1/24"}, "fog_network_cidr: 10.77.0.1/24 has host bits set: write a network"),
        ({"network": "10.77.0.0/33"}, "fog_network_cidr: '33' is not a valid netmask: write a network"),
        ({"network": "fog"}, "fog_network_cidr: Expected 4 octets in 'fog': write a network"),
        ({"network": "10.77.0.1/32"}, "10.77.0.1/32 has no room for 3 nodes: write a larger one"),
        ({"cluster": "k3"}, "fog_cluster: unknown cluster 'k3': did you mean k3s?"),
        ({"folders": ("/srv/fog", "/srv/my fog")}, "the folder '/srv/my fog' has a character"),
        ({"folders": ("/srv/a:b,c",)}, "FOGSCALE_STATE and XDG_CACHE_HOME name other folders"),
    ],
)
def test_what_is_wrong_in_the_inventory_is_said(changes: dict[str, Any], words: str) -> None:
    assert any(words in problem for problem in inventory_problems(replace(WANTED, **changes)))


def test_a_hostile_address_of_a_real_machine_is_refused_too() -> None:
    real = replace(
        WANTED, emulated=False, backend="netem", nodes=(*NODES[:2], replace(NODES[2], address="x;reboot"))
    )
    assert inventory_problems(real) == [
        "node fog1: ansible_host: 'x;reboot' is no address: write an IPv4 address, e.g. 192.168.77.10"
    ]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"is_root": False}, "run the same command with sudo"),
        ({"architecture": "armv7l"}, "unknown architecture of this machine 'armv7l'"),
        ({"memory_mb": 3000}, "3 nodes may use 3072 MB of memory but 3000 MB are free"),
        ({"disk_mb": {"/state": 100}}, "/state has 100 MB of disk left, 3 nodes need 10752 MB more"),
        ({"inotify_instances": 50}, "sysctl -w fs.inotify.max_user_instances=512"),
        (
            {"programs": frozenset(PROGRAMS) - {"systemd-nspawn", "tc"}},
            "apt-get install iproute2 systemd-container",
        ),
        ({"has_cgroups": False}, "no cgroups"),
        ({"has_overlay": False}, "modprobe overlay"),
        ({"is_linux": False}, "emulated nodes need Linux"),
    ],
)
def test_what_the_machine_lacks_is_said_once(changes: dict[str, Any], words: str) -> None:
    problems = machine_problems(WANTED, replace(MACHINE, **changes))
    assert len(problems) == 1
    assert words in problems[0]


def test_netem_is_asked_for_only_where_it_is_used() -> None:
    (problem,) = machine_problems(replace(WANTED, backend="netem"), MACHINE)
    assert "set fog_network_backend: switch" in problem


def test_memory_that_the_nodes_already_use_counts_as_free() -> None:
    assert machine_problems(WANTED, replace(MACHINE, memory_mb=3000), Standing(memory_mb=100)) == []


@pytest.mark.parametrize(
    ("standing", "needed_mb"),
    [
        (Standing(), 10752),
        (Standing(is_cached=True), 4608),
        (Standing(disk_mb=4000), 6752),
        (Standing(disk_mb=4000, is_cached=True), 608),
        (Standing(disk_mb=9000, is_cached=True), 0),
    ],
)
def test_disk_is_asked_only_for_what_is_not_there_yet(standing: Standing, needed_mb: int) -> None:
    """So that a second run does not ask for all of it again."""
    assert machine_problems(WANTED, replace(MACHINE, disk_mb={"/state": needed_mb}), standing) == []
    if needed_mb:
        (problem,) = machine_problems(WANTED, replace(MACHINE, disk_mb={"/state": needed_mb - 1}), standing)
        assert f"3 nodes need {needed_mb} MB more" in problem


def test_what_stands_is_seen_in_the_state_folder_and_in_the_cache(tmp_path: Path) -> None:
    state, shelf = State(tmp_path / "local"), store(checkout(), tmp_path / "cache")
    assert standing(state, shelf, ["kafka"]) == Standing()
    state.create()
    (state.folder / "disk").write_bytes(bytes(3 << 20))
    for name in ("rootfs", "kafka"):
        assert not standing(state, shelf, ["kafka"]).is_cached
        shelf.folder(name).mkdir(parents=True)
    seen = standing(state, shelf, ["kafka"])
    assert seen.is_cached
    assert 3 <= seen.disk_mb <= 4
    assert not standing(state, shelf, ["kafka", "minio"]).is_cached


def test_eight_nodes_fit_into_the_usual_inotify_limit_and_nine_do_not() -> None:
    eight = tuple(replace(NODES[0], memory_mb=1, name=f"n{number}") for number in range(8))
    assert machine_problems(replace(WANTED, nodes=eight), replace(MACHINE, inotify_instances=128)) == []
    assert machine_problems(replace(WANTED, nodes=(*eight, NODES[0])), MACHINE) != []


def test_when_no_pi_answers_the_way_to_the_local_fog_is_shown() -> None:
    (problem,) = reachability_problems(NODES, lambda *_: False)
    assert "ansible-playbook -i inventory/local site.yml" in problem


def test_when_some_pis_are_silent_they_are_named() -> None:
    nodes = (replace(NODES[0], port=2222), *NODES[1:])
    (problem,) = reachability_problems(nodes, lambda *place: place == ("10.77.0.1", 2222))
    assert "services1 (10.77.0.2), fog1 (10.77.0.11)" in problem
    assert "inventory/local" not in problem
    assert reachability_problems(NODES, lambda *_: True) == []


def test_only_what_greets_as_sshd_does_is_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        for greeting, is_sshd in ((b"SSH-2.0-x\r\n", True), (b"HTTP/1.1 400\r\n", False)):
            with ThreadPoolExecutor(1) as pool:
                answer = pool.submit(answers_ssh, "127.0.0.1", port)
                client, _ = server.accept()
                client.sendall(greeting)
                client.close()
                assert answer.result() is is_sshd
    assert not answers_ssh("127.0.0.1", port)
