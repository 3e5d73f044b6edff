"""Filters of grafana: a thin wrapper around the tested function of fog."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[3]))  # the checkout, also where the package is not installed

from fog.services.dashboards import dashboard


class FilterModule:
    def filters(self) -> dict[str, Any]:
        def text(wanted: Mapping[str, Any]) -> str:
            return json.dumps(dashboard(wanted), indent=2) + "\n"

        return {"grafana_dashboard": text}
