"""What Prometheus sees of the fog, what it makes of it, and whom it answers."""

from __future__ import annotations

import textwrap
import uuid

import pytest
from confluent_kafka import Producer

from tests.support.fog import Fog
from tests.support.services import (
    READER,
    SCRAPER,
    ask_prometheus,
    broker,
    eventually,
    get,
    inside,
    secret,
    write,
)

pytestmark = pytest.mark.testbed

NODES = ("server1", "services1", "fog1")


def by_label(fog: Fog, query: str, *labels: str) -> dict[tuple[str, ...], float]:
    return {
        tuple(series["metric"].get(label, "") for label in labels): float(series["value"][1])
        for series in ask_prometheus(fog, query)
    }


def test_every_exporter_of_the_fog_is_read(fog: Fog) -> None:
    wanted = {("nodes", node) for node in NODES} | {("limits", node) for node in NODES}
    wanted |= {("kafka", "services1"), ("prometheus", "services1")}
    eventually(lambda: wanted <= set(by_label(fog, "up == 1", "job", "node")))


def test_cpu_time_is_that_of_the_node_and_not_of_the_machine(fog: Fog) -> None:
    """Between two readings of the node's own counter, Prometheus must see a value between them."""
    file, per_s = "/sys/fs/cgroup/cpuacct/cpuacct.usage", 1e9
    if fog.ask("fog1", f"test -e {file} || echo no"):
        file, per_s = "/sys/fs/cgroup/cpu.stat", 1e6
    counter = f"sed -nE 's/^(usage_usec )?([0-9]+)$/\\2/p' {file}"
    before = int(fog.ask("fog1", counter)) / per_s
    begun_s = float(fog.ask("services1", "date +%s.%N"))

    def scraped_since() -> float | None:
        (series,) = ask_prometheus(fog, 'timestamp(fog_node_cpu_seconds_total{node="fog1"})')
        if float(series["value"][1]) <= begun_s:
            return None
        (value,) = ask_prometheus(fog, 'fog_node_cpu_seconds_total{node="fog1"}')
        return float(value["value"][1])

    seen = eventually(scraped_since)
    after = int(fog.ask("fog1", counter)) / per_s
    assert seen is not None
    assert before <= seen <= after


def test_ratios_of_nodes_are_ratios(fog: Fog) -> None:
    for rule in ("node:cpu_ratio", "node:memory_ratio"):
        ratios = eventually(lambda rule=rule: by_label(fog, rule, "node"))
        assert set(ratios) == {(node,) for node in NODES}
        assert all(0 < ratio <= 1.05 for ratio in ratios.values())


def test_records_in_kafka_are_counted_to_the_last_one(fog: Fog) -> None:
    def records() -> float | None:
        return by_label(fog, 'topic:records{topic="output"}', "topic").get(("output",))

    def settled() -> bool:
        """What other tests sent has been counted too."""
        (change,) = by_label(fog, 'delta(topic:records{topic="output"}[15s])', "topic").values()
        return change == 0

    eventually(lambda: records() is not None)
    eventually(settled)
    before = records()
    assert before is not None

    def send() -> None:
        producer = Producer(broker(fog).access("flink"))
        for _ in range(321):
            producer.produce("output", b"counted")
        assert producer.flush(20) == 0

    inside(fog, send)
    eventually(lambda: records() == before + 321)
    eventually(lambda: by_label(fog, 'topic:records_in:rate_per_s{topic="output"} > 0', "topic"))


