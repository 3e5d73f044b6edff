"""Filters of node_baseline."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[3]))  # the checkout, also where the package is not installed

from controller.testbeds.fog.ports import port_conflicts


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"port_conflicts": port_conflicts}
