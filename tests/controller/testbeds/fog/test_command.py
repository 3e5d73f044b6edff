from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from controller.errors import FogscaleError
from controller.testbeds.fog import command as commands
from controller.testbeds.fog.command import read_matrix, show
from controller.testbeds.fog.manifest import ManifestNode
from controller.testbeds.fog.ping import Measured
from controller.testbeds.fog.playbooks import Progress, Step
from controller.testbeds.fog.status import NodeStatus, ServiceStatus, Status

A, B = ManifestNode("a", "server", "10.0.0.1", "root", cpus=1.0), ManifestNode("b", "fog", "10.0.0.2", "root")


def found(measured_ms: float | None = 20.4) -> Status:
    return Status(
        "local", "switch",
        tuple(NodeStatus(node, None, "6.1", "Debian", 512, "running") for node in (A, B)),
        (Measured("a", "b", 20, measured_ms),),
        (ServiceStatus("kafka", "a", 9092, "4.3", listens=True),), {"fogscale": "1"},
    )  # fmt: skip


def test_a_status_prints_what_is_beside_what_should_be(capsys: pytest.CaptureFixture[str]) -> None:
    show(found())
    printed = capsys.readouterr().out
    assert "20.4 (20)" in printed
    assert "kafka" in printed
    assert json.loads(json.dumps(found().document()))["healthy"] is True


def test_a_silent_or_late_pair_is_not_healthy() -> None:
    assert not found(None).healthy
    assert not found(21.5).healthy


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [0]", "write 'fog_rtt_ms:'"),
        ("fog_rtt_ms: {}\nfog_rt_max_ms: 5", "did you mean fog_rtt_max_ms"),
        ("[", "cannot be read"),
    ],
)
def test_a_wrong_matrix_file_is_refused_in_words(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "matrix.yml"
    file.write_text(text)
    with pytest.raises(FogscaleError, match=words):
        read_matrix(file)


@pytest.mark.parametrize("command", [["status"], ["verify"], ["network", "--set", "no.yml"]])
def test_a_testbed_that_is_not_built_is_said_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.setenv("FOGSCALE_STATE", str(tmp_path))
    with pytest.raises(FogscaleError, match="the testbed 'local' is not built: fogscale testbed up"):
        CliRunner().invoke(commands.testbed_app, command, catch_exceptions=False)


def test_an_unknown_testbed_is_answered_with_the_nearest_one() -> None:
    with pytest.raises(FogscaleError, match="did you mean local"):
        CliRunner().invoke(commands.testbed_app, ["up", "--testbed", "locl"], catch_exceptions=False)


def event(kind: str, **data: object) -> dict[str, object]:
    return {"event": kind, "event_data": data}


def test_progress_tells_one_line_per_role_with_its_changes() -> None:
    told: list[Step] = []
    progress = Progress(told.append)
    for now_s, each in enumerate(
        [
            event("playbook_on_task_start", play="Check"),
            event("playbook_on_task_start", role="node_baseline", play="x"),
            event("runner_on_ok", res={"changed": True}),
            event("playbook_on_task_start", role="node_baseline", play="x"),
            event("runner_on_ok", res={"changed": False}),
            event("playbook_on_stats", changed={"a": 1, "b": 0}),
        ]
    ):
        progress.follow(each, float(now_s))
    assert [(step.name, step.changed, step.seconds) for step in told] == [
        ("Check", 0, 1.0),
        ("node_baseline", 1, 4.0),
    ]
    assert progress.changed == {"a": 1}


def test_the_first_failure_speaks_for_itself() -> None:
    progress = Progress(lambda _: None)
    progress.follow(event("runner_on_failed", host="fog1", res={"msg": "ignored"}, ignore_errors=True), 0)
    progress.follow(event("runner_on_failed", host="fog1", res={"msg": "disk full"}), 0)
    progress.follow(event("runner_on_unreachable", host="fog2", res={"msg": "gone"}), 0)
    assert progress.failure == "fog1: disk full"
