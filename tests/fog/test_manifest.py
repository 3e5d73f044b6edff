"""testbed.json is believed only where every value is what it should be."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fog import command as commands
from fog.manifest import DamagedError, find
from fogscale.errors import FogscaleError
from tests.fuzz.targets import MANIFEST


def written(folder: Path, values: Any) -> Path:
    (folder / "testbed.json").write_text(values if isinstance(values, str) else json.dumps(values))
    return folder


def changed(part: str, **values: Any) -> dict[str, Any]:
    document = copy.deepcopy(dict(MANIFEST))
    (document["nodes"][2] if part == "node" else document).update(values)
    return document


def test_what_a_playbook_wrote_is_read(tmp_path: Path) -> None:
    built = find(written(tmp_path, MANIFEST))
    assert built is not None
    assert built.addresses == {"server1": "10.77.0.1", "services1": "10.77.0.2", "fog1": "10.77.0.3"}
    assert built.rtt_ms("server1", "fog1") == 40


def test_where_nothing_was_built_there_is_none(tmp_path: Path) -> None:
    assert find(tmp_path) is None


@pytest.mark.parametrize(
    "values",
    [
        pytest.param("", id="empty, as a full disk leaves it"),
        pytest.param(json.dumps(MANIFEST)[:-40], id="torn"),
        pytest.param("[" * 100_000, id="deep"),
        pytest.param("[]", id="a list"),
        pytest.param(changed("node", address="1.2.3.4; reboot"), id="a command for an address"),
        pytest.param(changed("node", user="-oProxyCommand=reboot"), id="an option for a user"),
        pytest.param(changed("node", name="fog 1"), id="a name with a blank"),
        pytest.param(changed("node", port=0), id="no port"),
        pytest.param(changed("", emulated="no"), id="a word for a truth value"),
        pytest.param(changed("", rtt_max_ms="far"), id="a word for a number"),
        pytest.param(changed("", rtt_ms={"nodes": ["fog1"]}), id="a matrix of other nodes"),
        pytest.param(changed("", services=[1]), id="services as a list"),
    ],
)
def test_a_damaged_one_is_called_so_in_one_line(tmp_path: Path, values: Any) -> None:
    with pytest.raises(
        DamagedError, match=r"is damaged .* build the testbed again, or take it down"
    ) as error:
        find(written(tmp_path, values))
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 500


def test_a_state_below_a_file_is_not_called_damaged(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FogscaleError, match=r"file/local lies below a file: set FOGSCALE_STATE"):
        find(tmp_path / "file" / "local")


@pytest.mark.parametrize("command", ["up", "down"])
def test_building_and_taking_down_are_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("FOGSCALE_STATE", str(tmp_path))
    (tmp_path / "local").mkdir()
    written(tmp_path / "local", "{")
    played: list[tuple[str, Any]] = []

    def run(playbook: str, _testbed: str, variables: Any, _tell: Any) -> commands.Played:
        played.append((playbook, variables))
        return commands.Played(lambda _step: None)

    monkeypatch.setattr(commands, "run", run)
    monkeypatch.setattr(commands, "_collect_first", lambda *_: None)
    ended = CliRunner().invoke(commands.testbed_app, [command], catch_exceptions=False)
    assert ended.exit_code == 0
    assert [variables for _, variables in played] == [{}]
