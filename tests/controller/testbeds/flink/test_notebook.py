"""What a controller that comes after must know survives the one before."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from controller.testbeds.flink.notebook import FILE, Notebook, Notes
from controller.testbeds.flink.producing import Load, sent
from fogscale.errors import FogscaleError


def test_every_change_is_there_for_the_next_controller(tmp_path):
    first = Notebook(tmp_path)
    assert first.notes is None
    first.begin(Notes("r", "digest", {0: 5}, {0: 7}))
    first.change(job_id="a", gaps=((10.0, 2.5),))
    assert Notebook(tmp_path).notes == Notes("r", "digest", {0: 5}, {0: 7}, job_id="a", gaps=((10.0, 2.5),))


@pytest.mark.parametrize("text", ["{", "[]", '{"run": "r"}', '{"input": []}'])
def test_a_damaged_one_is_said_in_a_line(tmp_path, text):
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(FogscaleError, match="is damaged"):
        Notebook(tmp_path)


def test_a_load_is_what_fogscale_produce_is_told():
    load = Load("square", {"low_per_s": 5, "name": "a b"}, 2.0, 1, 0.5, 3, "r", "input", span_s=60.0)
    words = load.arguments(first_record=7)
    assert {"--workload=square", "--speed=2.0", "--duration=60.0", "--first-record=7", "--seed=3"} <= set(
        words
    )
    assert {"--set=low_per_s=5", '--set=name="a b"'} <= set(words)
    assert not any(word.startswith(("--first-record", "--records")) for word in load.arguments(0))


def test_what_was_sent_are_all_numbers_of_the_run():
    report = {"topics": [{"topic": "input", "run_first_number": 0, "first_number": 40, "next_number": 90}]}
    assert sent(report, "input") == range(90)
    assert sent({}, "input") is None


def test_the_watch_and_a_rescaling_may_note_at_the_same_time(tmp_path):
    book = Notebook(tmp_path)
    book.begin(Notes("r", "s", {0: 0}, {0: 0}))

    def note(name):
        for number in range(100):
            book.change(**{name: number})

    with ThreadPoolExecutor(2) as threads:
        for done in [threads.submit(note, name) for name in ("seen_s", "savepoint")]:
            done.result()
    assert (book.notes.seen_s, book.notes.savepoint) == (99, 99)
    assert json.loads((tmp_path / FILE).read_text())["seen_s"] == 99
