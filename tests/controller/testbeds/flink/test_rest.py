"""Flink's REST API, with answers as Flink 2.3 gives them."""

from __future__ import annotations

import pytest

from controller.testbeds.flink.http import Door, UnreachableError
from controller.testbeds.flink.rest import Bounds, Flink, Savepoint
from tests.support.http_server import serving

SOURCE, MAP = "e5a72f353fc1e6bbf3bd96a41384998c", "23ab3a59b17e9c45f95cff4c728611fc"


def vertex(vertex_id, name, parallelism, running):
    return {
        "id": vertex_id, "name": name, "parallelism": parallelism, "maxParallelism": 128,
        "tasks": {"RUNNING": running, "INITIALIZING": parallelism - running},
    }  # fmt: skip


def job(running=2, state="RUNNING"):
    return {
        "jid": "a1", "name": "taxi", "state": state, "start-time": 5,
        "vertices": [vertex(SOURCE, "Source: source", 1, 1), vertex(MAP, "map", 2, running)],
        "plan": {"nodes": [{"id": MAP, "inputs": [{"id": SOURCE}]}, {"id": SOURCE}]},
    }  # fmt: skip


def asked(answers):
    """A Flink that knows these paths."""
    return serving(lambda request: answers.get(f"{request.method} {request.path}", (404, {"errors": ["no"]})))


def test_a_job_runs_when_all_its_subtasks_do():
    with asked({"GET /jobs/a1": (200, job())}) as server:
        seen = Flink(Door(server.url)).job("a1")
    assert [each.upstream for each in seen.vertices] == [(), (SOURCE,)]
    assert seen.all_run
    with asked({"GET /jobs/a1": (200, job(running=1))}) as server:
        assert not Flink(Door(server.url)).job("a1").all_run
    with asked({"GET /jobs/a1": (200, job(state="RESTARTING"))}) as server:
        assert not Flink(Door(server.url)).job("a1").all_run


def test_failed_checkpoints_are_counted():
    with asked({"GET /jobs/a1/checkpoints": (200, {"counts": {"failed": 3}})}) as server:
        assert Flink(Door(server.url)).failed_checkpoints("a1") == 3
    with asked({"GET /jobs/a1/checkpoints": (200, {})}) as server, pytest.raises(UnreachableError):
        Flink(Door(server.url)).failed_checkpoints("a1")


def test_nodes_are_those_of_subtasks_that_run():
    subtasks = [
        {"subtask": 0, "status": "RUNNING", "taskmanager-id": "fog2"},
        {"subtask": 1, "status": "DEPLOYING", "taskmanager-id": "fog1"},
    ]
    with asked({f"GET /jobs/a1/vertices/{MAP}": (200, {"subtasks": subtasks})}) as server:
        assert Flink(Door(server.url)).nodes_of("a1", MAP) == ("fog2",)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param({"status": {"id": "IN_PROGRESS"}}, Savepoint(False), id="under way"),
        pytest.param(
            {"status": {"id": "COMPLETED"}, "operation": {"location": "s3://a/b"}},
            Savepoint(True, "s3://a/b"),
            id="made",
        ),
        pytest.param(
            {
                "status": {"id": "COMPLETED"},
                "operation": {"failure-cause": {"class": "C", "stack-trace": "C: bucket full\n\tat"}},
            },
            Savepoint(True, None, "C: bucket full"),
            id="failed",
        ),
    ],
)
def test_a_savepoint_is_under_way_made_or_failed(answer, expected):
    with asked({"GET /jobs/a1/savepoints/t": (200, answer)}) as server:
        assert Flink(Door(server.url)).savepoint("a1", "t") == expected


def test_requirements_are_read_and_written_in_flinks_words():
    told = {MAP: {"parallelism": {"lowerBound": 1, "upperBound": 2}}}
    path = "/jobs/a1/resource-requirements"
    with asked({f"GET {path}": (200, told), f"PUT {path}": (200, {})}) as server:
        flink = Flink(Door(server.url))
        assert flink.requirements("a1") == {MAP: Bounds(1, 2)}
        flink.require("a1", {MAP: Bounds(1, 3)})
        (put,) = [each.body for each in server.requests if each.method == "PUT"]
    assert put == {MAP: {"parallelism": {"lowerBound": 1, "upperBound": 3}}}


def test_a_job_starts_once_and_from_its_savepoint():
    with asked({"POST /jars/j/run": (200, {"jobid": "a1"})}) as server:
        assert Flink(Door(server.url)).run("j", "x.Y", ["--a", "1"], "s3://a/b") == "a1"
        (sent,) = server.requests
    assert sent.body == {
        "entryClass": "x.Y", "programArgsList": ["--a", "1"], "savepointPath": "s3://a/b",
        "allowNonRestoredState": False,
    }  # fmt: skip


def test_the_newest_state_of_a_job_that_ended_is_found():
    latest = {
        "completed": {"trigger_timestamp": 5, "external_path": "s3://chk-7"},
        "savepoint": {"trigger_timestamp": 6, "external_path": "s3://savepoint-1"},
    }
    with asked({"GET /jobs/a1/checkpoints": (200, {"latest": latest})}) as server:
        flink = Flink(Door(server.url))
        assert flink.last_state("a1") == "s3://savepoint-1"
        assert flink.last_state("b2") is None


def test_another_flink_is_no_flink_that_we_know():
    with (
        asked({"GET /jobs/a1": (200, {"jid": "a1"})}) as server,
        pytest.raises(UnreachableError, match=r"'plan'.*2\.3"),
    ):
        Flink(Door(server.url)).job("a1")
