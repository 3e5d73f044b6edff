"""The cluster refuses clients without a key, with a wrong key, and from another network."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fog.services.pki import Certificate, ensure, kubeconfig
from tests.support.fog import Fog

pytestmark = pytest.mark.testbed

NODES = ("server1", "services1", "fog1")


def status(fog: Fog, url: str, *options: str) -> str:
    done = fog.enter(
        "curl", "--silent", "--insecure", "--max-time", "5", "--output", "/dev/null",
        "--write-out", "%{http_code}", *options, url,
    )  # fmt: skip
    return done.stdout


def test_the_api_server_refuses_clients_without_credentials(fog: Fog) -> None:
    url = f"https://{fog.manifest.addresses['server1']}:6443/api/v1/nodes"
    assert status(fog, url) == "401"
    assert status(fog, url, "--header", "Authorization: Bearer wrong") == "401"


def test_a_key_of_another_authority_opens_nothing(fog: Fog, tmp_path: Path) -> None:
    ensure(tmp_path, [Certificate("admin", "fogscale-admin", "system:masters")])
    server = f"https://{fog.manifest.addresses['server1']}:6443"
    values = json.loads(kubeconfig(tmp_path, "admin", server))
    values["clusters"][0]["cluster"] = {"server": server, "insecure-skip-tls-verify": True}
    (tmp_path / "forged").write_text(json.dumps(values))
    done = fog.kubectl("get", "nodes", kubeconfig=str(tmp_path / "forged"), check=False)
    assert done.returncode != 0
    assert "logged in" in done.stderr or "nauthorized" in done.stderr


@pytest.mark.parametrize("node", NODES)
def test_a_kubelet_refuses_clients_without_credentials(fog: Fog, node: str) -> None:
    address = fog.manifest.addresses[node]
    assert status(fog, f"https://{address}:10250/pods") == "401"
    assert status(fog, f"http://{address}:10255/pods") == "000"  # the port without keys is closed


def test_a_node_may_not_act_for_another(fog: Fog) -> None:
    """With the key of fog1's kubelet, as someone who broke into fog1 could use it."""
    done = fog.ask(
        "fog1",
        "k='/opt/fogscale/kubernetes/kubernetes kubectl --kubeconfig /etc/kubernetes/kubelet.kubeconfig'; "
        "$k label node server1 broken=in 2>&1; $k get secrets -A 2>&1; true",
    )
    assert done.count("Error from server (Forbidden)") == 2, done


def test_the_store_and_the_control_plane_listen_to_their_own_node_only(fog: Fog) -> None:
    address = fog.manifest.addresses["server1"]
    for port in (2379, 2380, 10257, 10259, 10249, 10256, 10248, 8181):
        assert status(fog, f"http://{address}:{port}/") == "000", port


ETCD = """\
cd /etc/kubernetes
for pair in none server/apiserver-kubelet node server/etcd/etcd-client; do
  for port in 2379 2380; do
    options=
    [ $pair = none ] || options="--cert $pair.crt --key $pair.key"
    curl --silent --insecure --max-time 10 --output /dev/null --write-out "$pair $port %{http_code}\\n" \\
      $options https://127.0.0.1:$port/version || true
  done
done
curl --silent --max-time 10 --output /dev/null --write-out "plain 2379 %{http_code}\\n" \\
  http://127.0.0.1:2379/version || true
"""


def test_the_store_opens_to_the_api_server_s_certificate_alone_on_its_own_node_too(fog: Fog) -> None:
    """Not to programs of the server node without one, and to no other certificate of the cluster."""
    told = {line.rpartition(" ")[0]: line.split()[-1] for line in fog.ask("server1", ETCD).splitlines()}
    assert told.pop("server/etcd/etcd-client 2379") == "200"
    assert len(told) == 8
    assert set(told.values()) <= {"000", "400"}


def test_no_secret_of_the_cluster_shows_in_a_process_list(fog: Fog) -> None:
    folder = fog.state.folder / "secrets/kubernetes"
    files = [*folder.glob("*.key"), *folder.with_name("kubernetes-etcd").glob("*.key")]
    keys = [path.read_text().splitlines()[1] for path in files]
    token = json.loads((fog.state.folder / "controller.kubeconfig").read_text())["users"][0]["user"]["token"]
    assert len(keys) > 8
    for node in NODES:
        told = fog.ask(node, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
        assert not any(secret in told for secret in (*keys, token))


def test_secrets_on_the_nodes_are_for_root_alone(fog: Fog) -> None:
    for node in NODES:
        told = fog.ask(
            node,
            "find /etc/kubernetes /etc/fogscale -type f -perm /077 "
            "\\( -name '*.key' -o -name '*.kubeconfig' -o -path '*/server/*' -o -name flink.yaml \\) || true",
        )
        assert told == ""
    assert {path.stat().st_mode & 0o777 for path in (fog.state.folder / "secrets/kubernetes").iterdir()} == {
        0o600
    }
