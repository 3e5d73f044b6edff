"""THR-NLUnaware (Gesscale paper, §V-A): CPU thresholds 90/50, one replica at a time, on nodes drawn at
random."""

from dataclasses import dataclass

from numpy.random import Generator

from controller.model import Topology
from controller.placement import at_random
from controller.policies import register
from controller.policies._threshold import CpuThreshold


@register("thr_nlunaware")
@dataclass
class LatencyUnawareThreshold(CpuThreshold):
    def start(self, topology: Topology, rng: Generator) -> None:
        self.choose = at_random(rng)
