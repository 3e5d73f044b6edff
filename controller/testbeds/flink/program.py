"""The job of a run as a program for Flink: which jar, and what it is told."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from controller.testbeds.flink.access import Access
from controller.testbeds.flink.job import Counts, Program
from controller.testbeds.flink.layout import instances_of, vertices_of
from controller.testbeds.flink.settings import FlinkSettings
from fog.artifacts.store import store
from fog.folders import cache_folder, checkout
from fog.services.broker import FLINK, OURS, Broker
from workloads.jobs.catalog import catalog, find, program_arguments

INPUT, OUTPUT = "input", "output"
# Where the role flink puts the password into the JobManager's pod: Flink's REST API tells a job's arguments.
PASSWORD_FILE = "/opt/flink/conf/kafka-password"

NODES_CLASS = "fogscale.jobs.Nodes"


def group_of(run: str) -> str:
    """The consumer group, and the beginning of its transactions' ids: of this run alone."""
    return f"{OURS}{run}"


def program_for(access: Access, settings: FlinkSettings, run: str) -> Program:
    job = find(settings.job)
    fixed: Mapping[str, str | int | bool] = {
        "brokers": access.kafka.bootstrap,
        "input": INPUT,
        "output": OUTPUT,
        "group": group_of(run),
        "transactions": group_of(run),
        "from": "committed",
        "kafka-user": FLINK,
        "kafka-password-file": PASSWORD_FILE,
        **tls_of(access.kafka),
        **job.settings,
        "layout": settings.layout,
        "chained": settings.chained,
        **({} if job.service is None else {"service": access.service(job.service)}),
        **settings.job_settings,
    }

    def arguments(counts: Counts) -> list[str]:
        instances = ",".join(f"{name}={count}" for name, count in counts.items())
        return program_arguments({**fixed, "parallelism": instances})

    return Program(
        _jar(),
        job.entry_class,
        arguments,
        vertices_of(job, settings),
        lambda counts: instances_of(job, settings.layout, counts),
        NODES_CLASS,
        access.services_nodes if settings.layout == "split" else (),
    )


def tls_of(kafka: Broker) -> dict[str, str]:
    """What a job is told of the broker's TLS: whom to trust, as text, since pods see no file of ours."""
    if not kafka.ca:
        return {}
    return {
        "kafka.security.protocol": "SASL_SSL",
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.certificates": Path(kafka.ca).read_text(),
    }


def _jar() -> Path:
    """Built once, kept in the cache."""
    folder, _ = store(checkout(), cache_folder()).ensure(catalog().artifact)
    return folder / catalog().jar
