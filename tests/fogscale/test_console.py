"""What commands say where Spark fails, and how they say it: one line, and nothing that a terminal obeys."""

import signal

import pytest
from rich.text import Text

from fogscale import console
from fogscale.console import out, reason_outside
from fogscale.errors import Interrupted, unknown, warn

IN_A_TASK = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "slices.py", line 153, in _cut
{}
"""


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        pytest.param(OSError(28, "No space left on device"), "[Errno 28] No space left on device", id="here"),
        pytest.param(
            RuntimeError(IN_A_TASK.format("OSError: [Errno 28] No space left on device")),
            "[Errno 28] No space left on device",
            id="in a task",
        ),
        pytest.param(
            RuntimeError("Job aborted\nCaused by: java.io.IOException: No space left on device\n\tat x"),
            "No space left on device",
            id="in the JVM",
        ),
        pytest.param(
            RuntimeError(IN_A_TASK.format("KeyError: 'slice'")), None, id="a fault of ours in a task"
        ),
        pytest.param(ValueError("slice"), None, id="a fault of ours here"),
    ],
)
def test_only_what_files_and_disks_have_against_it_is_a_reason_from_outside(error, reason):
    assert reason_outside(error) == reason


def test_interruptions_that_come_at_once_are_one_and_a_later_one_counts_again(monkeypatch):
    """Else the second would cut off what ends in order because of the first: a real run's savepoint."""
    now_s = [100.0]
    monkeypatch.setattr(console, "_came_s", [])
    monkeypatch.setattr(console.time, "monotonic", lambda: now_s[0])
    with pytest.raises(Interrupted):
        console.interrupted(signal.SIGINT, None)
    for _ in range(3):
        now_s[0] += 0.3
        console.interrupted(signal.SIGHUP, None)
    now_s[0] += 0.3
    with pytest.raises(Interrupted):
        console.interrupted(signal.SIGINT, None)


def test_what_a_terminal_would_obey_is_shown_as_its_code(capsys):
    out.print("reason: \x1b[2J\x1b]0;title\x07 up", highlight=False)
    out.print(Text("policy \x1b[31m"))
    assert capsys.readouterr().out == "reason: \\x1b[2J\\x1b]0;title\\x07 up\npolicy \\x1b[31m\n"


def test_an_error_is_one_line_of_characters_that_can_be_seen(capsys):
    warn("a file called \x1b[31m\n\x07 and \u202e")
    assert capsys.readouterr().err == "fogscale: a file called \\x1b[31m \\x07 and \\u202e\n"
    assert unknown("policy", "a\nb\x1b", ["static"]) == "unknown policy 'a\\nb\\x1b': (known: static)"
