"""A file is written whole or not at all."""

import ast
import errno
import os
from pathlib import Path

import pytest

from fogscale.errors import FogscaleError
from fogscale.files import write_whole


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


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(FogscaleError, match=r"cannot write .*: Not a directory; choose another folder"):
        write_whole(tmp_path / "file" / "below" / "run.yml", "x")


def test_a_device_takes_what_it_is_given():
    with pytest.raises(FogscaleError, match="cannot write /dev/full: No space left"):
        write_whole(Path("/dev/full"), "x")
    write_whole(Path("/dev/null"), "x")


# Results and what a later command relies on. Not here: what fog/ writes on nodes and for its own processes.
PACKAGES = ("analysis", "controller", "fogscale", "paper_figures", "workloads")
WRITERS = {"write_text", "write_bytes", "to_csv", "to_parquet", "savefig"}
OTHERWISE = {
    "fogscale/files.py": "write_whole itself",
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
    files = [file for package in PACKAGES for file in sorted((project / package).rglob("*.py"))]
    found = {str(file.relative_to(project)): lines for file in files if (lines := written_directly(file))}
    assert found.keys() == OTHERWISE.keys()
