"""What the controller asks of Kubernetes, and that only one controller holds the lease."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta

import pytest

from controller.testbeds.flink.http import Door
from controller.testbeds.flink.kubernetes import Cluster, Lease, TakenOverError, cluster_of, keep_token
from fogscale.errors import FogscaleError
from tests.support.http_server import serving
from tests.support.tokens import WEEK_S, token

LEASE = "/apis/coordination.k8s.io/v1/namespaces/fog/leases/one"


class ApiServer:
    """Keeps one lease, and refuses to write an old version of it, as Kubernetes does."""

    def __init__(self):
        self.version, self.spec = 1, {}

    def __call__(self, request):
        if request.path != LEASE:
            return 404, {"message": "not found"}
        if request.method == "PUT":
            if request.body["metadata"]["resourceVersion"] != str(self.version):
                return 409, {"message": "the object has been modified"}
            self.version, self.spec = self.version + 1, request.body["spec"]
        return 200, {"metadata": {"name": "one", "resourceVersion": str(self.version)}, "spec": self.spec}


def lease(server, holder):
    return Lease(Cluster(Door(server.url), "fog"), "one", holder)


def test_a_second_controller_is_refused_until_the_first_gives_up():
    with serving(ApiServer()) as server:
        first, second = lease(server, "first"), lease(server, "second")
        first.take()
        first.renew()
        with pytest.raises(FogscaleError, match=r"another controller \(first\)"):
            second.take()
        first.give_up()
        second.take()
        with pytest.raises(TakenOverError, match="took this testbed over"):
            first.renew()


def test_the_lease_of_a_controller_that_died_runs_out():
    api = ApiServer()
    long_ago = (datetime.now(UTC) - timedelta(seconds=31)).isoformat()
    api.spec = {"holderIdentity": "dead", "leaseDurationSeconds": 30, "renewTime": long_ago}
    with serving(api) as server:
        lease(server, "next").take()
    assert api.spec["holderIdentity"] == "next"


def test_of_two_at_the_same_moment_one_has_it():
    api = ApiServer()

    def overtaken(request):
        answer = api(request)
        if request.method == "GET":
            api.version += 1  # somebody else wrote it since
        return answer

    with serving(overtaken) as server, pytest.raises(FogscaleError, match="at the same moment"):
        lease(server, "late").take()


def test_a_deployment_is_scaled_by_its_subresource_alone():
    with serving(lambda _: (200, {"spec": {"replicas": 1}})) as server:
        cluster = Cluster(Door(server.url), "fog")
        cluster.scale("tm-fog1", 1)
        assert cluster.replicas("tm-fog1") == 1
        patch, get = server.requests
    path = "/apis/apps/v1/namespaces/fog/deployments/tm-fog1/scale"
    assert (patch.method, patch.path, patch.body) == ("PATCH", path, {"spec": {"replicas": 1}})
    assert patch.headers["Content-Type"] == "application/merge-patch+json"
    assert (get.method, get.path) == ("GET", path)


def test_a_kubeconfig_leads_to_its_cluster_with_its_token(tmp_path):
    with serving(lambda _: (200, {"items": []})) as server:
        config = {
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u", "namespace": "fog"}}],
            "clusters": [{"name": "k", "cluster": {"server": server.url}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
        }
        file = tmp_path / "kubeconfig"
        file.write_text(json.dumps(config))
        assert cluster_of(file).nodes() == ()
        (request,) = server.requests
    assert request.headers["Authorization"] == "Bearer t"


def test_what_is_no_kubeconfig_is_said_in_a_line(tmp_path):
    file = tmp_path / "kubeconfig"
    with pytest.raises(FogscaleError, match="there is no kubeconfig"):
        cluster_of(file)
    data = base64.b64encode(b"x").decode()
    for text in (
        "{",
        "[]",
        '{"current-context": "c", "contexts": [{"name": "c", "context": "k"}]}',
        json.dumps({"clusters": [], "contexts": [], "current-context": data}),
    ):
        file.write_text(text)
        with pytest.raises(FogscaleError, match="no kubeconfig that can be used"):
            cluster_of(file)


def account_in(folder, server, held):
    """A kubeconfig as the role `controller` writes it."""
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u", "namespace": "fog"}}],
        "clusters": [{"name": "k", "cluster": {"server": server.url}}],
        "users": [{"name": "u", "user": {"token": held}}],
    }
    file = folder / "kubeconfig"
    file.write_text(json.dumps(config))
    return file


def test_a_token_is_renewed_when_half_of_its_time_is_over(tmp_path):
    fresh = token(issued_s=1000 + WEEK_S / 2)
    with serving(lambda _: (200, {"items": [], "status": {"token": fresh}})) as server:
        file = account_in(tmp_path, server, token(issued_s=1000))
        cluster = cluster_of(file)
        assert not keep_token(cluster, file, now_s=1000 + WEEK_S / 2 - 1)
        assert keep_token(cluster, file, now_s=1000 + WEEK_S / 2)
        assert not keep_token(cluster, file, now_s=1001 + WEEK_S / 2)  # the new one is fresh
        cluster.nodes()
        cluster_of(file).nodes()
        asked, *used = server.requests
    assert (asked.method, asked.path) == ("POST", "/api/v1/namespaces/fog/serviceaccounts/controller/token")
    assert asked.body["spec"] == {"expirationSeconds": WEEK_S}
    assert [each.headers["Authorization"] for each in used] == [f"Bearer {fresh}"] * 2
    assert file.stat().st_mode & 0o777 == 0o600


def test_while_the_old_token_holds_a_renewal_that_fails_is_tried_again_later(tmp_path):
    with serving(lambda _: (403, {"message": "no"})) as server:
        file = account_in(tmp_path, server, token(issued_s=1000))
        assert not keep_token(cluster_of(file), file, now_s=WEEK_S)
        assert token(issued_s=1000) in file.read_text()


def test_a_token_that_is_over_is_said_with_what_to_do(tmp_path):
    with serving(lambda _: (401, {})) as server:
        file = account_in(tmp_path, server, token(issued_s=0))
        with pytest.raises(FogscaleError, match=r"ended 1970-01-08 00:00 UTC: run 'fogscale testbed up'"):
            keep_token(cluster_of(file), file, now_s=WEEK_S)
        assert server.requests == []


def test_a_token_without_an_end_is_left_alone(tmp_path):
    with serving(lambda _: (200, {})) as server:
        file = account_in(tmp_path, server, "t")
        assert not keep_token(cluster_of(file), file, now_s=1e12)
