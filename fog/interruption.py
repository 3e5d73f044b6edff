"""An interruption while Ansible runs. It reaches us alone: Ansible has a terminal of its own, and its workers
even sessions of their own, which would outlive it with all that they started, a build of minutes included."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from types import FrameType, TracebackType
from typing import NamedTuple

from fogscale.signals import while_ending


class Process(NamedTuple):
    number: int
    parent: int
    session: int


class Interruption:
    """Entered, it only notes a signal; called, it says whether there was one, having ended Ansible and its
    workers."""

    def __init__(self) -> None:
        self.came = False

    def __enter__(self) -> Interruption:
        # What was there before is none of Ansible's: Spark's Java, for one.
        self._older = {each.number for each in processes() if each.parent == os.getpid()}
        self._noting = while_ending(self._note)
        self._noting.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._noting.__exit__(kind, error, trace)

    def __call__(self) -> bool:
        if self.came:
            end_sessions_of_children(self._older)
        return self.came

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.came = True


def processes() -> list[Process]:
    """All that live."""
    found = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, parent, _, session = file.read_text().rpartition(")")[2].split()[:4]
            if state != "Z":
                found.append(Process(int(file.parent.name), int(parent), int(session)))
    return found


def end_sessions_of_children(spared: Collection[int], patience_s: float = 5.0) -> None:
    """Those of our children and of theirs, but for the children to be spared. What made a session of its own
    further down is meant to stay: the supervisor of the nodes, connections of ssh."""
    living = processes()
    children = {each.number for each in living if each.parent == os.getpid() and each.number not in spared}
    near = [each for each in living if each.number in children or each.parent in children]
    sessions = {each.session for each in near} - {os.getsid(0)}
    deadline = time.monotonic() + patience_s
    while (
        left := [each for each in processes() if each.session in sessions]
    ) and time.monotonic() < deadline:
        for each in left:
            with suppress(ProcessLookupError):
                os.kill(each.number, signal.SIGKILL)
        time.sleep(0.02)
