"""What every policy promises, checked over all that are registered: drop a file in, and it is checked too."""

import ast
import copy
import importlib
import inspect
import os
import random
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from controller import policies
from controller.experiment import Run
from controller.journal import Journal, read
from controller.loop import check_capabilities, run
from controller.model import Capability, InstanceMetrics, OperatorMetrics, Plan
from controller.run import execute, prepare
from controller.testbeds.simulated.testbed import SimulatedTestbed
from fogscale.errors import FogscaleError
from tests.support.runs import load_csv, run_values

UP_AND_DOWN_PER_S = [80.0] * 5 + [330.0] * 15 + [40.0] * 15  # minute by minute; a replica does 100
STEADY_PER_S = [150.0] * 15  # two replicas at 75 %
MEMORY = {"idle_ratio": 0.2, "per_busy_ratio": 0.5}  # never the metric that binds
IMPURE_MODULES = {
    "asyncio",
    "datetime",
    "http",
    "httpx",
    "io",
    "os",
    "pathlib",
    "random",
    "requests",
    "secrets",
    "shutil",
    "socket",
    "subprocess",
    "sys",
    "tempfile",
    "threading",
    "time",
    "urllib",
    "uuid",
}
METRICS_OF = {
    Capability.CPU: "cpu_ratio",
    Capability.MEMORY: "memory_ratio",
    Capability.BACK_PRESSURE: "back_pressure_ratio",
    Capability.BUSY: "busy_ratio",
    Capability.TRUE_RATE: "true_rate_per_s",
    Capability.ARRIVAL_RATE: "arrival_rate_per_s",
    Capability.OFFERED_RATE: "offered_rate_per_s",
    Capability.RESPONSE_TIME: "response_time_ms",
}
MEASURED = [metric.name for metric in fields(OperatorMetrics) if metric.name != "instances"]


ALWAYS_SHOWN = {"throughput_per_s", "output_rate_per_s", "queue_records"}  # every testbed has them
"""Of an operator; each of the others is shown to those policies that declare to need it."""


@pytest.fixture(params=policies.names(), scope="module")
def name(request):
    return request.param


def variants():
    """(policy, its parameters): the variants that policies declare themselves."""
    return [
        pytest.param(name, parameters, id=f"{name}-{variant}")
        for name in policies.names()
        for variant, parameters in getattr(policies.policy_class(name), "variants", {}).items()
    ]


def learns(name):
    return getattr(policies.policy_class(name), "learns", False)


def prepared_for(name, rates_per_s, folder, **changes):
    """The run of a policy on the simulated testbed, with the rescale style and the metrics it needs."""
    values = run_values(name, load_csv(folder, rates_per_s), **changes)
    values["testbed"] = {"memory": {"map": MEMORY}} | values["testbed"]
    if Capability.INSTANT_RESCALE in policies.create(name).needs:
        instant = {"reconfiguration": {"style": "instant", "duration_s": 0}, "metric_window_s": 10}
        values["testbed"] = values["testbed"] | instant
    if policies.create(name).period_s < 1:  # made for instances that boot while the others go on
        boot = {"reconfiguration": {"style": "boot", "duration_s": 5}, "metric_window_s": 30}
        values["testbed"] = values["testbed"] | boot
    return prepare(Run.model_validate(values))


def recorded_run(prepared, path):
    """The prepared run, executed and read back from its journal."""
    journal = Journal.open(path, prepared.header(), prepared.topology)
    run(prepared.setup.testbed(), prepared.policy(), journal)
    journal.close()
    return read(path)


@pytest.fixture(scope="module")
def prepared(name, tmp_path_factory):
    return prepared_for(name, UP_AND_DOWN_PER_S, tmp_path_factory.mktemp("load"))


@pytest.fixture(scope="module")
def recorded(prepared, tmp_path_factory):
    """35 minutes in which the load rises fourfold and falls to an eighth of that, through the policy."""
    return recorded_run(prepared, tmp_path_factory.mktemp("run") / "journal.jsonl")


@pytest.fixture(scope="module")
def observations(recorded):
    return [step.observation for step in recorded.steps]


@pytest.fixture(scope="module")
def steady(name, tmp_path_factory):
    """A quarter of an hour in which nothing changes."""
    folder = tmp_path_factory.mktemp("steady")
    recorded = recorded_run(prepared_for(name, STEADY_PER_S, folder), folder / "journal.jsonl")
    return [step for step in recorded.steps if step.observation.time_s < 60 * len(STEADY_PER_S)]


