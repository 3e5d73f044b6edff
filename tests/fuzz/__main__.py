"""`make fuzz`: 10,000 attempts in this process, 300 through the command line and 60 interruptions, each
by a number; prints a table and fails where anything came of them but a right result or one clear line.

`python -m tests.fuzz ATTEMPTS CALLS INTERRUPTS FIRST` tries so many from a number on: parts that follow each
other try what one long run tries. With `--json FILE` the counts are kept, and added to what the file holds.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType

from tests.fuzz.commands import LONGEST_S, called
from tests.fuzz.interrupts import Interrupts
from tests.fuzz.targets import TARGETS, HangError, Target, attempt
from tests.support.processes import has_children

Found = dict[str, Counter[str]]
COMMANDS, INTERRUPTS = "the command line", "interruptions"


class Alarm:
    """Rings once an attempt has taken a minute; seconds in which it waited for a processor do not count."""

    def __enter__(self) -> None:
        self._began_s, self._waited_s = time.monotonic(), _waited_s()
        signal.signal(signal.SIGALRM, self._ring)
        signal.setitimer(signal.ITIMER_REAL, LONGEST_S)

    def __exit__(self, *_error: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)

    def _ring(self, _signal: int, _frame: FrameType | None) -> None:
        taken_s = time.monotonic() - self._began_s - (_waited_s() - self._waited_s)
        if taken_s >= LONGEST_S:
            raise HangError(f"longer than {LONGEST_S:g} s")
        signal.setitimer(signal.ITIMER_REAL, LONGEST_S - taken_s)


def _waited_s() -> float:
    """For a processor, since this process began; 0 where the kernel does not count it."""
    try:
        return int(Path("/proc/self/schedstat").read_text().split()[1]) / 1e9
    except OSError:
        return 0.0


def attacked(attempts: int, folder: Path, first: int = 0) -> Found:
    """What came of so many attempts in this process, by target."""
    target, found = Target(folder), {}
    for name, (_, share) in TARGETS.items():
        found[name] = Counter[str]()
        for seed in range(first * share // 100, (first + attempts) * share // 100):
            with Alarm():
                outcome = attempt(target, name, seed)
            if has_children():
                outcome = "a process left behind"
            found[name][outcome] += 1
            if outcome not in ("right", "refused"):
                print(f"  {name}, seed {seed}: {outcome}", file=sys.stderr, flush=True)
    return found


def by_command(attempts: int, folder: Path, first: int = 0, at_once: int = 2) -> Counter[str]:
    """What came of so many calls of the command line."""
    target = Target(folder)
    _ = target.experiment, target.recorded
    with ThreadPoolExecutor(at_once) as threads:
        return Counter(threads.map(lambda seed: called(target, seed), range(first, first + attempts)))


def by_interrupt(attempts: int, folder: Path, first: int = 0) -> Counter[str]:
    """What came of interruptions at so many moments, one after the other."""
    interrupts = Interrupts(folder)
    return Counter(interrupts.attempt(seed) for seed in range(first, first + attempts))


def table(found: Mapping[str, Counter[str]]) -> tuple[str, int]:
    """The table, and how many attempts ended otherwise than they should."""
    rows = [f"{'':<22}{'attempts':>10}{'right':>8}{'refused':>9}{'anything else':>15}"]
    total = Counter[str]()
    for name, outcomes in (*found.items(), ("together", total)):
        others = outcomes.total() - outcomes["right"] - outcomes["refused"]
        numbers = f"{outcomes.total():>10}{outcomes['right']:>8}{outcomes['refused']:>9}{others:>15}"
        rows.append(f"{name:<22}{numbers}")
        if outcomes is not total:
            total.update(outcomes)
    return "\n".join(rows), total.total() - total["right"] - total["refused"]


def added(found: Found, file: Path) -> Found:
    """To what the file holds of earlier parts; it then holds all."""
    before = json.loads(file.read_text()) if file.exists() else {}
    together = {name: Counter(before.get(name, {})) + counts for name, counts in found.items()}
    together |= {name: Counter(counts) for name, counts in before.items() if name not in together}
    file.write_text(json.dumps(together, indent=1))
    return together


def main() -> None:
    parser = argparse.ArgumentParser(description="damaged files, odd answers and odd commands, by number")
    parser.add_argument("attempts", type=int, nargs="?", default=10_000)
    parser.add_argument("calls", type=int, nargs="?", default=300)
    parser.add_argument("interrupts", type=int, nargs="?", default=60)
    parser.add_argument("first", type=int, nargs="?", default=0)
    parser.add_argument("--at-once", type=int, default=2, help="calls of the command line at a time")
    parser.add_argument("--json", type=Path, help="where the counts of all parts are kept")
    given = parser.parse_args()
    began_s = time.monotonic()
    with TemporaryDirectory(prefix="fogscale-fuzz-") as name:
        found = attacked(given.attempts, Path(name), given.first) if given.attempts else {}
    if given.calls:
        with TemporaryDirectory(prefix="fogscale-fuzz-") as name:
            found[COMMANDS] = by_command(given.calls, Path(name), given.first, given.at_once)
    if given.interrupts:
        with TemporaryDirectory(prefix="fogscale-fuzz-") as name:
            found[INTERRUPTS] = by_interrupt(given.interrupts, Path(name), given.first)
    _, wrong = table(found)
    print(table(added(found, given.json) if given.json else found)[0])
    print(f"{time.monotonic() - began_s:.0f} s")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
