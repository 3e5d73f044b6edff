"""Bad answers never cause a rescale. One place of what Prometheus, Flink or Kubernetes answers is absurd or
lost: policies that were content stay so, and nothing escapes but the one line that a service is away."""

from __future__ import annotations

import copy
import json
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller import policies
from controller.contract import Policy
from controller.experiment import load
from controller.model import Observation, OperatorMetrics
from controller.testbeds.flink import queries
from controller.testbeds.flink.http import Door, UnreachableError
from controller.testbeds.flink.kubernetes import Cluster
from controller.testbeds.flink.metrics import Measured, Monitor, Running
from controller.testbeds.flink.offers import offers_with
from controller.testbeds.flink.prometheus import Prometheus
from controller.testbeds.flink.rest import Flink
from controller.testbeds.flink.settings import FlinkSettings
from fogscale.errors import FogscaleError
from tests.controller.testbeds.flink.test_checks import FOLDER
from tests.controller.testbeds.flink.test_metrics import PLACEMENT, VERTICES, counter, gauge, task
from tests.support.http_server import serving

TOPOLOGY = load(FOLDER / "local.yml").topology.build()
# Numbers that no machine measures, and what is no number. A wrong one that could be true, nobody can tell.
ABSURD = (
    "-1", "1e300", "-1e300", "NaN", "+Inf", "", "x", None, True, -1, 7.5, 1e300, [], {}, [[]], {"a": 1},
)  # fmt: skip
LOOKS = 4


def answers():
    """A job that keeps up with its load at 60 % of its CPU; by the part of PromQL that asks for it."""
    job = [
        *task("Source: source", 0, "services1", 0, 0.5, 0.0, out_per_s=100),
        *task("map", 0, "fog1", 50, 0.4, 0.0),
        *task("map", 1, "fog2", 50, 0.4, 0.0),
        *task("sink: Writer", 0, "services1", 100, 0.9, 0.0),
        gauge(queries.OFFSET, {"partition": "0"}, 9_999),
        gauge(queries.SOURCE_DELAY_MS, {}, 400),
    ]
    nodes = []
    for node in ("services1", "fog1", "fog2"):
        nodes += [
            counter(queries.CGROUP_CPU_S, {"node": node}, 0.12),
            gauge(queries.CGROUP_CPUS, {"node": node}, 0.2),
            gauge(queries.CGROUP_MEMORY, {"node": node}, 5e8),
            gauge(queries.CGROUP_MEMORY_LIMIT, {"node": node}, 1e9),
        ]
    parts = {
        "latency": [gauge(queries.LATENCY_MS, {}, 25)],
        "end_offset": [counter(queries.END_OFFSET, {"partition": "0"}, 100, start=8_000)],
        "fog_node": nodes,
        "numRecordsIn": job,
    }
    return {name: {"data": {"resultType": "matrix", "result": found}} for name, found in parts.items()}


class World:
    """A Prometheus that answers what it is told to, and what becomes of it."""

    def __init__(self, server_url, told):
        self.told = told
        self.monitor = Monitor(Prometheus(Door(server_url)), TOPOLOGY.operators, "input", 15.0)

    def observation(self, time_s):
        """As the testbed shows it."""
        try:
            seen = self.monitor.measure(Running("a1", VERTICES, PLACEMENT, 0.0))
        except UnreachableError:
            seen = Measured()
        return Observation(
            time_s=time_s, topology=TOPOLOGY, placement=PLACEMENT, requested=PLACEMENT,
            operators=seen.operators or {each.name: OperatorMetrics() for each in TOPOLOGY.operators},
            nodes=seen.nodes, measured_s=None if seen.time_s is None else time_s,
            lag_records=seen.lag_records, response_time_ms=seen.response_time_ms,
        )  # fmt: skip


@pytest.fixture(scope="module")
def world():
    told = answers()

    def answer(request):
        return 200, next(found for part, found in told.items() if part in request.path)

    with pytest.MonkeyPatch.context() as patch, serving(answer) as server:
        patch.setattr("controller.testbeds.flink.http.PAUSES_S", ())
        yield World(server.url, told)


def content_after(policy: Policy, observations) -> bool:
    policy.start(TOPOLOGY, np.random.default_rng(1))
    return all(policy.decide(each) is None for each in observations)


def built(name):
    known = {each["name"] for each in policies.describe(name).parameters}
    ladder = {"map": (80.0, 155.0, 247.0, 300.0, 350.0)}
    return policies.create(name, {"capacity_per_s": ladder} if "capacity_per_s" in known else {})


def content_policies(world):
    """Those that the testbed offers enough, and that leave this job as it is."""
    world.told.update(answers())
    steady = [world.observation(60.0 * turn) for turn in range(2 * LOOKS)]
    found = []
    for name in policies.names():
        try:
            policy = built(name)
        except FogscaleError:
            continue  # asks for parameters of its own
        if policy.needs <= offers_with(FlinkSettings()) and content_after(policy, steady):
            found.append(name)
    return found


def places(value, path=()):
    """The path to every place of a JSON document."""
    yield path
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield from places(part, (*path, key))


