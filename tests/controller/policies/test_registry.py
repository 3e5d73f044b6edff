"""Policies are found by their file, or published by another package."""

import sys
from importlib.metadata import EntryPoint

import pytest

from controller import policies
from controller.policies import broken, create, describe, names, parameter, policy_class, register
from fogscale import plugins
from fogscale.errors import FogscaleError

GESSCALES_OWN = ("gesscale", "ideal", "mdl_nlunaware", "static", "thr_nlaware", "thr_nlunaware")

PUBLISHED = '''
"""Asks for nothing, ever."""
from dataclasses import dataclass
from controller.policies import MemorylessPolicy, parameter, register

@register("sleeper")
@dataclass(frozen=True)
class Sleeper(MemorylessPolicy):
    period_s: float = parameter(60.0, "seconds between naps")
    needs = frozenset()

    def decide(self, observation):
        return None
'''


@pytest.fixture
def registry(monkeypatch):
    """Whatever a test registers is forgotten afterwards."""
    names()
    monkeypatch.setattr(policies.registry, "registered", dict(policies.registry.registered))
    monkeypatch.setattr(policies.registry, "reasons", {})
    yield
    policies.registry.is_complete = False


def test_the_policies_of_the_gesscale_paper_are_there_in_order():
    assert set(GESSCALES_OWN) <= set(names())
    assert list(names()) == sorted(names())


def test_a_misspelt_policy_finds_the_known_one():
    with pytest.raises(FogscaleError, match=r"unknown policy 'gescale': did you mean gesscale\?"):
        policy_class("gescale")


def test_a_file_dropped_in_is_found(registry, tmp_path, monkeypatch):
    (tmp_path / "sleeper.py").write_text(PUBLISHED, encoding="utf-8")
    monkeypatch.setattr(policies, "__path__", [*policies.__path__, str(tmp_path)])
    policies.registry.is_complete = False
    assert "sleeper" in names()
    assert describe("sleeper").summary == "Asks for nothing, ever."
    monkeypatch.delitem(sys.modules, "controller.policies.sleeper")


def test_another_package_publishes_one(registry, tmp_path, monkeypatch):
    (tmp_path / "elsewhere_sleeper.py").write_text(PUBLISHED, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    entry = EntryPoint("sleeper", "elsewhere_sleeper", "fogscale.policies")
    monkeypatch.setattr(plugins, "entry_points", lambda **_group: [entry])
    policies.registry.is_complete = False
    assert create("sleeper").period_s == 60
    monkeypatch.delitem(sys.modules, "elsewhere_sleeper")


def test_a_published_policy_that_cannot_be_imported_disables_itself_only(registry, monkeypatch):
    entry = EntryPoint("missing", "no_such_module_anywhere", "fogscale.policies")
    monkeypatch.setattr(plugins, "entry_points", lambda **_group: [entry])
    policies.registry.is_complete = False
    assert "static" in names()
    assert "no_such_module_anywhere" in broken()["missing"]


@pytest.mark.parametrize("code", ["import no_such_module_anywhere", "raise SystemExit(3)", "def"])
def test_a_dropped_file_that_cannot_be_imported_disables_itself_only(registry, tmp_path, monkeypatch, code):
    (tmp_path / "halfdone.py").write_text(f"{code}\n", encoding="utf-8")
    monkeypatch.setattr(policies, "__path__", [*policies.__path__, str(tmp_path)])
    policies.registry.is_complete = False
    assert "static" in names()
    with pytest.raises(FogscaleError, match=r"^policy 'halfdone' is broken: .* cannot be imported"):
        create("halfdone")


def test_two_of_one_name_are_refused(registry):
    class Another:
        pass

    with pytest.raises(FogscaleError, match="two policies are called 'static'"):
        register("static")(Another)


def test_a_parameter_of_a_wrong_type_is_named():
    with pytest.raises(FogscaleError, match="parameter 'n_min' of policy 'gesscale'"):
        create("gesscale", {"n_min": "two"})


def test_a_parameter_with_few_choices_takes_only_those():
    with pytest.raises(FogscaleError, match="'algorithm_4' of policy 'gesscale'"):
        create("gesscale", {"algorithm_4": "guessed"})


def test_a_mutable_default_is_not_shared():
    first, second = parameter({}, "a"), parameter({}, "b")
    assert first.default_factory() is not first.default_factory()
    assert first.metadata["description"] == "a"
    assert second.metadata["description"] == "b"


def test_a_description_lists_parameters_with_defaults():
    described = {known["name"]: known["default"] for known in describe("gesscale").parameters}
    assert described["high_back_pressure_ratio"] == 0.5
    assert described["confirmations"] == 2
    assert described["spare_ratio"] == 0.3
    assert described["algorithm_4"] == "corrected"
    assert set(describe("thr_nlaware").needs) == {"cpu", "node_choice", "operator_parallelism", "rtt"}


@pytest.mark.parametrize(
    ("policy", "parameters"),
    [("gesscale", {"period_s": -5}), ("thr_nlaware", {"period_s": 0}), ("gesscale", {"confirmations": 0})],
)
def test_a_parameter_out_of_range_is_named(policy, parameters):
    with pytest.raises(FogscaleError, match=rf"parameter '{next(iter(parameters))}' .* give at least"):
        create(policy, parameters)
