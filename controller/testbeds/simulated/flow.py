"""Mechanisms 3 and 4: how records flow through an operator DAG, many steps at a time.

Within a span of steps no capacity changes, so every queue follows Lindley's recursion
W_t = max(0, W_{t−1} + a_t − c), whose closed form is a cumulative sum less its running minimum. That
makes a minute of simulated time a handful of array operations per operator.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.model import Operator

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Dag:
    """An operator DAG as arrays. Entries are the operators into which external input flows."""

    names: tuple[str, ...]
    upstream: tuple[tuple[int, ...], ...]
    selectivity: Floats
    entries: tuple[int, ...]
    multiplicity: Floats  # [entry, operator]: records an operator sees per external record of the entry
    behind: tuple[NDArray[np.intp], ...]  # per entry: the operators its records reach
    ancestors: tuple[frozenset[int], ...]
    sinks: tuple[int, ...]

    @classmethod
    def of(cls, operators: tuple[Operator, ...], inputs: Collection[str]) -> Dag:
        names = tuple(operator.name for operator in operators)
        index = {name: i for i, name in enumerate(names)}
        upstream = tuple(tuple(index[name] for name in operator.upstream) for operator in operators)
        selectivity = np.array([operator.selectivity for operator in operators], dtype=float)
        entries = tuple(i for i, name in enumerate(names) if name in inputs)
        multiplicity = np.zeros((len(entries), len(names)))
        ancestors: list[frozenset[int]] = []
        for row, entry in enumerate(entries):
            for i, above in enumerate(upstream):
                multiplicity[row, i] = float(i == entry) + sum(
                    multiplicity[row, j] * selectivity[j] for j in above
                )
        for above in upstream:
            ancestors.append(frozenset(above).union(*(ancestors[j] for j in above)))
        feeding = {j for above in upstream for j in above}
        sinks = tuple(i for i in range(len(names)) if i not in feeding)
        behind = tuple(np.flatnonzero(row) for row in multiplicity)
        return cls(names, upstream, selectivity, entries, multiplicity, behind, tuple(ancestors), sinks)


class Flow(NamedTuple):
    """What a span of steps brought. Rows are operators, columns steps; backlog is after each step."""

    processed: Floats
    backlog: Floats


def queue_lengths(backlog: float, arrivals: Floats, capacity_per_step: float) -> Floats:
    """Lindley's recursion for a constant capacity, in closed form."""
    level = np.cumsum(arrivals - capacity_per_step)
    level += backlog
    return level - np.minimum(np.minimum.accumulate(level), 0.0)


def entry_limits(dag: Dag, capacity: Floats, demand: Floats) -> Floats:
    """What each entry may consume per step so that no operator behind it exceeds its capacity.

    Entries that share a bottleneck get it in proportion to what they have to bring; an entry alone gets
    the smallest capacity on its way, in its own records.
    """
    if len(demand) == 1:
        return np.array([(capacity[dag.behind[0]] / dag.multiplicity[0, dag.behind[0]]).min()])
    weight = np.maximum(demand, 1e-9)
    load = weight @ dag.multiplicity
    return np.array(
        [
            share * (capacity[behind] / load[behind]).min()
            for share, behind in zip(weight, dag.behind, strict=True)
        ]
    )


def back_pressured(dag: Dag, capacity: Floats, backlog: Floats, arrivals: Floats) -> Flow:
    """Flink on Kafka: operators hold next to nothing, so what the slowest one cannot take waits at the
    entry, in Kafka."""
    steps = arrivals.shape[1]
    entries = list(dag.entries)
    demand = backlog[entries] + arrivals.sum(axis=1)
    limits = entry_limits(dag, capacity, demand / steps)
    waiting = np.zeros((len(dag.names), steps))
    served = np.empty_like(arrivals)
    for row, entry in enumerate(entries):
        lengths = queue_lengths(backlog[entry], arrivals[row], limits[row])
        waiting[entry] = lengths
        served[row] = arrivals[row] - lengths
        served[row, 0] += backlog[entry]
        served[row, 1:] += lengths[:-1]
    return Flow(dag.multiplicity.T @ served, waiting)


def queued(dag: Dag, capacity: Floats, backlog: Floats, arrivals: Floats) -> Flow:
    """Message queues between operators: each holds its own backlog, nobody slows anybody down."""
    steps = arrivals.shape[1]
    external = dict(zip(dag.entries, arrivals, strict=True))
    processed = np.empty((len(dag.names), steps))
    waiting = np.empty_like(processed)
    for i, above in enumerate(dag.upstream):
        inflow = external.get(i, np.zeros(steps))
        for j in above:
            inflow = inflow + dag.selectivity[j] * processed[j]
        lengths = queue_lengths(backlog[i], inflow, capacity[i])
        waiting[i] = lengths
        processed[i] = inflow - lengths
        processed[i, 0] += backlog[i]
        processed[i, 1:] += lengths[:-1]
    return Flow(processed, waiting)
