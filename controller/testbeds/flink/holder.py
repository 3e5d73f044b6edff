"""Who holds a lease: a process of a machine, by a name that tells whether it still runs. After a kill -9 the
next controller on the same machine need not wait until the lease runs out."""

from __future__ import annotations

import os
import socket
from pathlib import Path

_PARTS = 3  # host, process, when it began


def this_process() -> str:
    return f"{socket.gethostname()}/{os.getpid()}/{_begun(os.getpid())}"


def has_ended(holder: str) -> bool:
    """Known of processes of this machine only; of others, never."""
    parts = holder.rsplit("/", _PARTS - 1)
    if len(parts) != _PARTS or parts[0] != socket.gethostname() or not parts[1].isdigit():
        return False
    return _begun(int(parts[1])) != parts[2]


def _begun(process: int) -> str:
    """In ticks since the machine started, so that another process with the same number is told apart; empty
    where there is none."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return ""
    # The second field is a name in brackets, in which anything may stand; the 22nd is the time.
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] == "Z" else fields[19]
