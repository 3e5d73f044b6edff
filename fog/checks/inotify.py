"""Inotify instances, of which Linux gives each user so many, whatever testbed they are for. Where they run
out, pods on emulated nodes start without their watchers and nobody says so: metrics are missing, no more."""

from __future__ import annotations

import ctypes
import errno
import os
from pathlib import Path

from fogscale.errors import FogscaleError

NEEDED = 4  # for the pods that come and go in a run; what stands already has its own
LIMIT = Path("/proc/sys/fs/inotify/max_user_instances")

_libc = ctypes.CDLL(None, use_errno=True)


def spare_instances(most: int) -> int:
    """How many this user may still have, counted up to `most`: by taking them and giving them back."""
    taken: list[int] = []
    try:
        while len(taken) < most:
            descriptor = _libc.inotify_init1(os.O_CLOEXEC)
            if descriptor < 0:
                if ctypes.get_errno() != errno.EMFILE:
                    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
                break
            taken.append(descriptor)
    finally:
        for descriptor in taken:
            os.close(descriptor)
    return len(taken)


def check_spare_instances(needed: int = NEEDED) -> None:
    spare = spare_instances(needed)
    if spare < needed:
        raise FogscaleError(
            f"only {spare} of this user's {LIMIT.read_text().strip()} inotify instances are free, a run needs"
            f" {needed}: sysctl -w fs.inotify.max_user_instances=512, or take another testbed down"
        )
