"""What commands say where Spark fails: files and disks in a line, faults of ours in full."""

import pytest

from fogscale.console import reason_outside

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
