"""The decentralized paper: its statements come from what was measured, its parts say what the runs say."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from matplotlib.figure import Figure

from analysis.plotting import styled
from controller.experiment import load as load_experiment
from controller.experiment import runs_of, scenarios_of
from controller.run import followed
from paper_figures.campaign import paper_module
from paper_figures.claims import judged_claims
from paper_figures.decentralized import measurements, statements
from paper_figures.decisions import StepLog
from paper_figures.published import load as load_published
from paper_figures.published import paper_folder

FOLDER = paper_folder("decentralized")


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two seeds of everything, few points."""
    folder = tmp_path_factory.mktemp("tables")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measurements, "LOOP_SEEDS", 1)
        ramps = {("straight", 100.0, "apart"): 2, ("straight", 50.0, "together"): 2}
        patch.setattr(measurements, "RAMPS", ramps)
        patch.setattr(measurements, "POOLS", (None, 36))
        patch.setattr(measurements, "READINGS", ((), ("more_than_one",), ("by_view",)))
        beyond = {"delay_s": (0.0, 5.0), "loss_ratio": (0.5,), "change_per_s": (100.0,)}
        patch.setattr(measurements, "BEYOND", beyond)
        found = measurements.measured(load_experiment(FOLDER / "experiment.yml"), [1, 2])
    for name, frame in found.items():
        frame.to_parquet(folder / f"{name}.parquet")
    names = ["cost", "accuracy_u", "accuracy_o", "timeshare_u"]
    columns = [*names, *(f"job_{name}" for name in names), "processed_ratio"]
    rows = [
        {"scenario": scenario, "variation": "", "policy": policy, "seed": seed}
        | dict.fromkeys(columns, 0.5 * seed)
        | {"reconfigurations": 3}
        for scenario, policies in load_published(FOLDER).tables.items()
        for policy in policies
        for seed in (1, 2)
    ]
    pd.DataFrame(rows).to_parquet(folder / "metrics.parquet")
    return folder


def test_every_statement_is_measured_and_judged(tables: Path) -> None:
    published = load_published(FOLDER)
    found = statements.statements(tables)
    judged = judged_claims(pd.DataFrame(), published, statements=found)
    assert len(judged) == len(published.claims) == len(found)
    exact = {claim.text: claim for claim in judged if claim.low == claim.high}
    assert len(exact) == 7
    assert all(claim.holds for claim in exact.values())


def test_worked_cases_and_formulas_are_counted_exactly(tables: Path) -> None:
    worked = pd.read_parquet(tables / "worked.parquet").iloc[0]
    assert (worked["messages_30"], worked["messages_168"]) == (30, 168)
    rounds = pd.read_parquet(tables / "rounds.parquet")
    assert len(rounds) > 500
    assert (rounds["counted"] == rounds["formula"]).all()


def test_the_loop_and_the_papers_clock_play_the_same_walk(tables: Path) -> None:
    steps = pd.read_parquet(tables / "steps.parquet")
    first = steps[steps["seed"] == 1].set_index(["way", "step"])
    assert (first.loc["loop", "load"] == first.loc["steps", "load"]).all()
    means = first.groupby("way")[["nodes", "messages"]].mean()
    assert means.loc["loop", "nodes"] == pytest.approx(means.loc["steps", "nodes"], rel=0.1)
    assert means.loc["loop", "messages"] == pytest.approx(means.loc["steps", "messages"], rel=0.4)


def test_printed_readings_have_the_effect_that_the_table_shows(tables: Path) -> None:
    errata = pd.read_parquet(tables / "errata.parquet").groupby("reading").mean()
    assert errata.loc["more_than_one", "accuracy"] < 0.8 < errata.loc["", "accuracy"]
    assert errata.loc["by_view", "stuck"] > 0 == errata.loc["", "stuck"]
    assert errata.loc["by_view", "views_agree"] < 1 == errata.loc["", "views_agree"]


