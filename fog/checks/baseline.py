"""What a node tells of itself in answer to one question, and what speaks against taking it into the fog."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from fog.checks.ports import LISTENERS, port_conflicts

OURS = "# BEGIN nodes of the fog"  # in /etc/hosts of a node that is in the fog already


class SwapMaker(NamedTuple):
    """A program that brings swap with every boot."""

    sign: str  # exists where it is installed
    file: str  # ours, which turns it off
    content: str


_NEVER = "[Unit]\nConditionPathExists=!/\n"
SWAP_MAKERS = {
    "rpi-swap": SwapMaker(
        "/usr/lib/systemd/system-generators/rpi-swap-generator",
        "/etc/rpi/swap.conf.d/99-fogscale.conf",
        "[Main]\nMechanism=none\n",
    ),
    "zram-generator": SwapMaker(
        "/usr/lib/systemd/system-generators/zram-generator",
        "/etc/systemd/zram-generator.conf.d/99-fogscale.conf",
        "[zram0]\nhost-memory-limit=0\n",
    ),
    **{
        name: SwapMaker(
            f"/usr/lib/systemd/system/{name}.service",
            f"/etc/systemd/system/{name}.service.d/fogscale.conf",
            _NEVER,
        )
        for name in ("dphys-swapfile", "zramswap")
    },
}


@dataclass(frozen=True)
class Look:
    architecture: str
    hostname: str
    memory_mb: int
    disk_mb: int  # free, where images and data go
    swap_mb: int
    swap_at_boot: tuple[str, ...]  # what would bring swap with the next boot
    limits_memory: bool  # of containers: a Raspberry Pi's kernel does so only when told
    cloud_init: bool  # it may write names of its own at the next boot
    listening: str | None  # as `ss -Hltnp` prints it; None: there is no ss
    units: dict[str, str]  # process → its systemd unit, of those that listen
    packages: tuple[str, ...]  # of those asked for
    boot_files: tuple[str, ...]
    hosts: tuple[str, ...]  # lines of /etc/hosts


def look_script(packages: Sequence[str], boot_files: Sequence[str], root: str = "") -> str:
    """For any POSIX shell; every line of its answer begins with what it is about. `root` is for tests."""
    names, files = (" ".join(map(shlex.quote, each)) for each in (packages, boot_files))
    makers = "".join(
        f"[ -e {root}{maker.sign} ] && [ ! -e {root}{maker.file} ] && echo 'swap_at_boot {name}'; "
        for name, maker in SWAP_MAKERS.items()
    )
    return (
        'echo "architecture $(uname -m)"; echo "hostname $(hostname)"; '
        "sed -nE 's/^(Mem|Swap)Total: *([0-9]+) kB/\\1_kb \\2/p' /proc/meminfo; "
        "df -Pk /var | awk 'NR == 2 { print \"disk_kb\", $4 }'; "
        f"grep -qsE '^[^#]\\S*\\s+\\S+\\s+swap\\s' {root}/etc/fstab && echo 'swap_at_boot fstab'; {makers}"
        # Kernels with version 2 of cgroups alone have no line for memory in /proc/cgroups.
        f"grep -qsw memory {root}/sys/fs/cgroup/cgroup.controllers || "
        f"grep -qsE '^memory\\s+[0-9]+\\s+[0-9]+\\s+1$' {root}/proc/cgroups && echo 'limits memory'; "
        f"[ -e {root}/usr/bin/cloud-init ] && [ ! -e {root}/etc/cloud/cloud-init.disabled ] && "
        "echo cloud_init; "
        f"command -v ss > /dev/null && {{ echo ss; {LISTENERS}; }}; "
        f"dpkg-query --show --showformat '${{db:Status-Status}} ${{Package}}\\n' {names} 2>/dev/null; "
        f'for file in {files}; do [ ! -e "$file" ] || echo "boot_file $file"; done; '
        "sed 's/^/hosts /' /etc/hosts; true"
    )


def look(answer: str) -> Look:
    told: dict[str, list[str]] = {}
    for line in answer.splitlines():
        about, _, rest = line.rstrip().partition(" ")
        told.setdefault(about, []).append(rest)
    return Look(
        architecture=told["architecture"][0],
        hostname=told["hostname"][0],
        memory_mb=int(told["Mem_kb"][0]) // 1024,
        swap_mb=int(told["Swap_kb"][0]) // 1024,
        disk_mb=int(told["disk_kb"][0]) // 1024,
        swap_at_boot=tuple(told.get("swap_at_boot", [])),
        limits_memory="limits" in told,
        cloud_init="cloud_init" in told,
        listening="\n".join(told.get("listening", [])) if "ss" in told else None,
        units=dict(process.split(" ", 1) for process in told.get("unit", [])),
        packages=tuple(told.get("installed", [])),
        boot_files=tuple(told.get("boot_file", [])),
        hosts=tuple(told.get("hosts", [])),
    )


def as_values(answer: str) -> dict[str, Any]:
    """For the playbooks."""
    return {
        key: list(value) if isinstance(value, tuple) else value for key, value in asdict(look(answer)).items()
    }


def swap_off_files(names: Sequence[str] | None = None) -> dict[str, str]:
    """Path → content of the files that keep these, or all that are known, from bringing swap."""
    wanted = [maker for name, maker in SWAP_MAKERS.items() if names is None or name in names]
    return {maker.file: maker.content for maker in wanted}


def node_problems(
    answer: str, node: str, architectures: Sequence[str], smallest_memory_mb: int, smallest_disk_mb: int,
    ports: Mapping[int | str, Sequence[str]], kernel_options: Sequence[str],
) -> list[str]:  # fmt: skip
    """One line per reason why a node cannot carry the fog, each with what to change."""
    seen, problems = look(answer), []
    if seen.architecture not in architectures or seen.memory_mb < smallest_memory_mb:
        problems.append(
            f"{node} has the architecture {seen.architecture} and {seen.memory_mb} MB of memory, but the fog "
            f"needs one of {', '.join(architectures)} (a 64-bit system) and {smallest_memory_mb} MB: install "
            "a 64-bit system or use another machine"
        )
    if seen.disk_mb < smallest_disk_mb and OURS not in seen.hosts:  # later the fog itself takes the room
        problems.append(
            f"{node} has {seen.disk_mb} MB of disk left, but the fog needs {smallest_disk_mb} MB: make room "
            "there, or use a larger card"
        )
    if ports and seen.listening is None:
        problems.append(f"{node} has no ss to see its ports with: apt-get install iproute2")
    conflicts = port_conflicts(seen.listening or "", seen.units, ports)
    problems += [f"{node}: {conflict}" for conflict in conflicts]
    if not seen.limits_memory and not seen.boot_files:  # a Raspberry Pi is given the options, and rebooted
        problems.append(
            f"the kernel of {node} cannot limit the memory of containers: add '{' '.join(kernel_options)}' "
            "to its command line and reboot it"
        )
    return problems
