"""What Spark's Python workers say when nobody speaks to them any more."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys

import pytest


def told_by(module: str) -> str:
    """What the daemon prints about a worker whose other side goes away before it says what to do."""
    process = subprocess.Popen(
        [sys.executable, "-m", module, "pyspark.worker"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "PYTHON_WORKER_FACTORY_SECRET": "secret"},
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    (port,) = struct.unpack("!i", process.stdout.read(4))
    with socket.create_connection(("127.0.0.1", port)) as task:
        (worker,) = struct.unpack("!i", task.recv(4, socket.MSG_WAITALL))
        task.shutdown(socket.SHUT_WR)
        assert task.recv(1) == b"", f"worker {worker} has ended"
    _, told = process.communicate(timeout=60)  # which closes its input: it ends
    return told.decode()


@pytest.mark.parametrize(
    ("module", "is_loud"),
    [("pyspark.daemon", True), ("analysis.worker_daemon", False)],
    ids=["Spark's", "ours"],
)
def test_a_worker_whose_task_was_ended_is_no_traceback(module: str, is_loud: bool) -> None:
    assert ("Traceback" in told_by(module)) is is_loud
