"""What a value of an inventory may be. Names, addresses and paths end up in files and commands of root on
every node, where a blank, a semicolon or a line break means something else: each is checked as what it is."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Network
from math import isfinite
from typing import Any

from fogscale.errors import FogscaleError, printable

# A name becomes a host name, and with a prefix an interface's name of at most 15 characters.
_NODE = re.compile(r"[a-z]([a-z0-9-]{0,10}[a-z0-9])?")
# Mounts, nspawn, ssh and shells each give a meaning of their own to colons, commas, blanks and quotes.
_FOLDER = re.compile(r"[\w./+@~][\w./+@~-]*")
# The kernel allows more (at most 15 bytes, no slash, no blank); no system names its interfaces like that.
_INTERFACE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}")
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,31}")
_HOST = re.compile(r"(?=.{1,253}$)[A-Za-z0-9]([A-Za-z0-9-]{0,62})(\.[A-Za-z0-9][A-Za-z0-9-]{0,62})*\.?")
MOST_CPUS, MOST_MEMORY_MB = 4096.0, 1 << 24


def node_name(value: str) -> str:
    if value == "control":
        raise _refusal("node 'control': the machine's own end of the network is called so: use another name")
    return _matching(_NODE, value, f"node '{value}'",
                     "use at most 12 small letters, digits and dashes, beginning with a letter")  # fmt: skip


def interface_name(value: str) -> str:
    return _matching(_INTERFACE, value, f"interface '{value}'",
                     "use an interface's name, e.g. eth0 ('ip -brief address' lists them)")  # fmt: skip


def user_name(value: str) -> str:
    return _matching(_USER, value, f"user '{value}'", "use letters, digits and ._- only")


def folder_name(value: str) -> str:
    return _matching(
        _FOLDER, value,
        f"the folder '{value}' has a character in its name that mounts or shells would stumble over",
        "use letters, digits and ./+@~-_ only (FOGSCALE_STATE and XDG_CACHE_HOME name other folders)",
    )  # fmt: skip


def address(value: str) -> str:
    try:
        return str(IPv4Address(value))
    except ValueError:
        raise _refusal(f"'{value}' is no address: write an IPv4 address, e.g. 192.168.77.10") from None


def network(value: str) -> IPv4Network:
    try:
        return IPv4Network(value)
    except ValueError as error:
        raise _refusal(f"{error}: write a network, e.g. 10.77.0.0/24") from None


def port(value: int | str) -> int:
    try:
        number = 0 if isinstance(value, (bool, float)) else int(value)
    except (TypeError, ValueError):
        number = 0
    if not 0 < number < 1 << 16:
        raise _refusal(f"'{value}' is no port: write a number from 1 to 65535")
    return number


def broker(value: str) -> tuple[str, int]:
    """Host and port of `host:port`."""
    host, colon, number = value.rpartition(":")
    if not colon or not _HOST.fullmatch(host) or not number.isascii() or not number.isdigit():
        raise _refusal(
            f"'{value}' is no address:port of a broker, e.g. 192.168.77.5:9092; "
            "leave it empty for one on the services node"
        )
    return host, port(number)


def in_range(value: Any, least: float, most: float) -> bool:
    """False of what is no number at all (.nan, a list, yes) and of what never ends (.inf)."""
    try:
        number = float("nan") if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return isfinite(number) and least <= number <= most


def _matching(pattern: re.Pattern[str], value: str, what: str, remedy: str) -> str:
    if not pattern.fullmatch(value):
        raise _refusal(f"{what}: {remedy}")
    return value


def _refusal(words: str) -> FogscaleError:
    """One line, whatever the value."""
    return FogscaleError(printable(words))
