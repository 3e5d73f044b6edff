"""What `verify` tries from other nodes and from pods: every port that answers in the fog's network, without
credentials and with wrong ones. Each attempt is a URL and what must come of it.

What comes of it is an HTTP status, or `closed` (no connection), `silent` (no answer in time) or `cut` (a
connection that ended without an answer, as where a certificate is asked for). Kafka is tried by its own
protocol (`kafka_door.py`); it says `refused` to a wrong password, and cuts who does not say a name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fog.services.broker import FLINK

WRONG = "nobody:wrong@"  # a name and a password that nobody has, as a URL carries them
CONNECT_WITHIN_S, ANSWER_WITHIN_S = 4, 15
CLOSED, SILENT, CUT, REFUSED = "closed", "silent", "cut", "refused"
NO_WAY_IN = (CLOSED, SILENT)
# How curl ends where there was no answer: no connection, or none in time.
_CURL = {"7": CLOSED, "28": SILENT}


@dataclass(frozen=True)
class Attempt:
    what: str
    url: str
    expected: tuple[str, ...]

    def problem(self, outcome: str) -> str | None:
        if outcome in self.expected:
            return None
        how = "with a wrong password" if "@" in self.url else "without credentials"
        scheme, _, rest = self.url.partition("://")
        place = f"{scheme}://{rest.rpartition('@')[2]}"
        if outcome in (CLOSED, SILENT):
            return f"{self.what} does not answer at {place} ({outcome}): see whether it runs"
        return f"{self.what} accepts a client {how} at {place} ({outcome}): run site.yml again"


@dataclass(frozen=True)
class Fog:
    """What is known of a testbed before its ports are tried."""

    tls: bool  # whether services and exporters speak it
    emulated: bool
    upstream: bool  # Kubernetes, not k3s
    kafka: bool  # of ours
    grafana: bool


def attempts(node: Mapping[str, Any], fog: Fog) -> list[Attempt]:
    """At one node, from anywhere but itself."""
    scheme, address = "https" if fog.tls else "http", str(node["address"])
    found = [*_asking("node exporter", f"{scheme}://", f"{address}:9100/metrics", "401")]
    if fog.emulated:
        found += _asking("cgroup exporter", f"{scheme}://", f"{address}:9101/metrics", "401")
    found += _asking("kubelet", "https://", f"{address}:10250/pods", "401")
    found += [Attempt("Flink's metrics", f"http://{address}:9249/", NO_WAY_IN)]
    if node["group"] == "services":
        found += _of_services(scheme, address, fog)
        # The node before it is the server, which is no client: only fog nodes are.
        found += [Attempt("the service of the job lookup", f"http://{address}:9870/", NO_WAY_IN)]
    if node["group"] == "server":
        found += _asking("Kubernetes' API", "https://", f"{address}:6443/api/v1/nodes", "401")
        found += _asking("Flink's REST API", "https://", f"{address}:8081/config", CUT)
    for name, port in _own_ports(str(node["group"]), fog):
        found.append(Attempt(name, f"http://{address}:{port}/", NO_WAY_IN))
    return found


def _asking(what: str, scheme: str, place: str, *refusals: str) -> list[Attempt]:
    return [Attempt(what, f"{scheme}{who}{place}", refusals) for who in ("", WRONG)]


def _of_services(scheme: str, address: str, fog: Fog) -> list[Attempt]:
    found = [
        *_asking("MinIO", f"{scheme}://", f"{address}:9000/fogscale/", "403", "400"),
        *_asking("Prometheus", f"{scheme}://", f"{address}:9090/metrics", "401"),
    ]
    if fog.kafka:
        kafka = "kafkas" if fog.tls else "kafka"
        found += [Attempt("Kafka", f"{kafka}://{address}:9092", (CUT,))]
        found += [Attempt("Kafka", f"{kafka}://{FLINK}:wrong@{address}:9092", (REFUSED,))]
        if fog.tls:
            found += [Attempt("Kafka", f"kafka://{FLINK}:wrong@{address}:9092", (CUT,))]
        found += _asking("Kafka's metrics", f"{scheme}://", f"{address}:9404/metrics", "401")
    if fog.grafana:
        found += _asking("Grafana", f"{scheme}://", f"{address}:3000/api/datasources", "401")
    return found


def _own_ports(group: str, fog: Fog) -> Iterable[tuple[str, int]]:
    """What listens on loopback only."""
    if group == "services" and fog.kafka:
        yield "Kafka's controller", 9093
    if fog.upstream:
        yield "kubelet's health", 10248
        yield "kube-proxy's metrics", 10249
    if fog.upstream and group == "server":
        yield from (("etcd", 2379), ("etcd", 2380))
        yield from (("kube-controller-manager", 10257), ("kube-scheduler", 10259))


def from_node(nodes: Sequence[Mapping[str, Any]], name: str, fog: Fog) -> list[Attempt]:
    """What that node tries at the next one. Prometheus' node may read Flink's metrics."""
    this, following = _this_and_next(nodes, name)
    tries = attempts(following, fog)
    return [each for each in tries if ":9249/" not in each.url] if this["group"] == "services" else tries


def from_pod(nodes: Sequence[Mapping[str, Any]], name: str, fog: Fog) -> list[Attempt]:
    """What a pod on that node tries at the next one."""
    return attempts(_this_and_next(nodes, name)[1], fog)


def _this_and_next(
    nodes: Sequence[Mapping[str, Any]], name: str
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    names = [node["name"] for node in nodes]
    return nodes[names.index(name)], nodes[(names.index(name) + 1) % len(nodes)]


def by_kafka(tries: Sequence[Attempt]) -> list[Attempt]:
    """Those that curl does not know how to ask."""
    return [each for each in tries if each.url.startswith("kafka")]


def by_http(tries: Sequence[Attempt]) -> list[Attempt]:
    return [each for each in tries if not each.url.startswith("kafka")]


def node_command(tries: Sequence[Attempt]) -> list[str]:
    """curl for a node: all at once, one line for each that ends."""
    words = [
        "curl", "--silent", "--insecure", "--parallel", "--parallel-immediate",
        "--connect-timeout", str(CONNECT_WITHIN_S), "--max-time", str(ANSWER_WITHIN_S),
        "--write-out", "%{urlnum} %{http_code} %{exitcode}\\n",
    ]  # fmt: skip
    for each in by_http(tries):
        words += ["--output", "/dev/null", each.url]
    return words


def kafka_command(tries: Sequence[Attempt]) -> list[str]:
    """Python for a node, which reads kafka_door.py from its standard input; empty where there is no Kafka."""
    urls = [each.url for each in by_kafka(tries)]
    return ["python3", "-", *urls] if urls else []


def node_problems(tries: Sequence[Attempt], lines: Iterable[str]) -> list[str]:
    """From what curl said; an attempt of which nothing was said is a problem too."""
    tries, outcomes = by_http(tries), {}
    for line in lines:
        number, status, code = line.split()
        outcomes[int(number)] = _CURL.get(code, CUT) if status == "000" else status
    return _problems(tries, [outcomes.get(number, SILENT) for number in range(len(tries))])


def kafka_problems(tries: Sequence[Attempt], lines: Sequence[str]) -> list[str]:
    """From what kafka_door.py said, a line for each in their order."""
    return pod_problems(by_kafka(tries), lines)


def pod_problems(tries: Sequence[Attempt], lines: Sequence[str]) -> list[str]:
    """From what `/pause try` said, a line for each in their order."""
    told = [*(line.strip() for line in lines), *(SILENT for _ in tries)]
    return _problems(tries, told[: len(tries)])


def _problems(tries: Sequence[Attempt], outcomes: Sequence[str]) -> list[str]:
    found = [each.problem(outcome) for each, outcome in zip(tries, outcomes, strict=True)]
    return list(dict.fromkeys(problem for problem in found if problem is not None))  # one line for each, once
