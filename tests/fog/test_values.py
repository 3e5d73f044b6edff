"""Whatever an inventory says ends in a command of root: nothing but what it should be may pass."""

from __future__ import annotations

import shlex
from collections.abc import Callable

import pytest

from fog import values
from fogscale.errors import FogscaleError

HOSTILE = (
    "1.2.3.4; reboot", "$(reboot)", "`reboot`", "a b", "a\nb", "a\tb", "-rf", "--help", "'", '"', "a'b",
    "a|b", "a&b", "a>b", "a:b:c", "a,b", "", " ", "\x00", "eth0\n", "../..;x", "é;", "{{ x }}", "%s",
)  # fmt: skip
CHECKS: dict[str, Callable[[str], object]] = {
    "node_name": values.node_name, "interface_name": values.interface_name, "user_name": values.user_name,
    "address": values.address, "network": values.network, "broker": values.broker, "port": values.port,
    "folder_name": values.folder_name,
}  # fmt: skip


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("value", HOSTILE)
def test_what_a_shell_would_read_as_more_than_a_word_never_passes(check: str, value: str) -> None:
    with pytest.raises(FogscaleError) as caught:
        CHECKS[check](value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("check", "value"),
    [
        ("node_name", "fog1"), ("node_name", "a"), ("node_name", "services-eu1"),
        ("interface_name", "eth0"), ("interface_name", "enp0s31f6"), ("interface_name", "wlan0.100"),
        ("user_name", "pi"), ("user_name", "_ansible"), ("address", "192.168.77.10"),
        ("network", "10.77.0.0/24"),
        ("broker", "192.168.77.5:9092"), ("broker", "kafka.example.org:9092"), ("port", "65535"),
        ("folder_name", "/home/zoë/.local/state/fogscale-1"), ("folder_name", "~/x+y@z"),
    ],
)  # fmt: skip
def test_what_inventories_say_passes_and_is_one_word_for_a_shell(check: str, value: str) -> None:
    CHECKS[check](value)
    assert shlex.split(value) == [value]


@pytest.mark.parametrize(
    ("check", "value"),
    [
        ("node_name", "Fog1"), ("node_name", "fog_1"), ("node_name", "x" * 13), ("node_name", "control"),
        ("interface_name", "x" * 16),
        ("address", "pi1.local"), ("address", "1.2.3"), ("address", "::1"), ("network", "10.77.0.1/24"),
        ("broker", "broker"), ("broker", "broker:0"), ("broker", "broker:٣"), ("port", "0"),
        ("port", "65536"), ("port", "http"),
    ],
)  # fmt: skip
def test_what_is_harmless_but_wrong_does_not_pass_either(check: str, value: str) -> None:
    with pytest.raises(FogscaleError):
        CHECKS[check](value)


def test_numbers_that_are_none_are_outside_of_every_range() -> None:
    assert not any(
        values.in_range(value, -1e300, 1e300) for value in (float("nan"), float("inf"), -float("inf"))
    )
    assert values.in_range(0.2, 1e-3, values.MOST_CPUS)
