"""One run, executed: values in, journal out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from dataclasses import fields as dataclass_fields
from functools import cache
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from subprocess import DEVNULL, SubprocessError, check_output
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from controller import loop
from controller.contract import Policy
from controller.experiment import Run, WorkloadSettings
from controller.guards import guarded
from controller.journal import Journal, SampleLog, set_aside
from controller.model import Placement, Sample, Topology
from controller.placement import grown, nearest
from controller.policies import create, policy_class
from controller.recording import JOURNAL, MANIFEST, RunFacts
from controller.testbeds.simulated.engine import Engine
from controller.testbeds.simulated.testbed import SimulatedTestbed
from controller.topology import start_placement
from fogscale.errors import FogscaleError, unknown
from fogscale.settings import validated
from workloads import catalog
from workloads.profile import RateProfile
from workloads.replay import ReplaySettings, arrivals, replay_span_s
from workloads.workload import Workload

_YamlDumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # ten times as fast where libyaml is there
_NO_LIMIT = 64  # replicas up to which a capacity ladder is worked out where an operator has no n_max


@dataclass(frozen=True)
class Prepared:
    """A run with everything it needs built and checked; nothing has happened yet."""

    run: Run
    topology: Topology
    start: Placement
    inputs: dict[str, NDArray[np.int64]]
    duration_s: float
    capacity_per_s: dict[str, tuple[float, ...]]  # of 1, 2, … replicas per scalable operator

    def header(self) -> dict[str, Any]:
        """What analysis needs to know of a run, and the settings it was made from."""
        operator = self.topology.operator(self.run.measured_operator)
        facts = RunFacts(
            **self.run.named_by,
            duration_s=self.duration_s,
            operator=operator.name,
            capacity_per_s=self.capacity_per_s[operator.name],
            n_min=operator.n_min,
            n_max=operator.n_max or len(self.capacity_per_s[operator.name]),
            sla_response_s=self.run.sla_response_s,
            sla_grace_s=self.run.sla_grace_s,
            kind_shares={name: kind.share for name, kind in self.run.simulation.kinds.items()},
            variation=self.run.variation,
        )
        return asdict(facts) | {
            "arrivals": blake2b(b"".join(map(bytes, self.inputs.values())), digest_size=8).hexdigest(),
            "settings": self.run.model_dump(mode="json", exclude={"variation"}),
        }

    def testbed(self) -> SimulatedTestbed:
        rng = np.random.default_rng([self.run.seed, 1])
        return SimulatedTestbed(self.topology, self.start, self.run.simulation, self.inputs, rng)

    def policy(self) -> Policy:
        """The policy behind its guards, started."""
        parameters = dict(self.run.policy_parameters)
        known = {known.name for known in dataclass_fields(policy_class(self.run.policy))}
        if "capacity_per_s" in known:
            parameters.setdefault("capacity_per_s", self.capacity_per_s)
        policy = guarded(create(self.run.policy, parameters), self.run.guards)
        policy.start(self.topology, np.random.default_rng([self.run.seed, 2]))
        return policy


def prepare(run: Run) -> Prepared:
    topology = run.topology.build()
    names = [operator.name for operator in topology.operators]
    if run.measured_operator not in names:
        raise FogscaleError(f"measured_operator: {unknown('operator', run.measured_operator, names)}")
    start = start_placement(topology, run.start, run.pins)
    # The same seed gives every policy the same arrivals: policies are compared on one load.
    inputs, duration_s = _inputs(run, topology, np.random.default_rng([run.seed, 0]))
    engine = Engine(topology, start, inputs, run.simulation)
    ladders = {
        operator.name: tuple(_ladder(engine, topology, start, operator.name))
        for operator in topology.operators
        if operator.scalable or operator.name == run.measured_operator
    }
    return Prepared(run, topology, start, inputs, duration_s, ladders)


def _inputs(
    run: Run, topology: Topology, rng: np.random.Generator
) -> tuple[dict[str, NDArray[np.int64]], float]:
    """Records that arrive in each step, by the operator where they enter, and how long they do."""
    workload = catalog.load(run.workload.name, **run.workload.parameters)
    profiles = _profiles(run.workload, workload, topology)
    usual = workload.replay
    replay = ReplaySettings(
        speed=run.workload.speed or usual.speed,
        copies=run.workload.copies or usual.copies,
        scale=run.workload.scale or usual.scale,
        arrivals=run.workload.arrivals or usual.arrivals,
    )
    inputs = {
        operator: arrivals(profile, replay, run.simulation.step_s, rng)
        for operator, profile in profiles.items()
    }
    if not any(counts.any() for counts in inputs.values()):
        raise FogscaleError(f"workload '{run.workload.name}' offers no records: raise its scale or speed")
    return inputs, replay_span_s(workload.profile, replay)


def _profiles(
    settings: WorkloadSettings, workload: Workload, topology: Topology
) -> Mapping[str, RateProfile]:
    """What enters where: at one operator, or at each that the workload drives on its own."""
    names = [operator.name for operator in topology.operators]
    if not workload.inputs:
        return {_entry(settings, topology): workload.profile}
    if settings.operator is not None:
        raise FogscaleError(
            f"workload.operator: '{settings.name}' drives {', '.join(workload.inputs)} itself: remove it"
        )
    for name in workload.inputs:
        if name not in names:
            raise FogscaleError(
                f"workload '{settings.name}' drives {', '.join(workload.inputs)}, but there is no operator"
                f" '{name}' (known: {', '.join(names)}): rename them, or set workload.parameters.operators"
            )
    return workload.inputs


def _entry(workload: WorkloadSettings, topology: Topology) -> str:
    sources = [operator.name for operator in topology.operators if not operator.upstream]
    if workload.operator is None:
        if len(sources) != 1:
            raise FogscaleError(f"workload.operator: name one of the sources {', '.join(sources)}")
        return sources[0]
    names = [operator.name for operator in topology.operators]
    if workload.operator not in names:
        raise FogscaleError(f"workload.operator: {unknown('operator', workload.operator, names)}")
    return workload.operator


def _ladder(engine: Engine, topology: Topology, start: Placement, name: str) -> Iterator[float]:
    """What 1, 2, … replicas can do on the nodes nearest to where the run starts."""
    operator = topology.operator(name)
    slots = sum(node.slots for node in topology.nodes)
    others = sum(len(nodes) for other, nodes in start.items() if other != name)
    most = operator.n_max or (_NO_LIMIT if topology.elastic else slots - others)
    for replicas in range(1, min(most, slots - others if not topology.elastic else most) + 1):
        nodes = grown(topology, start, {name: replicas}, nearest)[name]
        yield engine.capacity_of(operator, nodes)


def execute(
    run: Run, results: Path | None, progress: loop.Progress | None = None, fresh: bool = False
) -> Journal:
    """Runs to the end, or goes on where a crashed run in the same folder stopped."""
    prepared = prepare(run)
    testbed, policy = _ready(prepared)  # what cannot run must not leave a folder behind
    path = None
    if results is not None:
        path = results / run.folder / JOURNAL
        if fresh:
            set_aside(path)
    journal = Journal.open(path, prepared.header(), prepared.topology)
    try:
        if path is not None:
            manifest = path.with_name(MANIFEST)
            if journal.recorded is None or not manifest.exists():
                _write_manifest(manifest, prepared)
        with testbed:
            loop.run(testbed, policy, journal, progress)
    finally:
        journal.close()
    return journal


def _ready(prepared: Prepared) -> tuple[SimulatedTestbed, Policy]:
    testbed, policy = prepared.testbed(), prepared.policy()
    loop.check_capabilities(policy.needs, testbed.offers, prepared.run.policy, "simulated")
    return testbed, policy


def _write_manifest(path: Path, prepared: Prepared) -> None:
    manifest = {
        "run": prepared.run.model_dump(mode="json"),
        "duration_s": prepared.duration_s,
        "versions": {name: _version(name) for name in ("fogscale", "numpy", "scipy")},
        "commit": _commit(),
    }
    try:
        path.write_text(yaml.dump(manifest, Dumper=_YamlDumper, sort_keys=False), encoding="utf-8")
    except OSError as error:
        raise FogscaleError(
            f"cannot write {path}: {error.strerror}; choose another folder with --out"
        ) from error


@cache
def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


@cache
def _commit() -> str | None:
    here = Path(__file__).parent
    try:
        return check_output(["git", "-C", str(here), "rev-parse", "HEAD"], stderr=DEVNULL, text=True).strip()
    except (OSError, SubprocessError):
        return None


def run_of(folder: Path) -> Run:
    """The run whose manifest lies in a folder."""
    path = folder / MANIFEST
    try:
        manifest = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise FogscaleError(
            f"{folder} holds no run ({error.strerror}: {MANIFEST}): name a folder seed=…"
        ) from error
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise FogscaleError(f"{path} is damaged: run the experiment again with --fresh") from error
    if not isinstance(manifest, Mapping) or "run" not in manifest:
        raise FogscaleError(f"{path} describes no run: run the experiment again with --fresh")
    return validated(Run, manifest["run"], str(path))


def simulate(run_json: str) -> tuple[dict[str, Any], list[Sample]]:
    """One run of a campaign, from a JSON document; only its truth is kept."""
    log = SampleLog()
    prepared = followed(Run.model_validate_json(run_json), log)
    return prepared.header(), log.samples


def followed(run: Run, log: loop.Log) -> Prepared:
    """Runs to the end, with nothing written."""
    prepared = prepare(run)
    testbed, policy = _ready(prepared)
    with testbed:
        loop.run(testbed, policy, log)
    return prepared
