"""What a node tells of itself, asked of this very machine, and what speaks against a node."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import pytest

from fog.checks.baseline import (
    SWAP_MAKERS,
    Look,
    as_values,
    look,
    look_script,
    node_problems,
    swap_off_files,
)

ANSWER = """\
architecture aarch64
hostname fog1
Mem_kb 4194304
disk_kb 8388608
Swap_kb 0
limits memory
ss
listening LISTEN 0 4096 10.0.0.1:9092 0.0.0.0:* users:(("java",pid=7,fd=3))
listening LISTEN 0 4096 10.0.0.1:9000 0.0.0.0:* users:(("nginx",pid=8,fd=3))
unit 7 kafka.service
unit 8 nginx.service
installed iproute2
boot_file /boot/firmware/cmdline.txt
hosts 127.0.0.1 localhost
"""
# /proc/cgroups of Raspberry Pis: of kernel 6.12.57 that limits memory, and of 6.1 that was not told to.
CGROUPS_6_12 = """\
#subsys_name\thierarchy\tnum_cgroups\tenabled
cpuset\t0\t99\t1
cpu\t0\t99\t1
pids\t0\t99\t1
"""
CGROUPS_6_1 = CGROUPS_6_12 + "memory\t0\t39\t0\n"
PORTS = {9092: ["kafka.service"], 9000: ["minio.service"], 22: ["nobody listens"]}


def problems(answer: str, ports: dict[int | str, list[str]] | None = None) -> list[str]:
    return node_problems(answer, "fog1", ["aarch64"], 1800, 4096, ports or {}, ["cgroup_memory=1"])


def seen_with(root: Path, files: dict[str, str]) -> Look:
    """What the script sees where these files lie below `root`."""
    for name, text in files.items():
        file = root / name.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    script = look_script([], [], str(root))
    return look(subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout)


def test_this_machine_answers_the_question(tmp_path: Path) -> None:
    boot = tmp_path / "cmd line.txt"
    boot.touch()
    script = look_script(["coreutils", "no-such-package"], [str(boot), str(tmp_path / "none")])
    told = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout
    seen = look(told)
    assert seen.architecture == platform.machine()
    assert seen.hostname == platform.node()
    memory = next(line for line in Path("/proc/meminfo").read_text().splitlines() if "MemTotal" in line)
    assert seen.memory_mb == int(memory.split()[1]) // 1024
    assert seen.boot_files == (str(boot),)
    assert list(seen.hosts) == [line.rstrip() for line in Path("/etc/hosts").read_text().splitlines()]
    assert set(seen.packages) <= {"coreutils"}
    assert (seen.packages == ("coreutils",)) == Path("/var/lib/dpkg/info/coreutils.list").exists()


def test_playbooks_get_plain_values() -> None:
    assert as_values(ANSWER)["packages"] == ["iproute2"]
    assert as_values(ANSWER)["memory_mb"] == 4096


@pytest.mark.parametrize(
    ("files", "limits"),
    [
        pytest.param({"/proc/cgroups": CGROUPS_6_1}, False, id="not told to"),
        pytest.param({"/proc/cgroups": CGROUPS_6_1[:-2] + "1\n"}, True, id="told to"),
        pytest.param(
            {
                "/proc/cgroups": CGROUPS_6_12,
                "/sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory pids\n",
            },
            True,
            id="version 2 of cgroups alone",
        ),
        pytest.param(
            {"/proc/cgroups": CGROUPS_6_12, "/sys/fs/cgroup/cgroup.controllers": "cpuset cpu io pids\n"},
            False,
            id="version 2 of cgroups alone, not told to",
        ),
    ],
)
def test_a_kernel_that_limits_memory_is_known_by_either_version_of_cgroups(
    tmp_path: Path, files: dict[str, str], limits: bool
) -> None:
    assert seen_with(tmp_path, files).limits_memory == limits


FSTAB = "# /dev/sda2 none swap sw 0 0\nPARTUUID=1 / ext4 defaults 0 1\n"


def test_swap_that_comes_back_with_the_next_boot_is_noticed(tmp_path: Path) -> None:
    assert seen_with(tmp_path, {"/etc/fstab": FSTAB}).swap_at_boot == ()
    table = {"/etc/fstab": FSTAB + "/var/swap none swap sw 0 0\n"}
    assert seen_with(tmp_path, table).swap_at_boot == ("fstab",)


@pytest.mark.parametrize("name", SWAP_MAKERS)
def test_a_program_that_brings_swap_is_noticed_until_it_is_turned_off(tmp_path: Path, name: str) -> None:
    assert seen_with(tmp_path, {SWAP_MAKERS[name].sign: ""}).swap_at_boot == (name,)
    assert seen_with(tmp_path, swap_off_files([name])).swap_at_boot == ()
    assert set(swap_off_files([name])) < set(swap_off_files())


def test_cloud_init_is_noticed_until_it_is_put_to_rest(tmp_path: Path) -> None:
    assert not seen_with(tmp_path, {}).cloud_init
    assert seen_with(tmp_path, {"/usr/bin/cloud-init": ""}).cloud_init
    assert not seen_with(tmp_path, {"/etc/cloud/cloud-init.disabled": ""}).cloud_init


def test_a_node_as_it_should_be_has_no_problem() -> None:
    assert problems(ANSWER) == []
    assert problems(ANSWER, {9092: ["kafka.service"]}) == []


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        pytest.param("aarch64", "armv7l", "has the architecture armv7l and 4096 MB", id="32 bit"),
        pytest.param("4194304", "944128", "and 922 MB of memory, but the fog needs", id="too little memory"),
        pytest.param(
            "8388608",
            "2097152",
            "fog1 has 2048 MB of disk left, but the fog needs 4096 MB",
            id="too little disk",
        ),
        pytest.param(
            "disk_kb 8388608\n",
            "disk_kb 1024\nhosts # BEGIN nodes of the fog\n",
            "",
            id="a disk the fog filled",
        ),
        pytest.param("ss\n", "", "has no ss to see its ports with: apt-get install iproute2", id="no ss"),
        pytest.param("limits memory\n", "", "", id="a Raspberry Pi whose kernel limits no memory is told to"),
    ],
)
def test_what_is_wrong_is_said(old: str, new: str, words: str) -> None:
    found = problems(ANSWER.replace(old, new, 1), {9092: ["kafka.service"]})
    assert len(found) == bool(words)
    assert all(words in each for each in found)


def test_another_machine_must_limit_memory_by_itself() -> None:
    answer = ANSWER.replace("limits memory\n", "").replace("boot_file /boot/firmware/cmdline.txt\n", "")
    (found,) = problems(answer)
    assert "cannot limit the memory of containers: add 'cgroup_memory=1'" in found


def test_a_port_in_other_hands_is_named_with_its_holder() -> None:
    assert problems(ANSWER, dict(PORTS)) == [
        "fog1: port 9000 is in use by nginx (nginx.service): stop it, or give the service another port"
    ]
