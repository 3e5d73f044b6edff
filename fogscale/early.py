"""Imported first by the command line: an interruption while all the rest is still being imported is one line,
too, and whatever is opened later is no standard stream."""

from __future__ import annotations

import logging
import os
import sys
from contextlib import suppress
from types import FrameType

from fogscale.signals import on_ending


def _before_anything(_signal: int, _frame: FrameType | None) -> None:
    with suppress(OSError):  # of a terminal that is gone
        os.write(2, b"fogscale: interrupted; nothing was done\n")
    os._exit(130)


def _fill_standard_streams() -> None:
    """Where the caller closed one (`>&-`), a journal would be opened as standard output, and everything that
    is printed, by Java too, would go into it."""
    for number, mode in enumerate("rww"):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free: this one
            os.set_inheritable(number, True)
            setattr(sys, ("stdin", "stdout", "stderr")[number], os.fdopen(number, mode, closefd=False))


def _is_the_command() -> bool:
    """Not a script that imports it, and no process that the command has started: that imports what its parent
    was started from, and leaves signals to it."""
    is_child = "--multiprocessing-fork" in sys.orig_argv
    return not is_child and sys.argv[0].rpartition(os.sep)[2] in ("fogscale", "__main__.py")


if _is_the_command():
    _fill_standard_streams()
    os.environ["MPLBACKEND"] = "agg"  # figures go into files: the caller's windows may not be there
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # that it finds no cache is no news to anybody
    on_ending(_before_anything)
