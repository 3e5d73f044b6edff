"""The command line under adverse conditions: one line, the right exit code, and nothing left behind."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from controller.recording import JOURNAL

FOGSCALE = [sys.executable, "-m", "fogscale"]


def fogscale(*arguments, **named):
    return subprocess.run([*FOGSCALE, *arguments], capture_output=True, timeout=300, **named)


def test_with_json_an_error_is_a_document_too():
    failed = fogscale("run", "--policy", "gescale", "--json")
    assert failed.returncode == 2
    document = json.loads(failed.stdout)
    assert document["exit_code"] == 2
    assert document["error"].startswith("unknown policy 'gescale'")


def test_an_output_that_is_full_is_one_line():
    with Path("/dev/full").open("w") as full:
        command = [*FOGSCALE, "testbeds"]
        failed = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, timeout=300)
    assert failed.returncode == 2
    assert failed.stderr.count(b"\n") == 1
    assert b"No space left on device" in failed.stderr


def test_a_terminal_that_knows_ascii_only_gets_numbers_for_other_signs(tmp_path):
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    failed = fogscale("run", str(tmp_path / "naïve.yml"), env=environment)
    assert failed.returncode == 2
    assert rb"na\xefve.yml" in failed.stderr


def test_brackets_in_a_path_are_printed_as_they_are(tmp_path):
    command = ("run", "--policy", "static", "--workload", "ramp", "--seed", "1", "--out", "[red]res[/]")
    ran = fogscale(*command, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert b"[red]res[/]" in ran.stdout
    assert list(tmp_path.rglob(JOURNAL))


def test_a_name_of_5000_characters_is_one_line(tmp_path):
    failed = fogscale("run", "n" * 5000)
    assert failed.returncode == 2
    assert failed.stderr.count(b"\n") == 1


@pytest.mark.parametrize("after_s", [0.05, 1.5, 4.0])
def test_ctrl_c_at_any_moment_leaves_no_process_behind(tmp_path, after_s):
    """While modules are imported, while Spark starts, while it works: one line, 130, and no orphan."""
    made = fogscale("run", "--policy", "static", "--workload", "ramp", "--seed", "1", "--out", str(tmp_path))
    assert made.returncode == 0, made.stderr
    mark = f"fogscale-test-{os.getpid()}-{after_s}"
    process = subprocess.Popen(
        [*FOGSCALE, "analyze", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"FOGSCALE_TEST_MARK": mark},
        start_new_session=True,
    )
    _wait_until_it_imports(process.pid)
    time.sleep(after_s)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    _, complaint = process.communicate(timeout=120)
    if process.returncode == 0:
        pytest.skip("it was done before")
    assert process.returncode == 130
    assert complaint.startswith(b"fogscale: interrupted")
    assert complaint.count(b"\n") == 1
    deadline = time.monotonic() + 10
    while (left := _marked(mark)) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not left


def _wait_until_it_imports(pid: int) -> None:
    """Python itself takes a moment to start, and no program can say what happens then."""
    maps, deadline = Path(f"/proc/{pid}/maps"), time.monotonic() + 60
    while "numpy" not in maps.read_text() and time.monotonic() < deadline:
        time.sleep(0.01)


def _marked(mark: str) -> list[str]:
    """The processes that have the mark in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes():
                found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()[:100])
        except OSError:
            continue
    return found
