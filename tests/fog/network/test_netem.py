"""What the commands are; what they do is proven under a real kernel in tests/testbed/test_netem_kernel.py."""

from __future__ import annotations

import re

import pytest

from controller.network import RttMatrix
from fog.network.netem import delays, packets_in_flight, peers_of, structure
from fogscale.errors import FogscaleError

MATRIX = RttMatrix(("server1", "fog1", "fog2"), ((0, 5, 50), (5, 0, 300), (50, 300, 0)))
NETWORKS = {"server1": ["10.0.0.1"], "fog1": ["10.0.0.11", "10.42.1.0/24"], "fog2": ["10.0.0.12"]}


def test_a_node_delays_what_it_sends_by_half_of_each_round_trip() -> None:
    peers = peers_of("fog2", MATRIX, NETWORKS)
    assert [(peer.name, peer.rtt_ms) for peer in peers] == [("server1", 50), ("fog1", 300)]
    assert [re.findall(r"delay (\S+)", line) for line in delays("eth0", peers)] == [["25000us"], ["150000us"]]


def test_every_address_of_a_peer_leads_into_the_class_that_is_delayed() -> None:
    """Follows each destination by hand: filter → class → the netem below it."""
    lines = structure("eth1", peers_of("server1", MATRIX, NETWORKS))
    flows = dict(re.findall(r"match ip dst (\S+) flowid (\S+)", "\n".join(lines)))
    assert set(flows) == {"10.0.0.11/32", "10.42.1.0/24", "10.0.0.12/32"}
    assert flows["10.0.0.11/32"] == flows["10.42.1.0/24"] != flows["10.0.0.12/32"]
    for flow in flows.values():
        assert any(line.startswith(f"class add dev eth1 parent 1: classid {flow} htb") for line in lines)
        assert any(line.startswith(f"qdisc add dev eth1 parent {flow} handle") for line in lines)
    changed = delays("eth1", peers_of("server1", MATRIX, NETWORKS))
    assert [re.findall(r"parent (\S+)", line)[0] for line in changed] == list(dict.fromkeys(flows.values()))


@pytest.mark.parametrize("interface", ["eth0 root\nqdisc del dev eth0", "eth0;x", "-batch", ""])
def test_an_interface_that_is_more_than_a_name_reaches_no_batch(interface: str) -> None:
    peers = peers_of("server1", MATRIX, NETWORKS)
    for lines in (structure, delays):
        with pytest.raises(FogscaleError, match="use an interface's name"):
            lines(interface, peers)


def test_who_is_no_peer_is_not_delayed() -> None:
    lines = structure("eth0", peers_of("server1", MATRIX, NETWORKS))
    assert lines[0].endswith("htb default 1")
    assert not any("parent 1:1 " in line for line in lines)


def test_the_structure_stays_the_same_when_only_latencies_change() -> None:
    other = RttMatrix(MATRIX.names, ((0, 9, 9), (9, 0, 9), (9, 9, 0)))
    before, after = peers_of("fog1", MATRIX, NETWORKS), peers_of("fog1", other, NETWORKS)
    assert structure("eth0", before) == structure("eth0", after)
    assert delays("eth0", before) != delays("eth0", after)


def test_a_full_link_fits_into_the_queue() -> None:
    # 1 Gbit/s for 150 ms = 18.75 MB = 12500 frames of 1500 bytes; the queue holds twice that and a little
    # more.
    assert packets_in_flight(150, 1000) == 1000 + 2 * 12500
    assert packets_in_flight(0, 1000) == 1000


def test_a_peer_without_an_address_is_named() -> None:
    with pytest.raises(FogscaleError, match="no address is known for fog1"):
        peers_of("fog2", MATRIX, {"server1": ["10.0.0.1"]})


def test_classes_are_numbered_in_hexadecimal_as_tc_reads_them() -> None:
    names = ("me", *(f"n{number}" for number in range(20)))
    many = RttMatrix(names, tuple(tuple(0.0 for _ in names) for _ in names))
    lines = structure("eth0", peers_of("me", many, {name: ["10.0.0.9"] for name in names}))
    assert any("classid 1:1f htb" in line for line in lines)
    assert any("classid 1:20 htb" in line for line in lines)
