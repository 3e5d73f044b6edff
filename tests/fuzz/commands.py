"""The command line, of which something is odd: an argument, a file, a folder. Each call is one number."""

from __future__ import annotations

import json
import random
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from controller import journal
from controller.recording import JOURNAL
from fogscale.errors import FogscaleError
from tests.fuzz.mutations import HOSTILE, damaged, mutated
from tests.fuzz.targets import MANIFEST, Target
from tests.support.processes import Ended, Watched
from tests.support.taxi_files import FOIL_HEADER, foil

LONGEST_S = 60.0
# What a command may find around it. Of most it should take no notice.
SURROUNDINGS: tuple[tuple[str, Mapping[str, str]], ...] = (
    ("", {}),
    ("<&-", {}),
    (">&-", {}),
    ("2>&-", {}),
    ("<&- >&- 2>&-", {}),
    ("", {"HOME": "/proc/none", "XDG_CACHE_HOME": "/proc/none"}),
    ("", {"HOME": ""}),
    ("", {"TMPDIR": "/proc/none"}),
    ("", {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "TERM": ""}),
    ("", {"MPLBACKEND": "odd", "MPLCONFIGDIR": "/proc/none", "COLUMNS": "x"}),
    ("", {"PYTHONWARNINGS": "error", "PYTHONOPTIMIZE": "2", "PYTHONHASHSEED": "1"}),
)
ODD = [str(each).replace("\0", "") for each in HOSTILE if "\ud800" not in str(each)]
Judge = Callable[[Any], None]


@dataclass(frozen=True)
class Call:
    arguments: Sequence[str]
    # Raises where a success is none; gets what --json printed, None without it.
    judge: Judge = lambda _document: None


def called(target: Target, seed: int) -> str:
    """right, refused, or what else became of it."""
    rng = random.Random(f"command {seed}")
    folder = target.folder / f"call-{seed}"
    folder.mkdir()
    call = rng.choices(list(CALLS), list(CALLS.values()))[0](target, folder, rng)
    as_json = rng.random() < 0.3
    command = [sys.executable, "-m", "fogscale", *call.arguments, *(["--json"] if as_json else [])]
    if as_json and "--" in call.arguments:  # all that follows is no option
        command = [
            sys.executable,
            "-m",
            "fogscale",
            call.arguments[0],
            *call.arguments[1:2],
            "--json",
            *call.arguments[2:],
        ]
    closed, around = rng.choice(SURROUNDINGS)
    if closed:
        command = ["sh", "-c", f'exec "$@" {closed}', "sh", *command]
    environment = {"SPARK_MASTER": "local[1]", "FOGSCALE_STATE": str(folder / "state"), **around}
    ended = Watched(command, folder, environment).ended(LONGEST_S)
    outcome = _problem(call, as_json, closed, ended) or ("right" if ended.code == 0 else "refused")
    if outcome not in ("right", "refused"):
        words = [each[:60] for each in call.arguments]
        print(f"  command, seed {seed}, {words} {closed} {around}: {outcome}", file=sys.stderr)
    shutil.rmtree(folder)
    return outcome


def _problem(call: Call, as_json: bool, closed: str, ended: Ended) -> str | None:
    if ended.code is None:
        return "a hang"
    if ended.left:
        return f"left behind: {ended.left}"
    if b"Traceback" in ended.stderr or ended.code not in (0, 2):
        return f"exit code {ended.code}: {ended.stderr[-200:]!r}"
    if ended.code == 2 and ended.stderr.count(b"\n") != ("2>&-" not in closed):
        return f"not one line: {ended.stderr[:200]!r}"
    document = None
    if as_json and ">&-" not in closed.replace("2>&-", ""):
        try:
            document = json.loads(ended.stdout, parse_constant=_no_json)
        except ValueError:
            return f"no JSON: {ended.stdout[:100]!r}"
    if ended.code == 0:
        try:
            call.judge(document)
        except (AssertionError, FogscaleError) as error:
            return f"a wrong result: {error}"
    return None


def _no_json(word: str) -> None:
    raise ValueError(f"{word} is no JSON")


