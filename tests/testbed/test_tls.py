"""The testbed with fog_tls, switched on and off again by another run: every service shows a certificate of
the testbed's authority, and producer, job, controller and Prometheus take no other."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fog.folders import checkout
from fog.services import broker, objects, pki
from fog.services.pki import Certificate, ensure
from tests.support.fog import Fog, changes_in
from tests.support.services import ask_prometheus, eventually, inside, object_store
from tests.support.services import broker as kafka_of
from tests.testbed.test_prometheus import by_label

pytestmark = pytest.mark.testbed

TLS = ("site.yml", "-e", "fog_nodes=1", "-e", "fog_tls=true")
PORTS = {"services1": (9000, 9090, 9100, 9101, 9404), "fog1": (9100, 9101)}
# What a client without a certificate gets on the JobManager's own node: a certificate, and then no answer.
ATTEMPT = """python3 -c '
import socket, ssl, sys
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
try:
    with context.wrap_socket(socket.create_connection((sys.argv[1], int(sys.argv[2])), 10)) as door:
        door.sendall(b"hello")
        print("accepted" if door.recv(1) else "refused")
except (ssl.SSLError, ConnectionError) as error:
    print("refused")
' {address} {port}"""


@pytest.fixture(scope="module")
def secured(fog: Fog) -> Iterator[Fog]:
    done = fog.playbook(*TLS)
    try:
        assert done.returncode == 0, done.stdout[-3000:]
        yield fog
    finally:
        plain = fog.playbook("site.yml", "-e", "fog_nodes=1")
    assert plain.returncode == 0, plain.stdout[-3000:]
    assert inside(fog, lambda: broker.problems(kafka_of(fog), ["input", "output"], 8)) == []
    eventually(lambda: ask_prometheus(fog, 'up{job="kafka"} == 1'))


# How curl says that it does not trust a certificate. Both authorities have one name, so the signature is
# tried with the wrong key; what OpenSSL makes of that, and so the number, depends on the signature.
UNTRUSTED = {(35, "000"), (60, "000")}


def curl(fog: Fog, url: str, *options: str) -> tuple[int, str]:
    """What curl ends with, and the status of the answer."""
    words = ("--silent", "--max-time", "20", "--output", "/dev/null", "--write-out", "%{http_code}")
    done = fog.enter("curl", *words, *options, url)
    return done.returncode, done.stdout


def test_a_second_run_changes_nothing(secured: Fog) -> None:
    again = secured.playbook(*TLS)
    assert (again.returncode, changes_in(again.stdout)) == (0, {})


def test_every_service_shows_a_certificate_of_the_testbed_s_authority(secured: Fog, tmp_path: Path) -> None:
    ensure(tmp_path, [], tokens=False)  # another authority
    ours, other = str(secured.state.folder / "secrets/tls/ca.crt"), str(tmp_path / "ca.crt")
    for node, ports in PORTS.items():
        for port in ports:
            url = f"https://{secured.manifest.addresses[node]}:{port}/metrics"
            assert (url, curl(secured, url, "--cacert", ours)) == (url, (0, "403" if port == 9000 else "401"))
            refused = curl(secured, url, "--cacert", other)
            assert refused in UNTRUSTED, (url, refused)
            _, status = curl(secured, url.replace("https:", "http:"))
            assert (url, status in ("400", "000")) == (url, True)  # nothing is told without TLS


def test_kafka_minio_and_prometheus_work_and_refuse_clients_without_credentials(secured: Fog) -> None:
    assert inside(secured, lambda: broker.problems(kafka_of(secured), ["input", "output"], 8)) == []
    assert inside(secured, lambda: objects.problems(object_store(secured))) == []
    jobs = {(job, node) for job in ("nodes", "limits") for node in ("server1", "services1", "fog1")}
    jobs |= {("kafka", "services1"), ("prometheus", "services1")}
    eventually(lambda: jobs <= set(by_label(secured, "up == 1", "job", "node")))


EXPERIMENT = """\
name: tls
description: One fog node, a quarter of a minute of rides.
topology:
  nodes:
    - {name: services1, cores: 2, memory_mb: 3072, slots: 2}
    - {name: fog1, cores: 1, memory_mb: 1024}
  operators:
    - {name: source, n_max: 1}
    - {name: map, upstream: [source], n_min: 1, n_max: 1}
    - {name: sink, upstream: [map], n_max: 1}
  rtt_ms: {delays_ms: {services1: 0, fog1: 5}}
start: {map: 1}
pins: {source: [services1], sink: [services1]}
measured_operator: map
workload: {name: taxi, speed: 40, copies: 1, scale: 0.5}
testbed: {kind: flink, name: local, job: taxi, style: restart, span_s: 10 min, capacity_per_s: {map: [80]}}
policies: {static: {}}
"""


def test_a_run_of_an_experiment_loses_nothing(secured: Fog, tmp_path: Path) -> None:
    """Producer and controller speak TLS with Kafka and Prometheus, the job with Kafka, its checkpoints with
    MinIO, and its parts with each other: or nothing would come out."""
    file = tmp_path / "tls.yml"
    file.write_text(EXPERIMENT)
    done = subprocess.run(
        [sys.executable, "-m", "fogscale.cli", "run", str(file), "--seed=1", f"--out={tmp_path}", "--json"],
        capture_output=True, text=True, check=False, env={**os.environ, **secured.environment},
        cwd=checkout(), timeout=400,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (journal,) = tmp_path.rglob("journal.jsonl")
    told = json.loads(re.findall(r'"audit":({[^}]*})', journal.read_text())[-1])
    assert (told["lost"], told["doubled"], told["clean"]) == (0, 0, True)
    assert told["produced"] > 1000


@pytest.mark.parametrize("port", [6123, 6124])
def test_a_client_without_flink_s_own_certificate_is_refused(secured: Fog, port: int) -> None:
    told = secured.kubectl(
        "get", "pods", "--namespace=fogscale", "--selector=component=jobmanager",
        "--output=jsonpath={.items[0].status.podIP}",
    ).stdout  # fmt: skip
    assert secured.ask("server1", ATTEMPT.format(address=told, port=port)).strip() == "refused"


def test_a_certificate_that_ends_soon_is_made_anew_by_another_run(
    secured: Fog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if eleven months had passed since the same authority signed it."""
    folder = secured.state.folder / "secrets/tls"
    address = secured.manifest.addresses["services1"]
    node = Certificate("node-services1", "services1", "", ("services1", address), is_client=False)
    (folder / "node-services1.crt").unlink()
    with monkeypatch.context() as short_lived:
        short_lived.setattr(pki, "CERTIFICATE_DAYS", pki.RENEW_DAYS - 5)
        ensure(folder, [node], tokens=False)
    old = (folder / "node-services1.crt").read_text()
    done = secured.playbook("playbooks/services.yml", "-e", "fog_nodes=1", "-e", "fog_tls=true")
    assert done.returncode == 0, done.stdout[-3000:]
    assert (folder / "node-services1.crt").read_text() != old
    for port in (9000, 9090, 9100, 9404):
        shown = secured.enter("openssl", "s_client", "-connect", f"{address}:{port}", "-showcerts").stdout
        assert (port, (folder / "node-services1.crt").read_text() in shown) == (port, True)
