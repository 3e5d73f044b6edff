"""`make figures` and `make sensitivity`, end to end and small."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from controller.experiment import load as load_experiment
from fogscale.errors import FogscaleError
from paper_figures.build import build, cases_of, long_cases_of
from paper_figures.campaign import BASE
from paper_figures.doubts import explained, runs_under, setting, unexplained
from paper_figures.front_page import write_front_page
from paper_figures.orders import judged_orders
from paper_figures.page import variations_table
from paper_figures.published import Doubt, Sweep, Variation, paper_folder
from paper_figures.sensitivity import (
    agreement_by_set,
    correlation,
    drawn_sets,
    order_frequency,
    sensitivity,
)

FOLDER = paper_folder("gesscale")


@pytest.fixture(scope="module")
def small_paper(tmp_path_factory) -> Path:
    """Gesscale with an hour of the trace and two variations, and one dropped figure."""
    folder = tmp_path_factory.mktemp("papers") / "small"
    folder.mkdir()
    experiment = (FOLDER / "experiment.yml").read_text()
    trace = folder / "trace.csv"
    trace.write_text("time_s,records\n" + "".join(f"{60 * n},{60 * (60 + 4 * n)}\n" for n in range(40)))
    experiment = experiment.replace("name: taxi, speed: 10, copies: 3", f"name: {trace}, speed: 1, copies: 1")
    (folder / "experiment.yml").write_text(experiment)
    for name in ("published.yml", "calibration.py", "doubts.yml", "table_3.py", "figure_06_ideal.py"):
        (folder / name).write_text((FOLDER / name).read_text())
    variations = (FOLDER / "variations.yml").read_text().split("- name: linear")[0]
    (folder / "variations.yml").write_text(variations)
    return folder


@pytest.fixture(scope="module")
def built(small_paper, spark, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("out")
    sensitivity(str(small_paper), out, spark, sets=4, seeds=2)
    build(str(small_paper), out, spark, seeds=2)
    return out / "figures" / "small"


@pytest.mark.spark
def test_summary_json_is_what_others_script_against(built):
    summary = json.loads((built / "summary.json").read_text())
    assert list(summary) == ["orders", "ceiling", "cells", "claims", "seeds", "full", "cpu_s"]
    assert list(summary["orders"]) == ["agree", "disagree", "not_significant"]
    assert sum(summary["orders"].values()) == 42
    assert len(summary["claims"]) == 7
    known = ["text", "published", "ours", "low", "high", "holds", "state", "p", "test", "correction", "unit"]
    assert all(list(claim) == known for claim in summary["claims"])
    assert summary["cells"]["all"] == 28
    assert 0 <= summary["ceiling"]["low"] <= summary["ceiling"]["agree"] <= summary["ceiling"]["high"] <= 42
    assert summary["seeds"] == 2
    assert summary["cpu_s"] > 0


@pytest.mark.spark
def test_the_page_shows_everything_and_every_link_leads_somewhere(built):
    for name in ("index.html", "sensitivity.html"):
        page = (built / name).read_text()
        links = set(re.findall(r'(?:href|src)="([^"#]+)"', page))
        assert all((built / link).exists() for link in links if not link.startswith("http")), name
    page = (built / "index.html").read_text()
    assert (
        page.count('<td class="agree"')
        + page.count('<td class="disagree"')
        + page.count('<td class="not_significant"')
        == 42
    )
    assert "sensitivity_agreement.png" in page
    assert "Figure 6" in page


@pytest.mark.spark
def test_the_front_page_has_every_paper_that_was_built(built, tmp_path):
    folder = tmp_path / "figures"
    (folder / "gesscale").mkdir(parents=True)
    for name in ("summary.json", "index.html"):
        (folder / "gesscale" / name).write_text((built / name).read_text())
    page = write_front_page(folder).read_text()
    assert all((folder / link).exists() for link in re.findall(r'href="([^"#]+)"', page))
    states = [claim["state"] for claim in json.loads((built / "summary.json").read_text())["claims"]]
    for state in set(states):
        assert page.count(f">{state}</span>") == states.count(state)
    assert "ekf" in page.split("Not built here:")[1]


@pytest.mark.spark
def test_tables_come_in_three_formats_and_figures_in_two(built):
    for stem in ("table_3", "orders", "claims", "variations", "parameters", "cells"):
        assert all((built / f"{stem}.{kind}").stat().st_size > 0 for kind in ("csv", "md", "tex")), stem
    assert all((built / f"figure_06_ideal.{kind}").stat().st_size > 1000 for kind in ("png", "pdf"))
    table = pd.read_csv(built / "table_3.csv", dtype=str)
    assert table.iloc[:3, 1].tolist() == ["published", "ours", "ours, no idle CPU"]
    assert len(table) == 12
    assert table["cost"].iloc[0] == "1199.5"


@pytest.mark.spark
def test_every_policy_has_its_runs_and_the_ideal_has_one(built):
    metrics = pd.read_parquet(built / "tables" / "metrics.parquet")
    runs = metrics[metrics["variation"] == BASE]["policy"].value_counts().to_dict()
    assert runs == {"thr_nlunaware": 2, "thr_nlaware": 2, "mdl_nlunaware": 2, "gesscale": 2, "ideal": 1}
    printed = metrics[metrics["variation"] == "printed_algorithm_4"]
    assert printed["policy"].unique().tolist() == ["gesscale"]


@pytest.mark.spark
def test_sensitivity_writes_every_set_with_its_parameters(built):
    found = json.loads((built / "sensitivity.json").read_text())
    assert (found["sets"], found["seeds"], found["orders"]) == (4, 2, 42)
    assert [row["variation"] for row in found["agreement"]] == [
        BASE, "cpu_mechanism_off", "no_back_pressure_in_catch_up",
    ]  # fmt: skip
    sets = pd.read_csv(built / "sensitivity_sets.csv", keep_default_na=False, na_values=["nan"])
    base = sets[sets["variation"] == BASE]
    assert base["set"].tolist() == [0, 1, 2, 3, 4]
    assert (base[["agree", "disagree", "not_significant"]].sum(axis=1) == 42).all()
    frequency = pd.read_csv(built / "sensitivity_orders.csv")
    assert len(frequency) == 42
    assert np.allclose(frequency[["agree", "disagree", "not_significant"]].sum(axis=1), 1.0)


@pytest.fixture
def with_long_ones(published):
    """A variation, one that takes long, a sweep that does, and a doubt that tells more of the long one."""
    axis = {"paths": ["testbed.back_pressure_in_catch_up"], "values": [0, 1]}
    doubt = Doubt(
        title="Cost",
        metrics=("cost",),
        variation="long",
        text="b: {{ ours.b.cost | fixed(0) }}.",
        text_in_full="Long: {{ variations.long.b.cost | fixed(0) }}.",
    )
    return published.model_copy(
        update={
            "variations": (
                Variation(name="short", title="", why=""),
                Variation(name="long", title="", why="", only_full=True),
            ),
            "sweeps": (Sweep.model_validate({"name": "grid", "axes": [axis], "only_full": True}),),
            "doubts": (doubt,),
        }
    )


def test_what_takes_long_is_part_of_a_full_build_alone(with_long_ones):
    experiment = load_experiment(FOLDER / "experiment.yml")
    short = cases_of(FOLDER, experiment, with_long_ones.in_short, range(1, 3))
    rest = long_cases_of(FOLDER, experiment, with_long_ones, range(1, 3))
    assert {case.variation for case in short} == {BASE, "short"}
    assert [case.variation for case in rest] == ["long", "grid/0", "grid/1"]


def test_a_doubt_says_without_the_long_variations_what_it_can(metrics, with_long_ones):
    experiment = load_experiment(FOLDER / "experiment.yml")
    runs = metrics.assign(variation=BASE)
    orders = judged_orders(runs, with_long_ones)
    (found,) = explained(with_long_ones.in_short, experiment, runs, orders, span_s=100.0)
    assert (found.text, found.settled) == ("b: 60.", None)
    both = pd.concat([runs, metrics.assign(variation="long")])
    (found,) = explained(with_long_ones, experiment, both, orders, span_s=100.0)
    assert (found.text, found.settled) == ("b: 60. Long: 60.", 0)


@pytest.mark.spark
def test_a_full_build_adds_what_takes_long_and_a_later_short_one_keeps_its_rows(small_paper, spark, tmp_path):
    variations = small_paper / "variations.yml"
    before = variations.read_text()
    variations.write_text(
        before.replace("- name: printed_algorithm_4", "- name: printed_algorithm_4\n  only_full: true")
    )
    try:
        build(str(small_paper), tmp_path, spark, seeds=2, full=True)
        tables = tmp_path / "figures" / "small" / "tables" / "metrics.parquet"
        shown = {BASE, "fitted", "no_back_pressure_in_catch_up", "cpu_mechanism_off"}
        everything = shown | {"printed_algorithm_4"}
        assert set(pd.read_parquet(tables)["variation"]) == everything
        kept = sorted((tmp_path / "campaigns" / "figures-small-full").glob("*.parquet"))
        summary = build(str(small_paper), tmp_path, spark, seeds=2)
        assert set(pd.read_parquet(tables)["variation"]) == shown
        assert sorted((tmp_path / "campaigns" / "figures-small-full").glob("*.parquet")) == kept != []
        assert "1 more variation or sweep" in summary.page.read_text()
    finally:
        variations.write_text(before)


def test_an_unwritable_folder_is_one_line(tmp_path):
    (tmp_path / "figures").write_text("a file in the way")
    with pytest.raises(FogscaleError, match="cannot write into"):
        build("gesscale", tmp_path, None, seeds=1)


def test_parameter_sets_fill_the_ranges_and_are_the_same_every_time():
    experiment = load_experiment(FOLDER / "experiment.yml")
    drawn = drawn_sets(experiment, 64)
    assert drawn == drawn_sets(experiment, 64)
    assert drawn[:8] == drawn_sets(experiment, 8), "a beginning of the sets is the same for any number"
    for parameter in experiment.parameters:
        if parameter.range is not None:
            values = [values[parameter.path] for values in drawn]
            low, high = parameter.range
            assert low <= min(values) < low + 0.1 * (high - low)
            assert high - 0.1 * (high - low) < max(values) <= high


def test_correlation_finds_the_parameter_that_matters():
    drawn = [{"matters": float(n), "does not": float(n * 7 % 10)} for n in range(1, 21)]
    agreement = pd.DataFrame({"variation": BASE, "set": range(21), "agree": [30, *range(10, 30)]})
    found = correlation(agreement, drawn)
    assert found["parameter"].tolist() == ["matters", "does not"]
    assert found["rank_correlation"].iloc[0] == pytest.approx(1.0)
    constant = correlation(agreement.assign(agree=5), drawn)
    assert constant["rank_correlation"].isna().all()


def test_the_frequency_of_an_order_leaves_the_calibration_and_the_variations_out():
    rows = [("", 0, "agree"), ("", 1, "agree"), ("", 2, "disagree"), ("linear", 1, "disagree")]
    orders = pd.DataFrame(rows, columns=["variation", "set", "verdict"])
    orders = orders.assign(scenario="", metric="cost", a="a", b="b", same_direction=True)
    (found,) = order_frequency(orders).to_dict("records")
    assert (found["agree"], found["disagree"], found["not_significant"]) == (0.5, 0.5, 0.0)
    assert agreement_by_set(orders)["agree"].tolist() == [1, 1, 0, 0]


def test_a_doubt_takes_its_numbers_from_the_results(metrics, published):
    doubt = Doubt(
        title="Cost",
        metrics=("cost",),
        text="b: {{ ours.b.cost | fixed(1) }}, said {{ published.b.cost }}, {{ setting('seeds') }} seeds",
    )
    experiment = load_experiment(FOLDER / "experiment.yml")
    paper = published.model_copy(update={"doubts": (doubt,)})
    runs = metrics.assign(variation=BASE)
    (found,) = explained(paper, experiment, runs, judged_orders(runs, paper), span_s=100.0)
    assert found.text == "b: 60.0, said 50.0, 20 seeds"
    assert found.orders == []


def test_a_doubt_shows_which_orders_agree_without_the_mechanism(metrics, published):
    experiment = load_experiment(FOLDER / "experiment.yml")
    doubt = Doubt(title="Cost", metrics=("cost",), policies=("b",), variation="off", text="")
    off = Variation(name="off", title="Off", why="")
    paper = published.model_copy(update={"doubts": (doubt,), "variations": (off,)})
    reversed_cost = metrics.assign(variation=BASE, cost=metrics["cost"].to_numpy()[::-1])
    runs = pd.concat([reversed_cost, metrics.assign(variation="off")])
    orders = judged_orders(reversed_cost, paper)
    (found,) = explained(paper, experiment, runs, orders, span_s=100.0)
    assert [(order["verdict"], order["without"]) for order in found.orders] == [("disagree", "agree")]
    assert found.settled == 1
    assert unexplained(orders, paper) == []
    elsewhere = doubt.model_copy(update={"metrics": ("reconfigurations",)})
    missed = unexplained(orders, paper.model_copy(update={"doubts": (elsewhere,)}))
    assert [order["metric"] for order in missed] == ["cost"]


def test_a_variation_of_some_policies_is_judged_beside_the_others_of_the_base(metrics):
    base = metrics.assign(variation=BASE)
    changed = metrics[(metrics["policy"] == "b") & (metrics["seed"] <= 2)].assign(variation="new", cost=1.0)
    both = pd.concat([base, changed])
    found = runs_under(both, Variation(name="new", title="", why="", policies=("b",)))
    assert found.groupby("policy")["seed"].agg(list).to_dict() == {"a": [1, 2], "b": [1, 2]}
    assert found.groupby("policy")["cost"].mean().to_dict() == {"a": 100.0, "b": 1.0}


def test_the_variations_of_a_paper_tell_what_a_perfect_simulator_would_reach(metrics, published):
    """Of two orders one is significant, so a perfect simulator agrees with it and hardly ever with a tie; two
    seeds are too few for any."""
    few = Variation(name="few", title="Few seeds", why="", seeds=2)
    paper = published.model_copy(update={"variations": (few,)})
    runs = pd.concat([metrics.assign(variation=BASE), metrics[metrics["seed"] <= 2].assign(variation="few")])
    table = variations_table(runs, paper, level=0.05).set_index("Assumption")
    assert table["Seeds"].to_dict() == {"As stated (fitted)": 4, "Few seeds": 2}
    assert table.loc["As stated (fitted)", "A perfect simulator"] == 1
    assert table.loc["Few seeds", "A perfect simulator"] <= 1


def test_a_setting_may_be_in_a_list():
    experiment = load_experiment(FOLDER / "experiment.yml")
    nodes = experiment.topology.nodes
    assert setting(experiment, "topology.nodes.1.name") == nodes[1].name
    assert setting(experiment, f"topology.nodes.{len(nodes)}.name") is None


def test_a_doubt_with_an_unknown_name_is_named(metrics, published):
    paper = published.model_copy(update={"doubts": (Doubt(title="Odd", text="{{ nobody.knows }}"),)})
    experiment = load_experiment(FOLDER / "experiment.yml")
    runs = metrics.assign(variation=BASE)
    with pytest.raises(FogscaleError, match="'Odd'"):
        explained(paper, experiment, runs, judged_orders(runs, paper), span_s=100.0)
