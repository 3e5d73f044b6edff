"""MDL-NLUnaware (Gesscale paper, §V-A): Gesscale with the one-parameter model of Eq. 2, on nodes drawn at
random."""

from dataclasses import dataclass

from numpy.random import Generator

from controller.model import Topology
from controller.models.mst import Measurement, MstModel, single_point
from controller.placement import at_random
from controller.policies import register
from controller.policies._model_based import ModelBased


@register("mdl_nlunaware")
@dataclass
class LatencyUnawareModel(ModelBased):
    def start(self, topology: Topology, rng: Generator) -> None:
        super().start(topology, rng)
        self.latency_aware = False
        self.choose = at_random(rng)

    def model_from(self, measurements: list[Measurement]) -> MstModel | None:
        return single_point(measurements[-1])
