"""Ctrl-C, SIGTERM or SIGHUP at a drawn moment of a drawn command: one line, 130, no process left, and the
same command goes on to what it would have made without."""

from __future__ import annotations

import hashlib
import random
import shutil
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from controller.recording import JOURNAL
from tests.support.processes import Ended, Watched
from tests.support.runs import load_csv
from tests.support.taxi_files import FOIL_HEADER, foil

GONE_WITHIN_S, LONGEST_S = 10.0, 900.0
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# As a terminal starts it, also where the tests are run by nohup or in the background.
FOGSCALE = ("env", "--default-signal=INT,TERM,HUP", sys.executable, "-m", "fogscale")
SMALL = {"SPARK_MASTER": "local[1]"}
COMMANDS: Mapping[str, Sequence[str]] = {
    "run": (
        "run",
        "--policy",
        "gesscale",
        "--policy",
        "thr_nlaware",
        "--seed",
        "1",
        "--workload",
        "load.csv",
    ),
    "compare": ("compare", "--policies", "static,thr_nlaware", "--seeds", "2", "--workload", "load.csv"),
    "analyze": ("analyze", "recorded"),
    "figures": ("figures", "--paper", "gesscale", "--seeds", "2"),
    "trace import": ("trace", "import", "taxi", "trips.csv", "--fresh"),
    "protocol explore": ("protocol", "explore", "large", "--processes", "2"),
    "workloads show": ("workloads", "show", "taxi", "--plot", "taxi.png"),
}
ONLY_BEGUN_S = {"figures": 60.0, "protocol explore": 20.0}  # those that take minutes are not waited for


@dataclass
class Interrupts:
    """In a folder. Each command is first let run to its end: how long it takes, and what it makes."""

    folder: Path
    _whole: dict[str, tuple[float, dict[str, str]]] = field(default_factory=dict)

    def attempt(self, seed: int) -> str:
        """right (done before, or interrupted as it should be), or what else became of it."""
        rng = random.Random(f"interrupt {seed}")
        name = rng.choice(list(COMMANDS))
        signals = rng.choices(SIGNALS, k=rng.choice((1, 1, 5)))  # some people press it more than once
        return self.interrupted(name, f"{name}-{seed}", (rng.random(), signals))

    def interrupted(self, name: str, place: str, *moments: tuple[float, Sequence[signal.Signals]]) -> str:
        """Each after that share of the time that the command takes; then it is let run to its end."""
        took_s, wanted = self.whole(name)
        folder = self._prepared(place)
        problem = None
        for share, signals in moments:
            problem = self._pressed(name, folder, share * took_s, signals)
            if problem is not None:
                break
        if problem is None and wanted and (wanted != (made := self._to_its_end(name, folder))):
            lost = {path for path in wanted | made if wanted.get(path) != made.get(path)}
            problem = f"{name}: not what it would have been: {sorted(lost)[:5]}"
        if problem is not None:
            print(f"  {problem}", file=sys.stderr, flush=True)
        shutil.rmtree(folder)
        return problem or "right"

    def _pressed(
        self, name: str, folder: Path, after_s: float, signals: Sequence[signal.Signals]
    ) -> str | None:
        command = Watched([*FOGSCALE, *COMMANDS[name]], folder, SMALL)
        command.wait_until_it_imports()
        time.sleep(after_s)
        for each in signals:
            command.interrupt(each)
            time.sleep(0.01)
        problem = _problem(command.ended(GONE_WITHIN_S))
        return problem and f"{[each.name for each in signals]} after {after_s:.2f} s of {name}: {problem}"

    def whole(self, name: str) -> tuple[float, dict[str, str]]:
        """Seconds, and what is there then."""
        if name in ONLY_BEGUN_S:
            return ONLY_BEGUN_S[name], {}
        if name not in self._whole:
            folder = self._prepared(f"{name}-whole")
            began_s = time.monotonic()
            made = self._to_its_end(name, folder)
            self._whole[name] = time.monotonic() - began_s, made
            shutil.rmtree(folder)
        return self._whole[name]

    def _to_its_end(self, name: str, folder: Path) -> dict[str, str]:
        ended = Watched([*FOGSCALE, *COMMANDS[name]], folder, SMALL).ended(LONGEST_S)
        assert ended.code == 0, (name, ended)
        return {
            str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in folder.rglob(JOURNAL)
        }

    def _prepared(self, place: str) -> Path:
        folder = self.folder / place.replace(" ", "-")
        folder.mkdir()
        load_csv(folder, [60, 150, 90, 240, 30])
        trips = "\n".join([FOIL_HEADER, *(foil(taxi) for taxi in range(5000)), ""])
        (folder / "trips.csv").write_text(trips)
        recorded = self.folder / "recorded"
        if not recorded.exists():
            short = ("--workload", str(folder / "load.csv"), "--out", "recorded")
            command = [*FOGSCALE, "run", "--policy", "static", "--seed", "1", *short]
            assert Watched(command, self.folder).ended(LONGEST_S).code == 0
        shutil.copytree(recorded, folder / "recorded")
        return folder


def _problem(ended: Ended) -> str | None:
    if ended.code is None:
        return f"not gone {GONE_WITHIN_S:g} s later: {ended.stderr[-200:]!r}"
    if ended.left:
        return f"left behind: {ended.left}"
    if ended.code == 0 and not ended.stderr:
        return None  # it was done before
    is_one_line = ended.stderr.startswith(b"fogscale: interrupted") and ended.stderr.count(b"\n") == 1
    if ended.code != 130 or not is_one_line:
        return f"exit code {ended.code}: {ended.stderr[-300:]!r}"
    return None
