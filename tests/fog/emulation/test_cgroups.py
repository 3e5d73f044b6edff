"""What a node's cgroups tell, whatever their version."""

from pathlib import Path

import pytest

from fog.emulation.cgroups import Group


@pytest.mark.parametrize(
    ("file", "content"),
    [
        pytest.param("cpuacct/fog/n1/cpuacct.usage", "1500000000\n", id="version 1"),
        pytest.param("fog/n1/cpu.stat", "nr_periods 3\nusage_usec 1500000\nuser_usec 7\n", id="version 2"),
    ],
)
def test_processor_time_of_a_node(tmp_path: Path, file: str, content: str) -> None:
    if not file.startswith("cpuacct"):
        (tmp_path / "cgroup.controllers").touch()
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text(content)
    group = Group("fog", tmp_path)
    assert group.cpu_used_s("n1") == 1.5
    assert group.cpu_used_s("n2") is None