def without(seen, metrics):
    """What an operator shows, but for some metrics: neither of itself nor of its instances."""
    shown = [metric.name for metric in fields(InstanceMetrics) if metric.name in metrics]
    instances = tuple(replace(instance, **dict.fromkeys(shown)) for instance in seen.instances)
    return replace(seen, instances=instances, **dict.fromkeys(metrics))


def keeps(plan, observation):
    """No plan, or one for what is requested already: it sets the standby, or says why nothing changes."""
    return plan is None or dict(plan.placement) == dict(observation.requested)


def decided(policy, observations):
    return [policy.decide(observation) for observation in observations]


# What it is


def test_builds_from_its_defaults(name):
    policy = policies.create(name)
    assert policy.period_s > 0


def test_has_a_summary_of_one_line(name):
    summary = policies.describe(name).summary
    assert summary
    assert "\n" not in summary
    assert len(summary) < 250


def test_describes_every_parameter(name):
    for parameter in policies.describe(name).parameters:
        assert parameter["description"], f"{parameter['name']} has no description"


def test_accepts_its_own_defaults_as_parameters(name):
    defaults = {known["name"]: known["default"] for known in policies.describe(name).parameters}
    assert policies.create(name, defaults) == policies.create(name)


def test_is_called_like_its_file(name):
    module = inspect.getmodule(policies.policy_class(name))
    assert module.__name__.rpartition(".")[2] == name


def test_a_misspelt_parameter_finds_the_known_one(name):
    with pytest.raises(FogscaleError, match="did you mean period_s"):
        policies.create(name, {"perod_s": 1})


def test_a_parameter_of_the_wrong_type_is_named(name):
    with pytest.raises(FogscaleError, match=f"'period_s' of policy '{name}'"):
        policies.create(name, {"period_s": "often"})


# What it needs


def test_states_its_needs_as_capabilities(name):
    needs = policies.create(name).needs
    assert isinstance(needs, frozenset)
    assert all(isinstance(need, Capability) for need in needs)


def test_is_refused_in_one_line_by_a_testbed_that_lacks_something(name):
    needs = policies.create(name).needs
    check_capabilities(needs, frozenset(Capability), name, "perfect")
    for need in needs:
        with pytest.raises(FogscaleError) as refusal:
            check_capabilities(needs, frozenset(Capability) - {need}, name, "poor")
        assert str(need) in str(refusal.value)
        assert name in str(refusal.value)
        assert "\n" not in str(refusal.value)


def test_a_refused_run_leaves_nothing_behind(name, tmp_path, monkeypatch):
    if not policies.create(name).needs:
        return  # such a policy runs anywhere
    monkeypatch.setattr(SimulatedTestbed, "offers", frozenset())
    results = tmp_path / "results"
    with pytest.raises(FogscaleError, match="does not offer"):
        execute(prepared_for(name, STEADY_PER_S, tmp_path).run, results)
    assert list(results.rglob("*.*")) == []


# How it decides


def test_follows_the_load_up_and_down(name, recorded):
    """Otherwise the checks below would check nothing. A policy that needs nothing may stand still."""
    counts = [len(step.observation.requested["map"]) for step in recorded.steps]
    if policies.create(name).needs:
        assert max(counts) > counts[0]
        assert counts[-1] < max(counts)
        assert recorded.finished


def test_same_observations_same_seed_same_plans(prepared, recorded, observations):
    assert decided(prepared.policy(), observations) == [step.plan for step in recorded.steps]


def test_two_of_a_kind_share_no_memory(prepared, recorded, observations):
    first, second = prepared.policy(), prepared.policy()
    for observation, step in zip(observations, recorded.steps, strict=True):
        assert first.decide(observation) == step.plan
        assert second.decide(observation) == step.plan


def test_starting_again_forgets_everything(prepared, recorded, observations):
    policy = prepared.policy()
    decided(policy, observations)
    policy.start(prepared.topology, np.random.default_rng([prepared.run.seed, 2]))
    assert decided(policy, observations) == [step.plan for step in recorded.steps]


def test_leaves_the_observation_as_it_was(prepared, observations):
    policy = prepared.policy()
    for observation in observations:
        before = copy.deepcopy(observation)
        policy.decide(observation)
        assert observation == before


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_memory_is_rebuilt_by_replaying_a_journal(prepared, recorded, share):
    crashed_at = int(share * len(recorded.steps))
    policy = prepared.policy()
    for step in recorded.steps[:crashed_at]:
        assert policy.decide(step.observation) == step.plan
    for step in recorded.steps[crashed_at:]:
        assert policy.decide(step.observation) == step.plan


