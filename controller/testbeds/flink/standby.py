"""Hot standby: which nodes keep an idle TaskManager, that a scale-up can use at once."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def on_standby(
    count: int, wanted: Collection[str], idle: Sequence[str], given_up: Sequence[str], free: Sequence[str]
) -> tuple[str, ...]:
    """So many nodes that the plan does not use, as far as there are any: those that are on standby already,
    then those that the plan gives up (they have run tasks; a first one takes seconds longer), then others."""
    candidates = dict.fromkeys((*idle, *given_up, *free))
    return tuple(node for node in candidates if node not in wanted)[:count]
