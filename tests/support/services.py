"""What the tests of the testbed's services have in common: its secrets, its network, its answers."""

from __future__ import annotations

import base64
import json
import ssl
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.client import HTTPConnection
from typing import Any, TypeVar
from urllib.parse import urlencode

from fog.emulation import namespaces
from fog.services.broker import Broker
from fog.services.objects import Key, ObjectStore
from tests.support.fog import Fog

T = TypeVar("T")
USERS = ("admin", "flink", "producer")
READER, SCRAPER = "fogscale", "prometheus"


def inside(fog: Fog, work: Callable[[], T]) -> T:
    """Runs `work` in the fog's network: its thread and all threads that it starts live there."""
    with ThreadPoolExecutor(1, initializer=partial(namespaces.set_namespace, fog.state.network())) as pool:
        return pool.submit(work).result()


def secrets(fog: Fog) -> dict[str, str]:
    return {
        str(path.relative_to(fog.state.folder)): path.read_text().strip()
        for path in sorted((fog.state.folder / "secrets").iterdir())
        if path.is_file() and not path.name.endswith("_ca")  # a certificate is no secret
    }


def secret(fog: Fog, name: str) -> str:
    return (fog.state.folder / "secrets" / name).read_text().strip()


def ca(fog: Fog, service: str) -> str:
    """The file with the certificate to trust; empty where the service speaks no TLS."""
    return str(fog.manifest.services[service]["ca"])


def broker(fog: Fog) -> Broker:
    bootstrap = f"{fog.manifest.addresses['services1']}:9092"
    return Broker(bootstrap, {user: secret(fog, f"kafka_{user}") for user in USERS}, ca(fog, "kafka"))


def object_store(fog: Fog) -> ObjectStore:
    root = Key(secret(fog, "minio_root_access"), secret(fog, "minio_root_secret"))
    flink = Key(secret(fog, "minio_flink_access"), secret(fog, "minio_flink_secret"))
    address = f"{fog.manifest.addresses['services1']}:9000"
    return ObjectStore(address, "fogscale", root, flink, ca(fog, "minio"))


def get(fog: Fog, node: str, port: int, path: str, login: tuple[str, str] | None = None) -> tuple[int, str]:
    """Status and text of an HTTP answer."""
    address = fog.manifest.addresses[node]
    connection = HTTPConnection(address, port)
    connection.sock = namespaces.connect(fog.state.network(), address, port)
    if authority := ca(fog, "prometheus"):
        context = ssl.create_default_context(cafile=authority)
        connection.sock = context.wrap_socket(connection.sock, server_hostname=address)
    words = "" if login is None else base64.b64encode(":".join(login).encode()).decode()
    connection.request("GET", path, headers={"Authorization": f"Basic {words}"} if login else {})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def ask_prometheus(fog: Fog, query: str) -> list[dict[str, Any]]:
    """The series that a query gives: `metric` (labels) and `value` (time, text)."""
    login = (READER, secret(fog, "prometheus_reader"))
    status, text = get(fog, "services1", 9090, f"/api/v1/query?{urlencode({'query': query})}", login)
    assert status == 200, f"{query}: {text}"
    result: list[dict[str, Any]] = json.loads(text)["data"]["result"]
    return result


def eventually(look: Callable[[], T], patience_s: float = 60.0) -> T:
    """What `look` gives as soon as it is true; scrapes come every five seconds."""
    deadline_s = time.monotonic() + patience_s
    while True:
        seen = look()
        if seen or time.monotonic() > deadline_s:
            assert seen, f"not within {patience_s:.0f} s"
            return seen
        time.sleep(0.2)


def write(fog: Fog, node: str, path: str, text: str) -> None:
    words = base64.b64encode(text.encode()).decode()
    fog.ask(node, f"echo {words} | base64 --decode > {path}")
