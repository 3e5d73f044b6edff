"""Recorded runs become tables and figures of a paper without a testbed."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from matplotlib.figure import Figure

from analysis.plotting import styled
from controller.campaign.records import keep
from controller.experiment import load, runs_of, varied
from controller.journal import Journal, read
from controller.recording import JOURNAL
from controller.run import execute
from paper_figures.campaign import paper_module
from paper_figures.measured import METRICS, SERIES, write_measured
from paper_figures.published import paper_folder

FOLDER = paper_folder("gesscale")
AUDIT = {"produced": 1000, "lost": 0, "doubled": 0, "clean": True}
MACHINE = {"cores": 2, "load_average_mean": 3.5, "cpu_waiting_ratio": 0.25}
POLICIES = ("thr_nlunaware", "gesscale", "mdl_nlunaware")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A paper whose records are of short simulated runs that end with what a real testbed finds out."""
    folder = tmp_path_factory.mktemp("papers") / "gesscale"
    experiment = varied(load(FOLDER / "experiment.yml"), {"workload.speed": 200, "name": "local.split"})
    for run in runs_of(experiment, POLICIES, [1]):
        results = tmp_path_factory.mktemp("results")
        execute(run, results)
        _give_findings(results / run.folder / JOURNAL)
        told = {"begun": "2026-01-02T03:04:05+00:00", "machine": MACHINE, "audit": AUDIT}
        keep(results / run.folder, folder / "measured", run, told)
    return folder


def _give_findings(journal: Path) -> None:
    rescales = [{"silent_s": silent_s, "outcome": "done"} for silent_s in (20.0, 30.0, 31.0)]
    journal.write_text("".join(journal.read_text().splitlines(keepends=True)[:-1]))
    recorded = read(journal)
    assert recorded is not None
    again = Journal.open(journal, recorded.run, recorded.topology)
    again.end(True, (), {"audit": AUDIT, "rescales": rescales, "gaps": []})
    again.close()


@pytest.fixture(scope="module")
def tables(source: Path, spark, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    write_measured(source, tmp_path_factory.mktemp("out"), folder, spark)
    simulated = pd.read_parquet(folder / METRICS).assign(variation="", policy="thr_nlaware")
    pd.concat([simulated, simulated.assign(policy="gesscale")]).to_parquet(folder / "metrics.parquet")
    return folder


@pytest.mark.spark
def test_a_record_tells_its_metrics_and_how_it_came_about(tables: Path) -> None:
    run = pd.read_parquet(tables / METRICS).set_index("policy").loc["gesscale"]
    assert run["scenario"] == "split"
    assert (run["produced"], run["lost"], run["doubled"]) == (1000, 0, 0)
    assert run["silent_s"] == 30.0
    assert run["load_average_mean"] == 3.5
    assert run["cost"] > 0
    series = pd.read_parquet(tables / SERIES)
    assert set(series["policy"]) == set(POLICIES)
    assert series["demand"].max() > 1


@pytest.mark.spark
def test_published_simulated_and_measured_stand_in_one_table(tables: Path) -> None:
    frame = paper_module(FOLDER, "table_measured_1").load(tables)
    rows = frame[frame["Algorithm"] == "Gesscale"]
    assert list(rows[""]) == ["published", "simulated", "measured: split"]
    assert list(rows["runs"]) == [1, len(POLICIES), 1]
    pairs = paper_module(FOLDER, "table_measured_2").load(tables)
    assert list(pairs["aware"]) == ["Gesscale"]  # thr_nlaware has no run
    runs = paper_module(FOLDER, "table_measured_3").load(tables)
    assert list(runs["lost"]) == [0, 0, 0]


@pytest.mark.spark
def test_a_layout_that_was_measured_is_drawn_and_another_is_not(tables: Path) -> None:
    module = paper_module(FOLDER, "figure_measured_split")
    with styled():
        figure = module.draw(module.load(tables))
    assert isinstance(figure, Figure)
    assert len(figure.axes) == 3 * len(POLICIES)
    assert not len(paper_module(FOLDER, "figure_measured_lookup").load(tables))


@pytest.mark.spark
def test_without_a_record_there_is_nothing(spark, tmp_path: Path) -> None:
    write_measured(tmp_path, tmp_path, tmp_path, spark)
    assert list(tmp_path.iterdir()) == []
    assert not len(paper_module(FOLDER, "table_measured_1").load(tmp_path))
