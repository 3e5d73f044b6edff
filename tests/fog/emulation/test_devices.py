"""A list of devices for cgroups of version 2: by the kernel where we may ask it, and by the program alone."""

import os
import secrets
import stat
import struct
from pathlib import Path

import pytest

from fog.emulation import cgroups
from fog.emulation.cgroups import DEVICES, Group
from fog.emulation.devices import allow_only, program
from fogscale.errors import FogscaleError

KINDS, ACCESS = {"b": 1, "c": 2}, {"m": 1, "r": 2, "w": 4}


def answer(steps: bytes, kind: str, major: int, minor: int, access: str) -> int:
    """What the kernel's machine would come to: a second reading of its instructions."""
    given = struct.pack("<III", sum(ACCESS[each] for each in access) << 16 | KINDS[kind], major, minor)
    registers, at = [0] * 11, 0
    while True:
        code, both, jump, value = struct.unpack_from("<BBhi", steps, at * 8)
        to, of = both & 15, both >> 4
        at += 1
        match code:
            case 0x61:
                (registers[to],) = struct.unpack_from("<I", given, jump)
            case 0xBF:
                registers[to] = registers[of]
            case 0xB7:
                registers[to] = value
            case 0x57:
                registers[to] &= value
            case 0x77:
                registers[to] >>= value
            case 0x55:
                at += jump if registers[to] != value else 0
            case 0x95:
                return registers[0]
            case _:
                raise AssertionError(hex(code))


@pytest.mark.parametrize(
    ("kind", "major", "minor", "access", "allowed"),
    [
        pytest.param("c", 1, 3, "rw", 1, id="null"),
        pytest.param("c", 136, 7, "rw", 1, id="any terminal"),
        pytest.param("b", 8, 0, "m", 1, id="a disk is made as a file"),
        pytest.param("b", 8, 0, "r", 0, id="and not opened"),
        pytest.param("b", 8, 0, "mr", 0, id="nor both at once"),
        pytest.param("b", 1, 3, "r", 0, id="a disk with the numbers of null"),
        pytest.param("c", 1, 11, "r", 0, id="the kernel's log"),
        pytest.param("c", 10, 237, "rw", 0, id="loop devices"),
    ],
)
def test_what_a_node_may_open(kind, major, minor, access, allowed):
    assert answer(program(DEVICES), kind, major, minor, access) == allowed


def test_every_line_of_the_list_allows_what_it_says_and_no_more():
    """Against the lines themselves, for all kinds, accesses and the numbers around those of the list."""
    majors, minors = (0, 1, 2, 5, 8, 10, 136, 254), (0, 1, 2, 3, 4, 5, 7, 8, 9, 11, 200, 255)
    steps = program(DEVICES)
    wishes = ("m", "r", "w", "mr", "mw", "rw", "mrw")
    for kind, major, minor, access in (
        (k, a, b, w) for k in "bc" for a in majors for b in minors for w in wishes
    ):
        wanted = any(
            line.split()[0] == kind
            and line.split()[1] in {f"{major}:{minor}", f"{major}:*", "*:*"}
            and set(access) <= set(line.split()[2])
            for line in DEVICES
        )
        assert answer(steps, kind, major, minor, access) == wanted, (kind, major, minor, access)


@pytest.fixture
def group():
    """A cgroup of version 2, which this machine may have beside those of version 1."""
    root = next((path for path in (cgroups.ROOT, cgroups.ROOT / "unified") if cgroups.is_v2(path)), None)
    if root is None or os.geteuid() != 0:
        pytest.skip("needs root and cgroups of version 2")
    made = root / f"fogscale-test-{secrets.token_hex(4)}"
    made.mkdir()
    (made / "node").mkdir()
    yield made
    (made / "node").rmdir()
    made.rmdir()


def test_a_kernel_obeys(group, tmp_path):
    allow_only(group, DEVICES)
    disk = tmp_path / "disk"
    disk_number = next(int(each) for each in Path("/proc/partitions").read_text().split() if each.isdigit())
    child = os.fork()
    if child == 0:
        try:
            (group / "node" / "cgroup.procs").write_text("0")
            os.close(os.open("/dev/null", os.O_RDWR))
            os.close(os.open("/dev/urandom", os.O_RDONLY))
            os.mknod(disk, 0o600 | stat.S_IFBLK, os.makedev(disk_number, 0))
            for path in (disk, "/dev/kmsg"):
                try:
                    os.open(path, os.O_RDONLY)
                    os._exit(1)
                except PermissionError:
                    pass
            os._exit(0)
        except BaseException:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_where_a_kernel_takes_no_list_there_are_no_nodes(tmp_path):
    """A folder that only looks like cgroup v2."""
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids\n")
    with pytest.raises(FogscaleError, match="emulated nodes could open the machine's disks"):
        Group("fog", tmp_path).create("fog1", 1.0, 256)
    assert not (tmp_path / "fog").exists()
