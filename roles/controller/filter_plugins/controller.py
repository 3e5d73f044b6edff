"""Filters of controller."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[3]))  # the checkout, also where the package is not installed

from fog.services.tokens import holds, token_in


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"token_in": token_in, "token_holds": holds}
