"""What the controller's account may do in the cluster, tried with its kubeconfig; the rest is refused. Its
token ends, and is renewed before."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils

from controller.testbeds.flink.kubernetes import cluster_of, keep_token
from fog.services.tokens import claims, token_in
from fogscale.errors import FogscaleError
from tests.support.fog import Fog, changes_in
from tests.support.services import inside

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
        pytest.param("create token default", id="get a token of another account"),
        pytest.param("create serviceaccount x", id="create an account"),
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


def token_of(fog: Fog) -> str:
    return token_in((fog.state.folder / ACCOUNT).read_text())


def test_its_token_lasts_a_week_and_none_without_an_end_is_there(fog: Fog) -> None:
    told = claims(token_of(fog))
    assert told is not None
    assert (told.namespace, told.account, told.lasts_s) == ("fogscale", "controller", 7 * 24 * 3600)
    found = fog.kubectl("get", "secrets", "--all-namespaces", "--output=jsonpath={.items[*].type}").stdout
    assert "service-account-token" not in found


def test_it_renews_its_own_token_when_half_of_the_time_is_over(fog: Fog) -> None:
    kubeconfig, before = fog.state.folder / ACCOUNT, token_of(fog)

    def work() -> list[str]:
        cluster = cluster_of(kubeconfig)
        assert not keep_token(cluster, kubeconfig, time.time())
        assert keep_token(cluster, kubeconfig, time.time() + 4 * 24 * 3600)
        return sorted(node.name for node in cluster.nodes())

    assert inside(fog, work) == ["fog1", "server1", "services1"]
    assert token_of(fog) != before
    fog.kubectl("get", "nodes", kubeconfig=ACCOUNT)


def with_claims(fog: Fog, **changed: float) -> str:
    """The controller's token with other times, signed by the key by which the API server signs."""
    head, body, _ = token_of(fog).split(".")
    told = {**json.loads(decoded(body)), **changed}
    signed = f"{head}.{encoded(json.dumps(told).encode())}"
    key = serialization.load_pem_private_key(
        (fog.state.folder / "secrets/kubernetes/tokens.key").read_bytes(), None
    )
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    r, s = utils.decode_dss_signature(key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
    return f"{signed}.{encoded(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"


def encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def with_token(fog: Fog, file: Path, token: str) -> Path:
    values = json.loads((fog.state.folder / ACCOUNT).read_text())
    values["users"][0]["user"]["token"] = token
    file.write_text(json.dumps(values))
    return file


def test_a_token_that_is_over_opens_nothing_and_the_controller_says_so(fog: Fog, tmp_path: Path) -> None:
    now_s = time.time()
    works = with_token(fog, tmp_path / "works", with_claims(fog, exp=int(now_s) + 600))
    over = with_token(fog, tmp_path / "over", with_claims(fog, exp=int(now_s) - 60))
    fog.kubectl("get", "nodes", kubeconfig=str(works))  # the signature is right
    refused = fog.kubectl("get", "nodes", kubeconfig=str(over), check=False)
    assert refused.returncode != 0
    assert "nauthorized" in refused.stderr or "logged in" in refused.stderr
    with pytest.raises(FogscaleError, match="run 'fogscale testbed up'"):
        inside(fog, lambda: keep_token(cluster_of(over), over, now_s))


def test_another_run_renews_a_token_that_is_half_over_and_leaves_a_fresh_one(fog: Fog) -> None:
    kubeconfig = fog.state.folder / ACCOUNT
    old = with_claims(fog, iat=int(time.time()) - 4 * 24 * 3600, exp=int(time.time()) + 3 * 24 * 3600)
    with_token(fog, kubeconfig, old)
    run = (
        "playbooks/cluster.yml",
        "-e",
        "fog_nodes=1",
        "--start-at-task",
        "Write the account and its rights",
    )
    first, second = (fog.playbook(*run) for _ in range(2))
    assert (first.returncode, second.returncode) == (0, 0), first.stdout[-3000:] + second.stdout[-3000:]
    assert token_of(fog) != old
    assert (set(changes_in(first.stdout)), changes_in(second.stdout)) == ({"server1"}, {})
    fog.kubectl("get", "nodes", kubeconfig=ACCOUNT)
