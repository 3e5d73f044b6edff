"""How the services of a testbed are found, from what the playbooks leave behind."""

import json

import pytest

from controller.testbeds.flink import program
from controller.testbeds.flink.access import access_to
from controller.testbeds.flink.program import tls_of
from controller.testbeds.flink.settings import FlinkSettings
from fogscale.errors import FogscaleError


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The state folder of Pis, as the playbooks leave it."""
    monkeypatch.setenv("FOGSCALE_STATE", str(tmp_path))
    folder = tmp_path / "pi"
    (folder / "secrets" / "tls").mkdir(parents=True)
    minio = ("minio_flink_access", "minio_flink_secret")
    for name in ("kafka_flink", "kafka_producer", "prometheus_reader", *minio):
        (folder / "secrets" / name).write_text(f"{name}-password\n")
    for name in ("ca.crt", "controller.crt", "controller.key"):
        (folder / "secrets" / "tls" / name).write_text(f"{name} in PEM")
    write(folder, flink_of(folder))
    return folder


def flink_of(folder):
    tls = folder / "secrets" / "tls"
    files = {"ca": "ca.crt", "certificate": "controller.crt", "key": "controller.key"}
    return {
        "url": "https://192.0.2.1:8081",
        **{name: str(tls / file) for name, file in files.items()},
    }


def write(folder, flink, ca=""):
    manifest = {
        "testbed": "pi",
        "emulated": False,
        "backend": "netem",
        "nodes": [
            {"name": "services1", "group": "services", "address": "192.0.2.2", "user": "pi"},
            {"name": "fog1", "group": "fog", "address": "192.0.2.3", "user": "pi"},
        ],
        "rtt_ms": {"nodes": ["services1", "fog1"], "services1": [0, 5], "fog1": [5, 0]},
        "rtt_max_ms": 300,
        "services": {
            "flink": flink,
            "kafka": {"node": "services1", "port": 9092, "ca": ca},
            "minio": {"node": "services1", "port": 9000, "ca": ca},
            "prometheus": {"node": "services1", "port": 9090, "ca": ca},
            "hotspots": {"node": "services1", "port": 9870, "only_for": "fog"},
        },
    }
    (folder / "testbed.json").write_text(json.dumps(manifest))


def test_flink_is_reached_with_the_certificate_of_the_controller(folder):
    door = access_to("pi").flink

    assert door.url == "https://192.0.2.1:8081"
    assert (door.ca, door.certificate, door.key) == (
        "ca.crt in PEM", "controller.crt in PEM", "controller.key in PEM",
    )  # fmt: skip


def test_prometheus_is_reached_by_its_address_with_the_reader_s_password(folder):
    door = access_to("pi").prometheus

    assert (door.url, door.login) == (
        "http://192.0.2.2:9090",
        ("fogscale", "prometheus_reader-password"),
    )


def test_a_testbed_of_an_older_version_is_to_be_built_again(folder):
    write(folder, {"node": "services1", "port": 8081})

    with pytest.raises(FogscaleError, match="Flink's url: build the testbed again"):
        access_to("pi")


def test_a_secret_that_is_gone_is_named(folder):
    (folder / "secrets" / "tls" / "controller.key").unlink()

    with pytest.raises(FogscaleError, match=r"controller\.key"):
        access_to("pi")


def test_where_services_speak_tls_their_authority_is_trusted_and_jobs_are_told_of_it(folder):
    ca = str(folder / "secrets" / "tls" / "ca.crt")
    write(folder, flink_of(folder), ca=ca)
    access = access_to("pi")

    assert (access.prometheus.url, access.prometheus.ca) == ("https://192.0.2.2:9090", "ca.crt in PEM")
    assert access.kafka.access("flink")["ssl.ca.location"] == ca
    assert tls_of(access.kafka) == {
        "kafka.security.protocol": "SASL_SSL",
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.certificates": "ca.crt in PEM",
    }


def test_where_they_speak_none_jobs_are_told_nothing(folder):
    assert tls_of(access_to("pi").kafka) == {}


def test_a_job_that_asks_a_service_is_told_where_the_testbed_runs_it(folder, monkeypatch):
    monkeypatch.setattr(program, "_jar", lambda: folder / "jobs.jar")
    arguments = program.program_for(access_to("pi"), FlinkSettings(name="pi", job="lookup"), "r").arguments
    words = arguments({"map": 2})
    assert words[words.index("--service") + 1] == "192.0.2.2:9870"
    assert "--service" not in program.program_for(access_to("pi"), FlinkSettings(), "r").arguments({"map": 2})


@pytest.mark.parametrize(("layout", "always"), [("split", ("services1",)), ("fog", ())])
def test_only_a_split_job_runs_on_the_services_node(folder, monkeypatch, layout, always):
    monkeypatch.setattr(program, "_jar", lambda: folder / "jobs.jar")
    made = program.program_for(access_to("pi"), FlinkSettings(layout=layout), "r")
    assert tuple(made.always) == always
