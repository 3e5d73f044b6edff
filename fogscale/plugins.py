"""Other people's code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

LONGEST_REASON = 300  # characters


def why_broken(place: str, load: Callable[[], Any]) -> str | None:
    """Loads it. It can fail in any way; that is its own matter, and no reason to stop the others."""
    try:
        load()
    except (Exception, SystemExit) as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:LONGEST_REASON]
        return f"{place} cannot be imported ({reason}): fix or remove it"
    return None
