"""Sets and reads the round trips of the user-space switch."""

from __future__ import annotations

import json
import time
from typing import Any

from controller.network import RttMatrix
from fog.emulation.state import State
from fogscale.errors import FogscaleError


def set_round_trips(state: State, rtt_ms: RttMatrix, dry_run: bool = False) -> bool:
    """True if the switch had other ones. They apply to frames from now on, and also after a restart of it."""
    ports = state.ask_supervisor({})["ports"]
    for name in rtt_ms.names:
        if name not in ports:
            raise FogscaleError(f"node {name} is in the matrix but does not run: bring the testbed up first")
    wanted = [[_between(rtt_ms, a, b) for b in ports] for a in ports]
    if _ask_patiently(state, {})["rtt_ms"] == wanted:
        return False
    if not dry_run:
        rows = {a: dict(zip(ports, row, strict=True)) for a, row in zip(ports, wanted, strict=True)}
        new = state.round_trips.with_suffix(".new")
        new.write_text(json.dumps(rows))
        new.replace(state.round_trips)
        _ask_patiently(state, {"rtt_ms": wanted})
    return True


def _ask_patiently(state: State, request: dict[str, Any]) -> dict[str, list[list[float]]]:
    """The switch may just be starting, or have waited for the question in vain."""
    for _ in range(50):
        try:
            return state.ask_switch(request)
        except FogscaleError:
            time.sleep(0.1)
    return state.ask_switch(request)


def _between(rtt_ms: RttMatrix, a: str, b: str) -> float:
    """The machine's own end, "control", is near to all: it is no node of the fog."""
    return rtt_ms(a, b) if a in rtt_ms.names and b in rtt_ms.names else 0.0