def test_plans_are_such_as_the_testbed_can_carry_out(name, recorded):
    check_plans(recorded.steps)
    receipts = [receipt for step in recorded.steps for receipt in step.observation.receipts]
    assert [receipt.message for receipt in receipts if receipt.outcome == "refused"] == []


def check_plans(steps):
    last_plan = None
    for step in steps:
        observation, plan = step.observation, step.plan
        if keeps(plan, observation):
            assert plan is None or plan != last_plan, "what changes nothing is said once"
        last_plan = plan
        if plan is None:
            continue
        topology = observation.topology
        assert plan.reason, "a plan says why"
        assert "\n" not in plan.reason
        assert set(plan.placement) == {operator.name for operator in topology.operators}
        for operator in topology.operators:
            replicas = len(plan.placement[operator.name])
            assert operator.n_min <= replicas <= (operator.n_max or replicas)
        placed = [node for nodes in plan.placement.values() for node in nodes]
        slots = {node.name: node.slots for node in topology.nodes}
        for node in placed:
            assert placed.count(node) <= slots[node]


def test_stays_within_the_slots_where_there_are_fewer_than_wanted(name, tmp_path):
    """The load asks for four replicas, n_max allows five, three nodes are free."""
    values = run_values(name, tmp_path)
    values["topology"]["nodes"] = values["topology"]["nodes"][:4]
    values["topology"]["rtt_ms"] = {"uniform_ms": 10}
    prepared = prepared_for(name, UP_AND_DOWN_PER_S, tmp_path, topology=values["topology"])
    recorded = recorded_run(prepared, tmp_path / "journal.jsonl")
    check_plans(recorded.steps)
    assert max(len(step.observation.requested["map"]) for step in recorded.steps) <= 3


def test_goes_on_through_faults(name, tmp_path):
    """A node is lost with its replica, metrics are lost for a while, the network becomes slow."""
    values = run_values(name, tmp_path)
    faults = [
        {"kind": "node_loss", "at_s": 420, "for_s": 900, "node": "fog2", "recovery_s": 20},
        {"kind": "lost_metrics", "at_s": 700, "for_s": 200},
        {"kind": "slow_network", "at_s": 1000, "for_s": 300, "rtt_factor": 3},
        {"kind": "failed_savepoint", "at_s": 1200, "for_s": 200},
    ]
    testbed = values["testbed"] | {"faults": faults, "drain_limit_s": 36_000}
    prepared = prepared_for(name, UP_AND_DOWN_PER_S, tmp_path, testbed=testbed)
    recorded = recorded_run(prepared, tmp_path / "journal.jsonl")
    check_plans(recorded.steps)
    assert recorded.finished


def test_works_where_nodes_can_be_created(name, tmp_path):
    """Two nodes for map, the load asks for four replicas, and there is no n_max."""
    topology = run_values(name, tmp_path)["topology"]
    topology |= {"nodes": topology["nodes"][:3], "rtt_ms": {"uniform_ms": 10}, "elastic": True}
    topology["operators"][1].pop("n_max")
    prepared = prepared_for(name, UP_AND_DOWN_PER_S, tmp_path, topology=topology)
    recorded = recorded_run(prepared, tmp_path / "journal.jsonl")
    assert recorded.finished
    if prepared.policy().needs:
        assert max(len(step.observation.requested["map"]) for step in recorded.steps) >= 3


@pytest.mark.parametrize("extreme", [0.0, 1.0])
def test_never_leaves_the_bounds_whatever_it_sees(prepared, observations, extreme):
    """Everything idle while a single replica runs, everything at its limit on all five nodes."""
    nodes = ("fog1",) if extreme == 0 else ("fog1", "fog2", "fog3", "fog4", "fog5")
    ratios = dict.fromkeys(("cpu_ratio", "memory_ratio", "busy_ratio"), extreme)
    rate_per_s = 1e6 * extreme
    names = ("arrival_rate_per_s", "offered_rate_per_s", "throughput_per_s", "queue_records")
    rates = dict.fromkeys(names, rate_per_s)
    policy = prepared.policy()
    for observation in observations:
        placement = {**observation.requested, "map": nodes}
        operators = {
            name: OperatorMetrics(back_pressure_ratio=extreme if name == "source" else 0.0, **ratios, **rates)
            for name in observation.operators
        }
        at_the_end = replace(observation, placement=placement, requested=placement, operators=operators)
        assert keeps(policy.decide(at_the_end), at_the_end)


