"""A backlog for calibrations: records sent once, which every measured job reads from their beginning on."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from controller.testbeds.flink.broker import Offsets
from controller.testbeds.flink.producing import Load, Producer
from controller.testbeds.flink.program import INPUT
from fogscale.documents import read_json
from fogscale.errors import FogscaleError
from fogscale.files import write_whole

SENT_PER_S = 4000.0
FILE = "backlog.json"


@dataclass(frozen=True)
class Backlog:
    run: str  # in the records' headers
    records: int
    base: dict[int, int]  # the topic's offsets before it
    ends: dict[int, int]  # and after it


def backlog_of(
    folder: Path, format_name: str, records: int, access: Mapping[str, Any], offsets: Offsets
) -> Backlog:
    """The one that was sent before, if it is long enough and still there; else a new one."""
    known = _kept(folder / FILE)
    ends = offsets.ends()
    is_there = known is not None and all(ends.get(part, 0) >= end for part, end in known.ends.items())
    if known is not None and is_there and known.records >= records:
        return known
    made = _sent(folder, format_name, records, access, offsets)
    write_whole(folder / FILE, json.dumps(asdict(made)))
    return made


def _kept(path: Path) -> Backlog | None:
    try:
        values = read_json(path)
        for name in ("base", "ends"):
            values[name] = {int(part): int(offset) for part, offset in values[name].items()}
        return Backlog(**values)
    except FileNotFoundError:
        return None
    except (FogscaleError, OSError, AttributeError, ValueError, TypeError, KeyError):
        raise FogscaleError(f"{path} is damaged: remove it, the records are sent again then") from None


def _sent(
    folder: Path, format_name: str, records: int, access: Mapping[str, Any], offsets: Offsets
) -> Backlog:
    run = f"calibration-{int(time.time())}"
    base = offsets.ends()
    rate = {"start_per_s": SENT_PER_S, "end_per_s": SENT_PER_S, "span_s": records / SENT_PER_S}
    load = Load(
        "ramp", rate, speed=1.0, copies=1, scale=1.0, seed=1, run=run, topic=INPUT, records=format_name
    )
    producer = Producer(load, access, folder)
    producer.start()
    try:
        while not producer.has_ended:
            time.sleep(0.5)
    finally:
        producer.stop()
    ends = offsets.ends()
    sent = sum(ends[part] - base.get(part, 0) for part in ends)
    return Backlog(run, sent, base, ends)
