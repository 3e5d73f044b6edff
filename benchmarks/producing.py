"""`python -m benchmarks.producing`: the producer against Kafka's own, and how exactly it keeps a rate.

Both producers and the broker share the cores of this machine. Rounds alternate, and what counts is the median
of the ratios within a round. A rate is counted twice: when the producer handed records over, and when they
were appended, by the clock of the broker (LogAppendTime), which adds the broker's own pauses.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from statistics import median
from time import monotonic
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from tests.support.kafka import Broker, java_command
from workloads.producer.audit import judge, read
from workloads.producer.chunks import Task, chunks
from workloads.producer.processes import Outcome, processes_for, send
from workloads.producer.schedule import Schedule
from workloads.producer.tasks import shared
from workloads.records.registry import create

RECORDS = 600_000
ROUNDS = 5
RATE_ROUNDS, RATE_S = 3, 12
PARTITIONS = 4
BROKER_HEAP_MB = 1024  # Kafka's own default; a small one pauses for 50 ms at a time
SPEED_TARGET = 0.8  # × Kafka's own
RATE_TARGETS = {"1,000/s": 0.01, "80 % of the maximum": 0.02}

# The producer's own settings, in the words of the Java client.
SAME_SETTINGS = (
    "acks=all",
    "enable.idempotence=true",
    "linger.ms=5",
    "batch.size=131072",
    "compression.type=lz4",
    "buffer.memory=134217728",
)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, Broker(Path(folder), BROKER_HEAP_MB) as broker:
        results = {
            "speed": against_kafkas_own(broker, Path(folder)),
            "rate": {
                "1,000/s": [rate_accuracy(broker, "slow", 1000)],
                "80 % of the maximum": [
                    at_80_percent_of_the_maximum(broker, number) for number in range(RATE_ROUNDS)
                ],
            },
            "rendering_us": rendering_us(),
        }
    show(results)
    target = Path("results") / "bench-producing.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(results, indent=2), encoding="utf-8")
    print(f"\nwritten to {target}")


def against_kafkas_own(broker: Broker, folder: Path) -> dict[str, Any]:
    """Records per second of both, as fast as they can, in turns; the first round only warms the broker up."""
    payload = folder / "payload"
    task = _task("", [50_000])
    payload.write_bytes(b"\n".join(value for chunk in chunks(task, 0.0) for value in chunk.values))
    rounds = []
    for number in range(ROUNDS + 1):
        ours = _ours_per_s(broker, f"ours-{number}")
        one = _ours_per_s(broker, f"one-{number}", processes=1)
        kafkas = _kafkas_own_per_s(broker, f"kafkas-{number}", payload)
        rounds.append((ours, one, kafkas))
        print(
            f"round {number}: {ours:,.0f}/s, one process {one:,.0f}/s, Kafka's own {kafkas:,.0f}/s",
            file=sys.stderr,
        )
    measured = rounds[1:]
    return {
        "records": RECORDS,
        "processes": processes_for(_task("", [RECORDS])),
        "ours_per_s": median(ours for ours, _, _ in measured),
        "one_process_per_s": median(one for _, one, _ in measured),
        "kafkas_own_per_s": median(kafkas for _, _, kafkas in measured),
        "ratio": median(ours / kafkas for ours, _, kafkas in measured),
        "one_process_ratio": median(one / kafkas for _, one, kafkas in measured),
    }


def at_80_percent_of_the_maximum(broker: Broker, number: int) -> dict[str, Any]:
    """The maximum is measured just before, since that of a shared machine changes within a minute."""
    most_per_s = sustained_per_s(broker, f"sustained-{number}")
    measured = rate_accuracy(broker, f"rate-{number}", round(0.8 * most_per_s))
    print(f"{measured['rate_per_s']:,}/s of {most_per_s:,.0f}/s: {_errors(measured)}", file=sys.stderr)
    return {"sustained_per_s": most_per_s, **measured}


def sustained_per_s(broker: Broker, name: str) -> float:
    """What is appended in every second while far more is due, for at least as long as the rate is to be kept:
    that of the slowest second, since a rate that is wanted in each second cannot be more. The first second
    and the last are not whole ones."""
    topic = broker.create_topic(name, PARTITIONS, message_timestamp_type="LogAppendTime")
    task = _task(topic, [RECORDS] * RATE_S)
    outcome = _send(broker, task, processes_for(task))
    return float(np.bincount(_append_seconds(broker, topic, outcome))[1:-1].min())


def rate_accuracy(broker: Broker, name: str, rate_per_s: int) -> dict[str, Any]:
    """How far, in each second, the records handed over and those appended are from those due in it.

    The first second, in which records only begin to be under way, is left out.
    """
    topic = broker.create_topic(name, PARTITIONS, message_timestamp_type="LogAppendTime")
    task = _task(topic, [rate_per_s] * RATE_S)
    outcome = _send(broker, task, processes_for(task))
    sent = sum((Counter(tally.sent_per_s) for tally in outcome.tallies), Counter[int]())
    appended = np.bincount(_append_seconds(broker, topic, outcome), minlength=RATE_S)
    counted = range(1, RATE_S)
    clean = judge("bench", read(broker.bootstrap, topic).runs["bench"], range(rate_per_s * RATE_S)).clean
    return {
        "rate_per_s": rate_per_s,
        "sent_error": [abs(sent[second] / rate_per_s - 1) for second in counted],
        "appended_error": [abs(float(appended[second]) / rate_per_s - 1) for second in counted],
        "clean": clean,
    }


def _errors(*measured: dict[str, Any]) -> str:
    def text(name: str) -> str:
        errors = [error for one in measured for error in one[f"{name}_error"]]
        return f"{name}: median {median(errors):.2%}, largest {max(errors):.2%}"

    return f"{text('sent')}; {text('appended')}"


def rendering_us() -> float:
    """What it takes to render one record with its header, in one process."""
    task = _task("", [100_000])
    begun_s = monotonic()
    rendered = sum(len(chunk) for chunk in chunks(task, 0.0))
    return (monotonic() - begun_s) / rendered * 1e6


def _task(topic: str, counts: list[int]) -> Task:
    return Task(topic, Schedule(np.array(counts)), create("taxi_ride"), seed=1, run="bench")


def _ours_per_s(broker: Broker, topic: str, processes: int | None = None) -> float:
    """Everything is due in the first second: from there on, it is caught up as fast as possible."""
    task = _task(broker.create_topic(topic, PARTITIONS), [RECORDS])
    outcome = _send(broker, task, processes or processes_for(task))
    return RECORDS / (outcome.finished_s - outcome.start.zero_s)


def _send(broker: Broker, task: Task, processes: int) -> Outcome:
    return send(shared(task, processes), broker.bootstrap, {})


def _kafkas_own_per_s(broker: Broker, topic: str, payload: Path) -> float:
    broker.create_topic(topic, PARTITIONS)
    options = ["--topic", topic, "--num-records", str(RECORDS), "--throughput", "-1"]
    options += ["--payload-file", str(payload), "--producer-props", f"bootstrap.servers={broker.bootstrap}"]
    command = java_command("org.apache.kafka.tools.ProducerPerformance", 512)
    printed = subprocess.check_output(
        [*command, *options, *SAME_SETTINGS], text=True, stderr=subprocess.DEVNULL
    )
    summary = re.findall(rf"{RECORDS} records sent, ([\d.]+) records/sec", printed)
    return float(summary[-1])


def _append_seconds(broker: Broker, topic: str, outcome: Outcome) -> np.ndarray:
    stamps_ms = [message.timestamp()[1] for message in broker.messages(topic)]
    return np.maximum((np.array(stamps_ms) - outcome.start.zero_ms) // 1000, 0).astype(int)


def _verdict(target: str, is_met: bool) -> str:
    return f"{target}: {'met' if is_met else 'missed'}"


def show(results: dict[str, Any]) -> None:
    speed = results["speed"]
    table = Table(title="the producer, side by side", header_style="bold")
    for column in ("what", "measured", "target"):
        table.add_column(column)
    table.add_row(
        f"{speed['records']:,} taxi rides, {speed['processes']} processes, against kafka-producer-perf-test",
        f"{speed['ratio']:.2f} × ({speed['ours_per_s']:,.0f}/s, {speed['kafkas_own_per_s']:,.0f}/s)",
        _verdict(f"≥ {SPEED_TARGET} ×", speed["ratio"] >= SPEED_TARGET),
    )
    table.add_row(
        "… in one process", f"{speed['one_process_ratio']:.2f} × ({speed['one_process_per_s']:,.0f}/s)", ""
    )
    for name, target in RATE_TARGETS.items():
        rounds = results["rate"][name]
        rates = ", ".join(f"{one['rate_per_s']:,}/s" for one in rounds)
        largest = max(error for one in rounds for error in one["sent_error"])
        verdict = _verdict(f"≤ {target:.0%} handed over", largest <= target)
        table.add_row(f"{name} ({rates}): error per second", _errors(*rounds), verdict)
        assert all(one["clean"] for one in rounds), "records were lost, doubled or out of order"
    table.add_row("rendering a taxi ride and its header", f"{results['rendering_us']:.1f} µs", "")
    Console().print(table)


if __name__ == "__main__":
    main()
