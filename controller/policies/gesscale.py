"""Gesscale (Arkian et al., ICCCN 2021): scale up by one at confirmed back pressure, scale down as far as a
model of the maximum sustainable throughput allows; the nearest node joins, the farthest leaves."""

from dataclasses import dataclass

from controller.model import Capabilities, Capability
from controller.policies import register
from controller.policies._model_based import ModelBased


@register("gesscale")
@dataclass
class Gesscale(ModelBased):
    @property
    def needs(self) -> Capabilities:
        return super().needs | {Capability.RTT}
