"""Spark's daemon of Python workers, silent about those whose task was ended.

Where one task fails, Spark ends the others in mid-work. Their workers find nobody to speak to any more, and
Spark's own daemon prints a traceback for each: beside the one line that says what went wrong.
"""

from __future__ import annotations

import sys
import traceback
from types import SimpleNamespace
from typing import Any

from pyspark import daemon


def print_unless_left() -> None:
    if not isinstance(sys.exception(), EOFError | ConnectionError):
        traceback.print_exc()


if __name__ == "__main__":
    sparks_own: Any = daemon
    sparks_own.traceback = SimpleNamespace(print_exc=print_unless_left, format_exc=traceback.format_exc)
    sparks_own.manager()
