"""Filters of node_baseline."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[3]))  # the checkout, also where the package is not installed

from fog.checks.baseline import as_values, look_script, node_problems, swap_off_files


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {
            "look_script": look_script,
            "node_look": as_values,
            "node_problems": node_problems,
            "swap_off_files": swap_off_files,
        }
