"""The commands, as a user types them."""

from __future__ import annotations

import json

import pytest

from controller.protocol import command
from controller.protocol.explorer import explore
from fogscale import cli
from fogscale.errors import FogscaleError


def run(*arguments):
    cli.app([*arguments], standalone_mode=False)


def test_explore_prints_a_row_per_scenario(capsys):
    run("protocol", "explore", "duplicate", "delete", "--json")
    rows = json.loads(capsys.readouterr().out)
    assert [(row["scenario"], row["complete"], row["problems"]) for row in rows] == [
        ("duplicate", True, []),
        ("delete", True, []),
    ]
    assert all(row["states"] > 10 and row["ends"] >= 1 for row in rows)


def test_explore_shows_what_a_printed_reading_breaks(capsys, tmp_path):
    run("protocol", "explore", "--printed", "by_view", "--svg", str(tmp_path / "chart.svg"))
    text = capsys.readouterr().out
    assert "duplicates: O1,1.1" in text
    assert "=> " in text
    assert (tmp_path / "chart.svg").read_text().startswith("<svg")


def test_of_several_each_has_a_chart_of_its_own(capsys, tmp_path):
    run("protocol", "explore", "--printed", "all", "--svg", str(tmp_path / "chart.svg"))
    charts = sorted(path.name for path in tmp_path.iterdir())
    assert len(charts) == 4
    assert "chart-delete-x-delete-as-printed-all_at_once.svg" in charts


def test_what_was_explored_is_kept_and_not_explored_again(capsys, tmp_path, monkeypatch):
    keep = ("--keep", str(tmp_path / "kept.json"), "--json")
    run("protocol", "explore", "delete", *keep)
    (first,) = json.loads(capsys.readouterr().out)
    explored = []
    monkeypatch.setattr(command, "explore", lambda s, **_: explored.append(s.name) or explore(s))
    run("protocol", "explore", "duplicate", "delete", *keep)
    rows = json.loads(capsys.readouterr().out)
    assert [row["scenario"] for row in rows] == ["duplicate", "delete"]
    assert (explored, rows[1]) == (["duplicate"], first)
    run("protocol", "explore", "delete", "--no-symmetry", *keep)
    assert explored == ["duplicate", "delete"]  # another setting: nothing kept is good for it


@pytest.mark.parametrize("content", ["not JSON", "[]", '{"rows": []}'])
def test_a_file_that_keeps_something_else_is_left_alone(tmp_path, content):
    file = tmp_path / "mine"
    file.write_text(content)
    with pytest.raises(FogscaleError, match="no file that --keep wrote"):
        run("protocol", "explore", "delete", "--keep", str(file))
    assert file.read_text() == content


def test_play_counts_schedules(capsys):
    run("protocol", "play", "2-2", "--schedules", "5", "--json")
    assert json.loads(capsys.readouterr().out)["schedules"] == 5


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("explore", "duplicat"), "did you mean duplicate"),
        (("explore", "--fault", "lost_akc"), "did you mean lost_ack"),
        (("explore", "--printed", "x"), "unknown reading 'x'"),
        (("play", "3-0"), "write the instances per operator"),
        (("play", "three"), "write the instances per operator"),
    ],
)
def test_a_wrong_argument_is_one_line(arguments, words):
    with pytest.raises(FogscaleError, match=words):
        run("protocol", *arguments)
