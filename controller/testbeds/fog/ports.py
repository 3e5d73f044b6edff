"""Ports that a service wants but something else holds."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_LISTENING = re.compile(r"^\S+\s+\S+\s+\S+\s+\S*:(\d+)\s+\S+(?:\s+users:\((.*)\))?", re.MULTILINE)
_PROGRAM = re.compile(r'"([^"]+)"')


def port_conflicts(listening: str, wanted: Mapping[int | str, Sequence[str]]) -> list[str]:
    """`listening` is what `ss -Hltnp` prints; `wanted` says which programs may hold a port: our own, from an
    earlier run."""
    holders: dict[int, set[str]] = {}
    for port, users in _LISTENING.findall(listening):
        holders.setdefault(int(port), set()).update(_PROGRAM.findall(users) or {"a program it does not name"})
    return [
        f"port {port} is in use by {', '.join(sorted(strangers))}: stop it, or give the service another port"
        for port, programs in sorted((int(port), programs) for port, programs in wanted.items())
        if (strangers := holders.get(port, set()) - set(programs))
    ]
