"""What Prometheus makes of a real job: it reads records from Kafka at a known rate, each takes a known time,
and two instances share them. Prometheus reads Flink's reporters; nothing stands in for them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import yaml

from fog.folders import checkout
from fog.services.dashboards import queries
from tests.support.flink import rest, scale, start, uploaded
from tests.support.fog import Fog
from tests.support.load import Load
from tests.support.services import ask_prometheus, broker, eventually

pytestmark = pytest.mark.testbed

STEADY_PER_S, OVERLOAD_PER_S = 200.0, 2000.0
COST_MS, INSTANCES, PARTITIONS = 2, 2, 8
MOST_PER_S = INSTANCES * 1000 / COST_MS  # 1000: what the map can do, were sleeping exact
SCRAPE_S = 5.0

FILES = sorted((checkout() / "roles/grafana/files/dashboards").glob("*.yml"))
DASHBOARDS = [
    (file.stem, panel, query) for file in FILES for panel, query in queries(yaml.safe_load(file.read_text()))
]


@dataclass(frozen=True)
class Running:
    """The job under load, and what Prometheus says of it."""

    fog: Fog
    job: str
    load: Load

    def value(self, rule: str, **labels: str) -> float | None:
        series = self.values(rule, **labels)
        assert len(series) <= 1, series
        return series[0][1] if series else None

    def values(self, rule: str, **labels: str) -> list[tuple[dict[str, str], float]]:
        wanted = ", ".join(f'{name}="{value}"' for name, value in {"job_name": "passing", **labels}.items())
        found = ask_prometheus(self.fog, f"{rule}{{{wanted}}}")
        return [(each["metric"], float(each["value"][1])) for each in found]

    def soon(self, rule: str, **labels: str) -> float:
        """As soon as there is one."""
        eventually(lambda: self.value(rule, **labels) is not None)
        value = self.value(rule, **labels)
        assert value is not None
        return value

    def is_about(self, wanted: float, rule: str, **labels: str) -> bool:
        seen = self.value(rule, **labels)
        return seen is not None and abs(seen - wanted) <= 0.1 * wanted


@pytest.fixture(scope="module")
def running(fog: Fog, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    jar = uploaded(fog, "PassingJob", tmp_path_factory.mktemp("passing"))
    kafka = broker(fog)
    scale(fog, "fog1", 1)  # the third slot: one for source and sink, one per instance of the map
    arguments = (kafka.bootstrap, "input", kafka.passwords["flink"], str(INSTANCES), str(COST_MS))
    job = start(fog, jar, arguments)
    with Load(fog, "input", PARTITIONS, STEADY_PER_S) as load:
        found = Running(fog, job, load)
        eventually(lambda: found.is_about(STEADY_PER_S, "operator:input_rate_per_s", task_name="map"))
        yield found
    rest(fog, "PATCH", f"/jobs/{job}")
    scale(fog, "fog1", 0)
    eventually(
        lambda: found.value("operator:instances", task_name="map") is None
    )  # a job that is gone is gone


def test_rates_are_those_of_the_producer(running: Running) -> None:
    def all_agree() -> bool:
        (topic,) = ask_prometheus(running.fog, 'topic:records_in:rate_per_s{topic="input"}')
        return abs(float(topic["value"][1]) - STEADY_PER_S) <= 0.1 * STEADY_PER_S and all(
            running.is_about(STEADY_PER_S, rule, task_name=task)
            for rule, task in [
                ("operator:input_rate_per_s", "Source: read"),
                ("operator:throughput_per_s", "Source: read"),
                ("operator:input_rate_per_s", "map"),
                ("operator:throughput_per_s", "map"),
                ("operator:input_rate_per_s", "write: Writer"),
            ]
        )

    eventually(all_agree)


def test_instances_are_told_apart_with_their_nodes(running: Running) -> None:
    assert running.value("operator:instances", task_name="map") == INSTANCES
    vertices = rest(running.fog, "GET", f"/jobs/{running.job}")["vertices"]
    (vertex,) = (each["id"] for each in vertices if each["name"] == "map")
    subtasks = rest(running.fog, "GET", f"/jobs/{running.job}/vertices/{vertex}")["subtasks"]
    placed = {(str(each["subtask"]), each["taskmanager-id"]) for each in subtasks}

    def each_has_half() -> bool:
        seen = running.values("instance:rate_per_s", task_name="map")
        assert {(labels["subtask_index"], labels["node"]) for labels, _ in seen} == placed
        return all(abs(rate - STEADY_PER_S / INSTANCES) <= 0.15 * STEADY_PER_S for _, rate in seen)

    eventually(each_has_half)


def test_time_is_busy_or_idle_or_back_pressured(running: Running) -> None:
    """200 records of 2 ms by two instances: each is busy for at least 20 % of its time, and the rest idle."""
    busy, idle, waiting = (
        running.soon(f"operator:{name}_ratio", task_name="map") for name in ("busy", "idle", "back_pressure")
    )
    assert busy + idle + waiting == pytest.approx(1, abs=0.02)
    assert 0.2 <= busy < 0.6
    assert waiting < 0.1
    for _, ratio in running.values("instance:busy_ratio", task_name="map"):
        assert 0.15 <= ratio < 0.7


def test_the_true_rate_is_what_the_map_could_do(running: Running) -> None:
    """1000 per s and never more; half of that where the machine is so busy that 2 ms take 4."""
    true_rate_per_s = running.soon("operator:true_rate_per_s", task_name="map")
    assert 0.4 * MOST_PER_S <= true_rate_per_s <= 1.02 * MOST_PER_S


def test_a_calm_job_answers_soon_and_has_no_lag(running: Running) -> None:
    # Kafka and Flink are read at different times: what came in between looks like lag.
    assert running.soon("job:lag_records") <= SCRAPE_S * STEADY_PER_S
    assert 0 <= running.soon("job:source_delay_ms") < 1000
    latency_ms = running.soon("job:latency_ms", quantile="0.5")
    assert 0 < latency_ms < 1000
    assert latency_ms <= running.soon("job:response_time_ms", quantile="0.5") < 2000


def test_the_cpu_of_an_operator_is_that_of_its_nodes(running: Running) -> None:
    nodes = {labels["node"] for labels, _ in running.values("instance:busy_ratio", task_name="map")}
    ratios = {
        each["metric"]["node"]: float(each["value"][1])
        for each in ask_prometheus(running.fog, "node:cpu_ratio")
    }
    seen = running.soon("operator:cpu_ratio", task_name="map")
    assert 0 < seen <= 1.05
    wanted = [ratios[node] for node in nodes]
    assert min(wanted) - 0.2 <= seen <= max(wanted) + 0.2


@pytest.mark.parametrize(("dashboard", "panel", "query"), DASHBOARDS)
def test_every_query_of_a_dashboard_gives_data(
    running: Running, dashboard: str, panel: str, query: str
) -> None:
    eventually(lambda: ask_prometheus(running.fog, query))


def test_a_job_without_records_is_idle_and_has_no_true_rate(running: Running) -> None:
    running.load.rate_per_s = 0
    eventually(lambda: running.value("operator:input_rate_per_s", task_name="map") == 0)
    eventually(lambda: running.soon("operator:busy_ratio", task_name="map") < 0.1)
    assert running.value("operator:instances", task_name="map") == INSTANCES
    assert not running.value("operator:true_rate_per_s", task_name="map")


def test_overload_shows_at_the_source_and_in_kafka(running: Running) -> None:
    running.load.rate_per_s = OVERLOAD_PER_S
    eventually(lambda: running.soon("operator:busy_ratio", task_name="map") > 0.9)
    eventually(lambda: running.soon("operator:back_pressure_ratio", task_name="Source: read") > 0.7)
    assert running.soon("operator:throughput_per_s", task_name="map") <= 1.05 * MOST_PER_S
    assert running.soon("operator:back_pressure_ratio", task_name="map") < 0.1
    assert running.soon("operator:busy_ratio", task_name="Source: read") < 0.3

    def lag() -> int:
        """By the producer's count and the reporters themselves, without Prometheus."""
        return running.load.sent - passed_on(running.fog)

    eventually(lambda: lag() > 2.5 * SCRAPE_S * OVERLOAD_PER_S)
    before, begun_s = lag(), float(running.fog.ask("services1", "date +%s.%N"))
    eventually(lambda: _told_at_s(running.fog) > begun_s + 2 * SCRAPE_S)
    told, after = running.soon("job:lag_records"), lag()
    # It grows all the time; Kafka and Flink are read up to a scrape apart.
    apart = 1.2 * SCRAPE_S * OVERLOAD_PER_S
    assert before - apart <= told <= after + apart


def passed_on(fog: Fog) -> int:
    """Records that the source gave to the map, as the reporters of all nodes tell."""
    pattern = re.compile(
        r'^flink_taskmanager_job_task_numRecordsOut\{[^}]*task_name="Source: read"[^}]*\} (\S+)$',
        re.MULTILINE,
    )
    pages = [
        fog.enter(
            "curl", "--silent", "--max-time", "5", f"http://{fog.manifest.addresses[node]}:9249/metrics"
        ).stdout
        for node in ("services1", "fog1")
    ]
    return sum(int(float(count)) for page in pages for count in pattern.findall(page))


def _told_at_s(fog: Fog) -> float:
    (series,) = ask_prometheus(fog, 'timestamp(job:lag_records{job_name="passing"})')
    return float(series["value"][1])