def test_rules_for_a_rescaled_job_by_hand(fog: Fog) -> None:
    """promtool's own evaluation: two instances for a minute, then one. The first does 500 records in 4 of
    5 s, the second is idle and has no true rate. Two of three partitions have been read from."""
    series = "flink_taskmanager_job_task_"
    labels = 'job_name="j", task_name="map", node="fog1"'
    offset = f"{series}operator_KafkaSourceReader_topic_partition_currentOffset"
    case = textwrap.dedent(f"""\
        rule_files: [/etc/prometheus/fog/rules.yml]
        evaluation_interval: 5s
        tests:
          - interval: 5s
            input_series:
              - series: '{series}numRecordsIn{{{labels}, subtask_index="0"}}'
                values: 0+500x24
              - series: '{series}numRecordsIn{{{labels}, subtask_index="1"}}'
                values: 0+0x12 stale
              - series: '{series}accumulateIdleTimeMs{{{labels}, subtask_index="0"}}'
                values: 0+1000x24
              - series: '{series}accumulateIdleTimeMs{{{labels}, subtask_index="1"}}'
                values: 0+5000x12 stale
              - series: '{series}accumulateBackPressuredTimeMs{{{labels}, subtask_index="0"}}'
                values: 0+0x24
              - series: '{series}accumulateBackPressuredTimeMs{{{labels}, subtask_index="1"}}'
                values: 0+0x12 stale
              - series: '{series}operator_pendingRecords{{job_name="j"}}'
                values: 1+0x24
              - series: '{series}operator_pendingRecords{{job_name="new"}}'
                values: 7+0x24
              - series: '{offset}{{job_name="j", topic="t", partition="0"}}'
                values: 89+0x24
              - series: '{offset}{{job_name="j", topic="t", partition="1"}}'
                values: 120+0x24
              - series: '{offset}{{job_name="j", topic="t", partition="2"}}'
                values: -1+0x24
              - series: 'kafka_partition_end_offset{{topic="t", partition="0"}}'
                values: 100+0x24
              - series: 'kafka_partition_end_offset{{topic="t", partition="1"}}'
                values: 115+0x24
              - series: 'kafka_partition_end_offset{{topic="t", partition="2"}}'
                values: 900+0x24
            promql_expr_test:
              - expr: job:lag_records
                eval_time: 1m
                exp_samples:
                  - {{labels: 'job:lag_records{{job_name="j"}}', value: 10}}
                  - {{labels: 'job:lag_records{{job_name="new"}}', value: 7}}
              - expr: operator:true_rate_per_s
                eval_time: 1m
                exp_samples:
                  - {{labels: 'operator:true_rate_per_s{{job_name="j", task_name="map"}}', value: 125}}
              - expr: operator:busy_ratio
                eval_time: 1m
                exp_samples: [{{labels: 'operator:busy_ratio{{job_name="j", task_name="map"}}', value: 0.4}}]
              - expr: operator:instances
                eval_time: 1m
                exp_samples: [{{labels: 'operator:instances{{job_name="j", task_name="map"}}', value: 2}}]
              - expr: operator:instances
                eval_time: 2m
                exp_samples: [{{labels: 'operator:instances{{job_name="j", task_name="map"}}', value: 1}}]
        """)
    file = f"/run/rules-{uuid.uuid4().hex[:8]}.yml"
    write(fog, "services1", file, case)
    assert "SUCCESS" in fog.ask("services1", f"promtool test rules {file} && rm {file}")


@pytest.mark.parametrize(
    ("node", "port", "user", "name"),
    [
        pytest.param("services1", 9090, READER, "prometheus_reader", id="Prometheus"),
        pytest.param("services1", 9404, SCRAPER, "prometheus_scrape_services1", id="Kafka's metrics"),
        *(
            pytest.param(node, 9100, SCRAPER, f"prometheus_scrape_{node}", id=f"exporter of {node}")
            for node in NODES
        ),
        pytest.param("fog1", 9101, SCRAPER, "prometheus_scrape_fog1", id="limits of fog1"),
    ],
)
def test_clients_with_wrong_credentials_are_refused(
    fog: Fog, node: str, port: int, user: str, name: str
) -> None:
    tries = (None, (user, "wrong"), ("admin", secret(fog, name)), (user, secret(fog, name)))
    assert [get(fog, node, port, "/metrics", login)[0] for login in tries] == [401, 401, 401, 200]
