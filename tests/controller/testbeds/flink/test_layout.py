"""Where operators run by the layout, what goes along, and what policies are told and offered of it."""

from __future__ import annotations

import pytest

from controller.model import Capability
from controller.testbeds.flink.layout import as_asked, check_layout, companions_of, instances_of, vertices_of
from controller.testbeds.flink.offers import ALWAYS, NOT_ELASTIC, UNCHAINED, offers_with
from controller.testbeds.flink.settings import FlinkSettings
from fogscale.errors import FogscaleError
from workloads.jobs.catalog import find

TAXI = find("taxi")
ASKED = {"source": ("services1",), "map": ("fog2", "fog1"), "sink": ("services1",)}


def test_in_split_only_what_scales_follows_the_plan_in_fog_every_operator_does():
    assert instances_of(TAXI, "split", {"map": 3}) == {"map": 3}
    assert instances_of(TAXI, "fog", {"map": 3}) == {"source": 3, "map": 3, "sink": 3}


def test_in_split_what_runs_is_told_in_the_order_in_which_it_was_asked_for():
    found = {"source": ("services1",), "map": ("fog1", "fog2"), "sink": ("services1",)}
    assert as_asked(ASKED, found, companions_of(TAXI, "split")) == ASKED


def test_in_fog_what_goes_along_is_where_it_was_said_to_be_as_long_as_it_is_beside_the_others():
    along = companions_of(TAXI, "fog")
    assert along == {"source": "map", "sink": "map"}
    nodes = ("fog1", "fog2")
    assert as_asked(ASKED, dict.fromkeys(ASKED, nodes), along) == ASKED
    elsewhere = {**dict.fromkeys(ASKED, nodes), "sink": ("fog1", "services1")}
    assert as_asked(ASKED, elsewhere, along) == {**ASKED, "sink": ("fog1", "services1")}


@pytest.mark.parametrize("layout", ["split", "fog"])
def test_a_job_that_does_not_run_is_nowhere(layout):
    nothing = dict.fromkeys(ASKED, ())
    assert as_asked(ASKED, nothing, companions_of(TAXI, layout)) == nothing


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
