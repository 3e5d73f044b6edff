"""The command line under adverse conditions: one line, the right exit code, and nothing left behind."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from controller import journal
from controller.containment import contained
from controller.recording import JOURNAL
from fogscale.errors import FogscaleError, Interrupted
from fogscale.files import alone
from fogscale.plugins import why_broken
from tests.fuzz.interrupts import Interrupts
from tests.support.processes import Watched

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


def test_two_analyses_of_one_folder_do_not_meet(tmp_path):
    with alone(tmp_path, "analysis"):
        failed = fogscale("analyze", str(tmp_path))
    assert failed.returncode == 2
    assert (
        failed.stderr.decode()
        == f"fogscale: {tmp_path} is in use by another fogscale (analysis): wait for it\n"
    )
    again = fogscale("analyze", str(tmp_path))
    assert b"no journal.jsonl under" in again.stderr


def test_a_folder_of_another_user_is_told_so(tmp_path):
    nobody = 65534
    if os.geteuid() != 0:
        pytest.skip("needs root to become somebody else")
    tmp_path.chmod(0o755)
    with pytest.raises(
        FogscaleError, match=r"cannot write into .*: Permission denied; copy it to where you may"
    ):
        _as_user(nobody, tmp_path)


def _as_user(user: int, folder: Path) -> None:
    before = os.geteuid()
    os.seteuid(user)
    try:
        with alone(folder, "analysis"):
            pass
    finally:
        os.seteuid(before)


@pytest.mark.parametrize(
    ("share", "by"),
    [(0.02, signal.SIGHUP), (0.3, signal.SIGINT), (0.3, signal.SIGTERM), (0.7, signal.SIGINT)],
)
def test_an_interruption_at_any_moment_leaves_no_process_behind(tmp_path, share, by):
    """While modules are imported, while Spark starts, while it works: one line, 130, no orphan, and the same
    command goes on. (`make fuzz` draws more moments, of more commands.)"""
    assert Interrupts(tmp_path).interrupted("analyze", share, "here", by) == "right"


def test_what_nohup_starts_outlives_its_terminal(tmp_path):
    watched = Watched(["nohup", *FOGSCALE, "policies"], tmp_path)
    while "nohup" in Path(f"/proc/{watched.process.pid}/cmdline").read_text():  # it becomes fogscale
        time.sleep(0.01)
    watched.interrupt(signal.SIGHUP)
    ended = watched.ended(60)
    assert ended.code == 0, ended
    assert b"gesscale" in ended.stdout


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_stream_that_the_caller_closed_holds_nothing_of_ours(tmp_path, closed):
    """Else the journal would be opened as standard output, and what is printed would go into it."""
    run = ("run", "--policy", "static", "--workload", "ramp", "--seed", "1", "--out", "res")
    ran = subprocess.run(
        ["sh", "-c", f'exec "$@" {closed}', "sh", *FOGSCALE, *run], cwd=tmp_path, timeout=300, check=False
    )
    assert ran.returncode == 0
    (path,) = tmp_path.rglob(JOURNAL)
    recorded = journal.read(path)
    assert recorded is not None
    assert recorded.ended


def test_with_json_what_a_plug_in_prints_is_no_part_of_the_document(tmp_path):
    (tmp_path / "chatty.py").write_text("print('hello from the plug-in')\n")
    about = tmp_path / "chatty-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: chatty\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[fogscale.policies]\nchatty = chatty\n")
    listed = fogscale("policies", "--json", env=os.environ | {"PYTHONPATH": str(tmp_path)})
    assert listed.returncode == 0, listed.stderr
    assert "gesscale" in {row["name"] for row in json.loads(listed.stdout)}
    assert b"hello from the plug-in" in listed.stderr


def test_ctrl_c_while_a_plug_in_is_imported_is_no_fault_of_the_plug_in():
    def press() -> None:
        raise Interrupted("interrupted")

    with pytest.raises(Interrupted):
        why_broken("a plug-in", press)
    with pytest.raises(Interrupted):
        contained("a policy", "decide", press)
