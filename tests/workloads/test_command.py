"""`fogscale workloads` as a user meets it: in narrow terminals, as JSON, with parameters and mistakes."""

import json
import os
import subprocess
import sys

import pytest

from fogscale.errors import FogscaleError
from workloads.catalog import definitions
from workloads.command import parameters_of


def fogscale(*arguments, columns=80):
    command = [sys.executable, "-m", "fogscale.cli", "workloads", *map(str, arguments)]
    env = {**os.environ, "COLUMNS": str(columns)}
    return subprocess.run(command, capture_output=True, text=True, timeout=400, env=env)


@pytest.mark.parametrize("columns", [80, 120])
def test_the_list_fits_the_terminal(columns):
    lines = fogscale(columns=columns).stdout.splitlines()
    assert max(len(line.rstrip()) for line in lines) <= columns
    rows = {line.split()[0]: line.split()[1:] for line in lines[1:] if not line.startswith(" ")}
    assert list(rows) == list(definitions())
    assert rows["taxi"] == ["288", "min", "177", "302", "taxi_ride"]
    assert rows["brownian"][:2] == ["200", "s"]
    assert rows["scaled"] == ["needs", "of,", "factor"]
    assert any("counted from the public" in line for line in lines)


def test_the_list_as_json_is_one_document():
    rows = {row["name"]: row for row in json.loads(fogscale("--json").stdout)}
    assert rows.keys() == definitions().keys()
    assert rows["square"]["peak_per_s"] == pytest.approx(65)
    assert rows["square"]["needs"] == []
    assert rows["brownian"]["operators"] == ["op1", "op2", "op3", "op4", "op5"]
    assert rows["csv"] == {
        "name": "csv", "source": None, "needs": ["path"], "summary": definitions()["csv"].summary,
        "broken": None,
    }  # fmt: skip


def test_parameters_reach_what_is_shown_and_drawn(tmp_path):
    path = tmp_path / "bell.png"
    settings = ["--set", "peak_per_s=500", "--set", "span_s=10 min"]
    shown = fogscale("show", "gaussian", *settings, "--plot", path, "--json")
    row = json.loads(shown.stdout)
    assert (row["peak_per_s"], row["span_s"]) == (pytest.approx(500, rel=1e-4), 600)
    assert row["parameters"]["peak_per_s"] == 4500
    assert path.read_bytes().startswith(b"\x89PNG")


def test_a_joined_workload_is_shown():
    shown = fogscale(
        "show", "joined", "--set", "of=[square, {name: ramp, parameters: {span_s: 60}}]", "--json"
    )
    assert json.loads(shown.stdout)["span_s"] == pytest.approx(2760)


def test_values_are_read_as_yaml():
    assert parameters_of(["a=1", "b=x=y", "c=[1, two]", "d=-6h"]) == {
        "a": 1, "b": "x=y", "c": [1, "two"], "d": "-6h"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("setting", "problem"), [("a", "write a parameter"), ("=1", "write a parameter"), ("a=[", "not YAML")]
)
def test_a_setting_that_is_none_is_told_so(setting, problem):
    with pytest.raises(FogscaleError, match=problem):
        parameters_of([setting])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "gausian"], "unknown workload 'gausian': did you mean gaussian?"),
        (["show", "csv"], "workload 'csv' needs the parameter 'path': add path="),
        (["show", "sine", "--set", "mean=3"], "unknown parameter 'mean': did you mean mean_per_s?"),
        (["show", "sine", "--set", "mean_per_s=many"], "parameter 'mean_per_s' is 'many'"),
        (["show", "taxi", "--plot", "/proc/none/x.png"], "cannot write /proc/none/x.png"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(arguments, message):
    failed = fogscale(*arguments)
    assert failed.returncode == 2
    assert failed.stderr.count("\n") == 1
    assert message in failed.stderr
