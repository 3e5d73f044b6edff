"""Where testbeds keep their things on the machine that controls them."""

from __future__ import annotations

import os
from pathlib import Path

from fogscale.errors import FogscaleError

TESTBEDS = ("local", "pi")  # the inventories


def checkout() -> Path:
    """The folder with site.yml: playbooks and roles are used from there."""
    folder = Path(__file__).parents[1]
    if not (folder / "site.yml").exists():
        raise FogscaleError(
            "the playbooks are not installed with the package: run fogscale from its checkout"
        )
    return folder


def state_folder(testbed: str) -> Path:
    """Below $FOGSCALE_STATE, else this user's folder for state."""
    base = os.environ.get("FOGSCALE_STATE")
    if base:
        return Path(base).absolute() / testbed
    home = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local/state")
    return Path(home) / "fogscale" / testbed


def cache_folder() -> Path:
    from analysis.spark import cache_folder as folder

    return folder()
