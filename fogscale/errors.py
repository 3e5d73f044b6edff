"""Errors a user can mend, and how misspelt names find their way back."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from difflib import get_close_matches


class FogscaleError(Exception):
    """Something the user can mend: its message is one line that says what to change. Exit code 2."""


class Interrupted(FogscaleError):  # noqa: N818  # nothing went wrong
    """Somebody pressed Ctrl-C; the message says what became of the work. Exit code 130."""


def warn(message: str) -> None:
    """One line to standard error about something that is done all the same."""
    print(f"fogscale: {' '.join(message.split())}", file=sys.stderr)


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """One line for a name that does not exist, with the nearest one that does."""
    names = sorted(known)
    name = name if len(name) <= 100 else f"{name[:100]}…"
    near = get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}? " if near else ""
    return f"unknown {kind} '{name}': {hint}(known: {', '.join(names) or 'none'})"
