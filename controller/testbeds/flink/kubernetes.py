"""The Kubernetes API, as far as the controller may use it: scale Deployments, read nodes, hold one lease."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from controller.testbeds.flink.http import Door, RefusedError, Service, UnreachableError, shaped
from fog.services.tokens import claims, token_in
from fogscale.documents import read_yaml
from fogscale.errors import FogscaleError
from fogscale.files import read_document

LEASE_S = 30  # without a sign of life for so long, a lease is anybody's
MERGE = {"Content-Type": "application/merge-patch+json"}
CONFLICT = ": 409,"


class TakenOverError(FogscaleError):
    """Another controller drives the testbed now: nothing of it is ours any more."""


@dataclass(frozen=True)
class ClusterNode:
    name: str
    ready: bool
    labels: dict[str, str]


class Cluster:
    """The API server, by the controller's own account."""

    def __init__(self, door: Door, namespace: str) -> None:
        self._service, self.namespace = Service("Kubernetes", door), namespace
        self._apps = f"/apis/apps/v1/namespaces/{namespace}/deployments"
        self._leases = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"

    def close(self) -> None:
        self._service.close()

    def replicas(self, deployment: str) -> int:
        """As many as were asked for."""
        seen = self._service.get(f"{self._apps}/{deployment}/scale")
        with _as_kubernetes():
            return int(seen["spec"].get("replicas", 0))

    def scale(self, deployment: str, replicas: int) -> None:
        body = {"spec": {"replicas": replicas}}
        path = f"{self._apps}/{deployment}/scale"
        self._service.send("PATCH", path, body, headers=MERGE, again=True)

    def nodes(self) -> tuple[ClusterNode, ...]:
        seen = self._service.get("/api/v1/nodes")
        with _as_kubernetes():
            return tuple(
                ClusterNode(
                    str(each["metadata"]["name"]), _is_ready(each), dict(each["metadata"].get("labels", {}))
                )
                for each in seen["items"]
            )

    def renew_token(self, account: str, seconds: int) -> str:
        """Another token of the account's own, which is used from now on."""
        path = f"/api/v1/namespaces/{self.namespace}/serviceaccounts/{account}/token"
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": seconds},
        }
        seen = self._service.send("POST", path, body, again=True)
        with _as_kubernetes():
            token = str(seen["status"]["token"])
        self._service.use_token(token)
        return token

    # The lease: one controller at a time

    def lease(self, name: str) -> dict[str, Any]:
        seen = self._service.get(f"{self._leases}/{name}")
        with _as_kubernetes():
            return {**seen, "metadata": dict(seen["metadata"]), "spec": dict(seen.get("spec") or {})}

    def put_lease(self, name: str, lease: dict[str, Any]) -> dict[str, Any]:
        """RefusedError by the server if somebody else wrote it since it was read."""
        kept: dict[str, Any] = self._service.send("PUT", f"{self._leases}/{name}", lease)
        return kept


@dataclass
class Lease:
    """Held by one controller at a time; whoever dies with it loses it after a while."""

    cluster: Cluster
    name: str
    holder: str
    seconds: int = LEASE_S
    has_ended: Callable[[str], bool] = lambda _: False  # whether a holder is known to be gone

    def take(self) -> None:
        found = self.cluster.lease(self.name)
        holder = found["spec"].get("holderIdentity")
        is_free = not holder or holder == self.holder or self.has_ended(str(holder))
        if not is_free and not _is_over(found["spec"]):
            raise FogscaleError(
                f"another controller ({holder}) drives this testbed: stop it and wait {self.seconds} s"
            )
        self._write(found, self.holder)

    def renew(self) -> None:
        found = self.cluster.lease(self.name)
        if found.get("spec", {}).get("holderIdentity") != self.holder:
            raise TakenOverError("another controller took this testbed over: this one stops")
        self._write(found, self.holder)

    def give_up(self) -> None:
        found = self.cluster.lease(self.name)
        if found.get("spec", {}).get("holderIdentity") == self.holder:
            self._write(found, "")

    def _write(self, found: dict[str, Any], holder: str) -> None:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = {"holderIdentity": holder, "leaseDurationSeconds": self.seconds, "renewTime": now}
        try:
            self.cluster.put_lease(self.name, {**found, "spec": spec})
        except RefusedError as error:
            if CONFLICT in str(error):
                raise TakenOverError("another controller took this testbed at the same moment") from None
            raise


