"""What our actions ask a node's shell, asked of this machine's, and what they make of the answers."""

from __future__ import annotations

import importlib.util
import os
import pwd
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from controller.testbeds.fog.folders import checkout

pytest.importorskip("ansible", reason="Ansible is not installed")


def action(name: str) -> Any:
    file = checkout() / f"playbooks/action_plugins/{name}.py"
    spec = importlib.util.spec_from_file_location(f"action_{name}", file)
    assert spec is not None
    assert spec.loader is not None
    module: ModuleType = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def as_wanted(files: dict[str, Any], absent: list[str]) -> bool:
    """What the action concludes, from a real shell's answer."""
    node_files = action("node_files")
    whole = {
        path: node_files.whole(value, pwd.getpwuid(os.geteuid()).pw_name) for path, value in files.items()
    }
    question = node_files.question(whole, absent)
    told = subprocess.run(["sh", "-c", question], capture_output=True, text=True, check=True).stdout
    return bool(node_files.is_as_wanted(whole, told.splitlines()))


def test_a_file_that_differs_in_any_way_is_noticed(tmp_path: Path) -> None:
    file, other = tmp_path / "it's a file", tmp_path / "other"
    files = {str(file): {"content": "grüße\n", "mode": "0600"}, str(other): "plain\n"}
    assert not as_wanted(files, [])
    file.write_text("grüße\n", encoding="utf-8")
    other.write_text("plain\n")
    other.chmod(0o644)
    file.chmod(0o640)
    assert not as_wanted(files, [])  # its mode
    file.chmod(0o600)
    assert as_wanted(files, [str(tmp_path / "none")])
    assert not as_wanted(files, [str(other)])  # one that must not be there
    other.write_text("plain")
    assert not as_wanted(files, [])  # its content
    other.unlink()
    assert not as_wanted(files, [])


FINE = {"ActiveState": "active", "UnitFileState": "enabled", "NeedDaemonReload": "no"}


@pytest.mark.parametrize(
    ("changes", "starts_with_node", "fine"),
    [
        pytest.param({}, True, True, id="as it should be"),
        pytest.param({"ActiveState": "activating"}, True, True, id="about to run"),
        pytest.param({"ActiveState": "inactive"}, True, False, id="stopped"),
        pytest.param({"ActiveState": "failed"}, False, False, id="failed"),
        pytest.param({"UnitFileState": "disabled"}, True, False, id="gone after a reboot"),
        pytest.param({"UnitFileState": "static"}, False, True, id="started by another unit"),
        pytest.param({"NeedDaemonReload": "yes"}, True, False, id="runs with an older unit file"),
    ],
)
def test_units_are_left_alone_only_where_all_is_well(
    changes: dict[str, str], starts_with_node: bool, fine: bool
) -> None:
    assert action("node_units").is_fine({**FINE, **changes}, starts_with_node) == fine


def test_what_systemctl_shows_is_told_apart_by_unit() -> None:
    shown = "ActiveState=active\r\nUnitFileState=enabled\r\n\r\nActiveState=failed\r\nUnitFileState=\r\n"
    assert [each["ActiveState"] for each in action("node_units").settings(shown)] == ["active", "failed"]


def test_only_units_are_enabled_and_parts_are_started_with_them() -> None:
    assert action("node_units").order("start", ["a.target"], ["b", "c"], wait=False) == (
        "export SYSTEMD_COLORS=0; { systemctl daemon-reload && systemctl enable --quiet -- a.target && "
        "systemctl start --no-block -- a.target b c; } 2>&1"
    )
