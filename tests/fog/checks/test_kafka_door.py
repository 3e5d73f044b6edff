"""A stranger at a real Kafka's doors, by the program of nodes and by that of pods: both must see the same."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from analysis.spark import cache_folder
from fog.artifacts.store import store
from fog.checks import kafka_door
from fog.folders import checkout
from fogscale.errors import FogscaleError
from tests.support.kafka import FogBroker, KafkaMissingError, SecuredBroker, _free_ports

pytestmark = pytest.mark.kafka
Knock = Callable[[str], str]


class GuardedBroker(FogBroker, SecuredBroker):
    """With a listener for everybody, one that speaks TLS, and one that asks for a name and a password."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedBroker]:
    try:
        with GuardedBroker(tmp_path_factory.mktemp("kafka"), {"flink": "right"}) as started:
            yield started
    except KafkaMissingError as error:
        pytest.skip(str(error))


def from_a_node(url: str) -> str:
    script = Path(kafka_door.__file__).read_bytes()
    done = subprocess.run([sys.executable, "-", url], input=script, capture_output=True, check=True)
    return done.stdout.decode().strip()


@pytest.fixture(params=["node", "pod"])
def knock(request: pytest.FixtureRequest) -> Knock:
    if request.param == "node":
        return from_a_node
    try:
        program = store(checkout(), cache_folder()).ensure("pause")[0] / "pause"
    except FogscaleError as error:
        pytest.skip(str(error))

    def from_a_pod(url: str) -> str:
        return subprocess.run(
            [program, "try", url], capture_output=True, text=True, check=True
        ).stdout.strip()

    return from_a_pod


def test_an_open_door_is_seen_as_one(broker: GuardedBroker, knock: Knock) -> None:
    assert knock(f"kafka://{broker.bootstrap}") == "accepted"
    assert knock(f"kafkas://{broker.tls_bootstrap}") == "accepted"


def test_a_stranger_is_cut_and_a_wrong_password_refused(broker: GuardedBroker, knock: Knock) -> None:
    assert knock(f"kafka://127.0.0.1:{broker.users_port}") == "cut"
    assert knock(f"kafka://flink:wrong@127.0.0.1:{broker.users_port}") == "refused"
    assert knock(f"kafka://nobody:wrong@127.0.0.1:{broker.users_port}") == "refused"


def test_who_speaks_no_tls_where_it_is_asked_for_is_cut(broker: GuardedBroker, knock: Knock) -> None:
    assert knock(f"kafka://flink:wrong@{broker.tls_bootstrap}") == "cut"


def test_where_nobody_listens_it_is_closed(knock: Knock) -> None:
    (port,) = _free_ports(1)
    assert knock(f"kafka://127.0.0.1:{port}") == "closed"