def _run(target: Target, folder: Path, rng: random.Random) -> Call:
    """What was recorded is whole, and reads back."""
    path = _experiment(target, folder, rng)
    out = rng.choice(["out", "[red]o[/]", "o{a}\\b", "o*", "/dev/full", "n" * 300])
    seed = rng.choice(["1", "1", "-1", "0", str(2**63), "x"])

    def judge(_document: Any) -> None:
        found = list((folder / out).rglob(JOURNAL))
        assert found, "no journal"
        for each in found:
            recorded = journal.read(each)
            assert recorded is not None
            assert recorded.ended

    return Call(["run", str(path), "--seed", seed, "--policy", "static", "--out", out], judge)


def _experiment(target: Target, folder: Path, rng: random.Random) -> Path:
    path = folder / "experiment.yml"
    document = mutated(target.experiment, rng) if rng.random() < 0.5 else target.experiment
    text = yaml.safe_dump(document, sort_keys=False).encode("utf-8", "surrogatepass")
    path.write_bytes(damaged(text, rng) if rng.random() < 0.5 else text)
    return path


def _recorded(target: Target, folder: Path, rng: random.Random) -> Path:
    """A run's folder, of which a file may be damaged."""
    whole = next((target.folder / "whole").rglob(JOURNAL)).parent
    copied = folder / "run"
    copied.mkdir()
    for file in whole.iterdir():
        content = file.read_bytes()
        (copied / file.name).write_bytes(damaged(content, rng) if rng.random() < 0.5 else content)
    return copied


def _replay(target: Target, folder: Path, rng: random.Random) -> Call:
    """What is decided again was a beginning of what was recorded, unchanged."""
    run = _recorded(target, folder, rng)
    policy = rng.choice(["static", "thr_nlunaware", "thr_nlunaware", rng.choice(ODD)])

    def judge(document: Any) -> None:
        found = journal.read(run / JOURNAL)
        assert found is not None
        assert target.recorded.startswith((run / JOURNAL).read_bytes()[: found.complete_bytes])
        if policy == "thr_nlunaware" and document is not None:
            assert document == [], "a run that decides otherwise when it is repeated"

    return Call(["replay", str(run), f"--policy={policy}"], judge)


def _analyze(target: Target, folder: Path, rng: random.Random) -> Call:
    """A journal that does not add up is in no table."""
    run = _recorded(target, folder, rng)

    def judge(document: Any) -> None:
        found = journal.read(run / JOURNAL)
        assert found is not None
        if document is not None:
            assert [row["policy"] for row in document["metrics"]] == ["thr_nlunaware"]

    return Call(["analyze", rng.choice([str(folder), str(run), rng.choice(ODD) or "x"])], judge)


def _trace(_target: Target, folder: Path, rng: random.Random) -> Call:
    """Every row is kept or quarantined."""
    stamps = [
        "2013-06-08 09:12:07",
        "9999-12-31 23:59:59",
        "0001-01-01 00:00:00",
        "2013-02-30 00:00:00",
        "",
        "nan",
    ]
    rows = [foil(taxi, pickup=rng.choice(stamps[:1] * 5 + stamps)) for taxi in range(50)]
    content = "\n".join([FOIL_HEADER, *rows, ""]).encode()
    path = folder / rng.choice(["trips.csv", "t[1].csv", "t{a}.csv", "t b.csv"])
    path.write_bytes(damaged(content, rng) if rng.random() < 0.5 else content)

    def judge(document: Any) -> None:
        if document is not None:
            told = document["rows"]
            assert told["in"] == told["kept"] + told["quarantined"], told
            assert sum(told["by_reason"].values()) == told["quarantined"], told
            assert told["in"] <= 60, told

    kind = rng.choice(["taxi", "taxi", "worldcup98"])
    return Call(
        ["trace", "import", kind, str(path), "--name", rng.choice(["t", "..", "a/b", "[1]", "{a}"])], judge
    )


