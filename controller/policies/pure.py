"""PURE (EKF paper, §3.3): CPU and memory thresholds 45/80 on what is measured, unfiltered, twice a second."""

from dataclasses import dataclass

from controller.models.instance_load import Loads, LoadSample
from controller.policies import register
from controller.policies._filtered_threshold import FilteredThreshold, LoadFilter


class Identity:
    remark = ""

    def step(self, sample: LoadSample) -> Loads:
        return sample.loads


@register("pure")
@dataclass
class Pure(FilteredThreshold):
    def new_filter(self) -> LoadFilter:
        return Identity()
