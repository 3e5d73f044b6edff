"""Round trips as `ping` prints them, and how they compare with what was wanted."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from controller.network import RttMatrix
from fog.network.matrix import tolerance_ms
from fog.values import address

_TIME = re.compile(r"\btime=([0-9.]+) ms")
_TARGET = re.compile(r"^PING (\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Measured:
    source: str
    target: str
    wanted_ms: float
    measured_ms: float | None  # None: no answer

    @property
    def holds(self) -> bool:
        if self.measured_ms is None:
            return False
        return abs(self.measured_ms - self.wanted_ms) <= tolerance_ms(self.wanted_ms)

    @property
    def complaint(self) -> str:
        seen = "no answer" if self.measured_ms is None else f"{self.measured_ms:.2f} ms"
        return f"{self.source}-{self.target}: {seen} instead of {self.wanted_ms:g} ms"


def ping_script(addresses: Iterable[str], count: int = 8, interval_s: float = 0.2) -> str:
    """A shell line that pings all at once and prints their outputs one after the other."""
    targets = [shlex.quote(address(target)) for target in addresses]
    if not targets:
        return "true"
    # Waits only a little longer than the longest round trip a fog has.
    each = f'ping -n -c {count} -i {interval_s:g} -W 2 "$a" > "$d/$a" 2>&1 &'
    return f"d=$(mktemp -d); for a in {' '.join(targets)}; do {each} done; wait; cat $d/*; rm -r $d"


def round_trips_ms(output: str) -> dict[str, float]:
    """Median per target. The first answer is left out: it may have waited for ARP."""
    found: dict[str, float] = {}
    starts = [match.start() for match in _TARGET.finditer(output)] + [len(output)]
    for start, end in pairwise(starts):
        block = output[start:end]
        target = _TARGET.match(block)
        times = [float(time) for time in _TIME.findall(block)]
        if target and times:
            found[target.group(1)] = median(times[1:] or times)
    return found


def compared(
    source: str,
    output: str,
    wanted: RttMatrix,
    addresses: Mapping[str, str],
    peers: Sequence[str] | None = None,
) -> list[Measured]:
    seen = round_trips_ms(output)
    others = [name for name in (wanted.names if peers is None else peers) if name != source]
    return [Measured(source, name, wanted(source, name), seen.get(addresses[name])) for name in others]


def late_ones_again(
    measured: list[Measured], look_longer: Callable[[list[str]], list[Measured]]
) -> list[Measured]:
    """A node that was busy for a moment answered late, which is not the network's fault; if it stays late, it
    counts. Silence is not asked again: that was waited for."""
    late = [pair.target for pair in measured if pair.measured_ms is not None and not pair.holds]
    again = {pair.target: pair for pair in look_longer(late)} if late else {}
    return [again.get(pair.target, pair) for pair in measured]
