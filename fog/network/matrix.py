"""The wanted round trips: a header, one row per node, checked in words before any host is touched.

nodes: [server1, fog1, fog2]
server1: [0, 5, 50]
fog1: [5, 0, 50]
fog2: [50, 50, 0]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Any

from controller.network import RttMatrix
from fogscale.errors import FogscaleError, unknown

HEADER = "nodes"
MOST_MS = 300.0  # the papers' fog: 0-300 ms
LONGEST_MS = 60_000.0  # beyond a minute, no service of the testbed would wait


def tolerance_ms(wanted_ms: float) -> float:
    """How far a measured round trip may lie from the wanted one."""
    return max(1.0, 0.03 * wanted_ms)


def rtt_matrix(
    rows: Any, nodes: Sequence[str], known: Iterable[str] = (), most_ms: float = MOST_MS
) -> RttMatrix:
    """The part of the matrix that concerns these nodes. `known` are further nodes it may speak of: an
    inventory can describe more nodes than are in use."""
    if not isfinite(most_ms) or not 0 <= most_ms <= LONGEST_MS:
        raise FogscaleError(
            f"fog_rtt_max_ms is {most_ms}: write a number of milliseconds, at most {LONGEST_MS:g}"
        )
    names = _columns(rows)
    for name in names:
        if name not in {*nodes, *known}:
            raise FogscaleError(f"fog_rtt_ms: {unknown('node', name, [*nodes, *known])}")
    for name in nodes:
        if name not in names:
            other = next((each for each in names if each != name), "any other node")
            raise FogscaleError(
                f"fog_rtt_ms does not speak of {name}, so the pair {name}-{other} is missing: add {name} to "
                f"'nodes', a row for it, and its value to every other row"
            )
    table = {name: _row(name, rows[name], names, most_ms) for name in names}
    _check_symmetry(table, names)
    used = tuple(nodes)
    return RttMatrix(used, tuple(tuple(table[a][names.index(b)] for b in used) for a in used))


def _columns(rows: Any) -> list[str]:
    """The order of the columns, and that there is a row for each."""
    if (
        not isinstance(rows, Mapping)
        or not isinstance(rows.get(HEADER), Sequence)
        or isinstance(rows[HEADER], str)
    ):
        raise FogscaleError(
            "fog_rtt_ms: write 'nodes: [fog1, fog2]' for the columns, then one row per node, "
            "e.g. 'fog1: [0, 5]'"
        )
    names = [str(name) for name in rows[HEADER]]
    for name in names:
        if names.count(name) > 1:
            raise FogscaleError(f"fog_rtt_ms: nodes names {name} twice: remove one")
    for name in rows:
        if name != HEADER and name not in names:
            raise FogscaleError(
                f"fog_rtt_ms: there is a row for {name} but no column: add it to 'nodes' and to every row"
            )
    for name in names:
        if name not in rows:
            raise FogscaleError(f"fog_rtt_ms: {name} has a column but no row: add '{name}: [...]'")
    return names


def _row(name: str, row: Any, names: Sequence[str], most_ms: float) -> list[float]:
    if isinstance(row, str) or not isinstance(row, Sequence):
        raise FogscaleError(f"fog_rtt_ms: the row of {name} is no list: write it as [0, 5, 50]")
    if len(row) < len(names):
        raise FogscaleError(
            f"fog_rtt_ms: the row of {name} has {len(row)} of {len(names)} values, "
            f"the pair {name}-{names[len(row)]} is missing: add its round trip in ms"
        )
    if len(row) > len(names):
        raise FogscaleError(
            f"fog_rtt_ms: the row of {name} has {len(row)} values for {len(names)} nodes: "
            f"remove what is too much"
        )
    return [_milliseconds(name, other, value, most_ms) for other, value in zip(names, row, strict=True)]


def _milliseconds(a: str, b: str, value: Any, most_ms: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise FogscaleError(f"fog_rtt_ms: {a}-{b} is '{value}': write a number of milliseconds")
    if a == b and value != 0:
        raise FogscaleError(f"fog_rtt_ms: from {a} to itself takes {value:g} ms: write 0")
    if value < 0:
        raise FogscaleError(
            f"fog_rtt_ms: {a}-{b} takes {value:g} ms: a round trip cannot be negative, write 0 or more"
        )
    if value > most_ms:
        raise FogscaleError(
            f"fog_rtt_ms: {a}-{b} takes {value:g} ms, more than {most_ms:g} ms: "
            f"lower it, or raise fog_rtt_max_ms"
        )
    return float(value)


def _check_symmetry(table: Mapping[str, Sequence[float]], names: Sequence[str]) -> None:
    for i, a in enumerate(names):
        for j, b in enumerate(names[:i]):
            if table[a][j] != table[b][i]:
                raise FogscaleError(
                    f"fog_rtt_ms: {a}-{b} takes {table[a][j]:g} ms in the row of {a} but "
                    f"{table[b][i]:g} ms in the row of {b}: a round trip is the same both ways"
                )
