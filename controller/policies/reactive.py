"""Reactive (Flink elasticity thesis 2020, §3.2): one TaskManager more as soon as 10 % of records are slow,
one fewer after ten samples in which fewer would do."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from controller.policies import register
from controller.policies._scaled_as_one import Bounds, Scope
from controller.policies._slow_records import Memory, Sample, SlowRecords, Verdict


@register("reactive")
@dataclass
class Reactive(SlowRecords[Memory]):
    variants: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "capacity": {"scale_up": "capacity"},  # option 2
        "per_operator": {"per_operator": True, "standby": 0},
    }

    def _new_memory(self, scope: Scope) -> Memory:
        return Memory()

    def _verdict(self, memory: Memory, sample: Sample, bounds: Bounds) -> Verdict:
        return self._reaction(memory, sample, bounds)
