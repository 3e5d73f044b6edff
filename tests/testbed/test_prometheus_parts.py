"""Parts of the role prometheus that need no testbed: the exporter of emulated nodes, hashes of passwords."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import bcrypt
import pytest

from fog.folders import checkout


def load(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(Path(path).stem, checkout() / "roles/prometheus" / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


VERSION_1 = {
    "cpuacct/cpuacct.usage": "2500000000\n",
    "memory/memory.usage_in_bytes": "1000\n",
    "memory/memory.stat": "inactive_file 7\ntotal_inactive_file 400\n",
}
VERSION_2 = {
    "cpu.stat": "usage_usec 2500000\nuser_usec 1\n",
    "memory.current": "1000\n",
    "memory.stat": "anon 3\ninactive_file 400\n",
}


@pytest.mark.parametrize("files", [VERSION_1, VERSION_2], ids=["cgroup 1", "cgroup 2"])
def test_cpu_and_memory_are_read_from_either_kind_of_cgroup(tmp_path: Path, files: dict[str, str]) -> None:
    write(tmp_path, files)
    lines = load("files/cgroup_exporter.py").metrics(tmp_path, 0.5, 2).splitlines()
    assert [line for line in lines if not line.startswith("#")] == [
        "fog_node_cpu_seconds_total 2.5",
        "fog_node_cpus 0.5",
        "fog_node_memory_used_bytes 600",
        "fog_node_memory_limit_bytes 2097152",
    ]


def test_the_hash_of_a_password_fits_it_and_is_the_same_every_time() -> None:
    bcrypt_hash = load("filter_plugins/prometheus.py").bcrypt_hash
    assert bcrypt.checkpw(b"secret", bcrypt_hash("secret").encode())
    assert not bcrypt.checkpw(b"Secret", bcrypt_hash("secret").encode())
    assert bcrypt_hash("secret") == bcrypt_hash("secret")
    assert bcrypt_hash("secret")[:29] != bcrypt_hash("other")[:29]  # another salt
