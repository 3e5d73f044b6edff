"""What is attacked, each by a number that says how: experiment files, plug-ins, journals, CSVs and traces.

An attempt is `right` where the result is one that its input means, `refused` where it ends in one clear line
(FogscaleError), and anything else is a finding.
"""

from __future__ import annotations

import json
import random
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from controller import journal, policies
from controller.containment import Contained
from controller.contract import Step
from controller.experiment import Run, load, runs_of
from controller.journal import Journal, SampleLog
from controller.model import Instance, Note, Observation, Plan
from controller.policies import MemorylessPolicy
from controller.run import execute, followed, prepare
from fogscale.errors import FogscaleError
from tests.fuzz.mutations import HOSTILE, damaged, mutated
from tests.support.jobs import chain, placed, seen
from tests.support.runs import load_csv, run_values
from workloads import catalog


@dataclass
class Target:
    """A folder to work in, with what is whole."""

    folder: Path

    @cached_property
    def csv(self) -> Path:
        return load_csv(self.folder, [60, 150, 90, 240, 30])

    @cached_property
    def experiment(self) -> dict[str, Any]:
        run = run_values("static", self.csv)
        keys = ("workload", "topology", "start", "pins", "measured_operator", "testbed")
        document = {key: run[key] for key in keys} | {
            "name": "fuzzed",
            "policies": {"static": {}, "thr_nlunaware": {"parameters": {"high_cpu_ratio": 0.8}}},
            "guards": {"warmup_s": 60, "cooldown_s": "1 min", "max_replicas": 4},
            "scenarios": {"fast": {"title": "Fast", "changes": {"workload": {"speed": 2}}}},
            "seeds": 2,
            "metrics": {"skip_first_s": 30},
        }
        return json.loads(json.dumps(document))

    @cached_property
    def recorded(self) -> bytes:
        run = Run.model_validate(run_values("thr_nlunaware", self.csv))
        execute(run, self.folder / "whole")
        return (self.folder / "whole" / run.folder / "journal.jsonl").read_bytes()

    @cached_property
    def trace(self) -> Path:
        folder = self.folder / "trace"
        folder.mkdir()
        seconds, records = np.arange(0, 600, 3), np.full(200, 7)
        pq.write_table(pa.table({"second": seconds, "records": records}), folder / "rate.parquet")
        manifest = {
            "format": 1, "name": "trace", "kind": "taxi", "title": "Taxi", "files": [{"name": "a.csv"}],
            "start": "2013-01-01T00:00:00", "span_s": 600, "rows": {"in": 1400, "kept": 1400},
        }  # fmt: skip
        (folder / "trace.json").write_text(json.dumps(manifest))
        return folder


def attack_experiment(target: Target, rng: random.Random) -> str:
    """Mutated as a document, or damaged as a file; what is taken runs to its end."""
    document: Any = mutated(target.experiment, rng)
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True).encode("utf-8", "surrogatepass")
    if rng.random() < 0.3:
        text = damaged(yaml.safe_dump(target.experiment, sort_keys=False).encode(), rng)
    path = target.folder / "experiment.yml"
    path.write_bytes(text)
    experiment = load(path)
    for run in runs_of(experiment, seeds=[1])[:1]:
        log = SampleLog()
        prepared = prepare(run)
        if prepared.duration_s > 7200:  # right, but a matter of minutes
            return "right"
        followed(run, log)
        _check_truth(log)
    return "right"


def _check_truth(log: SampleLog) -> None:
    """No record is lost or invented, whatever the experiment says."""
    last = -1.0
    for sample in log.samples:
        assert sample.time_s >= last
        assert sample.offered_records == sample.processed_records + sample.lag_records
        assert sample.lag_records >= 0
        assert all(0 <= count < 100_000 for count in sample.replicas.values())
        last = sample.time_s


def attack_journal(target: Target, rng: random.Random) -> str:
    """Damaged, it is refused, or it is a whole beginning of what was written."""
    path = target.folder / "journal.jsonl"
    content = damaged(target.recorded, rng)
    path.write_bytes(content)
    found = journal.read(path)
    whole = target.recorded[: found.complete_bytes] if found is not None else b""
    assert content.startswith(whole), "a journal that is not what was written was read"
    assert found is None or target.recorded[: found.complete_bytes] == content[: found.complete_bytes]
    return "right"


def attack_csv(target: Target, rng: random.Random) -> str:
    path = target.folder / "fuzzed.csv"
    content = target.csv.read_bytes()
    for _ in range(rng.choice((1, 1, 2))):
        content = damaged(content, rng)
    path.write_bytes(content)
    profile = catalog.load(str(path)).profile
    assert np.isfinite(profile.total_records)
    assert profile.total_records >= 0
    assert profile.span_s > 0
    return "right"


