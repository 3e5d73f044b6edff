"""YAML is read strictly: what it would ignore, or unfold without end, is an error in one line."""

import os
import threading

import pytest

from fogscale.documents import read_yaml, yaml_of
from fogscale.errors import FogscaleError


def bomb(levels: int) -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, levels)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("a: 1\nb: 2\na: 3\n", "line 3: the key 'a' stands twice", id="a key twice"),
        pytest.param("x:\n  - {a: 1, a: 1}\n", "line 2: the key 'a' stands twice", id="a key twice below"),
        pytest.param("a: " + "[" * 5000 + "]" * 5000, "levels of nesting", id="nested brackets"),
        pytest.param("a: " + "9" * 5000, "a number of 5000 digits", id="a long number"),
        pytest.param("a: &a [*a]", "a value contains itself", id="a list in itself"),
        pytest.param("a: &a {b: *a}", "a value contains itself", id="a mapping in itself"),
        pytest.param(bomb(9), "aliases unfold to more than", id="a bomb"),
        pytest.param("a: 2024-99-99", "month must be in 1..12", id="no date"),
        pytest.param("a: [", "is not YAML", id="torn"),
        pytest.param("a: \x07", "is not YAML", id="a control character"),
        pytest.param("!!python/object:os.system x", "is not YAML", id="code"),
    ],
)
def test_what_is_not_meant_so_is_refused_in_one_line(text, problem):
    with pytest.raises(FogscaleError) as error:
        yaml_of(text, "my.yml")
    assert problem in str(error.value)
    assert str(error.value).startswith("my.yml")
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 500


def test_aliases_and_merges_in_moderation_are_fine():
    text = "base: &base {a: 1, b: 2}\nother: {<<: *base, b: 3}\nagain: *base\n"
    assert yaml_of(text, "my.yml") == {
        "base": {"a": 1, "b": 2},
        "other": {"a": 1, "b": 3},
        "again": {"a": 1, "b": 2},
    }
    assert yaml_of("", "my.yml") is None


def test_a_pipe_into_which_nobody_writes_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr("fogscale.files._PATIENCE_S", 0.1)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FogscaleError, match="a pipe into which nobody writes"):
        read_yaml(tmp_path / "pipe")


def test_a_pipe_with_a_writer_is_read_to_its_end(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_text("a: 1\n"))
    writer.start()
    assert read_yaml(tmp_path / "pipe") == {"a": 1}
    writer.join()


def test_a_file_without_end_is_read_up_to_a_size():
    from pathlib import Path

    with pytest.raises(FogscaleError, match="larger than 16 MiB"):
        read_yaml(Path("/dev/zero"))
