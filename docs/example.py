"""A policy of one's own, run once and compared with Gesscale: python docs/example.py"""

from dataclasses import dataclass

import fogscale as fs


@fs.register("step_by_step")
@dataclass
class StepByStep(fs.MemorylessPolicy):
    """One replica more while the source is back-pressured, one less while the CPU is mostly idle."""

    operator: str = fs.parameter("map", "the operator to scale")
    low_cpu_ratio: float = fs.parameter(0.4, "below this, one replica is taken away", at_least=0)
    period_s: float = fs.parameter(300.0, "seconds between two decisions", at_least=1)
    needs = frozenset({fs.Capability.CPU, fs.Capability.BACK_PRESSURE})

    def decide(self, observation: fs.Observation) -> fs.Plan | None:
        replicas = len(observation.requested[self.operator])
        pressure = observation.operators["source"].back_pressure_ratio
        cpu = observation.operators[self.operator].cpu_ratio
        if pressure is None or cpu is None or observation.reconfiguring:
            return None
        if pressure > 0.5:
            return fs.resize_plan(observation, {self.operator: replicas + 1}, ["back pressure"])
        if cpu < self.low_cpu_ratio and replicas > 1:
            return fs.resize_plan(observation, {self.operator: replicas - 1}, ["idle"])
        return None


if __name__ == "__main__":
    experiment = fs.load_experiment("gesscale")
    finished = fs.run(experiment, "step_by_step", seed=1)
    print(f"{finished.samples[-1].reconfigurations} reconfigurations with seed 1")
    metrics = fs.compare(experiment, ["step_by_step", "gesscale"], seeds=3)
    print(metrics.groupby("policy")[["cost", "reconfigurations"]].mean().round(1))
