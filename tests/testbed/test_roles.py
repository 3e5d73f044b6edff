"""What every role has, by its files alone."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from fog.folders import checkout

ROLES = sorted((checkout() / "roles").iterdir())


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_every_variable_of_a_role_is_specified_and_prefixed(role: Path) -> None:
    defaults = yaml.safe_load((role / "defaults/main.yml").read_text())
    specified = yaml.safe_load((role / "meta/argument_specs.yml").read_text())["argument_specs"]
    assert set(defaults) == set(specified["main"]["options"])
    assert all(name.startswith(f"{role.name}_") for name in defaults)
    entry_points = {path.stem for path in (role / "tasks").glob("*.yml")}
    assert set(specified) <= entry_points
    assert {"main", "reset", "verify"} & entry_points <= set(specified)


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_every_role_explains_itself_with_a_play_that_names_its_own_variables(role: Path) -> None:
    text = (role / "README.md").read_text()
    (play,) = yaml.safe_load(text.split("```yaml")[1].split("```")[0])
    (used,) = play["roles"]
    assert used["role"] == role.name
    assert set(used["vars"]) <= set(yaml.safe_load((role / "defaults/main.yml").read_text()))
