"""Where testbeds keep their things, whatever the environment says."""

from pathlib import Path

import pytest

from analysis.spark import cache_folder
from fog.folders import state_folder
from fogscale.errors import FogscaleError


@pytest.fixture
def homeless(monkeypatch, tmp_path):
    """As in a container with a user that has no entry in passwd."""

    def nobody(_class):
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", classmethod(nobody))
    for name in ("FOGSCALE_STATE", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def test_without_a_home_the_state_wants_a_folder_and_the_cache_takes_a_temporary_one(homeless, tmp_path):
    with pytest.raises(FogscaleError, match="set HOME, or FOGSCALE_STATE"):
        state_folder("local")
    assert cache_folder().parent == tmp_path


def test_a_folder_that_is_named_relatively_stays_where_it_was(homeless, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", "here")
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    assert state_folder("local") == tmp_path / "here/fogscale/local"
    assert cache_folder() == tmp_path / "here/fogscale"
