"""Claims on metrics made by hand, and the published table against the published percentages."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import paper_figures.gesscale
from fogscale.errors import FogscaleError
from paper_figures.claims import from_published_table, judged_claims
from paper_figures.published import Claim, Published, load, paper_folder, papers

GESSCALE = Path(paper_figures.gesscale.__file__).parent


def test_a_reduction_with_its_interval(metrics, published):
    cheaper, _ = judged_claims(metrics, published)
    assert cheaper.ours == pytest.approx(40.0)
    assert 38.0 < cheaper.low < 40.0 < cheaper.high < 42.0
    assert (cheaper.state, cheaper.holds) == ("in direction only", False)  # published are 50
    assert (cheaper.test, cheaper.correction) == ("paired", "holm")


def test_a_claim_holds_where_its_size_lies_in_our_interval(metrics, published):
    metrics.loc[metrics["policy"] == "b", "cost"] = [49.0, 50.0, 51.0, 50.0]
    half, _ = judged_claims(metrics, published)
    assert (half.state, half.holds) == ("holds", True)


def test_a_change_that_is_not_significant_does_not_hold(metrics, published):
    _, more = judged_claims(metrics, published)
    assert more.published is None
    assert more.ours == pytest.approx(0.0)
    assert more.low < 0 < more.high
    assert not more.holds


def test_the_wrong_direction_does_not_hold(metrics, published):
    metrics["cost"] = metrics["cost"].to_numpy()[::-1]
    cheaper, _ = judged_claims(metrics, published)
    assert cheaper.ours < 0
    assert not cheaper.holds


def test_no_ratio_to_a_baseline_of_zero(metrics, published):
    metrics.loc[metrics["policy"] == "a", "cost"] = 0.0
    cheaper, _ = judged_claims(metrics, published)
    assert (cheaper.ours, cheaper.low, cheaper.high, cheaper.holds) == (None, None, None, False)


def published_percentages() -> list:
    claims = load(GESSCALE).claims
    return [pytest.param(claim, id=claim.text) for claim in claims if claim.published is not None]


@pytest.mark.parametrize("claim", published_percentages())
def test_the_formulas_give_the_published_percentages_of_the_published_table(claim: Claim):
    digits = 0 if claim.published == round(claim.published) else 1
    assert round(from_published_table(claim, load(GESSCALE)), digits) == claim.published


def test_gesscale_has_all_claims_and_42_orders():
    published = load(GESSCALE)
    assert [claim.published for claim in published.claims] == [52, 17, 37, 38, 16, 63.5, None]
    assert len(published.metrics) * len(published.pairs) == 42


def test_a_paper_is_found_by_name_and_by_folder(tmp_path):
    assert paper_folder("gesscale") in papers()
    assert paper_folder(str(GESSCALE)) == GESSCALE
    with pytest.raises(FogscaleError, match="did you mean gesscale"):
        paper_folder("geescale")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("title: [", "is not YAML", id="broken"),
        pytest.param(
            "{title: t, reference: r, labels: {a: A}, metrics: [cost], table: {a: {}}}",
            "metric 'cost' is missing",
            id="a hole in the table",
        ),
        pytest.param(
            "{title: t, reference: r, labels: {}, metrics: [cost], table: {a: {cost: 1}}}",
            "labels: nothing is given for policy 'a'",
            id="no label",
        ),
    ],
)
def test_what_is_wrong_with_published_yml_is_said_in_one_line(tmp_path, text, message):
    (tmp_path / "published.yml").write_text(text)
    with pytest.raises(FogscaleError, match=message) as caught:
        load(tmp_path)
    assert "\n" not in str(caught.value)


def limited(**limit):
    return Claim(text="claim", published=12.0, limit={"metric": "cost", "of": "a"} | limit)


@pytest.mark.parametrize(
    ("limit", "costs", "state"),
    [
        ({"above": 10}, [12.1, 11.9, 12.0, 12.2, 11.8], "holds"),
        ({"above": 10}, [14.1, 13.9, 14.0, 14.2, 13.8], "in direction only"),
        ({"below": 10}, [12.1, 11.9, 12.0, 12.2, 11.8], "does not hold"),
        ({"above": 11.9}, [12.5, 11.5, 12.0, 12.4, 11.6], "does not hold"),
        ({"below": 12.5}, [12.0, 12.0, 12.0, 12.0, 12.0], "holds"),
    ],
    ids=["beyond it", "of another size", "on the other side", "within chance", "always the same"],
)
def test_a_mean_is_judged_against_a_limit(limit, costs, state):
    runs = pd.DataFrame({"scenario": "", "policy": "a", "seed": range(5), "cost": costs})
    published = Published(
        title="t", reference="r", labels={"a": "A"}, metrics=("cost",),
        tables={"": {"a": {"cost": 12.0}}}, claims=(limited(**limit),),
    )  # fmt: skip
    [judged] = judged_claims(runs, published)
    assert judged.state == state
    assert judged.unit == "replica-min"


@pytest.mark.parametrize("limit", [{}, {"above": 1, "below": 2}])
def test_a_limit_is_one_limit(limit):
    with pytest.raises(ValueError, match="exactly one of above and below"):
        limited(**limit)


def bounded(**bounds):
    return Claim(text="a number", published=4, measured={"of": "delay", "unit": "steps", **bounds})


@pytest.mark.parametrize(
    ("bounds", "holds"),
    [
        pytest.param({"at_least": 1, "at_most": 8}, True, id="all of the interval within the bounds"),
        pytest.param({"at_least": 4.9}, False, id="the interval's lower end is below"),
        pytest.param({"at_most": 5.1}, False, id="the interval's upper end is above"),
    ],
)
def test_a_statement_holds_where_its_interval_lies_within_the_bounds(metrics, published, bounds, holds):
    paper = published.model_copy(update={"claims": (bounded(**bounds),)})
    (found,) = judged_claims(metrics, paper, statements={"delay": [4.0, 5.0, 6.0, float("nan")]})
    assert (found.ours, found.holds, found.unit) == (5.0, holds, "steps")
    assert found.high - found.low == pytest.approx(2 * 4.303 / 3**0.5, rel=1e-3)  # Student, 2 degrees
    assert found.state == ("holds" if holds else "does not hold")


def test_one_value_is_exact_and_none_cannot_hold(metrics, published):
    paper = published.model_copy(update={"claims": (bounded(at_least=4, at_most=4),)})
    (exact,) = judged_claims(metrics, paper, statements={"delay": [4.0]})
    assert (exact.low, exact.high, exact.holds) == (4.0, 4.0, True)
    (none,) = judged_claims(metrics, paper, statements={"delay": []})
    assert (none.ours, none.holds) == (None, False)


def test_a_statement_that_nobody_measures_and_one_without_bounds_are_errors(metrics, published):
    paper = published.model_copy(update={"claims": (bounded(at_least=1),)})
    with pytest.raises(FogscaleError, match="did you mean delay_s"):
        judged_claims(metrics, paper, statements={"delay_s": [1.0]})
    with pytest.raises(ValueError, match="could not fail"):
        bounded()
