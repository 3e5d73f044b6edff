from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fog import command as commands
from fog.checks.status import NodeStatus, ServiceStatus, Status
from fog.command import read_matrix, show
from fog.manifest import ManifestNode
from fog.network.ping import Measured
from fogscale.errors import FogscaleError

A, B = ManifestNode("a", "server", "10.0.0.1", "root", cpus=1.0), ManifestNode("b", "fog", "10.0.0.2", "root")


def found(
    measured_ms: float | None = 20.4, listens: bool = True, problem: str | None = None, state: str = "running"
) -> Status:
    facts = ("6.1", "Debian", 512)
    return Status(
        "local", "switch", (NodeStatus(A, None, *facts, "running"), NodeStatus(B, problem, *facts, state)),
        (Measured("a", "b", 20, measured_ms),),
        (ServiceStatus("kafka", "a", 9092, "4.3", listens),), {"fogscale": "1"},
    )  # fmt: skip


def printed(status: Status, capsys: pytest.CaptureFixture[str]) -> list[list[str]]:
    """The words of every line."""
    show(status)
    return [line.split() for line in capsys.readouterr().out.splitlines()]


def test_a_status_prints_what_is_beside_what_should_be(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(found(), capsys)
    assert ["a", "server", "10.0.0.1", "running", "1", "512", "MB"] in lines
    assert ["b", "fog", "10.0.0.2", "running", "512", "MB"] in lines
    assert ["a", "20.4", "(20)"] in lines
    assert ["kafka", "a", "9092", "4.3", "listens"] in lines
    assert ["fogscale", "1"] in lines
    facts = {"memory_mb": 512, "state": "running", "problem": None, "kernel": "6.1", "system": "Debian"}
    assert json.loads(json.dumps(found().document())) == {
        "testbed": "local", "backend": "switch", "healthy": True, "versions": {"fogscale": "1"},
        "nodes": [
            {"name": "a", "group": "server", "address": "10.0.0.1", "cpus": 1.0, **facts},
            {"name": "b", "group": "fog", "address": "10.0.0.2", "cpus": None, **facts},
        ],
        "round_trips": [{"nodes": ["a", "b"], "wanted_ms": 20, "measured_ms": 20.4, "holds": True}],
        "services": [{"name": "kafka", "node": "a", "port": 9092, "version": "4.3", "listens": True}],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("status", "line"),
    [
        (found(None), ["a", "silent", "(20)"]),
        (found(21.5), ["a", "21.5", "(20)"]),
        (found(listens=False), ["kafka", "a", "9092", "4.3", "silent"]),
        (found(problem="[Errno 1] gone"), ["b", "fog", "10.0.0.2", "[Errno", "1]", "gone"]),
    ],
)
def test_what_is_silent_or_late_is_shown_and_not_healthy(
    capsys: pytest.CaptureFixture[str], status: Status, line: list[str]
) -> None:
    assert not status.healthy
    assert line in printed(status, capsys)


def test_a_failed_unit_is_shown_but_may_be_none_of_ours(capsys: pytest.CaptureFixture[str]) -> None:
    degraded = found(state="degraded")
    assert degraded.healthy
    assert ["b", "fog", "10.0.0.2", "degraded", "512", "MB"] in printed(degraded, capsys)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [0]", "write 'fog_rtt_ms:'"),
        ("fog_rtt_ms: {}\nfog_rt_max_ms: 5", "did you mean fog_rtt_max_ms"),
        ("[", "cannot be read"),
        ("fog_rtt_ms: {} # Gerät", "cannot be read: .*UTF-8"),
        ("fog_rtt_ms: {}\nfog_rtt_max_ms: far", "fog_rtt_max_ms is 'far': write a number of milliseconds"),
        ("fog_rtt_ms: {}\nfog_rtt_max_ms: yes", "fog_rtt_max_ms is 'True': write a number"),
    ],
)
def test_a_wrong_matrix_file_is_refused_in_words(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "matrix.yml"
    file.write_bytes(text.encode("latin-1"))
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