def test_leaves_a_steady_job_alone(name, steady):
    assert len(steady) >= 14
    if learns(name):
        pytest.skip("it may try things out while it learns")
    assert all(keeps(step.plan, step.observation) for step in steady)
    assert sum(step.plan is not None for step in steady) <= 1  # the standby, or why nothing is decided


# What it does without


@pytest.mark.parametrize("metric", MEASURED)
def test_a_steady_job_is_left_alone_when_a_metric_is_missing(name, tmp_path, steady, metric):
    policy = prepared_for(name, STEADY_PER_S, tmp_path).policy()
    for step in steady:
        blind = {operator: without(seen, [metric]) for operator, seen in step.observation.operators.items()}
        plan = policy.decide(replace(step.observation, operators=blind))
        # One that learns may try something out, but nothing that it would not try seeing all.
        assert keeps(plan, step.observation) or (learns(name) and plan == step.plan)


def test_blind_it_plans_nothing(prepared, observations):
    """None is not 0: an operator nobody measured is neither idle nor saturated."""
    policy = prepared.policy()
    for observation in observations:
        blind = replace(
            observation,
            operators={name: OperatorMetrics() for name in observation.operators},
            nodes={},
            measured_s=None,
            lag_records=None,
            response_time_ms=None,
        )
        assert keeps(policy.decide(blind), blind)


