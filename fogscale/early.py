"""Imported first by the command line: Ctrl-C while all the rest is still being imported is one line, too."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType


def _before_anything(_signal: int, _frame: FrameType | None) -> None:
    os.write(2, b"fogscale: interrupted; nothing was done\n")
    os._exit(130)


if sys.argv[0].rpartition(os.sep)[2] in ("fogscale", "__main__.py"):  # not where a script imports it
    signal.signal(signal.SIGINT, _before_anything)
