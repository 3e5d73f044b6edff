"""What ends a command in order, each in the same way: Ctrl-C, SIGTERM (`timeout`, `systemctl stop`, the queue
of a cluster) and SIGHUP (the terminal is gone)."""

from __future__ import annotations

import ctypes
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_PR_SET_PDEATHSIG = 1

Handler = Callable[[int, FrameType | None], Any] | int | signal.Handlers | None

# What the caller told us to ignore stays ignored: so does nohup work. But scripts ignore Ctrl-C for all that
# they start with &, and nobody who sends an interrupt to it by number means that.
ENDING = tuple(
    each
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    if each == signal.SIGINT or signal.getsignal(each) != signal.SIG_IGN
)


def on_ending(handler: Handler) -> None:
    for each in ENDING:
        signal.signal(each, handler)


def ignore_endings() -> None:
    """Once is enough: what follows takes seconds. Processes that are started then inherit it."""
    on_ending(signal.SIG_IGN)


@contextmanager
def while_ending(handler: Handler) -> Iterator[None]:
    """The handler holds in the block; not in other threads than the main one, where signals do not arrive."""
    try:
        before = {each: signal.signal(each, handler) for each in ENDING}
    except ValueError:
        yield
        return
    try:
        yield
    finally:
        for each, older in before.items():
            signal.signal(each, older)


def end_with_parent(by: signal.Signals) -> None:
    """Also where the parent was killed with -9."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, by)
