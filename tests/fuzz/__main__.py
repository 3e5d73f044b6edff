"""`make fuzz`: 10,000 attempts in this process and 300 through the command line, seeded; prints a table and
fails where anything came of them but a right result or one clear line."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType

import yaml

from tests.fuzz.mutations import HOSTILE, damaged, mutated
from tests.fuzz.targets import TARGETS, Target, attempt

LONGEST_S = 60
COMMANDS = ("run", "replay", "workloads show", "policies", "calibrate", "compare", "testbeds")


def hung(_signal: int, _frame: FrameType | None) -> None:
    raise TimeoutError(f"longer than {LONGEST_S} s")


def attacked(attempts: int, folder: Path, first_seed: int = 0) -> dict[str, Counter[str]]:
    """What came of so many attempts in this process, by target."""
    target, found = Target(folder), {}
    signal.signal(signal.SIGALRM, hung)
    for name, (_, share) in TARGETS.items():
        found[name] = Counter[str]()
        for seed in range(first_seed, first_seed + attempts * share // 100):
            signal.alarm(LONGEST_S)
            outcome = attempt(target, name, seed)
            signal.alarm(0)
            found[name][outcome] += 1
            if outcome not in ("right", "refused"):
                print(f"  {name}, seed {seed}: {outcome}", file=sys.stderr)
    return found


def by_command(attempts: int, folder: Path, first_seed: int = 0) -> Counter[str]:
    """What came of so many calls of the command line, two at a time."""
    target = Target(folder)
    _ = target.experiment, target.recorded
    with ThreadPoolExecutor(2) as two:
        outcomes = two.map(lambda seed: _called(target, seed), range(first_seed, first_seed + attempts))
        return Counter(outcomes)


def _called(target: Target, seed: int) -> str:
    rng = random.Random(f"command {seed}")
    folder = target.folder / f"call-{seed}"
    folder.mkdir()
    arguments = _arguments(target, folder, rng)
    as_json = rng.random() < 0.3
    command = [sys.executable, "-m", "fogscale", *arguments, *(["--json"] if as_json else [])]
    try:
        ended = subprocess.run(command, capture_output=True, timeout=10 * LONGEST_S, cwd=folder)
    except subprocess.TimeoutExpired:
        return _told(seed, arguments, "a hang")
    if b"Traceback" in ended.stderr or ended.returncode not in (0, 2):
        return _told(seed, arguments, f"exit code {ended.returncode}: {ended.stderr[-200:]!r}")
    if as_json:
        try:
            json.loads(ended.stdout, parse_constant=_refused)
        except ValueError:
            return _told(seed, arguments, f"no JSON: {ended.stdout[:100]!r}")
    if ended.returncode == 2 and ended.stderr.count(b"\n") != 1:
        return _told(seed, arguments, f"not one line: {ended.stderr[:200]!r}")
    return "right" if ended.returncode == 0 else "refused"


def _refused(word: str) -> None:
    raise ValueError(f"{word} is no JSON")


def _told(seed: int, arguments: list[str], outcome: str) -> str:
    print(f"  command, seed {seed}, {[each[:60] for each in arguments]}: {outcome}", file=sys.stderr)
    return outcome


def _arguments(target: Target, folder: Path, rng: random.Random) -> list[str]:
    """A command, of which something is odd."""
    odd = [str(each).replace("\0", "") for each in HOSTILE if "\ud800" not in str(each)]
    command = rng.choice(COMMANDS)
    if command == "run":
        path = folder / "experiment.yml"
        text = yaml.safe_dump(target.experiment, sort_keys=False).encode()
        if rng.random() < 0.5:
            text = yaml.safe_dump(mutated(target.experiment, rng)).encode("utf-8", "surrogatepass")
        path.write_bytes(damaged(text, rng) if rng.random() < 0.5 else text)
        extra = ["--seed", rng.choice(["1", "-1", "0", str(2**63), "x"]), "--policy", "static"]
        return ["run", str(path), *extra, "--out", rng.choice(["out", "[red]o[/]", "/dev/full", "n" * 300])]
    if command == "replay":
        run = next((target.folder / "whole").rglob("journal.jsonl")).parent
        copied = folder / "run"
        copied.mkdir()
        for file in run.iterdir():
            content = file.read_bytes()
            (copied / file.name).write_bytes(damaged(content, rng) if rng.random() < 0.6 else content)
        return ["replay", str(copied), "--policy", rng.choice(["static", "thr_nlunaware", rng.choice(odd)])]
    if command == "workloads show":
        path = folder / "load.csv"
        path.write_bytes(damaged(target.csv.read_bytes(), rng))
        name = rng.choice([str(path), "ramp", "sine", rng.choice(odd)])
        key = rng.choice(["span_s", "peak_per_s", rng.choice(odd)])
        return ["workloads", "show", "--set", f"{key}={rng.choice(odd)}", "--", name]
    if command == "calibrate":
        return ["calibrate", rng.choice(["gesscale", "x"]), "--write", rng.choice(["/none/x.yml", "a.yml"])]
    if command == "compare":
        return [
            "compare",
            "--policies",
            rng.choice(["static", "static,,", "a,b"]),
            "--out",
            rng.choice(odd) or "x",
        ]
    return [command, *([rng.choice(odd)] if rng.random() < 0.5 else [])]


def table(found: dict[str, Counter[str]]) -> tuple[str, int]:
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


def main() -> None:
    in_process, calls = (int(each) for each in (*sys.argv[1:], "10000", "300")[:2])
    began_s = time.monotonic()
    with TemporaryDirectory(prefix="fogscale-fuzz-") as name:
        found = attacked(in_process, Path(name))
    if calls:
        with TemporaryDirectory(prefix="fogscale-fuzz-") as name:
            found["the command line"] = by_command(calls, Path(name))
    text, wrong = table(found)
    print(text)
    print(f"{time.monotonic() - began_s:.0f} s")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
