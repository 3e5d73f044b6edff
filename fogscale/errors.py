"""Errors a user can fix, and how misspelt names find their way back."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from difflib import get_close_matches

LONGEST_LINE = 1200  # characters of a message


class FogscaleError(Exception):
    """Something the user can fix: its message is one line that says what to change. Exit code 2."""


class Interrupted(BaseException):  # nothing went wrong
    """Somebody pressed Ctrl-C; the message says what became of the work. Exit code 130.

    No `Exception`: it comes at any moment, also while a plug-in is imported or a policy decides, and whoever
    catches what those do wrong must not take it for that. No KeyboardInterrupt either, which typer turns into
    an exit code that nobody looks at."""


def printable(text: str, kept: str = "") -> str:
    """With codes for what a terminal would obey instead of showing it: names and reasons come from anybody's
    files."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each in kept else ascii(each)[1:-1] for each in text)


def one_line(message: str) -> str:
    """However long the value that it repeats."""
    line = printable(" ".join(message.split()))
    return (
        line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE // 2]} … {line[-LONGEST_LINE // 2 :]}"
    )


def warn(message: str) -> None:
    """One line to standard error about something that is done all the same."""
    print(f"fogscale: {one_line(message)}", file=sys.stderr)


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """One line for a name that does not exist, with the nearest one that does."""
    names = sorted(known)
    name = printable(name if len(name) <= 100 else f"{name[:100]}…")
    near = get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}? " if near else ""
    return f"unknown {kind} '{name}': {hint}(known: {', '.join(names) or 'none'})"
