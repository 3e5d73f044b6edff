"""Processes under a watch: what a command started is found by a mark in its environment, wherever it went."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_MARK = "FOGSCALE_TEST_MARK"
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_LOOK_EVERY_S = 0.25
ORPHANED_AFTER_S = 10.0


@dataclass(frozen=True)
class Ended:
    """How a command ended; `left` are the processes of it that were still there ten seconds later."""

    code: int | None  # None: it hung, and was killed
    stdout: bytes
    stderr: bytes
    left: tuple[str, ...]


class Watched:
    """A command in a session of its own, as a terminal starts it."""

    def __init__(
        self, command: Sequence[str], cwd: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self.mark = f"{os.getpid()}-{secrets.token_hex(8)}"
        self._streams = [cwd / f".{self.mark}.{name}" for name in ("out", "err")]
        with self._streams[0].open("wb") as out, self._streams[1].open("wb") as err:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=cwd,
                env={**os.environ, **(environment or {}), _MARK: self.mark},
                start_new_session=True,
            )

    def wait_until_it_imports(self) -> None:
        """Python itself takes a moment to start, and no program can say what happens then."""
        maps, deadline_s = Path(f"/proc/{self.process.pid}/maps"), time.monotonic() + 60
        with suppress(OSError):
            while "numpy" not in maps.read_text() and time.monotonic() < deadline_s:
                time.sleep(0.01)

    def interrupt(self, by: signal.Signals = signal.SIGINT) -> None:
        """As a terminal does with Ctrl-C: everything in the foreground gets it."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, by)

    def ended(self, within_s: float) -> Ended:
        """Waits; seconds in which it wanted a processor and got none do not count."""
        spent_s, began_s = 0.0, time.monotonic()
        while spent_s < within_s:
            try:
                self.process.wait(_LOOK_EVERY_S)
                break
            except subprocess.TimeoutExpired:
                pids = list(marked(self.mark))
                slept = not any(_is_eager(pid) for pid in pids)
                began_s, elapsed_s = time.monotonic(), time.monotonic() - began_s
                spent_s += elapsed_s if slept else self._cpu_since_last_look_s(pids, elapsed_s)
        code = self.process.poll()
        left = () if code is None else self._left_behind()
        for pid in marked(self.mark):  # all of them are ours
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        out, err = (path.read_bytes() for path in self._streams)
        for path in self._streams:
            path.unlink()
        return Ended(code, out, err, left)

    _cpu_s = 0.0

    def _cpu_since_last_look_s(self, pids: Sequence[int], most_s: float) -> float:
        before, self._cpu_s = self._cpu_s, sum(_cpu_s(pid) for pid in pids)
        return min(max(self._cpu_s - before, 0.0), most_s)

    def _left_behind(self) -> tuple[str, ...]:
        deadline_s = time.monotonic() + ORPHANED_AFTER_S
        while pids := list(marked(self.mark)):
            if time.monotonic() > deadline_s:
                return tuple(_command_line(pid) for pid in pids)
            time.sleep(_LOOK_EVERY_S)
        return ()


def marked(mark: str) -> Iterator[int]:
    """The processes that have the mark in their environment, and are no zombies."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"{_MARK}={mark}".encode() in (folder / "environ").read_bytes():
                yield int(folder.name)


def has_children() -> bool:
    """Whether this process has started one that it did not wait for."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _is_eager(pid: int) -> bool:
    """Whether one of its threads runs, or would."""
    with suppress(OSError):
        return any(_stat(path)[0] in "RD" for path in Path(f"/proc/{pid}/task").glob("*/stat"))
    return False


def _cpu_s(pid: int) -> float:
    with suppress(OSError):
        words = _stat(Path(f"/proc/{pid}/stat"))
        return (int(words[11]) + int(words[12])) / _TICKS_PER_S
    return 0.0


def _stat(path: Path) -> list[str]:
    """From the state on: what stands before it may hold blanks and brackets."""
    return path.read_text(errors="replace").rpartition(")")[2].split()


def _command_line(pid: int) -> str:
    with suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
        return words.decode(errors="replace")[:100]
    return "gone"
