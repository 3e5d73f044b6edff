"""Where operators run by the layout, what goes along, and what policies are told and offered of it."""

from __future__ import annotations

import pytest

from controller.model import Capability
from controller.testbeds.flink.layout import (
    as_asked,
    check_layout,
    companions_of,
    dealt_out,
    groups_of,
    instances_of,
    leaders_of,
    vertices_of,
)
from controller.testbeds.flink.offers import ALWAYS, NOT_ELASTIC, UNCHAINED, offers_with
from controller.testbeds.flink.settings import FlinkSettings
from fogscale.errors import FogscaleError
from workloads.jobs.catalog import find

TAXI, CLICKS, ROUTES = find("taxi"), find("clickfraud"), find("toproutes")
PATTERNS = ["usersByAddress", "addressesByUser", "clickRate"]
ASKED = {"source": ("services1",), "map": ("fog2", "fog1"), "sink": ("services1",)}


def test_in_split_only_what_scales_follows_the_plan_in_fog_every_operator_does():
    assert instances_of(TAXI, "split", {"map": 3}) == {"map": 3}
    assert instances_of(TAXI, "fog", {"map": 3}) == {"source": 3, "map": 3, "sink": 3}


def test_operators_that_share_slots_go_along_with_the_one_that_a_plan_places():
    assert groups_of(CLICKS, "split") == [["parse", *PATTERNS]]
    assert leaders_of(CLICKS, "split", ["clickRate"]) == ["clickRate"]
    assert leaders_of(CLICKS, "split", []) == ["parse"]
    assert instances_of(CLICKS, "split", {"clickRate": 3}) == dict.fromkeys(["parse", *PATTERNS], 3)
    assert companions_of(CLICKS, "split", ["parse"]) == dict.fromkeys(PATTERNS, "parse")


def test_operators_with_slots_of_their_own_are_placed_each_by_itself():
    """Also those that do not scale, as long as they run in the fog."""
    leaders = leaders_of(ROUTES, "split", ["partialRank"])
    assert leaders == [
        "parser", "filterByCoordinates", "computeRouteID", "metronome", "countByWindow", "partialRank",
        "globalRank",
    ]  # fmt: skip
    counts = {**dict.fromkeys(leaders, 1), "partialRank": 4}
    assert instances_of(ROUTES, "split", counts) == counts
    assert companions_of(ROUTES, "split", leaders) == {}


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        pytest.param({"a": ("f2",), "b": ("f2", "f1")}, {"a": ("f2",), "b": ("f2", "f1")}, id="other slots"),
        pytest.param(
            {"a": ("f1",), "b": ("f1", "f2")}, {"a": ("f1",), "b": ("f2", "f1")}, id="another order"
        ),
        pytest.param({"a": ("f2",), "b": ("f1",)}, None, id="one is missing"),
        pytest.param({"a": ("f3",), "b": ("f1", "f2")}, None, id="a node that was not asked for"),
        pytest.param({"a": (), "b": ()}, None, id="nothing runs"),
    ],
)
def test_flink_deals_out_the_slots_of_the_nodes_that_were_asked_for(found, wanted):
    asked = {"source": ("services1",), "a": ("f1",), "b": ("f2", "f1")}
    told = dealt_out(asked, {"source": ("f1",), **found}, ["a", "b"])
    assert told == (asked if wanted is None else {"source": ("services1",), **wanted})


def test_in_split_what_runs_is_told_in_the_order_in_which_it_was_asked_for():
    found = {"source": ("services1",), "map": ("fog1", "fog2"), "sink": ("services1",)}
    assert as_asked(ASKED, found, companions_of(TAXI, "split", ["map"])) == ASKED


def test_in_fog_what_goes_along_is_where_it_was_said_to_be_as_long_as_it_is_beside_the_others():
    along = companions_of(TAXI, "fog", ["map"])
    assert along == {"source": "map", "sink": "map"}
    nodes = ("fog1", "fog2")
    assert as_asked(ASKED, dict.fromkeys(ASKED, nodes), along) == ASKED
    elsewhere = {**dict.fromkeys(ASKED, nodes), "sink": ("fog1", "services1")}
    assert as_asked(ASKED, elsewhere, along) == {**ASKED, "sink": ("fog1", "services1")}


@pytest.mark.parametrize("layout", ["split", "fog"])
def test_a_job_that_does_not_run_is_nowhere(layout):
    nothing = dict.fromkeys(ASKED, ())
    assert as_asked(ASKED, nothing, companions_of(TAXI, layout, ["map"])) == nothing


def test_a_chain_is_one_task_for_all_its_operators():
    """The name is the one that Flink gives: `Main plan taxi --layout fog --chained true` prints it."""
    chained = FlinkSettings(layout="fog", chained=True)
    name = "Source: source -> map -> sink: Writer -> sink: Committer"
    assert vertices_of(TAXI, chained) == {"source": name, "map": name, "sink": name}
    assert vertices_of(TAXI, FlinkSettings())["map"] == "map"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        pytest.param({"chained": True}, "testbed.chained: .* choose layout: fog", id="a chain across nodes"),
        pytest.param({"layout": "fog", "job": "clickfraud"}, "testbed.layout: 'clickfraud'", id="by key"),
        pytest.param(
            {"style": "elastic", "job": "toproutes"}, "testbed.style: .*'toproutes'", id="whose slots?"
        ),
        pytest.param({"job_settings": {"layout": "fog"}}, "write it as testbed.layout", id="hidden"),
    ],
)
def test_what_cannot_run_so_is_refused_before_anything_starts(values, words):
    settings = FlinkSettings(**values)
    with pytest.raises(FogscaleError, match=words):
        check_layout(find(settings.job), settings)


def test_what_is_offered_is_what_there_is():
    assert offers_with(FlinkSettings()) == ALWAYS | UNCHAINED | NOT_ELASTIC
    assert offers_with(FlinkSettings(style="elastic")) == ALWAYS | UNCHAINED
    assert Capability.BACK_PRESSURE not in offers_with(FlinkSettings(layout="fog", chained=True))
