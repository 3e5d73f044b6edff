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

from fog.folders import checkout

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


def test_a_file_that_is_no_text_is_compared_by_its_bytes(tmp_path: Path) -> None:
    file = tmp_path / "keystore"
    files = {str(file): {"base64": "/wD+", "mode": "0600"}}
    file.write_bytes(b"\xff\x00\xfe")
    file.chmod(0o600)
    assert as_wanted(files, [])
    file.write_bytes(b"\xff\x00\xff")
    assert not as_wanted(files, [])


FINE = {"ActiveState": "active", "SubState": "running", "UnitFileState": "enabled", "NeedDaemonReload": "no"}


@pytest.mark.parametrize(
    ("changes", "starts_with_node", "fine"),
    [
        pytest.param({}, True, True, id="as it should be"),
        pytest.param({"ActiveState": "activating", "SubState": "start"}, True, True, id="about to run"),
        pytest.param(
            {"ActiveState": "activating", "SubState": "auto-restart"}, True, False, id="ended again"
        ),
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


@pytest.mark.parametrize(
    ("files", "since", "stale"),
    [
        pytest.param({"a": 100, "b": 90}, "@100", False, id="written, then started"),
        pytest.param({"a": 100, "b": 101}, "@100", True, id="one written since"),
        pytest.param({}, "@100", False, id="none of them there"),
        pytest.param({"a": 100}, "", True, id="never started"),
    ],
)
def test_a_unit_runs_with_settings_of_before_if_a_file_is_newer_than_its_start(
    tmp_path: Path, files: dict[str, int], since: str, stale: bool
) -> None:
    """A stand-in for systemctl tells since when two units run."""
    node_units = action("node_units")
    (tmp_path / "systemctl").write_text(
        f"#!/bin/sh\necho StateChangeTimestamp=@500; echo; echo StateChangeTimestamp={since}\n"
    )
    (tmp_path / "systemctl").chmod(0o755)
    for name, time_s in files.items():
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (time_s, time_s))
    question = node_units.question(["x.service", "y.service"], [str(tmp_path / name) for name in "ab"])
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    told = subprocess.run(["sh", "-c", question], capture_output=True, text=True, check=True, env=path).stdout
    x, y, newest = node_units.settings(told)
    assert not node_units.is_stale(x, newest["Newest"])
    assert node_units.is_stale(y, newest["Newest"]) == stale


def test_what_systemctl_shows_is_told_apart_by_unit() -> None:
    shown = "ActiveState=active\r\nUnitFileState=enabled\r\n\r\nActiveState=failed\r\nUnitFileState=\r\n"
    assert [each["ActiveState"] for each in action("node_units").settings(shown)] == ["active", "failed"]


def test_only_units_are_enabled_and_parts_are_started_with_them() -> None:
    assert action("node_units").order("start", ["a.target"], ["b", "c"], wait=False) == (
        "export SYSTEMD_COLORS=0; { systemctl daemon-reload && systemctl enable --quiet -- a.target && "
        "systemctl start --no-block -- a.target b c; } 2>&1"
    )


def test_an_image_is_looked_for_and_imported_by_the_command_of_the_nodes_containerd(tmp_path: Path) -> None:
    """A stand-in takes the command's place: it has one image, and says what it was asked."""
    node_image = action("node_image")
    ctr = tmp_path / "k3s"
    ctr.write_text(f'#!/bin/sh\necho "$*" >> {tmp_path}/asked\necho fogscale.local/flink:2\n')
    ctr.chmod(0o755)
    node_image.STAMPS = str(tmp_path)
    (tmp_path / "fogscale.local_flink:2").write_text("key\n")

    def there(image: str, key: str) -> bool:
        question = node_image.is_there(image, key, f"{ctr} ctr")
        return subprocess.run(["sh", "-c", question], check=False).returncode == 0

    assert there("fogscale.local/flink:2", "key")
    assert not there("fogscale.local/flink:2", "other key")
    assert not there("fogscale.local/flink", "key")
    assert set((tmp_path / "asked").read_text().splitlines()) == {
        "ctr --namespace k8s.io images list --quiet"
    }


@pytest.mark.parametrize(
    ("shown", "under_way"),
    [
        pytest.param("ActiveState=inactive\nJob=4711", True, id="ordered"),
        pytest.param("ActiveState=activating\nJob=4711", True, id="begun"),
        pytest.param("ActiveState=inactive", False, id="done and forgotten, or never begun"),
        pytest.param("ActiveState=inactive\nJob=0", False, id="without an order"),
        pytest.param("ActiveState=failed", False, id="failed"),
    ],
)
def test_an_import_is_under_way_from_the_order_on(tmp_path: Path, shown: str, under_way: bool) -> None:
    (tmp_path / "systemctl").write_text(f"#!/bin/sh\necho '{shown}'\n")
    (tmp_path / "systemctl").chmod(0o755)
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    asked = ["sh", "-c", action("node_image").is_under_way("import.service")]
    assert (subprocess.run(asked, check=False, env=path).returncode == 0) == under_way


def test_an_image_that_another_one_took_the_name_of_is_imported_again(tmp_path: Path) -> None:
    """systemd-run is played by the shell that it would start, and nothing runs yet."""
    node_image = action("node_image")
    node_image.STAMPS = str(tmp_path / "stamps")
    for name, text in {
        "ctr": f'echo "$*" >> {tmp_path}/asked\necho flink:2',
        "systemctl": "echo ActiveState=inactive",
        "systemd-run": 'while [ "$1" != sh ]; do shift; done; "$@" > /dev/null',
    }.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}

    def imported(key: str) -> bool:
        """As the action does it: only where it is not there."""
        look = node_image.is_there("flink:2", key, "ctr")
        if subprocess.run(["sh", "-c", look], check=False, env=path).returncode == 0:
            return False
        begin = node_image.begin(f"/{key}.tar", "flink:2", key, "import.service", "ctr")
        subprocess.run(["sh", "-c", begin], check=True, env=path)
        assert subprocess.run(["sh", "-c", look], check=False, env=path).returncode == 0
        return True

    assert [imported(key) for key in ("a", "a", "b", "b", "a")] == [True, False, True, False, True]
    asked = (tmp_path / "asked").read_text().splitlines()
    assert [line.split()[-1] for line in asked if " import " in line] == ["/a.tar", "/b.tar", "/a.tar"]