def test_a_bounded_pool_refuses_what_it_does_not_have(tables: Path) -> None:
    pools = pd.read_parquet(tables / "pools.parquet").groupby("pool")
    elastic, bounded = pools.get_group(0), pools.get_group(36)
    assert (elastic["refused"] == 0).all()
    assert elastic["most_nodes"].max() > 36
    assert (bounded["refused"] > 0).any()
    assert bounded["most_nodes"].max() == 36
    assert bounded["throughput_ratio"].mean() < elastic["throughput_ratio"].mean()


def test_charts_end_with_what_is_wrong(tables: Path) -> None:
    charts = pd.read_parquet(tables / "charts.parquet")
    assert set(charts["chart"]) == {"figure-2", "all_at_once", "by_view", "one_counter", "view_alone"}
    for _, rows in charts.groupby("chart"):
        assert rows["agent"].iloc[-1] == ""
        arrows = rows[rows["sender"] != ""]
        assert (arrows["sent_at"] < arrows["number"]).all()


def test_slow_messages_cost_accuracy(tables: Path) -> None:
    beyond = pd.read_parquet(tables / "beyond.parquet").groupby(["what", "value"]).mean()
    assert beyond.loc[("delay_s", 5.0), "wrong_ratio"] > beyond.loc[("delay_s", 0.0), "wrong_ratio"]


@pytest.mark.parametrize("path", sorted(FOLDER.glob("figure_*.py")), ids=lambda path: path.stem)
def test_a_figure_is_drawn(path: Path, tables: Path) -> None:
    module = paper_module(FOLDER, path.stem)
    with styled():
        figure = module.draw(module.load(tables))
    assert isinstance(figure, Figure)
    assert all(axis.lines or axis.collections for axis in figure.axes)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("table_*.py")), ids=lambda path: path.stem)
def test_a_table_has_rows_and_no_empty_cell(path: Path, tables: Path) -> None:
    frame = paper_module(FOLDER, path.stem).load(tables)
    assert len(frame) > 1
    assert frame.notna().all(axis=None)


def test_every_seed_has_a_walk_of_its_own_and_every_policy_the_same() -> None:
    pipeline = scenarios_of(load_experiment(FOLDER / "experiment.yml"))["pipeline"]
    runs = runs_of(pipeline, seeds=[1, 2])
    assert {(run.seed, run.workload.parameters["seed"]) for run in runs} == {(1, 1), (2, 2)}


def test_gesscale_behind_a_source_sees_the_back_pressure_it_acts_on() -> None:
    scenario = scenarios_of(load_experiment(FOLDER / "experiment.yml"))["one_that_scales"]
    (run,) = runs_of(scenario, ["gesscale"], seeds=[1])
    log = StepLog()
    followed(run, log)
    placed = [len(step.observation.placement["op3"]) for step in log.steps]
    assert placed[0] == 2
    assert max(placed) > 4  # the walk begins with what five can do
    assert min(placed[placed.index(max(placed)) :]) < max(placed)  # and it has learned what fewer can do


def test_one_operator_whose_instances_look_together_sends_more_than_in_proportion(tables: Path) -> None:
    """At 0.8 of their capacity a seventh of them duplicates, each telling all of its neighbours."""
    ramps = pd.read_parquet(tables / "ramps.parquet")
    which = ("straight", 50.0, "together")
    one = statements.exponents(ramps, which, statements.per_iteration_of_one)["exponent"]
    assert one.min() > 1.3


def test_doubling_on_a_straight_ramp_is_quadratic() -> None:
    """20 new nodes a step, each for 4 messages per node that is there: the sum over a doubling is 6 n²."""
    nodes = pd.Series(range(20, 2001, 20))
    run = pd.DataFrame({"nodes": nodes, "messages": 80 * nodes, "duplicates": True, "seed": 1})
    ramps = run.assign(shape="straight", growth=100.0, looks="apart")
    one = statements.exponents(ramps, statements.FIGURE_6, statements.per_iteration)["exponent"]
    two = statements.exponents(ramps, statements.FIGURE_6, statements.per_doubling)["exponent"]
    assert one.tolist() == [pytest.approx(1.0)]
    assert two.tolist() == [pytest.approx(2.0, abs=0.06)]  # a few nodes at first
