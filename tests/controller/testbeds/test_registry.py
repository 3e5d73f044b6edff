"""Testbeds by name: built in or from another package, and what an experiment may say of them."""

from typing import Literal

import pytest

from controller import testbeds
from controller.experiment import Run, load, on_testbed, runs_of
from controller.model import Capability
from controller.run import prepare
from controller.testbeds import Setup, TestbedSettings, broken, describe, kind_of, names, register
from fogscale.errors import FogscaleError
from fogscale.settings import validated
from tests.support.runs import load_csv, run_values, simulated


class TwiceSettings(TestbedSettings):
    kind: Literal["twice"] = "twice"
    rate_per_s: int = 10


class Twice:
    """A second testbed. It has no capacity ladder."""

    settings = TwiceSettings
    offers = frozenset({Capability.CPU})
    may_offer: frozenset[Capability] = frozenset()

    def prepare(self, wanted, settings):
        return Setup(lambda: simulated([settings.rate_per_s] * 60), wanted.duration_s, facts={"found": 7})


@pytest.fixture
def registry(monkeypatch):
    """What is registered here is forgotten afterwards."""
    names()
    monkeypatch.setattr(testbeds.registry, "registered", dict(testbeds.registry.registered))
    monkeypatch.setattr(testbeds.registry, "reasons", {})
    yield
    testbeds.registry.is_complete = False


@pytest.fixture
def twice(registry):
    return register("twice")(Twice)


@pytest.fixture
def values(tmp_path):
    return run_values("static", load_csv(tmp_path, [60] * 5))


def test_the_simulated_testbed_is_found_by_itself():
    assert "simulated" in names()
    described = describe("simulated")
    assert "seed" in described.summary
    assert "cpu" in described.offers
    assert set(described.may_offer) == {"memory", "instant_rescale"}
    assert "capacity" in described.settings
    assert "kind" not in described.settings


def test_what_a_kind_offers_is_what_its_testbeds_offer(values):
    offers = prepare(Run.model_validate(values)).setup.testbed().offers
    kind = kind_of("simulated")
    assert kind.offers <= offers <= kind.offers | kind.may_offer


def installed(folder, monkeypatch, module, code):
    """As pip leaves a package that publishes a testbed."""
    about = folder / f"{module}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[fogscale.testbeds]\n{module} = {module}\n")
    (folder / f"{module}.py").write_text(code)
    monkeypatch.syspath_prepend(folder)
    testbeds.registry.is_complete = False


PUBLISHED = """
from typing import Literal
from controller.testbeds import Setup, TestbedSettings, register

class ElsewhereSettings(TestbedSettings):
    kind: Literal["elsewhere"] = "elsewhere"

@register("elsewhere")
class Elsewhere:
    "On another planet."
    settings, offers, may_offer = ElsewhereSettings, frozenset(), frozenset()

    def prepare(self, wanted, settings):
        return Setup(lambda: None, wanted.duration_s)
"""


def test_another_package_publishes_a_testbed_by_an_entry_point(registry, tmp_path, monkeypatch):
    installed(tmp_path, monkeypatch, "elsewhere_testbed", PUBLISHED)
    assert set(names()) >= {"simulated", "elsewhere"}
    assert describe("elsewhere").summary == "On another planet."


@pytest.mark.parametrize("code", ["import no_such_package", "raise SystemExit('no_such_package')"])
def test_a_testbed_that_cannot_be_imported_disables_itself_only(registry, tmp_path, monkeypatch, code):
    installed(tmp_path, monkeypatch, "broken_testbed", code)
    assert "simulated" in names()
    assert "no_such_pack" in broken()["broken_testbed"]
    with pytest.raises(FogscaleError, match=r"testbed 'broken_testbed' is broken: .* cannot be imported"):
        kind_of("broken_testbed")


def test_two_testbeds_of_one_name_are_refused(twice):
    other = type("Other", (Twice,), {"__module__": "elsewhere"})
    with pytest.raises(FogscaleError, match="two testbeds are called 'twice'"):
        register("twice")(other)


def test_settings_must_carry_the_name(registry):
    with pytest.raises(FogscaleError, match="testbed 'thrice': its settings need the field kind"):
        register("thrice")(Twice)


def test_a_run_on_another_testbed_needs_no_ladder(twice, values):
    run = Run.model_validate(values | {"testbed": {"kind": "twice", "rate_per_s": 20}})
    assert run.testbed == TwiceSettings(rate_per_s=20)
    assert Run.model_validate_json(run.model_dump_json()) == run
    header = prepare(run).header()
    assert header["testbed"] == "twice"
    assert header["capacity_per_s"] == ()
    assert (header["n_min"], header["n_max"], header["found"]) == (1, 5, 7)


@pytest.mark.parametrize(
    ("testbed", "message"),
    [
        ({"kind": "simulatd"}, "testbed: unknown testbed 'simulatd': did you mean simulated?"),
        ({"rate_per_s": 20}, "testbed: name its kind (known: "),
        ({"kind": "twice", "rat_per_s": 20}, "testbed: unknown key 'rat_per_s': did you mean rate_per_s?"),
        ({"kind": "twice", "rate_per_s": "many"}, "testbed.rate_per_s: "),
        (7, "testbed: "),
    ],
)
def test_a_mistake_is_one_line_with_the_path_to_it(twice, values, testbed, message):
    with pytest.raises(FogscaleError) as error:
        validated(Run, values | {"testbed": testbed}, "run")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_an_experiment_can_be_run_on_another_testbed_with_its_usual_settings(twice, gesscale):
    moved = on_testbed(gesscale, "twice")
    assert moved.testbed == TwiceSettings()
    assert {run.testbed for run in runs_of(moved, seeds=[1])} == {TwiceSettings()}
    assert on_testbed(gesscale, "simulated") is gesscale


def test_what_another_testbed_must_be_told_is_asked_for(twice, gesscale):
    with pytest.raises(FogscaleError, match=r"testbed 'simulated', of which the experiment says .*capacity"):
        on_testbed(on_testbed(gesscale, "twice"), "simulated")
    with pytest.raises(FogscaleError, match="unknown testbed 'twic': did you mean twice"):
        on_testbed(gesscale, "twic")


@pytest.fixture
def gesscale():
    from fogscale.cli import default_experiment

    return load(default_experiment())
