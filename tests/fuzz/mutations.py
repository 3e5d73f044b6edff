"""How files get damaged: by hand, by a disk, by somebody who tries. Seeded: one number, one damage."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

HOSTILE: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 0.5, 1e-300, 5e-324, 1e9, 1e15, 1e300, -1e300, 2**63, 10**400,
    float("nan"), float("inf"), float("-inf"), "", " ", "x", "n" * 5000, "a\0b", "a\nb", "\ud800",
    "[red]x[/]", "../../etc/passwd", "2 min", "-5 s", "1e400 s", "map", "{a}", [], [[]], [1, 2], {},
    {"a": {}}, {"name": "x"}, "2024-99-99", "*", "&a", "\u202e", "😀",
)  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in nested lists and mappings."""
    found = [path] if path else []
    if isinstance(value, dict):
        for key, below in value.items():
            found += places(below, (*path, key))
    elif isinstance(value, list):
        for number, below in enumerate(value):
            found += places(below, (*path, number))
    return found


def mutated(document: Any, rng: random.Random) -> Any:
    """With one to three values replaced, removed, doubled, renamed or exchanged."""
    result = copy.deepcopy(document)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        where = places(result)
        if not where:
            return result
        rng.choice(_CHANGES)(result, rng.choice(where), rng)
    return result


def _parent(document: Any, path: tuple[Any, ...]) -> Any:
    for part in path[:-1]:
        document = document[part]
    return document


def _replace(document: Any, path: tuple[Any, ...], rng: random.Random) -> None:
    _parent(document, path)[path[-1]] = copy.deepcopy(rng.choice(HOSTILE))


def _remove(document: Any, path: tuple[Any, ...], _rng: random.Random) -> None:
    del _parent(document, path)[path[-1]]


def _rename(document: Any, path: tuple[Any, ...], rng: random.Random) -> None:
    parent = _parent(document, path)
    if isinstance(parent, dict):
        value = parent.pop(path[-1])
        parent[rng.choice(("x", "", f"{path[-1]}s", "n" * 300, str(path[-1])[:-1]))] = value


def _double(document: Any, path: tuple[Any, ...], _rng: random.Random) -> None:
    parent = _parent(document, path)
    if isinstance(parent, list):
        parent.append(copy.deepcopy(parent[path[-1]]))


def _scale(document: Any, path: tuple[Any, ...], rng: random.Random) -> None:
    parent = _parent(document, path)
    value = parent[path[-1]]
    if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e300:
        parent[path[-1]] = value * rng.choice((-1, 0, 0.1, 0.5, 2, 10, 1e-6, 1e6))


_CHANGES: tuple[Callable[[Any, tuple[Any, ...], random.Random], None], ...] = (
    _replace, _replace, _replace, _remove, _rename, _double, _scale,
)  # fmt: skip


def damaged(content: bytes, rng: random.Random) -> bytes:
    """As a disk, an editor or a cut connection leaves it."""
    if not content:
        return rng.randbytes(10)
    at = rng.randrange(len(content))
    kind = rng.randrange(8)
    lines = content.splitlines(keepends=True)
    number = rng.randrange(len(lines))
    if kind == 0:
        return content[:at]
    if kind == 1:
        return content[:at] + bytes([content[at] ^ (1 << rng.randrange(8))]) + content[at + 1 :]
    if kind == 2:
        return content[:at] + rng.randbytes(rng.randrange(1, 30)) + content[at:]
    if kind == 3:
        return b"".join(lines[:number] + lines[number + 1 :])
    if kind == 4:
        return b"".join([*lines[: number + 1], *lines[number:]])
    if kind == 5:
        return b"".join(lines[:number]) + lines[-1]
    if kind == 6:
        other = rng.randrange(len(lines))
        lines[number], lines[other] = lines[other], lines[number]
        return b"".join(lines)
    return content[:at] + b"\0" * rng.randrange(1, 64) + content[at + 20 :]