def changed(document, path, new):
    """A copy with something else in one place; `new` is () where the place itself is lost."""
    if not path:
        return None if new == () else new
    result = copy.deepcopy(document)
    holder = result
    for key in path[:-1]:
        holder = holder[key]
    if new == ():
        del holder[path[-1]]
    else:
        holder[path[-1]] = new
    return result


def test_a_steady_job_is_left_alone_by_most_policies(world):
    assert {"thr_nlunaware", "thr_nlaware", "gesscale", "mdl_nlunaware", "ds2"} <= set(
        content_policies(world)
    )


def test_no_absurd_or_lost_figure_makes_anybody_rescale(world):
    names = content_policies(world)
    true = [world.observation(60.0 * turn) for turn in range(LOOKS)]

    @settings(max_examples=150)
    @given(st.data())
    def holds(data):
        world.told.update(answers())
        part = data.draw(st.sampled_from(sorted(world.told)))
        path = data.draw(st.sampled_from(list(places(world.told[part]))))
        world.told[part] = changed(world.told[part], path, data.draw(st.sampled_from([*ABSURD, ()])))
        bad = [world.observation(60.0 * (LOOKS + turn)) for turn in range(2)]
        for name in names:
            assert content_after(built(name), [*true, *bad]), name

    holds()


FLINK = {
    "/jobs/overview": {"jobs": [{"jid": "a1", "name": "n", "state": "RUNNING", "start-time": 1}]},
    "/taskmanagers": {"taskmanagers": [{"id": "fog1", "slotsNumber": 1, "freeSlots": 0}]},
    "/jobs/a1": {
        "jid": "a1", "name": "n", "state": "RUNNING", "start-time": 1,
        "plan": {"nodes": [{"id": "v", "inputs": [{"id": "u"}]}]},
        "vertices": [
            {"id": "v", "name": "map", "parallelism": 1, "maxParallelism": 128, "tasks": {"RUNNING": 1}}
        ],
    },
    "/jobs/a1/vertices/v": {"subtasks": [{"status": "RUNNING", "taskmanager-id": "fog1"}]},
    "/jobs/a1/savepoints/t": {"status": {"id": "COMPLETED"}, "operation": {"location": "s3://x"}},
    "/jobs/a1/checkpoints": {
        "counts": {"failed": 0}, "latest": {"completed": {"external_path": "s3://y", "trigger_timestamp": 1}}
    },
    "/jobs/a1/resource-requirements": {"v": {"parallelism": {"lowerBound": 1, "upperBound": 2}}},
    "/api/v1/nodes": {
        "items": [
            {"metadata": {"name": "f"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}
        ]
    },
    "/apis/apps/v1/namespaces/fog/deployments/d/scale": {"spec": {"replicas": 1}},
    "/apis/coordination.k8s.io/v1/namespaces/fog/leases/l": {
        "metadata": {"name": "l"}, "spec": {"holderIdentity": "me", "renewTime": "2026-01-01T00:00:00Z"}
    },
}  # fmt: skip


def test_a_misshapen_answer_of_flink_or_kubernetes_is_a_service_that_is_away():
    told = copy.deepcopy(FLINK)
    with serving(lambda request: (200, json.dumps(told[request.path]))) as server:
        flink = Flink(Door(server.url), tries_again=False)
        cluster = Cluster(Door(server.url), "fog")
        questions = {
            "/jobs/overview": flink.jobs,
            "/taskmanagers": flink.taskmanagers,
            "/jobs/a1": lambda: flink.job("a1"),
            "/jobs/a1/vertices/v": lambda: flink.nodes_of("a1", "v"),
            "/jobs/a1/savepoints/t": lambda: flink.savepoint("a1", "t"),
            "/jobs/a1/checkpoints": lambda: (flink.failed_checkpoints("a1"), flink.last_state("a1")),
            "/jobs/a1/resource-requirements": lambda: flink.requirements("a1"),
            "/api/v1/nodes": cluster.nodes,
            "/apis/apps/v1/namespaces/fog/deployments/d/scale": lambda: cluster.replicas("d"),
            "/apis/coordination.k8s.io/v1/namespaces/fog/leases/l": lambda: cluster.lease("l"),
        }
        assert set(questions) == set(FLINK)
        for question in questions.values():
            question()  # understood as it is

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("controller.testbeds.flink.http.PAUSES_S", ())
            for asked, question in questions.items():
                for path in places(FLINK[asked]):
                    for new in (*ABSURD, ()):
                        told[asked] = changed(FLINK[asked], path, new)
                        with suppress(UnreachableError):
                            question()
                told[asked] = FLINK[asked]


@pytest.mark.parametrize("time_s", [True, 1.0])
def test_samples_whose_times_do_not_go_on_make_nobody_rescale(world, time_s):
    """Between two such samples no line can be drawn."""
    true = [world.observation(60.0 * turn) for turn in range(LOOKS)]
    path = ("data", "result", 4, "values", 2, 0)
    world.told.update(answers())
    world.told["fog_node"] = changed(world.told["fog_node"], path, time_s)
    bad = [world.observation(60.0 * (LOOKS + turn)) for turn in range(2)]
    assert content_after(built("thr_nlaware"), [*true, *bad])
