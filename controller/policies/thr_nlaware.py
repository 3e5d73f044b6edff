"""THR-NLAware (Gesscale paper, §V-A): CPU thresholds 90/50, one replica at a time; the nearest node joins,
the farthest leaves."""

from dataclasses import dataclass

from controller.model import Capabilities, Capability
from controller.policies import register
from controller.policies._threshold import CpuThreshold


@register("thr_nlaware")
@dataclass
class LatencyAwareThreshold(CpuThreshold):
    @property
    def needs(self) -> Capabilities:
        return super().needs | {Capability.RTT}
