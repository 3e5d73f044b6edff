"""What the controller's account may do in the cluster, tried with its kubeconfig; the rest is refused."""

from __future__ import annotations

import json

import pytest

from tests.support.fog import Fog

pytestmark = pytest.mark.testbed

ACCOUNT = "controller.kubeconfig"
TO_NONE = '--subresource=scale --type=merge --patch={"spec":{"replicas":0}}'


def test_it_reads_nodes_and_how_many_replicas_there_are(fog: Fog) -> None:
    nodes = fog.kubectl("get", "nodes", "--output=name", kubeconfig=ACCOUNT).stdout.split()
    assert sorted(nodes) == ["node/fog1", "node/server1", "node/services1"]
    path = "/apis/apps/v1/namespaces/fogscale/deployments/flink-taskmanager-fog1/scale"
    assert json.loads(fog.kubectl("get", "--raw", path, kubeconfig=ACCOUNT).stdout)["kind"] == "Scale"


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(f"patch deployment flink-jobmanager {TO_NONE}", id="scale the JobManager"),
        pytest.param(f"patch deployment flink-taskmanager-services {TO_NONE}", id="scale sources and sinks"),
        pytest.param("delete deployment/flink-taskmanager-fog1", id="delete what it may scale"),
        pytest.param("set image deployment/flink-taskmanager-fog1 taskmanager=evil", id="change what runs"),
        pytest.param("get secrets", id="read secrets"),
        pytest.param("get secret flink --output=yaml", id="read MinIO's key"),
        pytest.param("get pods", id="list pods"),
        pytest.param("run x --image=fogscale.local/pause:1", id="start a pod"),
        pytest.param("get pods --namespace=kube-system", id="look into another namespace"),
        pytest.param("create deployment x --image=x --namespace=default", id="deploy elsewhere"),
        pytest.param("label node fog1 x=y", id="change a node"),
        pytest.param("delete node fog1", id="remove a node"),
        pytest.param("get clusterroles", id="read rights"),
        pytest.param(
            "create clusterrolebinding x --clusterrole=cluster-admin --user=x", id="give itself rights"
        ),
    ],
)
def test_it_is_refused(fog: Fog, words: str) -> None:
    done = fog.kubectl(*words.split(), kubeconfig=ACCOUNT, check=False)
    assert done.returncode != 0
    assert "forbidden" in done.stderr.lower(), done.stderr


def test_its_key_is_for_its_owner_alone(fog: Fog) -> None:
    for name in ("kubeconfig", ACCOUNT):
        assert (fog.state.folder / name).stat().st_mode & 0o777 == 0o600
