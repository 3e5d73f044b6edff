"""Flink in the cluster: where its TaskManagers run, and where its state lies."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from fog.folders import checkout
from tests.support.flink import (
    all_run,
    cancel,
    nodes_of,
    rest,
    scale,
    start,
    stop_with_savepoint,
    taskmanagers,
    uploaded,
)
from tests.support.fog import Fog, changes_in
from tests.support.services import eventually, inside, object_store

pytestmark = pytest.mark.testbed


IMAGE_PLAY = """\
- hosts: fog
  gather_facts: false
  vars_files: ["{vars}/artifacts.yml", "{vars}/secrets.yml", "{vars}/cluster.yml"]
  tasks:
    - ansible.builtin.include_role: {{name: flink, tasks_from: image}}
"""


@pytest.fixture(scope="module")
def jar(fog: Fog, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The counting job's id at the JobManager."""
    return uploaded(fog, "CountingJob", tmp_path_factory.mktemp("job"))


@pytest.fixture
def on_fog1(fog: Fog) -> Iterator[None]:
    scale(fog, "fog1", 1)
    yield
    scale(fog, "fog1", 0)


def pods(fog: Fog) -> dict[str, str]:
    """Pod of a TaskManager → the node it is on."""
    told = fog.kubectl(
        "get", "pods", "--namespace=fogscale", "--selector=component=taskmanager", "--output=json"
    ).stdout
    return {
        each["metadata"]["labels"]["fogscale.io/node"]: each["spec"]["nodeName"]
        for each in json.loads(told)["items"]
        if "deletionTimestamp" not in each["metadata"]
    }


def test_without_a_job_only_the_services_node_has_a_taskmanager(fog: Fog) -> None:
    assert taskmanagers(fog) == {"services1"}
    assert pods(fog) == {"services1": "services1"}


def test_the_set_of_nodes_is_what_was_asked_for(fog: Fog) -> None:
    scale(fog, "fog1", 1)
    assert taskmanagers(fog) == {"services1", "fog1"}
    assert pods(fog) == {"services1": "services1", "fog1": "fog1"}
    (seen,) = (each for each in rest(fog, "GET", "/taskmanagers")["taskmanagers"] if each["id"] == "fog1")
    assert seen["slotsNumber"] == 1
    scale(fog, "fog1", 0)
    assert taskmanagers(fog) == {"services1"}
    eventually(lambda: pods(fog) == {"services1": "services1"}, patience_s=30)


@pytest.mark.usefixtures("on_fog1")
def test_a_taskmanager_has_loaded_the_file_system_of_checkpoints_before_it_asks_for_work(fog: Fog) -> None:
    """Its first task would have to otherwise, while the job waits."""
    log = fog.kubectl("logs", "--namespace=fogscale", "deployment/flink-taskmanager-fog1").stdout
    assert log.index("Loaded the file system of s3://fogscale/") < log.index("Connecting to ResourceManager")


@pytest.mark.usefixtures("on_fog1")
def test_a_savepoint_lies_on_minio_and_a_job_goes_on_from_it(fog: Fog, jar: str) -> None:
    store = object_store(fog)
    job = start(fog, jar)
    location = stop_with_savepoint(fog, job)
    assert location.startswith("s3://fogscale/savepoints/")
    prefix = location.removeprefix("s3://fogscale/") + "/"
    client = store.client(store.flink)
    found = inside(
        fog, lambda: [each.object_name for each in client.list_objects("fogscale", prefix, recursive=True)]
    )
    assert any(name.endswith("_metadata") for name in found)
    again = start(fog, jar, savepoint=location)
    restored = rest(fog, "GET", f"/jobs/{again}/checkpoints")["latest"]["restored"]
    assert restored["is_savepoint"]
    assert restored["external_path"] == location
    cancel(fog, again)


@pytest.mark.usefixtures("on_fog1")
def test_sources_run_on_the_services_node_and_what_is_scaled_in_the_fog(fog: Fog, jar: str) -> None:
    """Left to itself, Flink would do so once in three times: services1 has two slots, fog1 one."""
    for _ in range(4):
        job = start(fog, jar)
        nodes = nodes_of(fog, job)
        cancel(fog, job)
        (source,) = (nodes[name] for name in nodes if name.startswith("Source"))
        (count,) = (nodes[name] for name in nodes if name.startswith("Map"))
        assert (source, count) == (["services1"], ["fog1"])


@pytest.mark.usefixtures("on_fog1")
def test_a_job_is_rescaled_in_place(fog: Fog, jar: str) -> None:
    """services1 has two slots, fog1 one: the counting operator goes from one of them to two."""
    job = start(fog, jar)
    try:
        wanted = rest(fog, "GET", f"/jobs/{job}/resource-requirements")
        counting = next(
            each["id"] for each in rest(fog, "GET", f"/jobs/{job}")["vertices"] if "Map" in each["name"]
        )
        wanted[counting]["parallelism"] = {"lowerBound": 2, "upperBound": 2}
        rest(fog, "PUT", f"/jobs/{job}/resource-requirements", wanted)

        def rescaled() -> bool:
            vertices = rest(fog, "GET", f"/jobs/{job}")["vertices"]
            return all_run(fog, job) and any(
                each["id"] == counting and each["parallelism"] == 2 for each in vertices
            )

        eventually(rescaled, patience_s=60)
        (source,) = (nodes for name, nodes in nodes_of(fog, job).items() if name.startswith("Source"))
        assert source == ["services1"]
    finally:
        cancel(fog, job)


def test_an_image_is_pulled_ahead_unless_it_is_there_or_it_is_said_why_not(fog: Fog, tmp_path: Path) -> None:
    play = tmp_path / "image.yml"
    play.write_text(IMAGE_PLAY.format(vars=checkout() / "playbooks/vars"))
    given = {"fog_nodes": 1, "flink_image_archive": ""}
    done = fog.playbook(str(play), "-e", json.dumps(given))
    assert (done.returncode, changes_in(done.stdout)) == (0, {}), done.stdout
    done = fog.playbook(str(play), "-e", json.dumps({**given, "flink_image": "fogscale.invalid/none:1"}))
    assert done.returncode != 0
    assert "fog1 cannot pull fogscale.invalid/none:1 (" in " ".join(done.stdout.split())


def test_reporters_speak_to_the_node_of_prometheus_and_to_no_other(fog: Fog) -> None:
    for node in ("server1", "services1"):
        url = f"http://{fog.manifest.addresses[node]}:9249/metrics"
        assert "flink_" in fog.ask("services1", f"curl --silent --max-time 10 {url}")
        assert fog.enter("curl", "--silent", "--max-time", "3", url).returncode != 0


def test_a_second_apply_leaves_the_number_of_replicas_to_the_controller(fog: Fog) -> None:
    scale(fog, "fog1", 1)
    try:
        first = "Write what the cluster is to run"
        done = fog.playbook("playbooks/services.yml", "-e", "fog_nodes=1", "--start-at-task", first)
        assert done.returncode == 0, done.stdout
        assert "Apply the rest" in done.stdout
        assert "fog1" in taskmanagers(fog)
    finally:
        scale(fog, "fog1", 0)
