"""Campaigns: each run simulated once, on a local Spark and on a real standalone master with a worker."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle

from analysis.campaign import _batch, run_campaign
from analysis.metrics import metrics_by_run
from analysis.shipping import packed
from analysis.spreading import task_count
from controller.experiment import load, runs_of
from controller.model import Sample
from controller.run import simulate
from fogscale.cli import default_experiment
from fogscale.errors import FogscaleError
from tests.support.cluster import standalone_cluster

# The workers do not have the tests: what is defined here travels by value.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


def fake_simulate(document: str) -> tuple[dict[str, Any], list[Sample]]:
    """100 s with `replicas` running throughout; "log" is a file in which each simulation leaves a line. With
    "fail_after", a folder and a number, it fails once so many files of rows lie there."""
    run = json.loads(document)
    if "fail_after" in run:
        folder, files = run["fail_after"]
        deadline_s = time.monotonic() + 60
        while len(list(Path(folder).glob("*.parquet"))) < files and time.monotonic() < deadline_s:
            time.sleep(0.02)
        raise ValueError("the engine ran\nout of steam")
    if run.get("fail"):
        raise ValueError("the engine ran\nout of steam")
    if "log" in run:
        with Path(run["log"]).open("a") as log:
            log.write(f"{run['seed']}\n")
    facts = {
        "experiment": "fake", "policy": run["policy"], "workload": "flat", "seed": run["seed"],
        "duration_s": 100.0, "operator": "map", "capacity_per_s": [10.0, 20.0, 30.0], "n_min": 1, "n_max": 3,
        "variation": run.get("variation", {}),
    }  # fmt: skip
    times = (0.0, 50.0, 100.0)
    return facts, [Sample(t, int(15 * t), int(15 * t), 0, {"map": run["replicas"]}, 0) for t in times]


def documents(count: int, **more: Any) -> list[str]:
    return [
        json.dumps({"policy": "p", "seed": seed, "replicas": 1 + seed % 3, **more}) for seed in range(count)
    ]


@pytest.mark.spark
def test_every_run_is_simulated_once_and_measured(spark, tmp_path):
    log = tmp_path / "log"
    campaign = run_campaign(spark, documents(20, log=str(log)), fake_simulate)
    try:
        metrics = metrics_by_run(campaign.samples, campaign.runs).toPandas().set_index("seed")
        assert campaign.samples.count() == 60
    finally:
        campaign.release()
    assert sorted(map(int, log.read_text().split())) == list(range(20))
    # Demand is 2 (15 records/s of 10 per replica); 1, 2 or 3 replicas run.
    assert metrics.loc[0, "accuracy_u"] == 1.0
    assert metrics.loc[1, ["accuracy_u", "accuracy_o"]].tolist() == [0.0, 0.0]
    assert metrics.loc[2, "accuracy_o"] == 1.0
    assert metrics.loc[2, "cost"] == pytest.approx(3 * 100 / 60)


@pytest.mark.spark
def test_the_same_seed_with_other_settings_is_another_run(spark):
    runs = [documents(1, variation={"gamma": gamma})[0] for gamma in (0.5, 0.7)]
    campaign = run_campaign(spark, runs, fake_simulate)
    rows = metrics_by_run(campaign.samples, campaign.runs).collect()
    campaign.release()
    assert len({row.run_id for row in rows}) == 2
    assert sorted(json.loads(row.variation)["gamma"] for row in rows) == [0.5, 0.7]


@pytest.mark.spark
def test_two_runs_of_one_name_are_refused(spark):
    with pytest.raises(FogscaleError, match=r"^2 runs of the campaign are all fake/p/flat/0: vary"):
        run_campaign(spark, documents(1) * 2, fake_simulate)


@pytest.mark.spark
def test_a_run_that_fails_names_itself_in_one_line(spark):
    runs = [*documents(3), json.dumps({"policy": {"name": "broken"}, "seed": 7, "fail": True})]
    with pytest.raises(FogscaleError) as caught:
        run_campaign(spark, runs, fake_simulate)
    assert str(caught.value) == (
        "run 4 (policy=broken, seed=7): ValueError: the engine ran out of steam; "
        "repeat that run alone to see where it fails"
    )


def test_a_campaign_without_runs_is_refused_before_spark_is_needed():
    with pytest.raises(FogscaleError, match="no runs"):
        run_campaign(None, [], fake_simulate)


@pytest.mark.parametrize(
    ("runs", "cores", "expected"),
    [
        pytest.param(1, 8, 1, id="one run, one task"),
        pytest.param(20, 2, 8, id="four tasks for each core, so that none waits long for the last"),
        pytest.param(6000, 2, 750, id="tasks stay short"),
    ],
)
def test_task_count(runs, cores, expected):
    assert task_count(runs, cores) == expected


def test_a_run_without_samples_is_still_a_run():
    facts = fake_simulate(documents(1)[0])[0]
    (row,) = _batch(facts, []).to_pylist()
    assert (row["run"]["run_id"], row["time_s"]) == ("fake/p/flat/0", None)


# A real cluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a standalone master with one worker of one core."""
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as address:
        yield address


