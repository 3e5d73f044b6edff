"""The command line as a user meets it: real processes, exit codes, one line per mistake."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

FOGSCALE = [sys.executable, "-m", "fogscale.cli"]
SHORT = "time_s,records\n" + "".join(f"{minute * 60},{600 + 60 * (minute % 7)}\n" for minute in range(60))


def fogscale(*arguments, cwd=None):
    command = [*FOGSCALE, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=900)


@pytest.fixture
def short_csv(tmp_path):
    path = tmp_path / "short day.csv"
    path.write_text(SHORT, encoding="utf-8")
    return path


def run_folder(out: Path, policy="gesscale", workload="short_day", seed=1):
    return out / "experiment=gesscale" / f"policy={policy}" / f"workload={workload}" / f"seed={seed}"


# What it prints


def test_policies_are_listed_with_what_they_do():
    listed = fogscale("policies")
    assert listed.returncode == 0
    assert "gesscale" in listed.stdout
    assert "ICCCN 2021" in listed.stdout
    assert "spare_ratio = 0.3" in listed.stdout


def test_policies_as_json_are_one_document():
    policies = {policy["name"]: policy for policy in json.loads(fogscale("policies", "--json").stdout)}
    thresholds = {p["name"]: p["default"] for p in policies["thr_nlaware"]["parameters"]}
    assert thresholds["high_cpu_ratio"] == 0.9
    assert "rtt" in policies["gesscale"]["needs"]


def test_testbeds_are_listed_with_what_they_offer():
    testbeds = {testbed["name"]: testbed for testbed in json.loads(fogscale("testbeds", "--json").stdout)}
    assert "back_pressure" in testbeds["simulated"]["offers"]
    assert "memory" in testbeds["simulated"]["may_offer"]
    shown = fogscale("testbeds").stdout
    assert testbeds["simulated"]["summary"] in " ".join(shown.split())
    assert "with some settings also: instant_rescale, memory" in shown


def test_a_calibration_is_shown_beside_what_the_experiment_states():
    found = json.loads(fogscale("calibrate", "gesscale", "--law", "linear", "--json").stdout)
    assert {"setting": "testbed.capacity.map.law", "stated": "power_latency", "derived": "linear"} in found
    assert "states what follows from the facts" in fogscale("calibrate", "gesscale").stdout


def test_workloads_as_json_have_rates_as_replayed():
    rows = {row["name"]: row for row in json.loads(fogscale("workloads", "--json").stdout)}
    assert rows["taxi"]["span_s"] == 288 * 60
    assert rows["taxi"]["records"] == 3 * 1_018_277
    assert rows["worldcup98"]["peak_per_s"] == pytest.approx(302, rel=0.05)


def test_a_workload_is_drawn(tmp_path):
    shown = fogscale("workloads", "show", "taxi", "--plot", tmp_path / "taxi.png")
    assert shown.returncode == 0
    assert (tmp_path / "taxi.png").read_bytes().startswith(b"\x89PNG")


def test_a_run_prints_its_folder_and_nothing_else(tmp_path, short_csv):
    ran = fogscale(
        "run", "--policy", "gesscale", "--seed", 1, "--workload", short_csv, "--out", tmp_path, "--json"
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert json.loads(ran.stdout) == [str(run_folder(tmp_path))]
    assert (run_folder(tmp_path) / "journal.jsonl").exists()


def test_a_recorded_run_replays_through_any_policy(tmp_path, short_csv):
    fogscale("run", "--policy", "gesscale", "--seed", 1, "--workload", short_csv, "--out", tmp_path)
    same = fogscale("replay", run_folder(tmp_path), "--policy", "gesscale", "--json")
    assert json.loads(same.stdout) == []
    other = fogscale("replay", run_folder(tmp_path), "--policy", "thr_nlaware")
    assert other.returncode == 0
    assert "decisions differ" in other.stdout


@pytest.mark.spark
def test_an_experiment_ends_with_the_report_and_the_metrics_of_what_was_asked_for(tmp_path, short_csv):
    around = ["--workload", short_csv, "--out", tmp_path]
    fogscale("run", "--policy", "gesscale", "--policy", "static", "--seed", 2, *around)
    ran = fogscale("run", "--policy", "gesscale", "--seed", 1, *around, "--analyze", "--json")
    assert (ran.returncode, ran.stderr) == (0, "")
    document = json.loads(ran.stdout)
    assert Path(document["report"]).read_text(encoding="utf-8").startswith("<!doctype html>")
    (metrics,) = document["metrics"]
    assert (metrics["policy"], metrics["seed"]) == ("gesscale", 1)
    assert metrics["cost"] > 0


@pytest.mark.spark
def test_a_comparison_tests_every_pair(tmp_path, short_csv):
    ran = fogscale(
        "compare",
        "--policies",
        "static,thr_nlaware",
        "--workload",
        short_csv,
        "--seeds",
        2,
        "--out",
        tmp_path,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "Rule: service first" in ran.stdout
    assert "…" not in ran.stdout  # nothing cut off where nobody says how wide the terminal is
    (pairs,) = tmp_path.rglob("pairs.csv")
    rows = pairs.read_text().splitlines()
    assert any(",cost,static,thr_nlaware," in row for row in rows)
    assert "report.html" in ran.stdout.replace("\n", "")


# Mistakes


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "--policy", "gescale"], "unknown policy 'gescale': did you mean gesscale?"),
        (["run", "--policy", "static", "--workload", "taxy"], "unknown workload 'taxy': did you mean taxi?"),
        (["run", "--policy", "static", "--workload", "gone.csv"], "gone.csv"),
        (["run", "--testbed", "simulatd"], "unknown testbed 'simulatd': did you mean simulated?"),
        (["run", "gone.yml"], "cannot read experiment gone.yml"),
        (["run", "--policy", "static", "--out", "/proc/none"], "cannot write /proc/none"),
        (["analyze", "gone"], "there is no folder gone"),
        (["replay", "gone", "--policy", "static"], "gone holds no journal"),
        (["run", "--seed", "abc"], "Invalid value for '--seed'"),
        (["rnu"], "rnu"),
        (["compare", "--policies", "static"], "at least two different policies"),
        (["figures", "--paper", "geschale"], "unknown paper 'geschale': did you mean gesscale?"),
        (["workloads", "show", "taxi", "--plot", "/proc/none/x.png"], "cannot write"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(arguments, message, tmp_path):
    failed = fogscale(*arguments, cwd=tmp_path)
    assert failed.returncode == 2
    assert failed.stderr.startswith("fogscale: ")
    assert failed.stderr.count("\n") == 1
    assert message in failed.stderr


def ended(out: Path) -> dict[Path, bytes]:
    """The journals of runs that are over."""
    journals = {path: path.read_bytes() for path in out.rglob("journal.jsonl")}
    return {path: text for path, text in journals.items() if b'"kind":"end","finished":true' in text}


def test_an_interrupted_run_says_how_to_go_on_and_then_does(tmp_path):
    """Control-C after the first of many seeds, on all cores; the same command then ends them all."""
    seeds = [f"--seed={seed}" for seed in range(1, 31)]
    arguments = ["run", "--policy", "gesscale", *seeds, "--out", str(tmp_path)]
    process = subprocess.Popen(
        [*FOGSCALE, *arguments], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 300
    while not ended(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=60)
    assert process.returncode == 130
    assert complaint.count("\n") == 1
    assert "run the same command again" in complaint

    before = ended(tmp_path)
    assert before  # on a quiet machine all of them: Spark is given a moment to end by itself
    again = fogscale(*arguments)
    assert again.returncode == 0
    after = ended(tmp_path)
    assert len(after) == 30
    assert {path: after[path] for path in before} == before
