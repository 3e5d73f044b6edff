"""What a node tells of itself, asked of this very machine, and what speaks against a node."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import pytest

from controller.testbeds.fog.baseline import as_values, look, look_script, node_problems

ANSWER = """\
architecture aarch64
hostname fog1
Mem_kb 4194304
Swap_kb 0
limits memory
ss
listening LISTEN 0 4096 10.0.0.1:9092 0.0.0.0:* users:(("java",pid=7,fd=3))
listening LISTEN 0 4096 10.0.0.1:9000 0.0.0.0:* users:(("nginx",pid=8,fd=3))
installed iproute2
boot_file /boot/firmware/cmdline.txt
hosts 127.0.0.1 localhost
"""
PORTS = {9092: ["java"], 9000: ["minio"], 22: ["nobody listens"]}


def problems(answer: str, ports: dict[int | str, list[str]] | None = None) -> list[str]:
    return node_problems(answer, "fog1", ["aarch64"], 850, ports or {}, ["cgroup_memory=1"])


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


def test_swap_that_comes_back_with_the_next_boot_is_noticed() -> None:
    assert not look(ANSWER).swap_at_boot
    assert look(ANSWER + "swap_at_boot\n").swap_at_boot
    table = Path("/etc/fstab")
    text = table.read_text() if table.exists() else ""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    told = subprocess.run(["sh", "-c", look_script([], [])], capture_output=True, text=True, check=True)
    assert look(told.stdout).swap_at_boot == any(line.split()[2:3] == ["swap"] for line in lines)


def test_a_node_as_it_should_be_has_no_problem() -> None:
    assert problems(ANSWER) == []
    assert problems(ANSWER, {9092: ["java"]}) == []


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        pytest.param("aarch64", "armv7l", "has the architecture armv7l and 4096 MB", id="32 bit"),
        pytest.param("4194304", "524288", "and 512 MB of memory, but the fog needs", id="too little memory"),
        pytest.param("ss\n", "", "has no ss to see its ports with: apt-get install iproute2", id="no ss"),
        pytest.param("limits memory\n", "", "", id="a Raspberry Pi whose kernel limits no memory is told to"),
    ],
)
def test_what_is_wrong_is_said(old: str, new: str, words: str) -> None:
    found = problems(ANSWER.replace(old, new, 1), {9092: ["java"]})
    assert len(found) == bool(words)
    assert all(words in each for each in found)


def test_another_machine_must_limit_memory_by_itself() -> None:
    answer = ANSWER.replace("limits memory\n", "").replace("boot_file /boot/firmware/cmdline.txt\n", "")
    (found,) = problems(answer)
    assert "cannot limit the memory of containers: add 'cgroup_memory=1'" in found


def test_a_port_in_other_hands_is_named_with_its_holder() -> None:
    assert problems(ANSWER, dict(PORTS)) == [
        "fog1: port 9000 is in use by nginx: stop it, or give the service another port"
    ]
