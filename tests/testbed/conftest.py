"""One testbed of three nodes for all tests of the session, and what is left when it is gone."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import testinfra
from testinfra.host import Host

from fog.artifacts.store import ROOTFS, store
from fog.folders import cache_folder, checkout
from tests.support.fog import Fog, left_after, missing, traces


@pytest.fixture(scope="session")
def can_emulate(require: Callable[[str, bool, str], None]) -> None:
    reason = missing()
    require("testbed", reason is None, reason or "")


@pytest.fixture(scope="session")
def rootfs(can_emulate: None) -> Path:
    """The one that the role would build."""
    return store(checkout(), cache_folder()).ensure(ROOTFS)[0]


@pytest.fixture
def base(can_emulate: None) -> Iterator[Path]:
    """A short path: the sockets of ssh lie below it."""
    folder = Path(tempfile.mkdtemp(prefix="fog-", dir="/tmp"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def fog(can_emulate: None) -> Iterator[Fog]:
    """Built by the command that a user gives; taken down by it, and then nothing may be left."""
    folder = Path(tempfile.mkdtemp(prefix="fog-", dir="/tmp"))
    fog = Fog(folder)
    before = traces(folder)
    try:
        fog.fogscale("up", "--fog-nodes", "1")
        yield fog
        assert fog.fogscale("down")["changed"] == {"localhost": 1}
        assert left_after(folder, before) == {}
        assert list(folder.iterdir()) == []
    finally:
        fog.fogscale("down", check=False)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def host(fog: Fog) -> Callable[[str], Host]:
    """A node by its name, for testinfra."""
    return lambda name: testinfra.get_host(f"ssh://{name}?ssh_config={fog.state.ssh_config}")
