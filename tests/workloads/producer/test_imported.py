"""A public file, imported and then sent into a real broker: every event arrives, once and as it is."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.imports import events_of, import_files
from workloads.producer import header

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

DATA = Path(__file__).parents[3].parent / "shared" / "data"


@pytest.mark.parametrize(
    ("kind", "name", "kept", "pace", "rows", "field", "column"),
    [
        pytest.param(
            "taxi", "taxi/foil_trips_2013-06_sample.csv", 13_954, ["--scale", "1"], range(13_954),
            "taxiId", "taxi_id", id="taxi",
        ),
        pytest.param(
            "worldcup98", "worldcup98/binary_1000_records.gz", 1000, ["--scale", "1"], range(1000),
            "clientID", "client", id="World Cup",
        ),
        pytest.param(
            "worldcup98", "worldcup98/binary_1000_records.gz", 1000, [], range(30, 1000, 61),
            "clientID", "client", id="World Cup, one request in 61 as by default",
        ),
    ],
)  # fmt: skip
def test_an_imported_trace_arrives_event_by_event(
    spark, require, broker, new_topic, tmp_path, kind, name, kept, pace, rows, field, column
):
    require(
        "shared-data", (DATA / name).exists(), f"{name} is not here, and the project ships no trace files"
    )
    trace, topic = tmp_path / "trace", new_topic(4)
    manifest = import_files(spark, kind, [DATA / name], trace)
    sent = subprocess.run(
        [
            sys.executable, "-m", "fogscale.cli", "produce", "--bootstrap", broker.bootstrap,
            "--topic", topic, "--workload", trace, "--speed", str(manifest["span_s"] / 4), "--copies", "1",
            *pace, "--audit", "--json",
        ],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert sent.returncode == 0, sent.stderr
    report = json.loads(sent.stdout)
    assert manifest["rows"]["kept"] == kept
    assert report["acknowledged"] == report["wanted"] == len(rows)
    assert report["audit"][0]["clean"]
    assert report["audit"][0]["records"] == len(rows)
    messages = broker.messages(topic)
    values = {header.read(message.headers())[1]: json.loads(message.value()) for message in messages}
    expected = events_of(trace)[column].iloc[list(rows)].tolist()
    assert [values[number][field] for number in range(len(rows))] == expected
