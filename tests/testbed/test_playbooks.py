"""What the playbooks read, and what they refuse before any host is touched."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fog.folders import checkout
from tests.support.fog import Fog

pytestmark = pytest.mark.testbed

INVENTORIES = ("inventory/local", "inventory/pi")


@pytest.mark.parametrize("inventory", INVENTORIES)
@pytest.mark.parametrize("playbook", ["site.yml", "playbooks/verify.yml", "playbooks/teardown.yml"])
def test_playbooks_can_be_read_with_both_inventories(tmp_path: Path, inventory: str, playbook: str) -> None:
    done = Fog(tmp_path).playbook("--syntax-check", playbook, inventory=inventory)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr


def test_the_pi_inventory_has_ten_nodes_and_round_trips_of_0_to_300_ms() -> None:
    program = Path(sys.executable).parent / "ansible-inventory"
    told = subprocess.run(
        [str(program), "--list"], capture_output=True, text=True, check=True, cwd=checkout()
    ).stdout
    groups = json.loads(told)
    assert [len(groups[name]["hosts"]) for name in ("server", "services", "fog")] == [1, 1, 8]
    rows = groups["_meta"]["hostvars"]["fog1"]["fog_rtt_ms"]
    values = {value for name, row in rows.items() if name != "nodes" for value in row}
    assert (min(values), max(values)) == (0, 300)


@pytest.mark.parametrize("cluster", ["k3s", "kubernetes_upstream"])
def test_pis_get_the_programs_of_the_cluster_that_was_chosen(cluster: str) -> None:
    program = Path(sys.executable).parent / "ansible"
    wish = ["-e", f"fog_cluster={cluster}", "--module-name=debug", "--args=var=fog_artifact_names"]
    told = subprocess.run(
        [str(program), "localhost", *wish], capture_output=True, text=True, check=True, cwd=checkout()
    ).stdout
    assert "flink_connectors" in told
    for name in ("kubernetes", "coredns", "pause_image"):
        assert (f"- {name}\n" in told) == (cluster == "kubernetes_upstream")


@pytest.mark.parametrize("count", [1, 6])
def test_the_number_of_fog_nodes_is_a_variable(count: int) -> None:
    program = Path(sys.executable).parent / "ansible"
    told = subprocess.run(
        [str(program), "-i", "inventory/local", "-e", f"fog_nodes={count}", "fog", "--list-hosts"],
        capture_output=True, text=True, check=True, cwd=checkout(),
    ).stdout  # fmt: skip
    assert told.split()[2:] == [f"fog{number}" for number in range(1, count + 1)]


def test_when_no_pi_answers_the_error_points_to_the_local_fog(tmp_path: Path) -> None:
    done = Fog(tmp_path).playbook("site.yml", "-e", "ansible_host=127.0.0.1", inventory="inventory/pi")
    assert done.returncode != 0
    # All at one address is a mistake of its own: it is said before any address is tried.
    assert "10 nodes have the address 127.0.0.1" in done.stdout
    hosts = tmp_path / "inventory"
    hosts.mkdir()
    (hosts / "hosts.yml").write_text(
        (checkout() / "inventory/pi/hosts.yml").read_text().replace("192.168.77.", "127.77.0.")
    )
    (hosts / "group_vars").symlink_to(checkout() / "inventory/pi/group_vars")
    done = Fog(tmp_path).playbook("site.yml", inventory=str(hosts))
    assert done.returncode != 0
    assert "ansible-playbook -i inventory/local site.yml" in " ".join(done.stdout.split())
    assert not (tmp_path / "pi").exists()


@pytest.mark.usefixtures("can_emulate")  # else preflight names first what is missing here
@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ('{"fog_network_backend": "netm"}', "did you mean netem?"),
        ('{"fog_cluster": "k3"}', "did you mean k3s?"),
        ('{"fog_network_cidr": "10.77.0.1/24"}', "10.77.0.1/24 has host bits set: write a network"),
        ('{"fog_rtt_max_ms": 99}', "more than 99 ms"),
        ('{"emulated_memory_mb": 99999999}', "MB of memory but"),
        ('{"fog_nodes": 9}', "does not speak of fog9"),
        ('{"fog_rtt_ms": {"nodes": ["server1"], "server1": [0]}}', "services1-server1 is missing"),
    ],
)
def test_a_wrong_wish_stops_before_anything_is_touched(tmp_path: Path, variables: str, words: str) -> None:
    done = Fog(tmp_path).playbook("site.yml", "-e", variables)
    assert done.returncode != 0
    assert words in " ".join(done.stdout.split())
    assert not (tmp_path / "local").exists()


def test_a_python_without_fogscale_is_told_what_to_do(tmp_path: Path) -> None:
    """Modules of ours run beside fogscale: here by the interpreter that this environment was made with."""
    done = subprocess.run(
        [
            str(Path(sys.executable).parent / "ansible"), "localhost", "--module-name", "fog_artifacts",
            "--args", f"names=kafka cache_folder={tmp_path}",
            "--extra-vars", f"ansible_python_interpreter={sys.base_prefix}/bin/python3",
        ],
        capture_output=True, text=True, check=False, cwd=tmp_path,
        env={**os.environ, "ANSIBLE_CONFIG": str(checkout() / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"},
    )  # fmt: skip
    assert done.returncode != 0
    assert "fogscale is not installed beside Ansible" in done.stdout
    assert "'make setup', then use .venv/bin" in done.stdout
    assert "Traceback" not in done.stdout
