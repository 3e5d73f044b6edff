"""What is wrong with an experiment or a plan is said before anything is touched."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from controller import experiment as experiments
from controller import policies
from controller.model import Plan
from controller.run import prepare
from controller.testbeds.flink.checks import check_groups, check_nodes, check_operators, objection
from fog.manifest import Manifest, ManifestNode
from fogscale.errors import FogscaleError
from workloads.jobs.catalog import find

FOLDER = Path(__file__).parents[4] / "controller/testbeds/flink"
FOG = ("fog1", "fog2", "fog3", "fog4", "fog5")
PINNED = {"source": ("services1",), "sink": ("services1",)}


@pytest.fixture(scope="module")
def topology():
    return experiments.load(FOLDER / "local.yml").topology.build()


@pytest.mark.parametrize(
    ("name", "duration_s"),
    [("local", 12 * 3600 / 40), ("pi", 48 * 360), ("clickfraud", 8 * 3600 / 48), ("toproutes", 6.5 * 90)],
)
def test_the_experiments_that_come_along_can_be_run(name, duration_s):
    experiment = experiments.load(FOLDER / f"{name}.yml")
    for scenario in experiments.scenarios_of(experiment).values():
        for run in experiments.runs_of(scenario, seeds=[1]):
            prepared = prepare(run)
            prepared.ready()  # every policy in it finds what it needs
            assert prepared.duration_s == duration_s


def test_every_policy_drives_a_real_flink_or_is_refused_with_what_it_misses():
    experiment = experiments.load(FOLDER / "every_policy.yml")
    for run in experiments.runs_of(experiment, seeds=[1]):
        prepare(run).ready()
    missing = {
        "decentralized": "named_instances",
        "ideal": "instant_rescale",
    }
    assert {*experiment.policies, *missing} == set(policies.names()), (
        "a new policy: add it to every_policy.yml"
    )
    for name, capability in missing.items():
        (run,) = experiments.runs_of(experiment, ["static"], [1])
        other = run.model_copy(update={"policy": name, "policy_parameters": {}})
        with pytest.raises(FogscaleError, match=f"policy '{name}' needs .*{capability}"):
            prepare(other).ready()


def test_a_job_that_takes_every_slot_leaves_none_on_standby():
    (run,) = experiments.runs_of(experiments.load(FOLDER / "every_policy.yml"), ["reactive"], [1])
    elastic = run.model_copy(update={"testbed": run.testbed.model_copy(update={"style": "elastic"})})
    with pytest.raises(FogscaleError, match=r"policy 'reactive' needs .*standby"):
        prepare(elastic).ready()


def manifest(nodes, rows):
    made = tuple(ManifestNode(name, "fog", "10.0.0.1", "root") for name in nodes)
    return Manifest("local", True, "switch", made, rows, 300)


def test_nodes_must_be_there_and_as_far_apart_as_the_experiment_says(topology):
    few = replace(topology, nodes=topology.nodes[:2])  # services1 and fog1, 5 ms apart
    rows = {"nodes": ["services1", "fog1"], "services1": [0, 5], "fog1": [5, 0]}
    check_nodes(few, manifest(["services1", "fog1"], rows))
    with pytest.raises(FogscaleError, match="has no node 'fog1'"):
        check_nodes(few, manifest(["services1"], {"nodes": ["services1"], "services1": [0]}))
    rows = {"nodes": ["services1", "fog1"], "services1": [0, 50], "fog1": [50, 0]}
    with pytest.raises(FogscaleError, match="services1 and fog1 are 50 ms apart there, not 5"):
        check_nodes(few, manifest(["services1", "fog1"], rows))


def test_nodes_have_no_more_slots_than_the_testbed_was_built_with(topology):
    rows = {"nodes": ["services1", "fog1"], "services1": [0, 5], "fog1": [5, 0]}
    wide = replace(topology, nodes=(topology.nodes[0], replace(topology.nodes[1], slots=4)))
    with pytest.raises(FogscaleError, match=r"fog1 has 1 slots there, not 4: .*-e fog_slots=4"):
        check_nodes(wide, manifest(["services1", "fog1"], rows))
    built = replace(manifest(["services1", "fog1"], rows), services={"flink": {"slots": 4}})
    check_nodes(wide, built)


def test_operators_are_those_of_the_job(topology):
    check_operators(topology, find("taxi"), "taxi")
    renamed = replace(
        topology, operators=(*topology.operators[:2], replace(topology.operators[2], name="snk"))
    )
    with pytest.raises(FogscaleError, match="did you mean sink"):
        check_operators(renamed, find("taxi"), "taxi")
    with pytest.raises(FogscaleError, match="also has sink"):
        check_operators(replace(topology, operators=topology.operators[:2]), find("taxi"), "taxi")


def test_of_operators_that_share_slots_one_is_scaled():
    clicks = experiments.load(FOLDER / "clickfraud.yml").topology.build()
    check_groups(clicks, find("clickfraud"), "split")
    both = tuple(replace(each, n_max=5) if each.name == "clickRate" else each for each in clicks.operators)
    with pytest.raises(FogscaleError, match=r"parse, clickRate share slots, .* n_max: 1"):
        check_groups(replace(clicks, operators=both), find("clickfraud"), "split")


@pytest.mark.parametrize(
    ("placement", "words"),
    [
        pytest.param({"map": ("fog1", "fog3")}, None, id="fine"),
        pytest.param({"map": ()}, "1 to 5 replicas, not 0", id="none"),
        pytest.param({"map": (*FOG, "fog1")}, "1 to 5 replicas, not 6", id="beyond n_max"),
        pytest.param({"map": ("fog1", "fog1")}, "fog1 has 1 slots, not 2", id="beyond a node's slots"),
        pytest.param({"map": ("services1",)}, "no fog node that is ready", id="not in the fog"),
        pytest.param({"map": ("fog1",), "sink": ("fog2",)}, "'sink' stays on services1", id="a pinned one"),
        pytest.param({"map": ("fog1",), "mpa": ("fog2",)}, "did you mean map", id="unknown"),
    ],
)
def test_a_plan_that_cannot_be_carried_out_is_refused_with_the_reason(topology, placement, words):
    found = objection(Plan(placement), topology, ["map"], PINNED, FOG, partitions=8)
    assert found is None if words is None else words in found


def test_fewer_partitions_than_nodes_limit_the_parallelism(topology):
    found = objection(Plan({"map": FOG}), topology, ["map"], PINNED, FOG, partitions=4)
    assert found == "'map' can have 1 to 4 replicas, not 5"
