"""Where testbeds keep their things on the machine that controls them."""

from __future__ import annotations

import os
from pathlib import Path

from fogscale.errors import FogscaleError
from fogscale.files import users_folder

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
    home = users_folder("XDG_STATE_HOME", ".local/state")
    if home is None:
        raise FogscaleError("nobody says which folder is your home: set HOME, or FOGSCALE_STATE to a folder")
    return home / "fogscale" / testbed


def cache_folder() -> Path:
    from analysis.spark import cache_folder as folder

    return folder()
