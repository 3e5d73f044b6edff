"""What a node tells of itself in answer to one question, and what speaks against taking it into the fog."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from controller.testbeds.fog.ports import port_conflicts


@dataclass(frozen=True)
class Look:
    architecture: str
    hostname: str
    memory_mb: int
    swap_mb: int
    swap_at_boot: bool
    limits_memory: bool  # of containers: a Raspberry Pi's kernel does so only when told
    listening: str | None  # as `ss -Hltnp` prints it; None: there is no ss
    packages: tuple[str, ...]  # of those asked for
    boot_files: tuple[str, ...]
    hosts: tuple[str, ...]  # lines of /etc/hosts


def look_script(packages: Sequence[str], boot_files: Sequence[str]) -> str:
    """For any POSIX shell; every line of its answer begins with what it is about."""
    names, files = (" ".join(map(shlex.quote, each)) for each in (packages, boot_files))
    return (
        'echo "architecture $(uname -m)"; echo "hostname $(hostname)"; '
        "sed -nE 's/^(Mem|Swap)Total: *([0-9]+) kB/\\1_kb \\2/p' /proc/meminfo; "
        "grep -qsE '^[^#]\\S*\\s+\\S+\\s+swap\\s' /etc/fstab && echo 'swap_at_boot'; "
        "grep -qE '^memory\\s+[0-9]+\\s+[0-9]+\\s+1$' /proc/cgroups && echo 'limits memory'; "
        "command -v ss > /dev/null && { echo ss; ss -Hltnp | sed 's/^/listening /'; }; "
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
        swap_at_boot="swap_at_boot" in told,
        limits_memory="limits" in told,
        listening="\n".join(told.get("listening", [])) if "ss" in told else None,
        packages=tuple(told.get("installed", [])),
        boot_files=tuple(told.get("boot_file", [])),
        hosts=tuple(told.get("hosts", [])),
    )


def as_values(answer: str) -> dict[str, Any]:
    """For the playbooks."""
    return {
        key: list(value) if isinstance(value, tuple) else value for key, value in asdict(look(answer)).items()
    }


def node_problems(
    answer: str, node: str, architectures: Sequence[str], smallest_memory_mb: int,
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
    if ports and seen.listening is None:
        problems.append(f"{node} has no ss to see its ports with: apt-get install iproute2")
    problems += [f"{node}: {conflict}" for conflict in port_conflicts(seen.listening or "", ports)]
    if not seen.limits_memory and not seen.boot_files:  # a Raspberry Pi is given the options, and rebooted
        problems.append(
            f"the kernel of {node} cannot limit the memory of containers: add '{' '.join(kernel_options)}' "
            "to its command line and reboot it"
        )
    return problems
