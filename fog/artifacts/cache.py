"""Folders that are made once, wholly or not at all."""

from __future__ import annotations

import fcntl
from collections.abc import Callable
from pathlib import Path

from fog.emulation.state import remove_tree
from fogscale.files import opened_lock


def make_once(folder: Path, make: Callable[[Path], None]) -> bool:
    """Whether it had to be made. `make` makes it under the name it is given, so that an interrupted or failed
    attempt leaves nothing that counts as done."""
    if folder.is_dir():
        return False
    folder.parent.mkdir(parents=True, exist_ok=True)
    with opened_lock(folder.with_name(f"{folder.name}.lock")) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # whoever makes the same meanwhile is waited for
        if folder.is_dir():
            return False
        unfinished = folder.with_name(f"{folder.name}.unfinished")
        remove_tree(unfinished)
        try:
            make(unfinished)
        except Exception:
            remove_tree(unfinished)
            raise
        unfinished.rename(folder)
    return True