DRIVER = """
import json, sys
from pathlib import Path
from pyspark import cloudpickle
from analysis.campaign import run_campaign
from analysis.metrics import metrics_by_run
from analysis.spark import session
simulate, runs = cloudpickle.loads(Path(sys.argv[2]).read_bytes())
spark = session("cluster test", master=sys.argv[1])
spark.sparkContext.setLogLevel("OFF")
campaign = run_campaign(spark, runs, simulate)
metrics = metrics_by_run(campaign.samples, campaign.runs).toPandas()
result = {"cost": dict(zip(metrics.seed.tolist(), metrics.cost)), "files": metrics.policy.tolist()}
print("RESULT", json.dumps(result))
spark.stop()
"""


def whereabouts(document: str) -> tuple[dict[str, Any], list[Sample]]:
    """As fake_simulate, with the file that the worker's controller package was loaded from as the policy."""
    import controller.model

    facts, samples = fake_simulate(document)
    return facts | {"policy": controller.model.__file__.replace("/", "|")}, samples


@pytest.fixture
def run_on_cluster(cluster: str, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Runs a campaign in a process of its own, since a process can have but one Spark session."""

    def run(simulate: Any, runs: list[str]) -> dict[str, Any]:
        job = tmp_path / "job.pickle"
        job.write_bytes(cloudpickle.dumps((simulate, runs)))
        # The loopback worker could import the project from this checkout; elsewhere it could not.
        done = subprocess.run(
            [sys.executable, "-c", DRIVER, cluster, str(job)], capture_output=True, text=True, timeout=240
        )
        answer = re.search(r"^RESULT (.*)$", done.stdout, re.MULTILINE)
        assert answer, done.stdout + done.stderr
        return json.loads(answer[1])

    return run


@pytest.mark.cluster
def test_the_same_campaign_on_a_standalone_master_and_worker(run_on_cluster):
    result = run_on_cluster(whereabouts, documents(6))
    cost = {int(seed): value for seed, value in result["cost"].items()}
    assert cost == pytest.approx({seed: (1 + seed % 3) * 100 / 60 for seed in range(6)})
    assert all("fogscale.zip" in file for file in result["files"]), "the worker used its own copy of the code"


@pytest.mark.cluster
def test_a_real_run_on_the_cluster_costs_what_it_costs_here(run_on_cluster):
    """The engine itself, from the shipped archive: every seed to the last replica-minute."""
    runs = [run.model_dump_json() for run in runs_of(load(default_experiment()), ["gesscale"], seeds=[1, 2])]
    here = {}
    for run in runs:
        facts, samples = simulate(run)
        held = zip(pairwise(sample.time_s for sample in samples), samples, strict=False)
        here[str(facts["seed"])] = (
            sum((end - start) * sample.replicas["map"] for (start, end), sample in held) / 60
        )
    assert run_on_cluster(None, runs)["cost"] == pytest.approx(here)


def test_the_package_archive_holds_code_and_data():
    import io
    import zipfile

    names = zipfile.ZipFile(io.BytesIO(packed())).namelist()
    assert "controller/model.py" in names
    assert "analysis/schema.py" in names
    assert not [name for name in names if "__pycache__" in name]
