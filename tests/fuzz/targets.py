"""What is attacked, each by a number that says how: experiment files, plug-ins, journals, CSVs and traces.

An attempt is `right` where the result is one that its input means, `refused` where it ends in one clear line
(FogscaleError), and anything else is a finding.
"""

from __future__ import annotations

import json
import random
import re
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

from controller import calibration, journal, learned, policies
from controller.calibration.profile import load_profile
from controller.campaign import records
from controller.containment import Contained
from controller.contract import Step
from controller.experiment import Run, load, runs_of
from controller.journal import Journal, SampleLog
from controller.learned import document_of, teach
from controller.model import Instance, Note, Observation, Plan
from controller.policies import MemorylessPolicy
from controller.run import execute, followed, prepare
from controller.testbeds.flink.kubernetes import cluster_of
from fog import manifest
from fog.checks import preflight
from fogscale.errors import FogscaleError, Interrupted, one_line
from fogscale.plugins import Candidate
from tests.fuzz.mutations import HOSTILE, damaged, mutated
from tests.support.jobs import chain, placed, seen
from tests.support.runs import load_csv, run_values
from workloads import catalog


class HangError(Interrupted):
    """Nobody takes it for what a plug-in did or for a file that cannot be read, and goes on."""


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
    def record(self) -> Path:
        """The folder of records that holds it."""
        run = Run.model_validate(run_values("thr_nlunaware", self.csv))
        _ = self.recorded
        records.keep(self.folder / "whole" / run.folder, self.folder / "records", run, {"begun": "then"})
        return self.folder / "records"

    @property
    def profile(self) -> Path:
        return Path(calibration.__file__).with_name("profiles") / "local-taxi.yml"

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
    object(), {"map": (np.str_("fog1"),)}, np.str_("x"), {"x": 10**400},
    (Note("a", data={"x": np.int64(3)}),),
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
    registry = policies.registry
    before, broken_before = dict(registry.registered), dict(registry.reasons)
    try:
        registry.load(Candidate("fuzzed", "fuzzed_plugin", lambda: _imported(path)))
        assert set(before) <= set(registry.registered)
        if "fuzzed" in registry.reasons:
            return "refused"
        return "right"
    finally:
        registry.registered.clear()
        registry.registered.update(before)
        registry.reasons.clear()
        registry.reasons.update(broken_before)


def _imported(path: Path) -> None:
    spec = spec_from_file_location("fuzzed_plugin", path)
    assert spec is not None
    assert spec.loader is not None
    sys.modules["fuzzed_plugin"] = module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules["fuzzed_plugin"]


MANIFEST: Mapping[str, Any] = {
    "testbed": "local", "emulated": True, "backend": "switch", "rtt_max_ms": 300,
    "nodes": [
        {"name": "server1", "group": "server", "address": "10.77.0.1", "user": "root", "port": 22},
        {"name": "services1", "group": "services", "address": "10.77.0.2", "user": "root", "key": "/k"},
        {"name": "fog1", "group": "fog", "address": "10.77.0.3", "user": "root", "cpus": 0.2},
    ],
    "rtt_ms": {
        "nodes": ["server1", "services1", "fog1"],
        "server1": [0, 0, 40], "services1": [0, 0, 40], "fog1": [40, 40, 0],
    },
    "services": {"kafka": {"node": "services1", "port": 9092, "version": "4.3", "ca": ""}},
}  # fmt: skip


def attack_manifest(target: Target, rng: random.Random) -> str:
    """testbed.json: every value is what it should be, or the file is called damaged."""
    path = target.folder / "testbed.json"
    if rng.random() < 0.7:
        path.write_bytes(json.dumps(mutated(MANIFEST, rng)).encode("utf-8", "surrogatepass"))
    else:
        path.write_bytes(damaged(json.dumps(MANIFEST, indent=1).encode(), rng))
    found = manifest.find(target.folder)
    assert found is not None
    for node in found.nodes:
        assert re.fullmatch(r"[a-z][a-z0-9-]*", node.name)
        assert re.fullmatch(r"[0-9]+(\.[0-9]+){3}", node.address)
        assert re.fullmatch(r"[A-Za-z_][\w.-]*", node.user)
        assert 0 < int(node.port) < 1 << 16
    names = list(found.addresses)
    assert all(0 <= found.rtt_ms(a, b) <= found.rtt_max_ms < 1e9 for a in names for b in names)
    return "right"


def attack_record(target: Target, rng: random.Random) -> str:
    """Unpacked, it is the run that was packed, or it is refused."""
    given, results = target.folder / "given", target.folder / "unpacked"
    for folder in (given, results):
        shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(target.record, given)
    path = rng.choice(sorted(each for each in given.rglob("*") if each.is_file()))
    path.write_bytes(damaged(path.read_bytes(), rng))
    for place in records.unpacked(given, results):
        records.about(place)
        found = journal.read(place / "journal.jsonl")
        assert found is not None
        assert (place / "journal.jsonl").read_bytes() == target.recorded
    return "right"


