"""What the thesis' scalers are shown: workload at the source, records that wait, TaskManagers of map."""

from dataclasses import replace

import numpy as np

from controller.model import Observation, OperatorMetrics, Receipt, Topology
from controller.models.polynomial import Polynomial, Samples, Seen
from tests.support.jobs import seen

NODES = ("fog1", "fog2", "fog3", "fog4", "fog5")


def shown(
    replicas: int,
    workload_per_s: float | None,
    slow_ratio: float | None = 0.0,
    time_s: float = 0.0,
    *,
    lag_records: float | None = None,
    stopped: bool = False,
    receipts: tuple[Receipt, ...] = (),
    standby: tuple[str, ...] = (),
    topology: Topology | None = None,
) -> Observation:
    """The lag follows from the share of slow records, unless it is given."""
    if lag_records is None and workload_per_s is not None and slow_ratio is not None:
        lag_records = slow_ratio * workload_per_s
    observation = seen(
        NODES[:replicas],
        time_s=time_s,
        topology=topology,
        source=OperatorMetrics(offered_rate_per_s=workload_per_s),
        running={"source": (), "map": (), "sink": ()} if stopped else None,
        receipts=receipts,
    )
    return replace(observation, lag_records=lag_records, standby=standby)


def staircase(count: int = 600, noise: float = 0.003, seed: int = 1) -> Samples:
    """A load that rises and falls, a TaskManager for each 1100 records/s: what exploration collects."""
    rng = np.random.default_rng(seed)
    workload = 4400 * np.sin(np.linspace(0.05, np.pi - 0.05, count)) ** 2
    replicas = np.ceil(workload / 1100 * rng.uniform(1.0, 1.1, count))
    load = workload / (1150 * replicas)
    return Samples(workload, replicas, 0.1 * load**4 + noise * rng.standard_normal(count))


def hundred_each(highest: int = 4) -> Polynomial:
    """Slow records = 0.1 + 0.001·(workload − 100·TaskManagers): the SLA is reached at 100 records/s each.

    Scaled over 0..400 records/s and 1..`highest` TaskManagers, and seen up to 120 records/s each.
    """
    middle, half = (1 + highest) / 2, (highest - 1) / 2
    return Polynomial(
        degree=1,
        powers=((0, 0), (1, 0), (0, 1)),
        coefficients=(0.1 + 0.001 * (200 - 100 * middle), 0.2, -0.1 * half),
        workload_range_per_s=(0.0, 400.0),
        replicas_range=(1.0, float(highest)),
        seen=tuple(Seen(n, 0.0, 120.0 * n) for n in range(1, highest + 1)),
        samples=900,
        rmse=0.0,
    )
