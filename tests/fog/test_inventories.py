"""The inventories: what is common stands once, and each says only what differs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from fog.folders import checkout

INVENTORIES = ("local", "pi")
COMMON = checkout() / "inventory" / "common"


def own(inventory: str) -> dict[str, dict[str, Any]]:
    """Group → what this inventory says of it itself."""
    folder = checkout() / "inventory" / inventory / "group_vars"
    files = [path for path in folder.rglob("*.yml") if not path.is_symlink()]
    return {
        path.parent.name if path.name == "testbed.yml" else path.stem: yaml.safe_load(path.read_text())
        for path in files
    }


def test_no_variable_has_the_same_value_in_both() -> None:
    local, pi = map(own, INVENTORIES)
    same = [
        (group, name)
        for group in local.keys() & pi.keys()
        for name, value in local[group].items()
        if name in pi[group] and pi[group][name] == value
    ]
    assert same == [], f"what both say belongs into {COMMON}"


def test_both_set_what_common_asks_of_each_testbed() -> None:
    local, pi = ({name for some in own(each).values() for name in some} for each in INVENTORIES)
    fog_local, fog_pi = ({name for name in each if name.startswith("fog_")} for each in (local, pi))
    assert fog_pi - fog_local == {"fog_network_interface"}  # emulated nodes have the role's default
    assert fog_local - fog_pi == {"fog_network_cidr"}


@pytest.mark.parametrize("inventory", INVENTORIES)
def test_every_common_file_is_part_of_each_and_read_before_its_own(inventory: str) -> None:
    links = sorted((checkout() / "inventory" / inventory / "group_vars").rglob("common.yml"))
    assert {link.resolve() for link in links} == set(COMMON.glob("*.yml"))
    for link in links:
        assert link.resolve().stem == link.parent.name
        assert sorted(path.name for path in link.parent.iterdir()) == ["common.yml", "testbed.yml"]


def told(inventory: Path) -> dict[str, Any]:
    program = Path(sys.executable).parent / "ansible-inventory"
    listed = subprocess.run(
        [str(program), "-i", str(inventory), "--host", "server1"],
        capture_output=True, text=True, check=True, cwd=checkout(),
    )  # fmt: skip
    return json.loads(listed.stdout)


def test_what_an_inventory_says_itself_wins(tmp_path: Path) -> None:
    """A copy with a Kafka of its own, as the guide advises."""
    mine = tmp_path / "mine"
    groups = mine / "group_vars"
    groups.mkdir(parents=True)
    (mine / "hosts.yml").write_text((checkout() / "inventory/pi/hosts.yml").read_text())
    (groups / "all").mkdir()
    (groups / "all/common.yml").symlink_to(COMMON / "all.yml")
    before = told(mine)
    (groups / "all/testbed.yml").write_text("fog_kafka: 192.168.77.5:9092\n")
    after = told(mine)
    assert (before["fog_kafka"], after["fog_kafka"]) == ("", "192.168.77.5:9092")
    assert after["fog_rtt_ms"] == before["fog_rtt_ms"]