def attack_profile(target: Target, rng: random.Random) -> str:
    document = yaml.safe_load(target.profile.read_text())
    path = target.folder / "profile.yml"
    text = yaml.safe_dump(mutated(document, rng), sort_keys=False).encode("utf-8", "surrogatepass")
    path.write_bytes(damaged(target.profile.read_bytes(), rng) if rng.random() < 0.3 else text)
    profile = load_profile(path)
    assert profile.simulation.model_dump_json()
    return "right"


_SHELL = (
    "1.2.3.4; reboot",
    "$(reboot)",
    "`id`",
    "a b",
    "-x",
    "eth0\nreboot",
    "a|b",
    "10.77.0.1\n",
    "../x",
    "é",
)


def attack_inventory(_target: Target, rng: random.Random) -> str:
    """What passes has no character that a shell would take for more than a letter."""
    nodes = [dict(node) for node in MANIFEST["nodes"]]
    for node in nodes:
        node.update(cpus=0.5, memory_mb=512, interface="eth0")
    given = {
        "nodes": nodes, "rtt_ms": MANIFEST["rtt_ms"], "rtt_max_ms": 300.0, "backend": "switch", "kafka": "",
        "network": "10.77.0.0/24", "cluster": "kubernetes_upstream", "known_nodes": (),
        "state_folder": "/s", "cache_folder": "/c",
    }  # fmt: skip
    part = rng.choice(("rtt_ms", "text", "number", "node"))
    if part == "rtt_ms":
        given[part] = mutated(given[part], rng)
    elif part == "number":
        given["rtt_max_ms"] = float(rng.choice([each for each in HOSTILE if isinstance(each, float)]))
    elif part == "text":
        name = rng.choice(("backend", "kafka", "network", "cluster", "state_folder", "cache_folder"))
        given[name] = str(rng.choice((*HOSTILE, *_SHELL)))
    else:
        name = rng.choice(("name", "address", "user", "interface", "port", "cpus", "memory_mb"))
        rng.choice(nodes)[name] = rng.choice((*HOSTILE, *_SHELL))
    problems = preflight.inventory_problems(preflight.wanted_of(given, emulated=True))
    if problems:
        assert all("\n" not in each for each in problems), problems
        return "refused"
    for node in given["nodes"]:
        words = [str(value) for key, value in node.items() if key in ("name", "address", "user", "interface")]
        assert all(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", word) for word in words), words
    return "right"


def attack_learned(target: Target, rng: random.Random) -> str:
    """What a policy took, it decides with, and writes it again."""
    name = rng.choice(("edf", "pure"))
    path = target.folder / "learned.json"
    document = json.loads(document_of(_taught(name), name) or "")
    text = json.dumps(mutated(document, rng) if rng.random() < 0.8 else document)
    content = text.encode("utf-8", "surrogatepass")
    path.write_bytes(damaged(content, rng) if rng.random() < 0.3 else content)
    policy = _taught(name)
    teach(policy, learned.read(path, name), name)
    for time_s in (60.0, 120.0):
        policy.decide(seen(["fog1"], time_s=time_s))
    assert document_of(policy, name)
    return "right"


def _taught(name: str) -> Contained:
    policy = Contained(policies.create(name, {}), name)
    policy.start(chain(), np.random.default_rng(1))
    policy.decide(seen(["fog1"], time_s=0.0))
    return policy


KUBECONFIG: Mapping[str, Any] = {
    "apiVersion": "v1", "kind": "Config", "current-context": "fog",
    "contexts": [{"name": "fog", "context": {"cluster": "fog", "user": "u", "namespace": "flink"}}],
    "clusters": [{"name": "fog", "cluster": {"server": "http://10.77.0.1:6443"}}],
    "users": [{"name": "u", "user": {"token": "secret"}}],
}  # fmt: skip


def attack_kubeconfig(target: Target, rng: random.Random) -> str:
    """What is taken leads to a namespace."""
    path = target.folder / "kubeconfig"
    content = json.dumps(mutated(KUBECONFIG, rng)).encode("utf-8", "surrogatepass")
    path.write_bytes(damaged(content, rng) if rng.random() < 0.3 else content)
    cluster = cluster_of(path)
    try:
        assert re.fullmatch(r"[a-z0-9-]+", cluster.namespace)
    finally:
        cluster.close()
    return "right"


TARGETS: Mapping[str, tuple[Callable[[Target, random.Random], str], int]] = {
    "experiment files": (attack_experiment, 33),  # of a hundred attempts
    "what was learned": (attack_learned, 4),
    "kubeconfigs": (attack_kubeconfig, 3),
    "policies' answers": (attack_policy, 12),
    "plug-in files": (attack_plugin, 6),
    "journals": (attack_journal, 15),
    "records": (attack_record, 3),
    "CSVs": (attack_csv, 8),
    "traces": (attack_trace, 7),
    "testbed.json": (attack_manifest, 4),
    "inventories": (attack_inventory, 3),
    "profiles": (attack_profile, 2),
}


def attempt(target: Target, name: str, seed: int) -> str:
    """right, refused, or what else became of it."""
    try:
        return TARGETS[name][0](target, random.Random(f"{name} {seed}"))
    except FogscaleError as error:
        return "refused" if one_line(str(error)) else "no words"
    except (Exception, HangError) as error:  # whatever it is, it is a finding
        return f"{type(error).__name__}: {' '.join(str(error).split())[:150]}"
