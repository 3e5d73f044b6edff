"""A file is written whole or not at all."""

import ast
import errno
import os
from pathlib import Path

import pytest

from fogscale import files
from fogscale.errors import FogscaleError
from fogscale.files import alone, opened, write_whole
from workloads.importing.command import check_files
from workloads.traces.csv_profile import read_csv_profile


def full(*_arguments) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_what_a_full_disk_leaves_is_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "run.yml"
    write_whole(path, "before")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FogscaleError, match=r"cannot write .*run.yml: No space left on device"):
        write_whole(path, "after")
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["n" * 255, "ä" * 127, "😀" * 63])
def test_the_longest_name_that_a_file_can_have_can_be_written(tmp_path, name):
    write_whole(tmp_path / name, "x")
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_nothing_is_written_through_a_link_that_waits_for_it(tmp_path):
    (tmp_path / "mine").write_text("kept")
    (tmp_path / f".run.yml.{os.getpid()}.unfinished").symlink_to(tmp_path / "mine")
    write_whole(tmp_path / "run.yml", "x")
    assert (tmp_path / "mine").read_text() == "kept"
    assert (tmp_path / "run.yml").read_text() == "x"


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(FogscaleError, match=r"cannot write .*: Not a directory; choose another folder"):
        write_whole(tmp_path / "file" / "below" / "run.yml", "x")


def test_a_device_takes_what_it_is_given():
    with pytest.raises(FogscaleError, match="cannot write /dev/full: No space left"):
        write_whole(Path("/dev/full"), "x")
    write_whole(Path("/dev/null"), "x")


def test_a_pipe_is_waited_for_but_not_without_end(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setattr(files, "_PATIENCE_S", 0.1)
    with pytest.raises(FogscaleError, match=r"cannot write .*pipe: No such device"):
        write_whole(tmp_path / "pipe", "x")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_whole(tmp_path / "pipe", "x")
    assert os.read(reader, 10) == b"x"
    os.close(reader)


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_data_are_read_from_files_only(tmp_path, kind):
    """A pipe may never begin and a device never end."""
    path = tmp_path / "data.csv"
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    for read in (opened, read_csv_profile, lambda each: check_files([each])):
        with pytest.raises(FogscaleError, match=r"data\.csv is no file"):
            read(path)


def test_a_folder_is_told_as_the_system_tells_it(tmp_path):
    with pytest.raises(IsADirectoryError):
        opened(tmp_path)


@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_a_lock_is_neither_waited_for_nor_followed(tmp_path, kind):
    lock, mine = tmp_path / ".analysis.lock", tmp_path / "mine"
    mine.write_text("kept")
    if kind == "pipe":
        os.mkfifo(lock)
        with alone(tmp_path, "analysis"):
            pass
    else:
        lock.symlink_to(mine)
        with pytest.raises(FogscaleError, match="symbolic link"), alone(tmp_path, "analysis"):
            pass
    assert mine.read_text() == "kept"


# Results and what a later command relies on. Not here: what fog/ writes on nodes and for its own processes.
PACKAGES = ("analysis", "controller", "fogscale", "paper_figures", "workloads")
WRITERS = {"write_text", "write_bytes", "to_csv", "to_parquet", "savefig"}
OTHERWISE = {
    "analysis/spark.py": "a draft of a folder, which gets its name when it is whole",
    "analysis/shipping.py": "an archive for Spark's workers, in a folder of its own",
    "controller/testbeds/flink/producing.py": "the settings and the mark of a process that ends with the run",
}


def written_directly(file: Path) -> list[int]:
    """Lines that write under a file's own name; to_csv() and the like without a path only make the text."""
    calls = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)]
    return [
        call.lineno
        for call in calls
        if isinstance(call.func, ast.Attribute)
        and call.func.attr in WRITERS
        and call.args
        and not (isinstance(call.args[0], ast.Name) and call.args[0].id in ("buffer", "drawn"))
    ]


def test_no_package_writes_a_result_but_whole():
    project = Path(__file__).parents[2]
    written = [file for package in PACKAGES for file in sorted((project / package).rglob("*.py"))]
    found = {str(file.relative_to(project)): lines for file in written if (lines := written_directly(file))}
    assert found.keys() == OTHERWISE.keys()
