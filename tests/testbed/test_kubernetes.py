"""The cluster that the playbooks built: upstream Kubernetes on emulated nodes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.support.fog import Fog
from tests.support.services import eventually

pytestmark = pytest.mark.testbed

NODES = {"server1": "server", "services1": "services", "fog1": "fog"}
IMAGE = "fogscale.local/pause:1"


@pytest.fixture(scope="module")
def pods(fog: Fog) -> Iterator[dict[str, str]]:
    """One pod per node, which answers with its name; node → address of its pod."""
    for node in NODES:
        spec = {"nodeSelector": {"kubernetes.io/hostname": node}, "terminationGracePeriodSeconds": 1}
        fog.kubectl(
            "run", f"test-{node}", f"--image={IMAGE}", "--image-pull-policy=Never", "--overrides",
            json.dumps({"apiVersion": "v1", "spec": spec}), "--command", "--", "/pause", "serve", "8080",
        )  # fmt: skip
    names = [f"pod/test-{node}" for node in NODES]
    fog.kubectl("wait", "--for=condition=Ready", *names, "--timeout=50s")
    seen = {each["spec"]["nodeName"]: each["status"]["podIP"] for each in get(fog, "pods")}
    yield seen
    fog.kubectl("delete", *names, "--wait=false")


def get(fog: Fog, kind: str) -> list[Any]:
    return list(json.loads(fog.kubectl("get", kind, "--output=json").stdout)["items"])


def test_every_node_is_ready_and_labelled_with_its_role(fog: Fog) -> None:
    nodes = {each["metadata"]["name"]: each for each in get(fog, "nodes")}
    assert {name: each["metadata"]["labels"]["fogscale.io/role"] for name, each in nodes.items()} == NODES
    for each in nodes.values():
        conditions = {found["type"]: found["status"] for found in each["status"]["conditions"]}
        assert conditions["Ready"] == "True"
        assert each["status"]["nodeInfo"]["kubeletVersion"] == "v1.34.4"


def test_pods_may_ask_for_what_a_node_has_and_not_for_what_the_machine_has(fog: Fog) -> None:
    (node,) = (each for each in get(fog, "nodes") if each["metadata"]["name"] == "fog1")
    cpu, memory = node["status"]["allocatable"]["cpu"], node["status"]["allocatable"]["memory"]
    cpus = int(cpu[:-1]) / 1000 if cpu.endswith("m") else float(cpu)
    assert cpus <= fog.node("fog1").cpus
    number, unit = int(memory[:-2]), memory[-2:]
    assert number / {"Ki": 1024, "Mi": 1}[unit] <= 1024


def test_a_pod_runs_on_exactly_the_node_asked_for(pods: dict[str, str]) -> None:
    assert set(pods) == set(NODES)
    assert len({address.rsplit(".", 1)[0] for address in pods.values()}) == len(NODES)  # a network per node


@pytest.mark.parametrize("node", NODES)
def test_a_pod_finds_services_by_name_and_nodes_too(fog: Fog, pods: dict[str, str], node: str) -> None:
    assert node in pods

    def looked_up(name: str) -> str:
        return fog.kubectl("exec", f"test-{node}", "--", "/pause", "lookup", name).stdout.strip()

    assert looked_up("kubernetes.default.svc.cluster.local") == "10.43.0.1"
    assert looked_up("kubernetes.default") == "10.43.0.1"  # by the search list that the kubelet gave it
    assert looked_up("services1") == fog.manifest.addresses["services1"]


def test_what_does_not_exist_is_not_found(fog: Fog, pods: dict[str, str]) -> None:
    assert pods
    done = fog.kubectl(
        "exec", "test-fog1", "--", "/pause", "lookup", "nobody.default.svc.cluster.local", check=False
    )
    assert done.returncode != 0
    assert "no such host" in done.stderr


def test_pods_of_all_nodes_reach_each_other(fog: Fog, pods: dict[str, str]) -> None:
    for node in NODES:
        for other, address in pods.items():
            url = f"http://{address}:8080/"
            told = fog.kubectl("exec", f"test-{node}", "--", "/pause", "get", url).stdout
            assert told.strip() == f"test-{other}"


def test_a_service_leads_to_its_pod_from_every_node(fog: Fog, pods: dict[str, str]) -> None:
    assert pods
    fog.kubectl("expose", "pod/test-fog1", "--port=80", "--target-port=8080", "--name=test-service")
    try:
        for node in NODES:
            url = "http://test-service.default/"

            def answers(node: str = node, url: str = url) -> bool:
                done = fog.kubectl("exec", f"test-{node}", "--", "/pause", "get", url, check=False)
                return done.stdout.strip() == "test-fog1"

            eventually(answers, patience_s=20)
    finally:
        fog.kubectl("delete", "service/test-service")


def test_what_crosses_between_pods_takes_the_round_trip_of_their_nodes(
    fog: Fog, pods: dict[str, str]
) -> None:
    told = fog.ask("services1", f"ping -c 10 -i 0.2 -q {pods['fog1']}")
    median_or_so_ms = float(re.search(r"= ([\d.]+)/", told).group(1))  # type: ignore[union-attr]
    assert 5.0 <= median_or_so_ms < 8.0  # wanted: 5 ms, as between the nodes
    near = fog.ask("services1", f"ping -c 10 -i 0.2 -q {pods['services1']}")
    assert float(re.search(r"= ([\d.]+)/", near).group(1)) < 2.0  # type: ignore[union-attr]


def test_a_node_whose_services_start_again_comes_back_into_the_cluster(fog: Fog) -> None:
    kubelet = "systemctl show --property=MainPID --value kubelet"
    renewed = ("get", "lease", "fog1", "--namespace=kube-node-lease", "--output=jsonpath={.spec.renewTime}")
    before = fog.ask("fog1", kubelet)
    fog.ask("fog1", "systemctl restart kubernetes-node.target")
    again = datetime.now(UTC).isoformat()
    assert fog.ask("fog1", kubelet) != before
    eventually(lambda: fog.kubectl(*renewed).stdout > again, patience_s=60)
    fog.kubectl("wait", "--for=condition=Ready", "node/fog1", "--timeout=50s")
