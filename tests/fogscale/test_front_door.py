"""`import fogscale as fs` is all that an example needs."""

import subprocess
import sys
from pathlib import Path

import pytest

import fogscale as fs

EXAMPLE = Path(__file__).parents[2] / "docs" / "example.py"
ASKED_FOR = "Policy Observation Plan register parameter resize_plan load_experiment run compare"


def test_everything_is_there_and_documented():
    assert set(ASKED_FOR.split()) <= set(fs.__all__) <= set(dir(fs))
    for name in fs.__all__:
        assert getattr(fs, name).__doc__, name
    with pytest.raises(AttributeError, match="no attribute 'comparre'"):
        fs.comparre  # noqa: B018


def test_all_and_homes_agree():
    assert sorted(fs._HOME) == fs.__all__


def test_importing_it_is_light():
    code = "import sys, fogscale; print({'numpy', 'pydantic', 'pyspark'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"


def test_it_is_typed(tmp_path):
    script = tmp_path / "typed.py"
    script.write_text(
        "import fogscale as fs\n"
        "finished = fs.run('gesscale', 'static')\n"
        "reveal_type(finished.samples)\n"
        "reveal_type(fs.resize_plan)\n"
    )
    # With the options of `make lint`, so that either goes on from what the other knows.
    command = [sys.executable, "-m", "mypy", "--no-error-summary", str(script)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert "tuple[controller.model.Sample, ...]" in found.stdout
    assert "Observation" in found.stdout
    assert "Any" not in found.stdout.partition("resize_plan")[0]


def test_the_module_is_the_command_line():
    shown = subprocess.run([sys.executable, "-m", "fogscale", "testbeds"], capture_output=True, text=True)
    assert shown.returncode == 0
    assert "simulated" in shown.stdout


def test_a_run_in_memory_is_the_run_that_is_recorded(tmp_path):
    kept = fs.run("gesscale", "thr_nlaware", seed=3, out=tmp_path)
    passing = fs.run(fs.load_experiment("gesscale"), "thr_nlaware", seed=3)
    assert kept.folder is not None
    assert (kept.folder / "journal.jsonl").exists()
    assert passing.folder is None
    assert (kept.steps, kept.samples) == (passing.steps, passing.samples)
    assert kept.facts["policy"] == passing.facts["policy"] == "thr_nlaware"


def test_a_mistake_is_one_line_with_the_fix(tmp_path):
    with pytest.raises(fs.FogscaleError, match="did you mean gesscale"):
        fs.run("gesscale", "gescale")
    with pytest.raises(fs.FogscaleError, match="cannot read experiment"):
        fs.load_experiment(tmp_path / "none.yml")


@pytest.mark.spark
def test_an_example_imports_nothing_else_and_compares_its_own_policy():
    imports = [line for line in EXAMPLE.read_text().splitlines() if line.startswith(("import", "from"))]
    assert imports == ["from dataclasses import dataclass", "import fogscale as fs"]
    ran = subprocess.run([sys.executable, str(EXAMPLE)], capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    assert "step_by_step" in ran.stdout
    assert "gesscale" in ran.stdout
