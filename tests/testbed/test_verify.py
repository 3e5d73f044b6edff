"""`verify` notices what is broken, and says it in one line."""

from __future__ import annotations

import json
import re

import pytest

from controller.network import RttMatrix
from fog.network.latency import set_round_trips
from tests.support.fog import Fog

pytestmark = pytest.mark.testbed


def test_other_latencies_than_wanted_are_named(fog: Fog) -> None:
    wanted = fog.manifest.rtt_ms
    set_round_trips(fog.state, RttMatrix(wanted.names, tuple((40.0,) * len(row) for row in wanted.rows_ms)))
    try:
        done = fog.fogscale("verify", check=False)
    finally:
        set_round_trips(fog.state, wanted)
    assert done.returncode == 2
    assert json.loads(done.stdout)["exit_code"] == 2
    assert "round trips differ from the matrix: " in done.stderr
    assert re.search(
        r"\b(fog1-server1|server1-fog1|services1-fog1): \d+\.\d+ ms instead of 5 ms", done.stderr
    )
    assert len(done.stderr.splitlines()) == 1


def test_a_service_that_was_stopped_is_named(fog: Fog) -> None:
    fog.ask("services1", "systemctl stop minio")
    try:
        done = fog.fogscale("verify", check=False)
    finally:
        fog.ask("services1", "systemctl start minio")
    assert done.returncode == 2
    assert re.search(r"MinIO does not answer at http://10\.77\.0\.2:9000/\S* \(closed\)", done.stderr)
    assert len(done.stderr.splitlines()) == 1