def attack_trace(target: Target, rng: random.Random) -> str:
    folder = target.folder / "fuzzed-trace"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(target.trace, folder)
    if rng.random() < 0.6:
        manifest = mutated(json.loads((folder / "trace.json").read_text()), rng)
        (folder / "trace.json").write_bytes(json.dumps(manifest).encode("utf-8", "surrogatepass"))
    else:
        name = rng.choice(("trace.json", "rate.parquet"))
        (folder / name).write_bytes(damaged((folder / name).read_bytes(), rng))
    profile = catalog.load(str(folder)).profile
    assert profile.total_records == 1400
    return "right"


_GOOD: Mapping[str, Callable[[random.Random], Any]] = {
    "placement": lambda rng: {**placed("fog1"), "map": ("fog1",) * rng.randrange(3)},
    "standby": lambda rng: rng.randrange(3),
    "reason": lambda _rng: "because",
    "instances": lambda _rng: None,
    "notes": lambda _rng: (Note("asked", "a", "b", {"x": 1.0}),),
}
_BAD: tuple[Any, ...] = (
    *HOSTILE, ("fog1",), {"map": ["fog1"]}, {"map": (1,)}, {1: ("fog1",)}, {"map": ("fog1",) * 10**5},
    {"map": (Instance("a", "fog1"),)}, (Note("a", data={"x": float("nan")}),), [Note("a")], np.int64(3),
    object(),
)  # fmt: skip


def attack_policy(target: Target, rng: random.Random) -> str:
    """A plug-in that answers anything, raises anything or meddles; what is journalled reads back the same."""
    bad_part = rng.choice((*_GOOD, "raise", "exit", "meddle", "estimates", "period_s", "none"))

    class Fuzzed(MemorylessPolicy):
        needs = frozenset()
        period_s: Any = rng.choice(_BAD) if bad_part == "period_s" else 60.0
        estimates: Any = rng.choice(_BAD) if bad_part == "estimates" else {"x": 1.0}

        def decide(self, observation: Observation) -> Any:
            if bad_part == "raise":
                raise rng.choice((ValueError, KeyError, RecursionError, MemoryError, AssertionError))("\nno")
            if bad_part == "exit":
                raise SystemExit(rng.choice((0, 1, "no")))
            if bad_part == "meddle":
                rng.choice((observation.placement, observation.requested, observation.operators)).clear()  # type: ignore[attr-defined]
            values = {name: good(rng) for name, good in _GOOD.items()}
            if bad_part in values:
                values[bad_part] = rng.choice(_BAD)
            return None if bad_part == "none" else Plan(**values)

    policy = Contained(Fuzzed(), "fuzzed")
    observation = seen(["fog1"], time_s=60.0)
    plan = policy.decide(observation)
    path = target.folder / "policy.jsonl"
    path.unlink(missing_ok=True)
    book = Journal.open(path, {"policy": "fuzzed"}, chain())
    try:
        book.append(Step(observation, plan, policy.period_s, (), policy.estimates, policy.notes))
        book.end(True, (), {})
    finally:
        book.close()
    found = journal.read(path)
    assert found is not None
    (step,) = found.steps
    assert step.plan == plan
    assert step.observation == observation
    return "right"


def attack_plugin(target: Target, rng: random.Random) -> str:
    """A file dropped into the policies' folder, damaged: it disables itself, and the others stay."""
    source = Path(policies.__file__).with_name("static.py").read_bytes().replace(b'"static"', b'"fuzzed"')
    path = target.folder / "fuzzed_plugin.py"
    path.write_bytes(damaged(source, rng))
    before, broken_before = dict(policies._REGISTERED), dict(policies._BROKEN)
    try:
        policies._load("fuzzed", "fuzzed_plugin", lambda: _imported(path))
        assert set(before) <= set(policies._REGISTERED)
        if "fuzzed" in policies._BROKEN:
            return "refused"
        return "right"
    finally:
        policies._REGISTERED.clear()
        policies._REGISTERED.update(before)
        policies._BROKEN.clear()
        policies._BROKEN.update(broken_before)


def _imported(path: Path) -> None:
    spec = spec_from_file_location("fuzzed_plugin", path)
    assert spec is not None
    assert spec.loader is not None
    sys.modules["fuzzed_plugin"] = module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules["fuzzed_plugin"]


TARGETS: Mapping[str, tuple[Callable[[Target, random.Random], str], int]] = {
    "experiment files": (attack_experiment, 40),  # of a hundred attempts
    "policies' answers": (attack_policy, 15),
    "plug-in files": (attack_plugin, 5),
    "journals": (attack_journal, 20),
    "CSVs": (attack_csv, 10),
    "traces": (attack_trace, 10),
}


def attempt(target: Target, name: str, seed: int) -> str:
    """right, refused, or what else became of it."""
    try:
        return TARGETS[name][0](target, random.Random(f"{name} {seed}"))
    except FogscaleError as error:
        message = str(error)
        return "refused" if len(message) < 2000 else f"a message of {len(message)} characters"
    except Exception as error:  # whatever it is, it is a finding
        return f"{type(error).__name__}: {' '.join(str(error).split())[:150]}"
