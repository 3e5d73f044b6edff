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

from controller.model import Operator, records_per

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Dag:
    """An operator DAG as arrays. Entries are the operators into which external input flows."""

    names: tuple[str, ...]
    upstream: tuple[tuple[int, ...], ...]
    # Per operator: those upstream, each with the records that come here for one that it processes.
    inputs: tuple[tuple[tuple[int, float], ...], ...]
    selectivity: tuple[float, ...]
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
        selectivity = tuple(operator.selectivity for operator in operators)
        inflows = tuple(
            tuple((index[name], selectivity[index[name]] * share) for name, share in operator.inputs)
            for operator in operators
        )
        entries = tuple(i for i, name in enumerate(names) if name in inputs)
        multiplicity = np.array([list(records_per(operators, names[i]).values()) for i in entries])
        ancestors: list[frozenset[int]] = []
        for above in upstream:
            ancestors.append(frozenset(above).union(*(ancestors[j] for j in above)))
        feeding = {j for above in upstream for j in above}
        sinks = tuple(i for i in range(len(names)) if i not in feeding)
        behind = tuple(np.flatnonzero(row) for row in multiplicity)
        return cls(
            names, upstream, inflows, selectivity, entries, multiplicity, behind, tuple(ancestors), sinks
        )


class Flow(NamedTuple):
    """What a span of steps brought. Rows are operators, columns steps; backlog is after each step."""

    processed: Floats
    backlog: Floats


def queue_lengths(backlog: float, arrivals: Floats, capacity_per_step: float) -> Floats:
    """Lindley's recursion for a constant capacity, in closed form."""
    level = (arrivals - capacity_per_step).cumsum()
    level += backlog
    return level - np.minimum(np.minimum.accumulate(level), 0.0)


def back_pressured(dag: Dag, capacity: Floats, backlog: Floats, arrivals: Floats) -> Flow:
    """Flink on Kafka: operators hold next to nothing, so what the slowest one cannot take waits at the
    entry, in Kafka."""
    entries = list(dag.entries)
    if len(entries) == 1:
        limit = float((capacity[dag.behind[0]] / dag.multiplicity[0, dag.behind[0]]).min())
        lengths = queue_lengths(float(backlog[entries[0]]), arrivals[0], limit)[None, :]
    else:
        lengths = _shared_queue_lengths(dag, capacity, backlog[entries], arrivals)
    served = arrivals - lengths
    served[:, 0] += backlog[entries]
    served[:, 1:] += lengths[:, :-1]
    waiting = np.zeros((len(dag.names), arrivals.shape[1]))
    waiting[entries] = lengths
    return Flow(dag.multiplicity.T @ served, waiting)


def _shared_queue_lengths(dag: Dag, capacity: Floats, backlog: Floats, arrivals: Floats) -> Floats:
    """Several entries compete for the operators behind them, so each step depends on the one before."""
    lengths = np.empty_like(arrivals)
    for step in range(arrivals.shape[1]):
        waiting = backlog + arrivals[:, step]
        backlog = waiting - shared(dag, capacity, waiting)
        lengths[:, step] = backlog
    return lengths


def shared(dag: Dag, capacity: Floats, waiting: Floats) -> Floats:
    """What each entry may bring in one step: a bottleneck is shared in proportion to what waits for it, and
    what one entry cannot use is left to the others."""
    served = np.zeros_like(waiting)
    left = capacity.copy()
    for _ in range(len(dag.names)):
        wanted = waiting - served
        load = wanted @ dag.multiplicity
        share = np.divide(left, load, out=np.ones_like(left), where=load > left)
        granted = wanted * [share[behind].min() for behind in dag.behind]
        if granted.sum() <= 1e-9 * (1.0 + waiting.sum()):
            break
        served += granted
        left = np.maximum(left - granted @ dag.multiplicity, 0.0)
    return served


def queued(dag: Dag, capacity: Floats, backlog: Floats, arrivals: Floats) -> Flow:
    """Message queues between operators: each holds its own backlog, nobody slows anybody down."""
    steps = arrivals.shape[1]
    external = dict(zip(dag.entries, arrivals, strict=True))
    processed = np.empty((len(dag.names), steps))
    waiting = np.empty_like(processed)
    for i in range(len(dag.names)):
        inflow = external.get(i, np.zeros(steps))
        for j, weight in dag.inputs[i]:
            inflow = inflow + weight * processed[j]
        lengths = queue_lengths(backlog[i], inflow, capacity[i])
        waiting[i] = lengths
        processed[i] = inflow - lengths
        processed[i, 0] += backlog[i]
        processed[i, 1:] += lengths[:-1]
    return Flow(processed, waiting)
