"""Ports that a service wants but something else holds."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

# For any POSIX shell: what listens, and the systemd unit of every process that does. A process alone does not
# tell: many a service is a `java`.
LISTENERS = (
    "ss -Hltnp | sed 's/^/listening /'; "
    "for pid in $(ss -Hltnp | grep -o 'pid=[0-9]*' | cut -d= -f2 | sort -u); do "
    r"sed -nE 's#.*/system\.slice/(.*/)?([^/]+\.service)(/.*)?$#\2#p' /proc/$pid/cgroup 2>/dev/null "
    '| sort -u | sed "s/^/unit $pid /"; done'
)

_LISTENING = re.compile(r"^\S+\s+\S+\s+\S+\s+\S*:(\d+)\s+\S+(?:\s+users:\((.*)\))?", re.MULTILINE)
_HOLDER = re.compile(r'"([^"]+)",pid=(\d+)')


def port_conflicts(
    listening: str, units: Mapping[str, str], wanted: Mapping[int | str, Sequence[str]]
) -> list[str]:
    """`listening` is what `ss -Hltnp` prints, `units` the unit of each process; `wanted` says which units may
    hold a port: our own, from an earlier run."""
    allowed = {int(port): set(names) for port, names in wanted.items()}
    strangers: dict[int, set[str]] = {}
    for port, users in _LISTENING.findall(listening):
        found = strangers.setdefault(int(port), set())
        found.update(_strangers(users, units, allowed.get(int(port), set())))
    return [
        f"port {port} is in use by {', '.join(sorted(holders))}: stop it, or give the service another port"
        for port in sorted(allowed)
        if (holders := strangers.get(port))
    ]


def _strangers(users: str, units: Mapping[str, str], allowed: set[str]) -> set[str]:
    holders = _HOLDER.findall(users)
    if not holders:
        return {"a program it does not name"}
    return {
        f"{program} ({units[pid]})" if pid in units else program
        for program, pid in holders
        if units.get(pid) not in allowed
    }
