"""Grafana's dashboards (test_flink_metrics.py asks their queries), and the role, with a stand-in."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import tarfile
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from fog.folders import checkout
from fog.services.dashboards import COLUMNS, dashboard
from tests.support.fog import Fog
from tests.support.services import secret
from tests.support.web import numbers

FILES = sorted((checkout() / "roles/grafana/files/dashboards").glob("*.yml"))
DASHBOARDS: dict[str, dict[str, Any]] = {file.stem: yaml.safe_load(file.read_text()) for file in FILES}


def test_there_are_two_dashboards() -> None:
    assert [wanted["title"] for wanted in DASHBOARDS.values()] == ["Autoscaling live", "Fog health"]


@pytest.mark.parametrize("name", DASHBOARDS)
def test_panels_fill_the_grid_without_overlapping(name: str) -> None:
    cells = [
        (x, y)
        for panel in dashboard(DASHBOARDS[name])["panels"]
        for place in [panel["gridPos"]]
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < COLUMNS


@pytest.mark.parametrize("name", DASHBOARDS)
def test_every_panel_asks_the_source_that_is_provisioned(name: str) -> None:
    template = checkout() / "roles/grafana/templates/etc/grafana/provisioning/datasources/prometheus.yml.j2"
    assert "uid: fog\n" in template.read_text()
    built = dashboard(DASHBOARDS[name])
    assert built["uid"] == name.replace("_", "-")  # what tasks/verify.yml asks for
    assert len({panel["id"] for panel in built["panels"]}) == len(built["panels"])
    for panel in built["panels"]:
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
        assert {target["datasource"]["uid"] for target in panel["targets"]} == {"fog"}


PLAY = """\
- hosts: services
  gather_facts: false
  vars_files: [{project}/playbooks/vars/secrets.yml, {project}/playbooks/vars/services.yml]
  tasks:
    - ansible.builtin.include_role: {{name: grafana, tasks_from: "{{{{ item }}}}"}}
      loop: {steps}
"""


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("grafana") / "grafana.tar.gz"
    with tarfile.open(file, "w:gz") as tar:
        tar.add(checkout() / "tests/support/grafana_stand_in.py", "grafana-v1/bin/grafana")
    return file


def play(
    fog: Fog, folder: Path, steps: list[str], archive: Path | str, sha256: str
) -> subprocess.CompletedProcess[str]:
    file = folder / "grafana.yml"
    file.write_text(PLAY.format(project=checkout(), steps=steps))
    given = {"grafana_archive": str(archive), "grafana_sha256": sha256, "fog_nodes": fog.manifest.fog_nodes}
    return fog.playbook(str(file), "-e", json.dumps(given))


@pytest.mark.testbed
def test_the_role_installs_an_archive_provisions_it_and_removes_it(
    fog: Fog, archive: Path, tmp_path: Path
) -> None:
    sha256 = hashlib.sha256(archive.read_bytes()).hexdigest()
    done = play(fog, tmp_path, ["main", "verify"], archive, sha256)
    assert done.returncode == 0, done.stdout[-3000:]
    try:
        assert fog.ask("services1", "ss -Hltn 'sport = :3000'").split()[3] == "10.77.0.2:3000"
        again = play(fog, tmp_path, ["main"], archive, sha256)
        assert set(re.findall(r"changed=(\d+)", again.stdout)) == {"0"}, again.stdout[-3000:]
        assert secret(fog, "grafana_admin") not in done.stdout + again.stdout
    finally:
        removed = play(fog, tmp_path, ["reset"], archive, sha256)
    assert removed.returncode == 0, removed.stdout[-3000:]
    paths = "/etc/grafana /opt/fogscale/grafana* /var/lib/grafana /etc/systemd/system/grafana*"
    left = f"ls -d {paths} 2>/dev/null || true"
    assert fog.ask("services1", left) == ""


@pytest.mark.testbed
@pytest.mark.parametrize(
    ("sha256", "complaint"),
    [
        pytest.param("0" * 64, "do not use it", id="another sum"),
        pytest.param("", "grafana_sha256 (from its release page)", id="no sum"),
    ],
)
def test_the_role_installs_nothing_without_the_right_sum(
    fog: Fog, archive: Path, tmp_path: Path, sha256: str, complaint: str
) -> None:
    done = play(fog, tmp_path, ["main"], archive, sha256)
    assert done.returncode != 0
    assert complaint in " ".join(done.stdout.split())
    assert fog.ask("services1", "ls /opt/fogscale | grep grafana || true") == ""


@pytest.mark.testbed
def test_without_a_way_to_the_archive_the_role_says_what_to_do(fog: Fog, tmp_path: Path) -> None:
    done = play(fog, tmp_path, ["preflight"], "https://release.invalid/grafana.tar.gz", "0" * 64)
    assert done.returncode != 0
    told = " ".join(done.stdout.split())
    assert "services1 cannot download https://release.invalid/grafana.tar.gz (" in told
    assert "download it yourself and name the file as grafana_archive" in told
    assert fog.ask("services1", "ls /opt/fogscale | grep grafana || true") == ""


@pytest.mark.testbed
@pytest.mark.parametrize(("code", "is_there"), [(200, True), (404, False)])
def test_an_archive_is_there_if_the_server_would_send_it(
    fog: Fog, tmp_path: Path, code: int, is_there: bool
) -> None:
    """Some mirrors do not answer to HEAD; and nobody waits here until all of it has come."""
    with numbers(partial(fog.ask, "services1"), "10.77.0.2") as address:
        done = play(fog, tmp_path, ["preflight"], f"{address}/{code}", "0" * 64)
    assert (done.returncode == 0) == is_there, done.stdout
