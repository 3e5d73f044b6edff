"""A file is written whole or not at all."""

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
