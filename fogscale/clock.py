"""Times of a run as people read them, and the clock that real runs go by."""

from __future__ import annotations

import time

from fogscale.errors import FogscaleError

JUMP_S = 5.0  # more than any correction that is made little by little, between two looks


def clock(time_s: float) -> str:
    minutes, seconds = divmod(round(time_s), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}"


class SetClockWatch:
    """Real runs go by the clock of the machine, as the stamps of brokers and metrics do. When it is set, or
    the machine has slept, times before and after do not fit together."""

    def __init__(self) -> None:
        self._ahead_s = time.time() - time.monotonic()

    def look(self) -> None:
        """To be called every few seconds."""
        ahead_s = time.time() - time.monotonic()
        jump_s, self._ahead_s = ahead_s - self._ahead_s, ahead_s
        if abs(jump_s) > JUMP_S:
            raise FogscaleError(
                f"this machine's clock went {abs(jump_s):.0f} s {'ahead' if jump_s > 0 else 'back'} at once:"
                " see that it is right, then run the same command again to go on"
            )
