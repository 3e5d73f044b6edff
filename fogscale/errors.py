"""Errors a user can mend, and how misspelt names find their way back."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class FogscaleError(Exception):
    """Something the user can mend: its message is one line that says what to change. Exit code 2."""


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """One line for a name that does not exist, with the nearest one that does."""
    names = sorted(known)
    near = get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}? " if near else ""
    return f"unknown {kind} '{name}': {hint}(known: {', '.join(names) or 'none'})"