def _as_kubernetes() -> AbstractContextManager[None]:
    return shaped("Kubernetes' answer", "check the kubeconfig's server")


def _is_over(spec: dict[str, Any]) -> bool:
    renewed = spec.get("renewTime")
    if renewed is None:
        return True
    with _as_kubernetes():
        age_s = (datetime.now(UTC) - datetime.fromisoformat(renewed)).total_seconds()
        return age_s > float(spec.get("leaseDurationSeconds") or LEASE_S)


def _is_ready(node: dict[str, Any]) -> bool:
    conditions = node.get("status", {}).get("conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def cluster_of(kubeconfig: Path) -> Cluster:
    """The cluster of a kubeconfig's current context, by a token or a client certificate."""
    try:
        config: Any = read_yaml(kubeconfig)
        context = _named(config["contexts"], config["current-context"])["context"]
        cluster = _named(config["clusters"], context["cluster"])["cluster"]
        user = _named(config["users"], context["user"])["user"]
        door = Door(
            _word(cluster["server"]),
            ca=_text(kubeconfig, cluster, "certificate-authority"),
            certificate=_text(kubeconfig, user, "client-certificate"),
            key=_text(kubeconfig, user, "client-key"),
            token=_word(user["token"]) if "token" in user else None,
        )
        namespace = _word(context.get("namespace", "default"))
        if not re.fullmatch(r"[a-z0-9-]+", namespace):  # it becomes part of paths
            raise ValueError(f"{namespace!r:.50} is no name of a namespace")
    except FileNotFoundError:
        raise FogscaleError(
            f"there is no kubeconfig {kubeconfig}: build the testbed, or name another"
        ) from None
    except (
        OSError,
        FogscaleError,
        LookupError,
        TypeError,
        AttributeError,
        StopIteration,
        ValueError,
    ) as error:
        raise FogscaleError(f"{kubeconfig} is no kubeconfig that can be used ({error!r}): check it") from None
    return Cluster(door, namespace)


def keep_token(cluster: Cluster, kubeconfig: Path, now_s: float) -> bool:
    """Asks for another token when half of the time of the one in the kubeconfig is over, and keeps it there
    for the next controller. True if it did; raises where it is over. One that never ends is left alone."""
    text = kubeconfig.read_text()
    told = claims(token_in(text))
    if told is None or not told.is_due(now_s):
        return False
    if told.is_over(now_s):
        ended = datetime.fromtimestamp(told.expires_s, UTC)
        raise FogscaleError(
            f"the token in {kubeconfig} ended {ended:%Y-%m-%d %H:%M} UTC:"
            " run 'fogscale testbed up' or cluster.yml again"
        )
    try:
        token = cluster.renew_token(told.account, round(told.lasts_s))
    except (UnreachableError, RefusedError):
        return False  # the old one still holds: there is time to try again
    from fog.services.pki import write_private  # with 10 MB of cryptography, for once in days

    values = json.loads(text)
    values["users"][0]["user"]["token"] = token
    write_private(kubeconfig, json.dumps(values, indent=4) + "\n")
    return True


def _named(entries: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(each for each in entries if each["name"] == name)


def _word(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.50} is no text")
    return value


def _text(kubeconfig: Path, values: dict[str, Any], name: str) -> str | None:
    """What is in a file that a kubeconfig names, or what it holds itself."""
    if name in values:
        return read_document(kubeconfig.parent / str(values[name]))
    data = values.get(f"{name}-data")
    return None if data is None else base64.b64decode(data).decode()
