"""`fogscale produce` and `fogscale audit` as a user meets them: exit codes, one line per mistake."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import numpy as np
import pytest

from fogscale.errors import FogscaleError
from workloads.producer.command import settings_of

FOGSCALE = [sys.executable, "-m", "fogscale.cli"]


def fogscale(*arguments):
    command = [*FOGSCALE, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=400)


def produce(bootstrap, topic, *arguments):
    return fogscale("produce", "--bootstrap", bootstrap, "--topic", topic, "--workload", "taxi", *arguments)


def line(finished):
    """The one line of an error."""
    assert finished.returncode == 2, finished.stdout + finished.stderr
    assert finished.stderr.count("\n") == 1, finished.stderr
    return finished.stderr


@pytest.mark.kafka
def test_produce_audit_and_report_agree(broker, topic, tmp_path):
    report_file = tmp_path / "report.json"
    options = ("--speed", 2000, "--copies", 2, "--duration", 2, "--audit", "--report", report_file, "--json")
    sent = produce(broker.bootstrap, topic, *options)
    assert sent.returncode == 0, sent.stderr
    report = json.loads(sent.stdout)
    assert report == json.loads(report_file.read_text())
    assert report["acknowledged"] == report["wanted"] == sum(report["topics"][0]["wanted_per_s"]) > 2000
    assert report["audit"][0]["clean"]
    assert report["audit"][0]["records"] == report["wanted"]

    audit = fogscale("audit", "--bootstrap", broker.bootstrap, "--topic", topic, "--report", report_file)
    assert audit.returncode == 0
    assert f"{report['wanted']} records: 0 lost, 0 duplicated, 0 out of order" in audit.stdout

    report["topics"][0]["next_number"] += 5  # as if five more had been sent
    report_file.write_text(json.dumps(report))
    audit = fogscale("audit", "--bootstrap", broker.bootstrap, "--topic", topic, "--report", report_file)
    assert "5 lost" in line(audit)
    options = ("--bootstrap", broker.bootstrap, "--topic", topic, "--report", report_file, "--run", "other")
    assert f"is of run '{report['run']}', not of 'other'" in line(fogscale("audit", *options))


@pytest.mark.kafka
def test_the_same_seed_sends_the_same_records_whatever_the_processes(broker, topic):
    for processes in (1, 2):
        options = ("--speed", 1000, "--duration", 1, "--processes", processes, "--run", f"run{processes}")
        assert produce(broker.bootstrap, topic, *options).returncode == 0
    from workloads.producer.audit import read

    runs = read(broker.bootstrap, topic).runs
    first, second = runs["run1"], runs["run2"]
    assert sorted(zip(first.numbers, first.keys, first.partitions, strict=True)) == sorted(
        zip(second.numbers, second.keys, second.partitions, strict=True)
    )


@pytest.mark.kafka
def test_an_operator_each_has_a_topic_each(broker, topic):
    options = ("--workload", "brownian", "--create-topic", 2, "--duration", 1, "--json")
    sent = produce(broker.bootstrap, f"{topic}-to", *options)
    assert sent.returncode == 0, sent.stderr
    report = json.loads(sent.stdout)
    assert len(report["topics"]) == report["processes"] == 5
    assert all(each["acknowledged"] == each["wanted"] for each in report["topics"])


def ctrl_c(running):
    running.send_signal(signal.SIGINT)


def timeout_of_coreutils(running):
    """Tells the process, then its group, hence the process once more."""
    running.send_signal(signal.SIGTERM)
    os.killpg(running.pid, signal.SIGTERM)


@pytest.mark.kafka
@pytest.mark.parametrize(
    ("processes", "interrupt"),
    [
        pytest.param(1, ctrl_c, id="Ctrl-C, one process"),
        pytest.param(2, ctrl_c, id="Ctrl-C, two processes"),
        pytest.param(2, timeout_of_coreutils, id="timeout"),
    ],
)
def test_an_interrupt_reports_what_was_sent_and_how_to_go_on(broker, topic, tmp_path, processes, interrupt):
    report_file = tmp_path / "report.json"
    options = ("--speed", 1000, "--processes", processes, "--report", report_file)
    command = [*FOGSCALE, "produce", "--bootstrap", broker.bootstrap, "--topic", topic, "--workload", "taxi"]
    with subprocess.Popen(
        [*command, *map(str, options)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    ) as running:  # fmt: skip
        try:
            wait_until_records_arrive(broker, topic)
            interrupt(running)
            _, complaint = running.communicate(timeout=300)
        finally:
            running.kill()
    assert running.returncode == 130
    assert complaint.count("\n") == 1
    report = json.loads(report_file.read_text())
    assert report["interrupted"]
    assert f"--run {report['run']} --first-record {report['next_record']}" in complaint

    sent_for_s = np.flatnonzero(report["topics"][0]["sent_per_s"])[-1] + 1
    options = (
        "--speed", 1000, "--run", report["run"], "--first-record", report["next_record"],
        "--duration", sent_for_s + 2, "--audit", "--report", report_file, "--json",
    )  # fmt: skip
    went_on = produce(broker.bootstrap, topic, *options)
    assert went_on.returncode == 0, went_on.stderr
    rest = json.loads(went_on.stdout)
    assert rest["topics"][0]["first_number"] == 3 * report["next_record"] > 0
    assert rest["audit"][0]["records"] == report["acknowledged"] + rest["acknowledged"]
    for options in ((), ("--report", report_file)):
        audit = fogscale("audit", "--bootstrap", broker.bootstrap, "--topic", topic, *options)
        assert audit.returncode == 0, audit.stderr


def wait_until_records_arrive(broker, topic):
    from confluent_kafka import Consumer, KafkaException, TopicPartition

    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "test"})
    deadline_s = time.monotonic() + 300
    while time.monotonic() < deadline_s:
        with suppress(KafkaException):  # a broker may have no time for an answer
            if consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)[1] > 10:
                consumer.close()
                return
        time.sleep(0.05)
    raise AssertionError("no record arrived")


@pytest.mark.kafka
def test_a_topic_without_our_records_says_so(broker, topic):
    assert "holds no record" in line(fogscale("audit", "--bootstrap", broker.bootstrap, "--topic", topic))


@pytest.mark.kafka
def test_a_missing_topic_says_how_to_create_it(broker, topic):
    assert "--create-topic 4" in line(produce(broker.bootstrap, f"{topic}-none", "--duration", 1))


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--workload", "taxy"), "did you mean taxi?"),
        (("--records", "taxi_rid"), "did you mean taxi_ride?"),
        (("--speed", "0"), "replay speed must be a number above 0"),
        (("--copies", "0"), "replay copies must be a whole number of at least 1"),
        (("--processes", "many"), "write auto, or a number"),
        (("--config", "linger.ms"), "write a setting, = and its value"),
        (("--config", "@gone.properties"), "--config @gone.properties: cannot read it"),
        (("--config", "acks=0"), "--config acks cannot be changed"),
        (("--config", "partitioner=random"), "--config partitioner=random breaks the order per key"),
        (("--report", "/proc/none/report.json"), "cannot write /proc/none/report.json: No such file"),
        (("--report", "/"), "cannot write /: Is a directory"),
        (("--run", "a:b"), "without a colon"),
        (("--start-at", "1e9"), "no record is due"),
        (("--set", "nonsense=1"), "unknown parameter 'nonsense'"),
        ((), "no broker answers at 127.0.0.1:1"),
    ],
)
def test_mistakes_are_one_line(options, complaint):
    assert complaint in line(produce("127.0.0.1:1", "t", *options))


def test_a_file_that_is_no_report_is_named(tmp_path):
    file = tmp_path / "x.json"
    file.write_text("[]")
    finished = fogscale("audit", "--bootstrap", "127.0.0.1:1", "--topic", "t", "--report", file)
    assert "is no report of fogscale produce" in line(finished)


def test_settings_come_from_files_too_so_that_no_password_stands_on_a_command_line(tmp_path):
    file = tmp_path / "access.properties"
    file.write_text("# who we are\nsasl.username = me\n\nsasl.password=a=b\n")
    found = settings_of(["linger.ms=20", f"@{file}"])
    assert found == {"linger.ms": "20", "sasl.username": "me", "sasl.password": "a=b"}
    file.write_text("# who we are\nsasl.password geheim\n")
    with pytest.raises(FogscaleError, match=r"access\.properties, line 2: write a setting") as error:
        settings_of([f"@{file}"])
    assert "geheim" not in str(error.value)


@pytest.mark.kafka
def test_a_report_that_cannot_be_written_any_more_is_printed_instead(broker, topic, tmp_path):
    """It could be when the run began: what is only found out at the end must not cost the report."""
    folder = tmp_path / "reports"
    folder.mkdir()
    command = [*FOGSCALE, "produce", "--bootstrap", broker.bootstrap, "--topic", topic, "--workload", "taxi"]
    options = ("--speed", 1000, "--json", "--report", folder / "report.json")
    with subprocess.Popen(
        [*command, *map(str, options)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        try:
            wait_until_records_arrive(broker, topic)
            folder.rmdir()
            folder.touch()
            running.send_signal(signal.SIGINT)
            printed, complaint = running.communicate(timeout=300)
        finally:
            running.kill()
    assert running.returncode == 2
    assert "report.json: Not a directory" in complaint
    assert json.loads(printed)["acknowledged"] > 10
