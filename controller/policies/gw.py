"""GW (EKF paper, §3.3): CPU and memory thresholds 45/80 on a Gaussian mean over the last minute."""

from dataclasses import dataclass

from controller.models.instance_load import METRICS, Loads, LoadSample
from controller.models.weierstrass import WeierstrassFilters
from controller.policies import parameter, register
from controller.policies._filtered_threshold import FilteredThreshold, LoadFilter


class Weierstrass:
    remark = ""

    def __init__(self, variance_s2: float, window_s: float) -> None:
        self._filters = WeierstrassFilters(len(METRICS), variance_s2, window_s)

    def step(self, sample: LoadSample) -> Loads:
        return self._filters.step(sample.time_s, sample.ids, sample.loads)


@register("gw")
@dataclass
class GeneralisedWeierstrass(FilteredThreshold):
    variance_s2: float = parameter(9.0, "t of Eq. 19: the variance of the Gaussian kernel", at_least=1e-6)
    window_s: float = parameter(60.0, "how far back the kernel reaches", at_least=0.1)

    def new_filter(self) -> LoadFilter:
        return Weierstrass(self.variance_s2, self.window_s)
