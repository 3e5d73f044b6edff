"""One run, executed: values in, journal out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from dataclasses import fields as dataclass_fields
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from subprocess import DEVNULL, SubprocessError, check_output
from typing import Any

import numpy as np
import yaml

from controller import loop, testbeds
from controller.containment import Contained
from controller.contract import Policy, Testbed
from controller.experiment import Run, WorkloadSettings
from controller.guards import guarded
from controller.journal import Journal, SampleLog, set_aside
from controller.learned import LEARNED, document_of, teach
from controller.learned import write as write_learned
from controller.model import Placement, Sample, Topology, records_per
from controller.older_files import in_todays_words
from controller.placement import at_random
from controller.policies import create, policy_class
from controller.policies import names as policy_names
from controller.recording import JOURNAL, MANIFEST, MetricParameters, OperatorFacts, RunFacts
from controller.testbeds import Assignment, Setup
from controller.topology import start_placement
from fogscale.documents import read_yaml
from fogscale.errors import FogscaleError, unknown
from fogscale.files import write_whole
from fogscale.settings import validated
from workloads import catalog
from workloads.profile import RateProfile
from workloads.workload import Workload

_YamlDumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # ten times as fast where libyaml is there


@dataclass(frozen=True)
class Prepared:
    """A run with everything it needs built and checked; nothing has happened yet."""

    run: Run
    topology: Topology
    start: Placement
    setup: Setup
    entries: tuple[str, ...]  # the operators at which records enter the job

    @property
    def duration_s(self) -> float:
        return self.setup.duration_s

    def header(self) -> dict[str, Any]:
        """What analysis needs to know of a run, and the settings it was made from."""
        operator = self.topology.operator(self.run.measured_operator)
        ladder = self.setup.capacity_per_s.get(operator.name, ())
        facts = RunFacts(
            **self.run.named_by,
            duration_s=self.duration_s,
            operator=operator.name,
            capacity_per_s=ladder,
            n_min=operator.n_min,
            n_max=operator.n_max or len(ladder or self.topology.nodes),
            operators=self._operators(),
            metrics=MetricParameters(**self.run.metrics.model_dump()),
            sla_response_s=self.run.sla_response_s,
            sla_grace_s=self.run.sla_grace_s,
            variation=self.run.variation,
        )
        return {
            **asdict(facts),
            **self.setup.facts,
            "testbed": self.run.testbed.kind,
            "settings": self.run.model_dump(mode="json", exclude={"variation"}),
        }

    def _operators(self) -> tuple[OperatorFacts, ...]:
        operators = self.topology.operators
        offered = {entry: records_per(operators, entry) for entry in self.entries}
        return tuple(
            OperatorFacts(
                name=operator.name,
                capacity_per_s=self.setup.capacity_per_s.get(operator.name, ()),
                n_min=operator.n_min,
                n_max=operator.n_max,
                records_per_input={entry: records[operator.name] for entry, records in offered.items()},
            )
            for operator in operators
        )

    def policy(self) -> Policy:
        """The policy behind its guards, started."""
        parameters = dict(self.run.policy_parameters)
        known = {known.name for known in dataclass_fields(policy_class(self.run.registered_policy))}
        if "capacity_per_s" in known and self.setup.capacity_per_s:
            parameters.setdefault("capacity_per_s", self.setup.capacity_per_s)
        own = Contained(create(self.run.registered_policy, parameters), self.run.policy)
        policy = guarded(own, self.run.guards)
        policy.start(self.topology, np.random.default_rng([self.run.seed, 2]))
        if self.run.learned:
            teach(policy, self.run.learned, self.run.policy)
        return policy

    def ready(self) -> tuple[Testbed, Policy]:
        """Both sides of the loop, which must fit."""
        testbed, policy = self.setup.testbed(), self.policy()
        loop.check_capabilities(policy.needs, testbed.offers, self.run.policy, self.run.testbed.kind)
        return testbed, policy


def prepare(run: Run) -> Prepared:
    topology = run.topology.build()
    names = [operator.name for operator in topology.operators]
    if run.measured_operator not in names:
        raise FogscaleError(f"measured_operator: {unknown('operator', run.measured_operator, names)}")
    nearest_start = start_placement(topology, run.start, run.pins, run.initial_placement)
    start = nearest_start
    if run.start_nodes == "random":
        drawn = at_random(np.random.default_rng([run.seed, 3]))
        start = start_placement(topology, run.start, run.pins, choose=drawn)
    workload = catalog.load(run.workload.name, **run.workload.parameters)
    wanted = Assignment(
        topology=topology,
        start=start,
        nearest_start=nearest_start,
        measured_operator=run.measured_operator,
        workload=workload,
        workload_name=run.workload.name,
        workload_parameters=run.workload.parameters,
        inputs=_inputs(run.workload, workload, topology),
        replay=run.workload.replay(workload.replay),
        seed=run.seed,
        run=run.id,
    )
    setup = testbeds.prepare(wanted, run.testbed)
    return Prepared(run, topology, start, setup, tuple(wanted.inputs))


def _inputs(settings: WorkloadSettings, workload: Workload, topology: Topology) -> Mapping[str, RateProfile]:
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


def execute(
    run: Run, results: Path | None, progress: loop.Progress | None = None, fresh: bool = False
) -> Journal:
    """Runs to the end, or goes on where a crashed run in the same folder stopped."""
    return carry_out(prepare(run), results, progress, fresh)


def carry_out(
    prepared: Prepared, results: Path | None, progress: loop.Progress | None = None, fresh: bool = False
) -> Journal:
    """The same of a run that is prepared already."""
    run = prepared.run
    testbed, policy = prepared.ready()  # what cannot run must not leave a folder behind
    path = None
    if results is not None:
        path = results / run.folder / JOURNAL
        if fresh:
            set_aside(path)
    journal = Journal.open(path, prepared.header(), prepared.topology)
    try:
        if path is not None:
            manifest = path.with_name(MANIFEST)
            if journal.recorded is None or not _is_whole(manifest, run):
                _write_manifest(manifest, prepared)
        with testbed:
            loop.run(testbed, policy, journal, progress)
        if path is not None:
            write_learned(path.with_name(LEARNED), policy, run.policy)
    finally:
        journal.close()
    return journal


def _write_manifest(path: Path, prepared: Prepared) -> None:
    manifest = {
        "run": prepared.run.model_dump(mode="json"),
        "duration_s": prepared.duration_s,
        "versions": {name: installed(name) for name in ("fogscale", "numpy", "scipy")},
        "commit": commit(),
    }
    write_whole(path, yaml.dump(manifest, Dumper=_YamlDumper, sort_keys=False))


def _is_whole(manifest: Path, run: Run) -> bool:
    """Whether it describes the run that goes on. That it is the same run, the journal has said already: what
    is different was damaged, or is missing."""
    try:
        return run_of(manifest.parent).named_by == run.named_by
    except FogscaleError:
        return False


@cache
def installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


@cache
def commit() -> str | None:
    here = Path(__file__).parent
    try:
        return check_output(["git", "-C", str(here), "rev-parse", "HEAD"], stderr=DEVNULL, text=True).strip()
    except (OSError, SubprocessError):
        return None


def run_of(folder: Path) -> Run:
    """The run whose manifest lies in a folder."""
    path = folder / MANIFEST
    try:
        manifest = read_yaml(path)
    except OSError as error:
        raise FogscaleError(
            f"{folder} holds no run ({error.strerror}: {MANIFEST}): name a folder seed=…"
        ) from error
    except FogscaleError as error:
        raise FogscaleError(f"{path} is damaged ({error}): run the experiment again") from error
    if not isinstance(manifest, Mapping) or not isinstance(manifest.get("run"), Mapping):
        raise FogscaleError(f"{path} describes no run: run the experiment again")
    return validated(Run, in_todays_words(manifest["run"]), str(path))


def decided_by(folder: Path, policy: str) -> Run:
    """The run recorded in a folder, to be decided again: by its own policy or alias as it was, by an alias
    that was recorded beside it as that was, by any other policy with its defaults."""
    original = run_of(folder)
    if policy == original.policy:
        return original
    if policy in policy_names():
        with_defaults: dict[str, Any] = {
            "policy": policy,
            "variant_of": None,
            "policy_parameters": {},
            "learned": {},
        }
        return original.model_copy(update=with_defaults)
    place = folder.resolve()
    beside = {
        path.name.removeprefix("policy="): path / place.parent.name / place.name
        for path in place.parents[2].glob("policy=*")
    }
    if policy not in beside:
        raise FogscaleError(unknown("policy", policy, {*policy_names(), *beside}))
    other = run_of(beside[policy])
    kept = ("policy", "variant_of", "policy_parameters", "learned", "guards")
    changes = {name: getattr(other, name) for name in kept}
    return original.model_copy(update=changes)


def simulate(run_json: str) -> tuple[dict[str, Any], list[Sample]]:
    """One run of a campaign, from a JSON document; only its truth is kept."""
    log = SampleLog()
    prepared = followed(Run.model_validate_json(run_json), log)
    return prepared.header(), log.samples


def followed(run: Run, log: loop.Log) -> Prepared:
    """Runs to the end, with nothing written."""
    return _followed(run, log)[0]


def taught(run: Run, log: loop.Log) -> dict[str, Any]:
    """The same, and what its policy has learned, for another run to start from."""
    _, policy = _followed(run, log)
    document = document_of(policy, run.policy)
    if document is None:
        raise FogscaleError(f"policy '{run.policy}' learns nothing that another run could start from")
    learned: dict[str, Any] = json.loads(document)["learned"]
    return learned


def _followed(run: Run, log: loop.Log) -> tuple[Prepared, Policy]:
    prepared = prepare(run)
    testbed, policy = prepared.ready()
    with testbed:
        loop.run(testbed, policy, log)
    return prepared, policy