@pytest.mark.parametrize(
    "metrics", [*([metric] for metric in MEASURED), MEASURED], ids=lambda names: names[-1]
)
def test_what_it_has_learnt_does_not_make_it_fill_gaps_with_zeros(prepared, recorded, metrics):
    """At the height of the load, where it saw no reason to act, it sees none without a metric either."""
    busy = [i for i, step in enumerate(recorded.steps) if 600 <= step.observation.time_s < 1200]
    calm = [i for i in busy if recorded.steps[i].plan is None]
    for i in calm[:: max(5, len(calm) // 4)]:
        policy = prepared.policy()
        decided(policy, [step.observation for step in recorded.steps[:i]])
        seen = recorded.steps[i].observation
        blind = {name: without(shown, metrics) for name, shown in seen.operators.items()}
        assert keeps(policy.decide(replace(seen, operators=blind)), seen)


def declared_only(observation, needs):
    """The observation without any metric that a policy has not declared to need."""
    hidden = [METRICS_OF[other] for other in METRICS_OF if other not in needs]
    operators = {name: without(seen, hidden) for name, seen in observation.operators.items()}
    if Capability.INSTANCE_METRICS not in needs:
        operators = {name: replace(seen, instances=()) for name, seen in operators.items()}
    nodes = {
        name: replace(seen, **{metric: None for metric in ("cpu_ratio", "memory_ratio") if metric in hidden})
        for name, seen in observation.nodes.items()
    }
    return replace(
        observation,
        operators=operators,
        nodes=nodes,
        lag_records=observation.lag_records if Capability.LAG in needs else None,
        response_time_ms=observation.response_time_ms if Capability.RESPONSE_TIME in needs else None,
        standby=observation.standby if Capability.STANDBY in needs else (),
        requested_instances=(observation.requested_instances if Capability.NAMED_INSTANCES in needs else {}),
    )


def test_what_it_does_not_declare_to_need_it_does_not_use(prepared, recorded):
    policy = prepared.policy()
    for step in recorded.steps:
        assert policy.decide(declared_only(step.observation, policy.needs)) == step.plan


class Sneaky:
    """Looks at CPU, and declares nothing."""

    needs = frozenset()

    def decide(self, observation):
        cpu_ratio = observation.operators["map"].cpu_ratio
        return None if cpu_ratio is None else Plan(observation.requested, reason=f"CPU at {cpu_ratio:.0%}")


def test_a_policy_that_looks_at_cpu_and_declares_nothing_is_found_out(observations):
    policy = Sneaky()
    shown = decided(policy, observations)
    assert shown != decided(policy, [declared_only(seen, policy.needs) for seen in observations])


def test_every_metric_is_either_declared_or_shown_to_all():
    assert {*METRICS_OF.values()} | ALWAYS_SHOWN == {*MEASURED}


@pytest.mark.parametrize(("variant_of", "parameters"), variants())
def test_declared_variants_keep_what_the_default_keeps(variant_of, parameters, tmp_path):
    prepared = prepared_for(variant_of, UP_AND_DOWN_PER_S, tmp_path, policy_parameters=parameters)
    recorded = recorded_run(prepared, tmp_path / "journal.jsonl")
    check_plans(recorded.steps)
    policy, again = prepared.policy(), prepared.policy()
    for step in recorded.steps:
        assert policy.decide(step.observation) == step.plan
        assert again.decide(declared_only(step.observation, again.needs)) == step.plan


def test_without_what_it_needs_it_plans_nothing_new(prepared, observations):
    policy = prepared.policy()
    metrics = [METRICS_OF[need] for need in policy.needs if need in METRICS_OF]
    for observation in observations:
        blind = {name: without(seen, metrics) for name, seen in observation.operators.items()}
        plan = policy.decide(replace(observation, operators=blind))
        assert keeps(plan, observation) or not metrics


@pytest.mark.parametrize("seed", range(3))
def test_gaps_in_the_metrics_lead_to_no_error_and_no_impossible_plan(prepared, recorded, seed):
    rng = np.random.default_rng(seed)
    policy = prepared.policy()
    steps = []
    for step in recorded.steps:
        holed = {
            name: without(seen, [metric for metric in MEASURED if rng.random() < 0.3])
            for name, seen in step.observation.operators.items()
        }
        observation = replace(step.observation, operators=holed)
        steps.append(step._replace(observation=observation, plan=policy.decide(observation)))
    check_plans(steps)


# No clock, no I/O, no randomness but its own


OUTSIDE = {"open", "os", "socket", "subprocess", "shutil", "urllib"}


class _Watch:
    """Refuses the outside world to the thread that decides; the threads of Spark go about their business.

    An audit hook cannot be removed, so it can be switched off.
    """

    thread = None

    def is_deciding(self):
        return self.thread == threading.get_ident()

    def __call__(self, event, _arguments):
        if self.is_deciding() and event.split(".")[0] in OUTSIDE:
            raise AssertionError(f"a policy must not touch the outside world: {event}")

    def guarded(self, function):
        def call(*arguments, **options):
            if self.is_deciding():
                raise AssertionError("a policy has no clock, no I/O and no randomness except its generator")
            return function(*arguments, **options)

        return call


WATCH = _Watch()
sys.addaudithook(WATCH)

FORBIDDEN = {
    time: ("time", "monotonic", "perf_counter", "process_time", "time_ns", "monotonic_ns", "sleep"),
    random: ("random", "randint", "choice", "shuffle", "uniform", "gauss", "sample", "randrange"),
    np.random: ("random", "rand", "randint", "choice", "normal", "uniform", "default_rng", "shuffle"),
    os: ("urandom",),
}


def test_decides_without_clock_files_network_or_foreign_randomness(prepared, observations, monkeypatch):
    decided(prepared.policy(), observations)  # whatever is imported late is imported now
    policy = prepared.policy()
    for module, names in FORBIDDEN.items():
        for name in names:
            monkeypatch.setattr(module, name, WATCH.guarded(getattr(module, name)))
    WATCH.thread = threading.get_ident()
    try:
        decided(policy, observations)
    finally:
        WATCH.thread = None
        monkeypatch.undo()


def test_the_watch_refuses_files_to_the_deciding_thread_alone():
    with ThreadPoolExecutor(1) as other:
        other.submit(int).result()  # starts the thread
        WATCH.thread = threading.get_ident()
        try:
            assert other.submit(Path(__file__).read_text).result()
            with pytest.raises(AssertionError, match="outside world: open"):
                Path(__file__).read_text()
        finally:
            WATCH.thread = None


def test_imports_nothing_that_tells_the_time_or_reaches_outside(name):
    """The check above sees what ran; this one sees the rest, such as datetime.now, beyond any patch."""
    reached = [base.__module__ for base in policies.policy_class(name).__mro__]
    looked_at = set()
    while reached:
        module = reached.pop()
        if module in looked_at or not module.startswith(DECIDING):
            continue
        looked_at.add(module)
        imported = imports_of(module)
        outside = {other.partition(".")[0] for other in imported} & IMPURE_MODULES
        assert not outside, f"{module} imports {outside}"
        reached += imported
    own = policies.policy_class(name).__module__
    assert own in looked_at or not own.startswith("controller.")


DECIDING = ("controller.policies.", "controller.models.", "controller.placement", "controller.protocol.")
"""What runs while a policy decides; controller.policies itself also finds and builds them."""


def imports_of(module):
    source = Path(inspect.getsourcefile(importlib.import_module(module)))
    imported = []
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]  # modules, or what is in them
            imported += [node.module or "", *filter(is_module, names)]
    return imported


def is_module(name):
    return (Path(__file__).parents[2] / f"{name.replace('.', '/')}.py").exists()


def test_the_import_check_follows_policies_into_their_models():
    assert "controller.models.kalman" in imports_of("controller.policies.ekf")
    assert "controller.models.".startswith(DECIDING)
