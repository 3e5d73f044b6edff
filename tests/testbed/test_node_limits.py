"""What root of an emulated node can and cannot reach of the machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fog.emulation.cgroups import Group, is_v2
from tests.support.fog import Fog

pytestmark = pytest.mark.testbed

# Bits of a capability set, from linux/capability.h.
CAPABILITIES = {
    "CHOWN": 0, "DAC_OVERRIDE": 1, "DAC_READ_SEARCH": 2, "FOWNER": 3, "FSETID": 4, "KILL": 5, "SETGID": 6,
    "SETUID": 7, "SETPCAP": 8, "NET_BIND_SERVICE": 10, "NET_ADMIN": 12, "NET_RAW": 13, "IPC_OWNER": 15,
    "SYS_CHROOT": 18, "SYS_PTRACE": 19, "SYS_ADMIN": 21, "SYS_BOOT": 22, "SYS_NICE": 23, "SYS_RESOURCE": 24,
    "MKNOD": 27, "AUDIT_WRITE": 29, "SETFCAP": 31,
}  # fmt: skip


def test_no_process_of_a_node_has_more_than_these_capabilities(fog: Fog) -> None:
    most = sum(1 << bit for bit in CAPABILITIES.values())
    for node in ("server1", "services1", "fog1"):
        told = fog.ask(node, "grep -h -E '^Cap(Prm|Bnd)' /proc/[0-9]*/status 2>/dev/null || true")
        held = [int(line.split()[1], 16) for line in told.splitlines()]
        assert len(held) > 10
        assert [f"{each:x}" for each in held if each & ~most] == []


def test_the_machine_s_log_is_neither_read_nor_written(fog: Fog) -> None:
    assert fog.ask("fog1", "timeout 5 cat /dev/kmsg; stat --format '%t %T' /dev/kmsg") == "1 3\n"  # null
    told = fog.ask(
        "fog1",
        "dmesg --syslog 2>&1 | tail -1; mknod /dev/log1 c 1 11; head -c 1 /dev/log1 2>&1; rm /dev/log1",
    )
    assert told.count("Operation not permitted") == 2, told


def test_a_disk_of_the_machine_cannot_be_opened(fog: Fog) -> None:
    """A file for it can be made; a container's runtime must be able to do so."""
    device = os.stat("/").st_dev  # noqa: PTH116
    found = [line.split() for line in Path("/proc/partitions").read_text().splitlines()[2:]]
    numbers = {(int(each[0]), int(each[1])) for each in found} | {(os.major(device), os.minor(device))}
    assert numbers
    for major, minor in numbers:
        told = fog.ask(
            "fog1", f"mknod /dev/disk1 b {major} {minor}; head -c 1 /dev/disk1 2>&1 | cat -v; rm /dev/disk1"
        )
        assert "Operation not permitted" in told or "No such device" in told, (major, minor, told)


def test_a_node_cannot_allow_itself_more_devices(fog: Fog) -> None:
    if is_v2():
        pytest.skip("version 2 has no list that a node could write (tests/fog/emulation/test_devices.py)")
    for wanted in ("a", "b *:* rwm", "c 1:11 r"):
        told = fog.ask("fog1", f"echo '{wanted}' 2>&1 > /sys/fs/cgroup/devices/devices.allow || echo refused")
        assert told.endswith("refused\n"), (wanted, told)
    fog.ask("fog1", "echo 'c 1:3 rwm' > /sys/fs/cgroup/devices/devices.allow")  # what it may is not refused


def test_what_it_needs_still_works(fog: Fog) -> None:
    assert fog.ask("fog1", "head -c 4 /dev/zero | wc -c; head -c 4 /dev/urandom | wc -c") == "4\n4\n"


def test_all_nodes_together_count_ten_times_as_much_as_other_work_of_the_machine(fog: Fog) -> None:
    file, weight = ("cpu.weight", "1000") if is_v2() else ("cpu.shares", "10240")
    (told,) = (path for top in Group(fog.state.group).tops if (path := top / file).exists())
    assert told.read_text().strip() == weight