def _workload(target: Target, folder: Path, rng: random.Random) -> Call:
    path = folder / "load.csv"
    path.write_bytes(damaged(target.csv.read_bytes(), rng))
    name = rng.choice([str(path), "ramp", "sine", rng.choice(ODD)])
    key = rng.choice(["span_s", "peak_per_s", rng.choice(ODD)])
    plot = rng.choice([[], [], ["--plot", rng.choice(["p.png", "p.x", "/dev/full", "no/p.pdf"])]])
    return Call(["workloads", "show", "--set", f"{key}={rng.choice(ODD)}", *plot, "--", name])


def _testbed(_target: Target, folder: Path, rng: random.Random) -> Call:
    """One that is not built, or of which testbed.json is damaged. (Up and down are tried on real ones.)"""
    state = folder / "state" / "local"
    state.mkdir(parents=True)
    text = json.dumps(MANIFEST)
    if rng.random() < 0.7:
        (state / "testbed.json").write_bytes(damaged(text.encode(), rng))
    matrix = folder / "matrix.yml"
    matrix.write_bytes(damaged(yaml.safe_dump({"fog_rtt_ms": MANIFEST["rtt_ms"]}).encode(), rng))
    odd = rng.choice(["local", "pi", rng.choice(ODD)])
    return Call(
        ["testbed", "network", f"--testbed={odd}", "--set", rng.choice([str(matrix), rng.choice(ODD) or "x"])]
    )


def _calibrate(_target: Target, _folder: Path, rng: random.Random) -> Call:
    return Call(
        [
            "calibrate",
            rng.choice(["gesscale", "x"]),
            "--write",
            rng.choice(["/proc/none/x.yml", "a.yml", "/dev/full"]),
        ]
    )


def _compare(_target: Target, _folder: Path, rng: random.Random) -> Call:
    policies = rng.choice(["static", "static,,", "a,b", rng.choice(ODD)])
    return Call(["compare", f"--policies={policies}", f"--out={rng.choice(ODD) or 'x'}"])


def _profile(target: Target, folder: Path, rng: random.Random) -> Call:
    path = folder / "profile.yml"
    path.write_bytes(damaged(target.profile.read_bytes(), rng))
    chosen = [
        "--policy",
        "static",
        "--seed",
        "1",
        "--span",
        rng.choice(["1h", "-1h", rng.choice(ODD) or "x"]),
    ]
    return Call(["run", f"--profile={path}", *chosen, "--out", "out"])


def _protocol(_target: Target, _folder: Path, rng: random.Random) -> Call:
    instances = rng.choice(["2-2", "1-1-1", rng.choice(ODD) or "x"])
    return Call(["protocol", "play", "--schedules", rng.choice(["1", "5", "0", "x"]), "--", instances])


def _audit(_target: Target, folder: Path, rng: random.Random) -> Call:
    report = folder / "report.json"
    text = json.dumps(
        {"run": "a", "topics": [{"topic": "t", "first_number": 0, "next_number": 5, "run_first_number": 0}]}
    )
    report.write_bytes(damaged(text.encode(), rng))
    return Call(
        [
            "audit",
            "--topic",
            "t",
            "--report",
            str(report),
            f"--bootstrap={rng.choice(['127.0.0.1:9', rng.choice(ODD)])}",
        ]
    )


def _other(_target: Target, _folder: Path, rng: random.Random) -> Call:
    odd = rng.choice(ODD)
    commands = (
        ["policies"], ["testbeds"], ["policies", odd], ["workloads", "list"], [odd], ["run", odd],
        ["figures", f"--paper={odd}"], ["sensitivity", f"--paper={odd}"], ["validate", "--", odd],
        ["control", f"--flink={odd}", "--prometheus=http://127.0.0.1:9", "--policy=static"],
        ["campaign", odd], ["faults", f"--only={odd}"], ["protocol", "explore", "--max-s", "1", "--", odd],
    )  # fmt: skip
    return Call(rng.choice(commands))


CALLS: Mapping[Callable[[Target, Path, random.Random], Call], int] = {
    _run: 20, _replay: 14, _analyze: 6, _trace: 6, _workload: 14, _testbed: 8, _calibrate: 4, _compare: 8,
    _profile: 4, _protocol: 3, _audit: 3, _other: 10,
}  # fmt: skip
