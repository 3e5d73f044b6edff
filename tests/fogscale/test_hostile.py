"""The command line under adverse conditions: one line, the right exit code, and nothing left behind."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from controller.containment import contained
from controller.recording import JOURNAL
from fogscale.errors import FogscaleError, Interrupted
from fogscale.files import alone
from fogscale.plugins import why_broken
from tests.fuzz.interrupts import Interrupts

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


@pytest.mark.parametrize("share", [0.02, 0.3, 0.7])
def test_ctrl_c_at_any_moment_leaves_no_process_behind(tmp_path, share):
    """While modules are imported, while Spark starts, while it works: one line, 130, no orphan, and the same
    command goes on. (`make fuzz` draws more moments, of more commands.)"""
    assert Interrupts(tmp_path).interrupted("analyze", share, "here") == "right"


def test_ctrl_c_while_a_plug_in_is_imported_is_no_fault_of_the_plug_in():
    def press() -> None:
        raise Interrupted("interrupted")

    with pytest.raises(Interrupted):
        why_broken("a plug-in", press)
    with pytest.raises(Interrupted):
        contained("a policy", "decide", press)
