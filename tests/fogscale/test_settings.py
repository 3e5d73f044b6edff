"""Durations with units, and the one line a user reads when a setting is wrong."""

import re

import pytest

from controller.guards import guarded
from controller.policies.static import Static
from controller.testbeds.simulated.settings import Simulation
from fogscale.errors import FogscaleError, unknown
from fogscale.settings import PositiveSeconds, Ratio, Seconds, Settings, validated


class Wait(Settings):
    for_s: Seconds = 0.0
    every_s: PositiveSeconds = 1.0
    share: Ratio = 0.5


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        (90, 90),
        (0.25, 0.25),
        (0, 0),
        ("90", 90),
        ("1.5", 1.5),
        ("250 ms", 0.25),
        ("250ms", 0.25),
        ("2 s", 2),
        ("2 sec", 2),
        ("2 min", 120),
        (" 2min ", 120),
        ("1.5 h", 5400),
        ("2 d", 172_800),
        ("1e3 s", 1000),
        ("+5 s", 5),
    ],
)
def test_a_duration_is_seconds_or_has_a_unit(given, seconds):
    assert validated(Wait, {"for_s": given}, "test").for_s == pytest.approx(seconds, rel=1e-12)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("2 minutes", "unknown unit 'minutes': did you mean min?"),
        ("2 hr", "unknown unit 'hr': did you mean h?"),
        ("2 M", "unknown unit 'M'"),
        ("soon", "'soon' is not a duration"),
        ("", "is not a duration"),
        ("2 min 30 s", "is not a duration"),
        ("1-2 s", "'1-2 s' is not a duration"),
        ("e s", "'e s' is not a duration"),
        ("-5 s", "greater than or equal to 0"),
        (-5, "greater than or equal to 0"),
        (float("nan"), "finite number"),
        (float("inf"), "finite number"),
        (None, "valid number"),
        ([1, 2], "valid number"),
    ],
)
def test_what_is_no_duration_is_explained(given, message):
    with pytest.raises(FogscaleError) as error:
        validated(Wait, {"for_s": given}, "test")
    assert str(error.value).startswith("test: for_s: ")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_positive_duration_is_not_zero():
    with pytest.raises(FogscaleError, match="every_s: Input should be greater than 0"):
        validated(Wait, {"every_s": "0 min"}, "test")


@pytest.mark.parametrize("given", [-0.01, 1.01])
def test_a_ratio_lies_between_0_and_1(given):
    with pytest.raises(FogscaleError, match="share"):
        validated(Wait, {"share": given}, "test")


def test_an_unknown_key_finds_the_known_one():
    with pytest.raises(
        FogscaleError, match=r"^test: unknown key 'for': did you mean for_s\? \(known: every_s"
    ):
        validated(Wait, {"for": 1}, "test")


def test_settings_do_not_change():
    with pytest.raises(ValueError, match="frozen"):
        Wait().for_s = 3  # type: ignore[misc]


def test_a_name_like_no_other_gets_only_the_list():
    assert unknown("policy", "xyz", ["static", "ideal"]) == "unknown policy 'xyz': (known: ideal, static)"


def test_a_near_name_is_suggested():
    assert unknown("policy", "idael", ["static", "ideal"]).startswith(
        "unknown policy 'idael': did you mean ideal? "
    )


@pytest.mark.parametrize(
    ("where", "changes", "words"),
    [
        (
            "capacity",
            {"map": {"law": "power_latencie"}},
            "unknown law 'power_latencie': did you mean power_latency?",
        ),
        ("reconfiguration", {"style": "restrat"}, "unknown style 'restrat': did you mean restart?"),
        ("faults", [{"kind": "stragler"}], "unknown kind 'stragler': did you mean straggler?"),
        ("buffering", "queue", "unknown buffering 'queue': did you mean queues?"),
    ],
)
def test_a_word_that_is_none_of_a_few_finds_the_nearest(where, changes, words):
    with pytest.raises(FogscaleError, match=re.escape(words)):
        validated(
            Simulation, {"capacity": {}, "reconfiguration": {"style": "restart"}, where: changes}, "test"
        )


def test_a_guard_that_is_not_known_finds_the_nearest():
    with pytest.raises(FogscaleError, match=r"unknown guard 'warmpu': did you mean warmup_s\?"):
        guarded(Static(), {"warmpu": 300.0})
