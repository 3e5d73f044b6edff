"""Folders of a testbed: the same for the playbooks and for `fogscale testbed`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[2]))  # the checkout, also where the package is not installed

from fog.artifacts.store import Store, store
from fog.folders import cache_folder, checkout, state_folder


@lru_cache  # a playbook asks for the same again and again
def _store(architecture: str | None) -> Store:
    return store(checkout(), cache_folder(), architecture)


def artifact_folders(names: Sequence[str], architecture: str | None = None) -> dict[str, str]:
    """Where each artifact lies in the cache, or will lie once it is there."""
    return {str(name): str(_store(architecture or None).folder(str(name))) for name in names}


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {
            "fog_state_folder": lambda testbed: str(state_folder(str(testbed))),
            "fog_artifact_folders": artifact_folders,
            "fog_cache_folder": lambda name: str(cache_folder() / str(name)),
        }
