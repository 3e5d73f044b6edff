"""What a run of Ansible tells: a line per role, the words of the failure that ended it, an interruption."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest
import yaml

from fog.interruption import processes
from fog.playbooks import Progress, Step, run
from fogscale.errors import FogscaleError, Interrupted


def event(kind: str, **data: object) -> dict[str, object]:
    return {"event": kind, "event_data": data}


def test_progress_tells_one_line_per_role_with_its_changes() -> None:
    told: list[Step] = []
    progress = Progress(told.append)
    for now_s, each in enumerate(
        [
            event("playbook_on_task_start", play="Check"),
            event("playbook_on_task_start", role="node_baseline", play="x"),
            event("runner_on_ok", res={"changed": True}),
            event("playbook_on_task_start", role="node_baseline", play="x"),
            event("runner_on_ok", res={"changed": False}),
            event("playbook_on_stats", changed={"a": 1, "b": 0}),
        ]
    ):
        progress.follow(each, float(now_s))
    assert [(step.name, step.changed, step.seconds) for step in told] == [
        ("Check", 0, 1.0),
        ("node_baseline", 1, 4.0),
    ]
    assert progress.changed == {"a": 1}


def fail(words: str) -> dict[str, object]:
    return {"ansible.builtin.fail": {"msg": words}}


def command(script: str) -> dict[str, object]:
    return {"ansible.builtin.command": {"argv": ["sh", "-c", script]}}


HIDDEN = {**command("echo hush; exit 1"), "no_log": True, "name": "Make a key"}


def play(*tasks: object, hosts: str = "server1:services1") -> dict[str, object]:
    """Here, not on the nodes."""
    return {"hosts": hosts, "connection": "local", "gather_facts": False, "tasks": list(tasks)}


@pytest.mark.parametrize(
    ("tasks", "words"),
    [
        pytest.param(
            [{"block": [fail("raw")], "rescue": [fail("what to change")]}],
            r"p.yml stopped: \w+1: what to change$",
            id="rescued in vain",
        ),
        pytest.param(
            [
                {**fail("ignored"), "ignore_errors": True},
                {"block": [fail("made up for")], "rescue": [{"ansible.builtin.meta": "noop"}]},
                {**fail("disk full"), "when": "inventory_hostname == 'services1'"},
            ],
            r"p.yml stopped: services1: disk full$",
            id="what was ignored or rescued, or went well elsewhere, does not count",
        ),
        pytest.param(
            [{**command("echo >&2 {{ item }} is wrong; exit {{ item }}"), "loop": [0, 3, 4]}],
            r"\w+1: 3 is wrong$",
            id="a loop's item, and a command by its own words",
        ),
        pytest.param(
            [{"no_such_module": {}}], "p.yml stopped: .*couldn't resolve module", id="no play at all"
        ),
        pytest.param([HIDDEN], r"\w+1: 'Make a key' failed, its words are hidden", id="hidden"),
        pytest.param(
            [{**HIDDEN, "loop": [1]}], r"\w+1: 'Make a key' failed, its words are hidden", id="hidden loop"
        ),
    ],
)
def test_the_failure_that_ended_a_run_speaks_for_itself(
    tmp_path: Path, tasks: list[object], words: str
) -> None:
    playbook = tmp_path / "p.yml"
    playbook.write_text(yaml.safe_dump([play(*tasks)]))
    with pytest.raises(FogscaleError, match=words) as caught:
        run(str(playbook), "local", {})
    assert "hush" not in str(caught.value)


def test_an_interruption_ends_what_the_workers_started_but_not_what_is_meant_to_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a build goes on in a worker's session, and the nodes' supervisor lives in one of its own."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    started = tmp_path / "started"
    script = f"setsid sleep 300 & echo $! $$ > {started}.new; mv {started}.new {started}; exec sleep 300"
    playbook = tmp_path / "p.yml"
    playbook.write_text(yaml.safe_dump([play(command(script), hosts="server1")]))

    def interrupt() -> None:
        while not started.exists():
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)

    handler = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=interrupt, daemon=True)
    thread.start()
    with subprocess.Popen(["sleep", "300"], start_new_session=True) as older:  # as Spark's Java is
        with pytest.raises(Interrupted, match=r"^interrupted: run the same command again to go on$"):
            run(str(playbook), "local", {})
        assert older.poll() is None
        older.kill()
    supervisor, build = map(int, started.read_text().split())
    living = {each.number for each in processes()}
    assert supervisor in living
    os.kill(supervisor, signal.SIGKILL)
    assert build not in living
    assert [path for path in (tmp_path / "home").rglob("*") if path.is_file()] == []
    assert signal.getsignal(signal.SIGINT) is handler
