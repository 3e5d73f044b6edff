"""What `verify` tries at every node, and what it makes of the answers."""

from __future__ import annotations

import pytest

from fog.checks.doors import (
    Attempt,
    Fog,
    attempts,
    from_node,
    from_pod,
    kafka_command,
    kafka_problems,
    node_command,
    node_problems,
    pod_problems,
)

NODES = [
    {"name": name, "group": name.rstrip("1"), "address": f"10.0.0.{i}"}
    for i, name in enumerate(("server1", "services1", "fog1"), start=1)
]
FOG = Fog(tls=False, emulated=True, upstream=True, kafka=True, grafana=False)
ASKS = Attempt("Prometheus", "http://10.0.0.2:9090/metrics", ("401",))
WRONG = Attempt("Prometheus", "http://nobody:wrong@10.0.0.2:9090/metrics", ("401",))
SHUT = Attempt("etcd", "http://10.0.0.1:2379/", ("closed", "silent"))


def ports(tries: list[Attempt]) -> set[int]:
    return {int(each.url.rpartition("@")[2].split(":")[-1].split("/")[0]) for each in tries}


def test_every_node_tries_all_of_the_next_so_that_each_is_tried_once() -> None:
    tried = [from_node(NODES, str(node["name"]), FOG) for node in NODES]
    assert [tries[0].url for tries in tried] == [
        "http://10.0.0.2:9100/metrics", "http://10.0.0.3:9100/metrics", "http://10.0.0.1:9100/metrics",
    ]  # fmt: skip
    assert set.union(*map(ports, tried)) == {
        2379, 2380, 6443, 8081, 9000, 9090, 9092, 9093, 9100, 9101, 9249, 9404, 9870,
        10248, 10249, 10250, 10257, 10259,
    }  # fmt: skip


def test_only_the_node_of_prometheus_may_read_flinks_metrics_and_no_pod_may() -> None:
    assert 9249 not in ports(from_node(NODES, "services1", FOG))
    assert all(9249 in ports(from_pod(NODES, str(node["name"]), FOG)) for node in NODES)


def test_the_service_of_lookup_is_tried_by_a_node_and_a_pod_that_are_no_clients_of_it() -> None:
    (shut,) = (each for each in from_node(NODES, "server1", FOG) if ":9870/" in each.url)
    assert shut.problem("silent") is None
    assert shut.problem("200") is not None
    assert 9870 in ports(from_pod(NODES, "server1", FOG))
    assert 9870 not in ports([*from_node(NODES, "services1", FOG), *from_node(NODES, "fog1", FOG)])


def test_what_asks_for_a_password_is_tried_without_one_and_with_a_wrong_one() -> None:
    urls = [each.url for each in attempts(NODES[1], FOG) if each.expected == ("401",)]
    assert {url.replace("nobody:wrong@", "") for url in urls if "wrong" in url} == {
        url for url in urls if "wrong" not in url
    }


@pytest.mark.parametrize(
    ("changed", "port", "there"),
    [
        ({"kafka": False}, 9404, False),
        ({"grafana": True}, 3000, True),
        ({"emulated": False}, 9101, False),
        ({"upstream": False}, 10249, False),
    ],
)
def test_it_tries_what_runs_there(changed: dict[str, bool], port: int, there: bool) -> None:
    assert (port in ports(attempts(NODES[1], Fog(**{**vars(FOG), **changed})))) is there
    assert (port in ports(attempts(NODES[1], FOG))) is not there


def test_with_tls_services_are_tried_by_tls() -> None:
    secured = Fog(**{**vars(FOG), "tls": True})
    assert {
        each.url.partition(":")[0] for each in attempts(NODES[1], secured) if each.expected == ("401",)
    } == {"https"}


@pytest.mark.parametrize(
    ("attempt", "outcome", "said"),
    [
        (ASKS, "401", None),
        (
            ASKS,
            "200",
            "Prometheus accepts a client without credentials at http://10.0.0.2:9090/metrics (200)",
        ),
        (
            WRONG,
            "200",
            "Prometheus accepts a client with a wrong password at http://10.0.0.2:9090/metrics (200)",
        ),
        (ASKS, "closed", "Prometheus does not answer at http://10.0.0.2:9090/metrics (closed)"),
        (SHUT, "closed", None),
        (SHUT, "silent", None),
        (SHUT, "cut", "etcd accepts a client without credentials at http://10.0.0.1:2379/ (cut)"),
    ],
)
def test_an_open_door_is_told_from_a_refusal_and_from_silence(
    attempt: Attempt, outcome: str, said: str | None
) -> None:
    problems = pod_problems([attempt], [outcome])
    assert [problem.rpartition(": ")[0] for problem in problems] == ([] if said is None else [said])


def test_curl_tells_in_any_order_and_what_it_does_not_tell_counts_as_silence() -> None:
    tries = [ASKS, WRONG, SHUT]
    assert node_command(tries)[-2:] == ["/dev/null", SHUT.url]
    assert node_problems(tries, ["2 000 7", "0 401 0", "1 401 0"]) == []
    assert len(node_problems(tries, ["2 000 7", "0 401 0"])) == 1
    assert len(node_problems(tries, ["2 000 56", "0 401 0", "1 000 28"])) == 2


def test_kafka_is_tried_by_its_own_protocol_and_by_the_node_before_it() -> None:
    tries = from_node(NODES, "server1", FOG)
    assert kafka_command(tries) == [
        "python3", "-", "kafka://10.0.0.2:9092", "kafka://flink:wrong@10.0.0.2:9092",
    ]  # fmt: skip
    assert not any("kafka://" in word for word in node_command(tries))
    assert kafka_command(from_node(NODES, "fog1", FOG)) == []
    assert kafka_problems(tries, ["cut", "refused"]) == []
    place = "at kafka://10.0.0.2:9092 (accepted): run site.yml again"
    assert kafka_problems(tries, ["accepted", "accepted"]) == [
        f"Kafka accepts a client without credentials {place}",
        f"Kafka accepts a client with a wrong password {place}",
    ]
    assert kafka_problems(tries, []) == [
        "Kafka does not answer at kafka://10.0.0.2:9092 (silent): see whether it runs"
    ]


def test_with_tls_kafka_is_also_tried_without() -> None:
    secured = Fog(**{**vars(FOG), "tls": True})
    assert kafka_command(from_node(NODES, "server1", secured))[2:] == [
        "kafkas://10.0.0.2:9092", "kafkas://flink:wrong@10.0.0.2:9092", "kafka://flink:wrong@10.0.0.2:9092",
    ]  # fmt: skip
