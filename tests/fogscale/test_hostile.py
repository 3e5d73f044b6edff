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
from tests.support.processes import Watched, marked

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


def test_where_figures_find_no_cache_and_no_window_is_nobodys_business(tmp_path):
    around = {"MPLBACKEND": "odd", "MPLCONFIGDIR": "/proc/none", "HOME": "/proc/none", "COLUMNS": "x"}
    drawn = fogscale("workloads", "show", "ramp", "--plot", "p.png", cwd=tmp_path, env=os.environ | around)
    assert drawn.returncode == 0
    assert drawn.stderr == b""
    assert (tmp_path / "p.png").stat().st_size > 1000


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


def test_an_interruption_at_any_moment_leaves_no_process_behind(tmp_path):
    """While modules are imported, while Spark starts, while it works: one line, 130, no orphan, and the same
    command goes on after all of them. (`make fuzz` draws more moments, of more commands.)"""
    moments = [
        (0.02, [signal.SIGHUP]), (0.3, [signal.SIGINT]), (0.3, [signal.SIGTERM]), (0.7, [signal.SIGINT])
    ]  # fmt: skip
    assert Interrupts(tmp_path).interrupted("analyze", "here", *moments) == "right"


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


def test_what_the_installed_command_starts_leaves_signals_to_it(tmp_path):
    """Such a process imports what its parent was started from; the senders of a producer died by that."""
    script = tmp_path / "fogscale"
    script.write_text(
        "import multiprocessing, signal\n"
        "from fogscale.cli import main\n"
        "def told():\n"
        "    print([signal.getsignal(each) == signal.SIG_IGN for each in (signal.SIGINT, signal.SIGTERM)])\n"
        "if __name__ == '__main__':\n"
        "    for each in (signal.SIGINT, signal.SIGTERM):\n"
        "        signal.signal(each, signal.SIG_IGN)\n"
        "    child = multiprocessing.get_context('spawn').Process(target=told)\n"
        "    child.start()\n"
        "    child.join()\n"
    )
    ran = subprocess.run([sys.executable, str(script)], capture_output=True, timeout=300, check=True)
    assert ran.stdout == b"[True, True]\n"


def with_plug_in(folder, code):
    """The environment in which a package with a policy of this code is installed."""
    (folder / "odd_one.py").write_text(code)
    about = folder / "odd_one-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: odd_one\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[fogscale.policies]\nodd_one = odd_one\n")
    return os.environ | {"PYTHONPATH": str(folder)}


def test_a_thread_that_a_plug_in_starts_and_never_ends_holds_nobody_up(tmp_path):
    code = "import threading\nthreading.Thread(target=threading.Event().wait).start()\n"
    around = with_plug_in(tmp_path, code)
    assert fogscale("policies", env=around).returncode == 0
    assert fogscale("policies", "gescale", env=around).returncode == 2


def test_with_json_what_a_plug_in_prints_is_no_part_of_the_document(tmp_path):
    listed = fogscale("policies", "--json", env=with_plug_in(tmp_path, "print('hello from the plug-in')\n"))
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


def test_a_calibration_that_can_be_written_nowhere_is_one_line():
    failed = fogscale("calibrate", "gesscale", "--write", "/proc/none/x.yml")
    assert failed.returncode == 2
    assert failed.stderr.startswith(b"fogscale: cannot write /proc/none/x.yml")
    assert failed.stderr.count(b"\n") == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a small disk")
def test_on_a_disk_that_is_full_a_run_goes_on_once_there_is_room(tmp_path):
    """Byte by byte to what it would have been."""
    disk, run = tmp_path / "disk", ("run", "--policy", "static", "--seed", "1", "--workload", "taxi")
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200k", "none", str(disk)], check=True)
    try:
        failed = fogscale(*run, "--out", str(disk))
        assert failed.returncode == 2
        assert failed.stderr.count(b"\n") == 1
        assert b"No space left on device; make room and run the same command again" in failed.stderr
        subprocess.run(["mount", "-o", "remount,size=20m", str(disk)], check=True)
        assert fogscale(*run, "--out", str(disk)).returncode == 0
        assert fogscale(*run, "--out", str(tmp_path / "whole")).returncode == 0
        (made,), (wanted,) = disk.rglob(JOURNAL), (tmp_path / "whole").rglob(JOURNAL)
        assert made.read_bytes() == wanted.read_bytes()
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_of_three_runs_at_once_into_one_folder_one_records_and_two_say_so(tmp_path):
    run = [*FOGSCALE, "run", "--policy", "static", "--seed", "1", "--workload", "taxi", "--out", "res"]
    started = [
        subprocess.Popen(run, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(3)
    ]
    told = [each.communicate(timeout=300)[1] for each in started]
    for each, words in zip(started, told, strict=True):
        assert each.returncode == 0 or b"is in use by another fogscale: wait for it" in words
    assert 0 in [each.returncode for each in started]
    (path,) = tmp_path.rglob(JOURNAL)
    recorded = journal.read(path)
    assert recorded is not None
    assert recorded.ended


def test_what_works_for_a_command_ends_with_it_also_by_kill_9(tmp_path):
    watched = Watched([*FOGSCALE, "protocol", "explore", "large", "--processes", "2"], tmp_path)
    while len(list(marked(watched.mark))) < 3:
        assert watched.process.poll() is None, "it should take minutes"
        time.sleep(0.05)
    watched.process.kill()
    assert watched.ended(60).left == ()
