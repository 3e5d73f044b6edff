"""The jar against a real broker: what was produced comes out, each record once; a mistake gets one line."""

import json
import subprocess
import sys
from collections import Counter, defaultdict
from datetime import datetime
from math import floor

import pytest

from tests.support import flink_jobs
from workloads.jobs import output
from workloads.jobs.catalog import catalog, program_arguments
from workloads.producer import audit, header

JOBS = catalog().jobs


@pytest.fixture(autouse=True)
def _tools(require):
    flink_jobs.require_tools(require)


def produced(broker, topic, job, report_file, speed=100, duration_s=2):
    """The numbers that the producer sent."""
    command = [
        sys.executable, "-m", "fogscale.cli", "produce", "--bootstrap", broker.bootstrap, "--topic", topic,
        "--workload", "taxi", "--records", JOBS[job].records, "--run", "r1", "--speed", str(speed),
        "--copies", "1", "--duration", str(duration_s), "--report", str(report_file),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return range(json.loads(report_file.read_text())["topics"][0]["next_number"])


def worked_off(broker, job, source, target, *arguments):
    """Runs a job until it read all that is in the topic by now."""
    settings = {
        "brokers": broker.bootstrap, "input": source, "output": target, "until": "latest",
        "checkpoint-ms": 500,
    }  # fmt: skip
    done = flink_jobs.run(job, *program_arguments(settings), *arguments)
    assert done.returncode == 0, done.stderr[-3000:]
    return [output.parse(message.value()) for message in broker.messages(target)]


@pytest.mark.kafka
@pytest.mark.parametrize("layout", ["split", "fog"])
def test_every_ride_comes_out_once_with_its_sight(broker, new_topic, tmp_path, layout):
    source, target = new_topic(3), new_topic(2)
    sent = produced(broker, source, "taxi", tmp_path / "report.json")
    options = ("--layout", layout, "--parallelism", "2", "--cost-us", "20")
    results = worked_off(broker, "taxi", source, target, *options)
    verdict = output.balance(results, "r1", sent)
    assert verdict.clean, verdict.text
    assert len(results) == len(sent) > 300
    # The same from the headers, as `fogscale audit` reads them; a job that spreads records keeps no order.
    judged = audit.judge("r1", audit.read(broker.bootstrap, target).runs["r1"], sent)
    assert (judged.records, judged.lost, judged.duplicated) == (len(sent), 0, 0)
    rides = [json.loads(message.value()) for message in broker.messages(source)]
    by_number = {ride["rideId"]: ride for ride in rides}
    for result in results:
        assert result.value["trip"] == by_number[result.number]
        assert result.value["nearest"] == nearest(result.value["trip"])
        assert result.due_ms <= result.read_ms <= result.done_ms


def nearest(trip):
    """Straight from the definition."""
    sights = {
        "Times Square": (-73.9855, 40.7580),
        "Central Park": (-73.9654, 40.7829),
        "Statue of Liberty": (-74.0445, 40.6892),
    }
    distances = {
        name: ((trip["pickupLon"] - lon) ** 2 + (trip["pickupLat"] - lat) ** 2) ** 0.5
        for name, (lon, lat) in sights.items()
    }
    name = min(distances, key=distances.__getitem__)
    return {"attraction": name, "distanceDeg": pytest.approx(distances[name], abs=1e-6)}


@pytest.fixture
def service():
    """The hotspots' service, as it runs on the services node; its port."""
    command = flink_jobs.java("fogscale.jobs.HotspotService", "--port", "0")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        yield int(process.stdout.readline().split()[-1])
        process.kill()


@pytest.mark.kafka
@pytest.mark.parametrize("ask", ["sync", "async"])
def test_a_service_tells_the_same_sights(broker, new_topic, tmp_path, service, ask):
    source, target = new_topic(3), new_topic(2)
    sent = produced(broker, source, "lookup", tmp_path / "report.json", speed=20)
    options = ("--service", f"127.0.0.1:{service}", "--ask", ask, "--parallelism", "2")
    results = worked_off(broker, "lookup", source, target, *options)
    assert output.balance(results, "r1", sent).clean
    for result in results:
        assert result.value["nearest"] == nearest(result.value["trip"])


@pytest.mark.kafka
def test_every_picture_comes_out_once_with_its_brightness(broker, new_topic, tmp_path):
    source, target = new_topic(3), new_topic(2)
    sent = produced(broker, source, "images", tmp_path / "report.json", speed=20)
    results = worked_off(broker, "images", source, target, "--parallelism", "2")
    assert output.balance(results, "r1", sent).clean
    means = {
        header.read(message.headers())[1]: sum(message.value()[-30_000:]) / 30_000
        for message in broker.messages(source)
    }
    for result in results:
        assert result.value["meanBrightness"] == pytest.approx(means[result.number], abs=1e-4)


@pytest.mark.kafka
def test_each_pattern_of_click_fraud_counts_every_event_once(broker, new_topic, tmp_path):
    source, target = new_topic(3), new_topic(2)
    sent = produced(broker, source, "clickfraud", tmp_path / "report.json")
    results = worked_off(broker, "clickfraud", source, target, "--parallelism", "2", "--cost-us", "0")
    assert {result.by for result in results} == {"usersByAddress", "addressesByUser", "clickRate"}
    for pattern in ("usersByAddress", "addressesByUser", "clickRate"):
        verdict = output.balance([each for each in results if each.by == pattern], "r1", sent)
        assert verdict.clean, f"{pattern}: {verdict.text}"
    users = defaultdict(set)
    for message in broker.messages(source):
        event = json.loads(message.value())
        users[event["ip"], event["timestamp"] // 60 * 60_000].add(event["userID"])
    assert {
        (each.value["key"], each.value["windowMs"]): each.value["users"]
        for each in results
        if each.by == "usersByAddress"
    } == {key: len(seen) for key, seen in users.items()}


@pytest.mark.kafka
def test_every_trip_is_in_a_ranking_or_refused(broker, new_topic, tmp_path):
    source, target = new_topic(3), new_topic(2)
    sent = produced(broker, source, "toproutes", tmp_path / "report.json")
    results = worked_off(broker, "toproutes", source, target, "--parallelism", "2", "--cost-us", "0")
    verdict = output.balance(results, "r1", sent)
    assert verdict.clean, verdict.text
    lines = [message.value().split(b",") for message in broker.messages(source)]
    refused = [each.number for each in results if each.fault == "no coordinates"]
    assert len(refused) == sum(line[6] == b"0.000000" for line in lines)
    rankings = sorted((each.value for each in results if each.by == "globalRank"), key=lambda it: it["endMs"])
    last = max(rankings, key=lambda ranking: sum(route["trips"] for route in ranking["routes"]))
    assert last["routes"] == top_routes(lines)
    assert rankings[-1]["routes"] == []  # half an hour after the last trip


def cell(longitude, latitude):
    """As the challenge counts them: from 1, to the east and to the south."""
    east = floor((longitude + 74.913585) / 0.005986 + 0.5) + 1
    south = floor((41.474937 - latitude) / 0.004491556 + 0.5) + 1
    return f"{east}.{south}"


def top_routes(lines):
    """Of trips that all lie within half an hour, straight from the definition."""
    counts, latest = Counter(), {}
    for line in lines:
        west, north, east, south = map(float, line[6:10])
        if west == 0:
            continue
        route = f"{cell(west, north)}-{cell(east, south)}"
        dropoff = datetime.strptime(line[3].decode() + "+0000", "%Y-%m-%d %H:%M:%S%z")
        counts[route] += 1
        latest[route] = max(latest.get(route, 0), int(dropoff.timestamp() * 1000))
    ranked = sorted(counts, key=lambda route: (-counts[route], -latest[route], route))
    return [{"route": each, "trips": counts[each], "lastMs": latest[each]} for each in ranked[:10]]


@pytest.mark.parametrize("layout", ["split", "fog"])
@pytest.mark.parametrize("job", JOBS)
def test_the_catalogue_tells_what_a_cluster_gets(job, layout):
    vertices = flink_jobs.plan(job, "--layout", layout, "--parallelism", "3")
    known = JOBS[job].operators
    names = {operator.name: operator.vertex for operator in known}
    assert {vertex["name"]: sorted(vertex["upstream"]) for vertex in vertices} == {
        operator.vertex: sorted(names[each] for each in operator.upstream) for operator in known
    }
    for operator in known:
        (vertex,) = [each for each in vertices if each["name"] == operator.vertex]
        assert vertex["group"] == (operator.group if layout == "split" else "fog")
        assert vertex["maxParallelism"] == (operator.most or catalog().max_parallelism)
        is_spread = operator.most != 1 and (layout == "fog" or operator.name not in ("source", "sink"))
        assert vertex["parallelism"] == (3 if is_spread else 1)


def test_the_catalogue_has_every_job_with_its_own_settings():
    listed = flink_jobs.run("--help").stdout
    assert {line.split(":")[0].strip() for line in listed.splitlines()[1:]} == set(JOBS)
    for name, job in JOBS.items():
        told = flink_jobs.run(name, "--help").stdout
        for setting, usual in job.settings.items():
            (line,) = [line for line in told.splitlines() if line.split()[:1] == [f"--{setting}"]]
            assert line.endswith(f"[{usual}]")


def test_operators_that_share_a_thread_are_one_vertex():
    vertices = flink_jobs.plan("taxi", "--layout", "fog", "--chained", "true")
    assert [vertex["name"] for vertex in vertices] == [
        "Source: source -> map -> sink: Writer -> sink: Committer"
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("taxy",), "unknown job 'taxy': did you mean 'taxi'?"),
        (("taxi", "--brokers"), "--brokers needs a value after it"),
        (("taxi", "--brokers", "b:1", "--layuot", "fog"), "unknown setting 'layuot': did you mean 'layout'?"),
        (
            ("taxi", "--brokers", "b:1", "--checkpoint-ms", "99", "--parallelism", "mapp=2"),
            "--parallelism: unknown operator 'mapp': did you mean 'map'?",
        ),
        (("taxi", "--brokers", "b:1"), "give --checkpoint-ms, or --guarantee at-least-once"),
    ],
)
def test_a_mistake_gets_one_line_and_exit_2(words, said):
    done = flink_jobs.run(*words)
    assert done.returncode == 2
    assert said in done.stderr.splitlines()[-1]
    assert done.stderr.startswith("error: ")
