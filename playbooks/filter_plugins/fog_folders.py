"""Folders of a testbed: the same for the playbooks and for `fogscale testbed`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[2]))  # the checkout, also where the package is not installed

from controller.testbeds.fog.folders import cache_folder, state_folder


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {
            "fog_state_folder": lambda testbed: str(state_folder(str(testbed))),
            "fog_cache_folder": lambda name: str(cache_folder() / str(name)),
        }
