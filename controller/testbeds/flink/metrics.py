"""The monitor: what Prometheus knows of a job, in the words of an observation. A figure is None until it is
true: after a rescale, until every running instance was scraped twice; and all are as old as the oldest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite

from controller.model import InstanceMetrics, NodeMetrics, Operator, OperatorMetrics
from controller.testbeds.flink import queries
from controller.testbeds.flink.prometheus import Prometheus, Series, named

SCRAPE_S = 5.0
MISSED_SCRAPES = 2.5  # a series that was not scraped for so long is gone
MOST_OF_A_WHOLE = 1.5  # a share beyond it is no measurement
# Nor is what no machine does: records per second of an instance, cores and bytes of a node, an offset in a
# topic, a month on the way.
MOST_PER_S, MOST_CORES, MOST_BYTES, MOST_RECORDS, MOST_MS = 1e8, 1e4, 2.0**50, 2.0**53, 3e9
CLOCKS_APART_MS = 1000.0


@dataclass(frozen=True)
class Running:
    """The job as Flink's REST API tells it now: whose metrics to ask for, and of how many instances."""

    job_id: str
    vertices: Mapping[str, str]  # operator → how Flink calls its task
    placement: Mapping[str, tuple[str, ...]]
    since_s: float  # by Prometheus' clock: since when these instances run
    load_since_s: float = 0.0  # and since when records come in: what was offered before is none of this run


@dataclass(frozen=True)
class Measured:
    """Figures of one age; `time_s` is None where there are none."""

    time_s: float | None = None
    operators: Mapping[str, OperatorMetrics] = field(default_factory=dict)
    nodes: Mapping[str, NodeMetrics] = field(default_factory=dict)
    lag_records: float | None = None
    response_time_ms: float | None = None


@dataclass(frozen=True)
class _Instance:
    """One subtask over the window."""

    index: int
    node: str
    rate_in_per_s: float | None
    rate_out_per_s: float | None
    back_pressure_ratio: float | None
    idle_ratio: float | None
    records_in: float
    records_out: float
    last_s: float

    @property
    def busy_ratio(self) -> float | None:
        if self.back_pressure_ratio is None or self.idle_ratio is None:
            return None
        return min(1.0, max(0.0, 1.0 - self.back_pressure_ratio - self.idle_ratio))


class JobMonitor:
    """What is the same for every Flink. What enters the job, and what machines do, is up to subclasses."""

    task_label = "task_name"  # by which `Running.vertices` names the tasks
    chained = False  # whether one task is the whole job, of whose operators Flink tells nothing then

    def __init__(
        self, prometheus: Prometheus, operators: Sequence[Operator], window_s: float, scrape_s: float
    ) -> None:
        self._prometheus = prometheus
        self._operators = operators
        self._window_s, self._scrape_s = window_s, scrape_s

    def _entering(
        self, job: Sequence[Series], instances: Mapping[str, Sequence[_Instance]], since_s: float
    ) -> tuple[float | None, float | None]:
        """What is offered to the job per second since a time, and what waits: records, or None."""
        raise NotImplementedError

    def _node_metrics(self, range_s: float) -> dict[str, NodeMetrics]:
        raise NotImplementedError

    def measure(self, running: Running) -> Measured:
        range_s = self._window_s + 2 * self._scrape_s
        job = self._prometheus.samples(queries.job_samples(running.job_id, range_s))
        nodes = self._node_metrics(range_s)
        if not job:
            return Measured(nodes=nodes, operators={each.name: OperatorMetrics() for each in self._operators})
        since_s = max(running.since_s, running.load_since_s)
        newest_s = max(each.last_s for each in job)
        job = tuple(each for each in job if each.last_s > newest_s - MISSED_SCRAPES * self._scrape_s)
        instances = {name: self._instances(job, vertex, since_s) for name, vertex in running.vertices.items()}
        complete = all(
            len(instances[name]) == len(running.placement.get(name, ())) > 0 for name in running.vertices
        )
        if not complete:
            return Measured(nodes=nodes, operators={each.name: OperatorMetrics() for each in self._operators})
        from_s = max(newest_s - self._window_s - 0.5, running.load_since_s)  # the window of all other rates
        offered_per_s, lag_records = self._entering(job, instances, from_s)
        operators = self._operator_metrics(instances, nodes, offered_per_s)
        if self.chained:
            operators = {name: _in_a_chain(each) for name, each in operators.items()}
        return Measured(
            time_s=min(each.last_s for found in instances.values() for each in found),
            operators=operators,
            nodes=nodes,
            lag_records=lag_records,
            response_time_ms=None if self.chained else self._response_ms(job, running, range_s),
        )

    def _instances(self, job: Sequence[Series], vertex: str, since_s: float) -> list[_Instance]:
        """By subtask, of its newest attempt."""
        found: dict[tuple[str, str], dict[str, Series]] = defaultdict(dict)
        for each in job:
            if each.labels.get(self.task_label) == vertex and each.labels.get("subtask_index", "").isdigit():
                key = (each.labels["subtask_index"], each.labels.get("task_attempt_id", ""))
                found[key][each.name] = each
        newest: dict[str, dict[str, Series]] = {}
        for (index, _), series in found.items():
            if queries.RECORDS_IN not in series:
                continue
            known = newest.get(index)
            if known is None or _begun_s(known) < _begun_s(series):
                newest[index] = series
        return [self._instance(int(index), series, since_s) for index, series in sorted(newest.items())]

    def _instance(self, index: int, series: Mapping[str, Series], since_s: float) -> _Instance:
        last_s = series[queries.RECORDS_IN].last_s
        from_s, least_s = max(since_s, last_s - self._window_s - 0.5), self._window_s / 2

        def rate(name: str) -> float | None:
            return series[name].rate_per_s(from_s, least_s) if name in series else None

        def records(name: str) -> float | None:
            return _below(rate(name), MOST_PER_S)

        def ratio(name: str) -> float | None:
            return share(rate(name), 1000)  # milliseconds per second

        first = series[queries.RECORDS_IN]
        return _Instance(
            index,
            self._node_of(first.labels),
            records(queries.RECORDS_IN),
            records(queries.RECORDS_OUT),
            ratio(queries.BACK_PRESSURED_MS),
            ratio(queries.IDLE_MS),
            first.last,
            series[queries.RECORDS_OUT].last if queries.RECORDS_OUT in series else 0.0,
            last_s,
        )

    def _node_of(self, labels: Mapping[str, str]) -> str:
        return labels.get("tm_id") or labels.get("node", "")

    def _operator_metrics(
        self,
        instances: Mapping[str, Sequence[_Instance]],
        nodes: Mapping[str, NodeMetrics],
        offered_per_s: float | None,
    ) -> dict[str, OperatorMetrics]:
        offered: dict[str, float | None] = {}  # what each operator would emit if nothing held it back
        metrics: dict[str, OperatorMetrics] = {}
        for operator in self._operators:
            wanted = [offered[name] for name in operator.upstream]
            coming = [metrics[name].output_rate_per_s for name in operator.upstream]
            reaching_per_s = _sum(wanted) if operator.upstream else offered_per_s
            offered[operator.name] = None if reaching_per_s is None else reaching_per_s * operator.selectivity
            metrics[operator.name] = replace(
                _operator(operator, instances.get(operator.name, ()), nodes),
                offered_rate_per_s=reaching_per_s,
                arrival_rate_per_s=_sum(coming) if operator.upstream else offered_per_s,
            )
        return metrics

    def _rate(self, series: Series) -> float | None:
        return series.rate_per_s(series.last_s - self._window_s - 0.5, self._window_s / 2)

    def _response_ms(self, job: Sequence[Series], running: Running, range_s: float) -> float | None:
        """The age of records when the source passes them on, and how long marks take from there."""
        delays = [_duration_ms(each.last) for each in named(job, queries.SOURCE_DELAY_MS)]
        latency = self._prometheus.samples(queries.latency_samples(running.job_id, range_s))
        marks = [_duration_ms(each.last) for each in latency]
        known = [each for each in delays if each is not None], [each for each in marks if each is not None]
        if not all(known) or len(known[0]) < len(delays) or len(known[1]) < len(marks):
            return None
        return max(known[0]) + max(known[1])


class Monitor(JobMonitor):
    """Of a testbed: the broker's own offsets tell what enters, the nodes' cgroups or kernels what they do."""

    def __init__(
        self,
        prometheus: Prometheus,
        operators: Sequence[Operator],
        topic: str,
        window_s: float,
        base: Mapping[int, int] | None = None,  # offsets before which nothing concerns this job
        chained: bool = False,
    ) -> None:
        super().__init__(prometheus, operators, window_s, SCRAPE_S)
        self.chained = chained
        self._base = {str(partition): offset for partition, offset in (base or {}).items()}
        self._topic = topic

    def _entering(
        self, job: Sequence[Series], instances: Mapping[str, Sequence[_Instance]], since_s: float
    ) -> tuple[float | None, float | None]:
        range_s = self._window_s + 2 * self._scrape_s
        topic = self._prometheus.samples(queries.topic_samples(self._topic, range_s))
        offered_per_s = _total_rate(topic, since_s, self._window_s / 2)
        lag = _lag(topic, self._base, named(job, queries.OFFSET), instances, self._operators)
        return offered_per_s, lag

    def _node_metrics(self, range_s: float) -> dict[str, NodeMetrics]:
        series = self._prometheus.samples(queries.node_samples(range_s))
        series = tuple(each for each in series if each.labels.get("node"))
        cpus = {each.labels["node"]: each.last for each in named(series, queries.CGROUP_CPUS)}
        limits = {each.labels["node"]: each.last for each in named(series, queries.CGROUP_MEMORY_LIMIT)}
        cpu = {
            node: share(self._rate(each), _below(cpus.get(node), MOST_CORES))
            for each in named(series, queries.CGROUP_CPU_S)
            if (node := each.labels["node"])
        }
        memory = {
            node: share(each.last, _below(limits.get(node), MOST_BYTES))
            for each in named(series, queries.CGROUP_MEMORY)
            if (node := each.labels["node"])
        }
        if not cpu:
            cpu, memory = self._kernel_metrics(series, range_s)
        return {node: NodeMetrics(cpu.get(node), memory.get(node)) for node in sorted({*cpu, *memory})}

    def _kernel_metrics(
        self, series: Sequence[Series], range_s: float
    ) -> tuple[dict[str, float | None], dict[str, float | None]]:
        """Of nodes whose kernel is their own."""
        idle: dict[str, list[float | None]] = defaultdict(list)
        for each in self._prometheus.samples(queries.kernel_cpu_samples(range_s)):
            idle[each.labels.get("node", "")].append(_below(self._rate(each), MOST_OF_A_WHOLE))
        whole = {each.labels["node"]: each.last for each in named(series, queries.KERNEL_MEMORY)}
        free = {each.labels["node"]: each.last for each in named(series, queries.KERNEL_MEMORY_FREE)}
        cpu = {
            node: None if (total := _sum(cores)) is None else min(1.0, max(0.0, 1 - total / len(cores)))
            for node, cores in idle.items()
        }
        memory = {
            node: share(whole[node] - free[node], _below(whole[node], MOST_BYTES))
            for node in free
            if node in whole
        }
        return cpu, memory


def _in_a_chain(seen: OperatorMetrics) -> OperatorMetrics:
    """What holds for an operator although Flink sees but the task that it is a part of."""
    return OperatorMetrics(
        offered_rate_per_s=seen.offered_rate_per_s, cpu_ratio=seen.cpu_ratio, memory_ratio=seen.memory_ratio
    )


def _begun_s(series: Mapping[str, Series]) -> float:
    return series[queries.RECORDS_IN].times_s[0]


def _operator(
    operator: Operator,
    instances: Sequence[_Instance],
    nodes: Mapping[str, NodeMetrics],
) -> OperatorMetrics:
    cpu = {each.node: nodes[each.node].cpu_ratio for each in instances if each.node in nodes}
    memory = {each.node: nodes[each.node].memory_ratio for each in instances if each.node in nodes}
    is_source = not operator.upstream  # a source's records do not come through Flink
    rates = [each.rate_out_per_s if is_source else each.rate_in_per_s for each in instances]
    return OperatorMetrics(
        output_rate_per_s=_sum([each.rate_out_per_s for each in instances]),
        throughput_per_s=_sum(rates),
        true_rate_per_s=_true_rate(rates, [each.busy_ratio for each in instances]),
        back_pressure_ratio=_mean([each.back_pressure_ratio for each in instances]),
        busy_ratio=_mean([each.busy_ratio for each in instances]),
        cpu_ratio=_mean([cpu.get(each.node) for each in instances]),
        memory_ratio=_mean([memory.get(each.node) for each in instances]),
        instances=tuple(
            InstanceMetrics(
                id=f"{operator.name}-{each.index}",
                node=each.node,
                state="running",
                cpu_ratio=cpu.get(each.node),
                memory_ratio=memory.get(each.node),
                busy_ratio=each.busy_ratio,
                rate_per_s=rate,
            )
            for each, rate in zip(instances, rates, strict=True)
        ),
    )


def _true_rate(rates: Sequence[float | None], busy: Sequence[float | None]) -> float | None:
    """Records per useful second of all instances together; None while one of them is idle or not known."""
    found = [
        rate / ratio
        for rate, ratio in zip(rates, busy, strict=True)
        if rate is not None and ratio is not None and ratio > 0.01
    ]
    return sum(found) if found and len(found) == len(rates) else None


def _lag(
    topic: Sequence[Series],
    base: Mapping[str, int],
    offsets: Sequence[Series],
    instances: Mapping[str, Sequence[_Instance]],
    operators: Sequence[Operator],
) -> float | None:
    """What Kafka has beyond what the sources passed on, and what is on its way to the last operators. None
    until every partition that holds records has an offset."""
    ends = {each.labels.get("partition", ""): each.last for each in topic}
    at = {each.labels.get("partition", ""): each.last for each in offsets}
    if not ends or any(_below(abs(value), MOST_RECORDS) is None for value in (*ends.values(), *at.values())):
        return None
    used = {part: end for part, end in ends.items() if end > base.get(part, 0)}
    if any(at.get(part, -1) < 0 for part in used):
        return None
    waiting = sum(max(0.0, end - at[part] - 1) for part, end in used.items())
    names = {name for operator in operators for name in operator.upstream}
    sources = [each for each in operators if not each.upstream]
    last = [each for each in operators if each.name not in names]
    if any(each.selectivity != 1 for each in operators):
        return waiting  # records on their way cannot be counted in those of the topic
    passed = sum(each.records_out for source in sources for each in instances[source.name])
    arrived = sum(each.records_in for end in last for each in instances[end.name])
    return waiting + max(0.0, passed - arrived)


def _total_rate(series: Sequence[Series], since_s: float, least_s: float) -> float | None:
    return _sum([_below(each.rate_per_s(since_s, least_s), MOST_PER_S) for each in series])


def _below(value: float | None, most: float) -> float | None:
    """What cannot be is not measured."""
    return value if value is not None and isfinite(value) and value <= most else None


def _duration_ms(value: float) -> float | None:
    """None where clocks say that it was over before it began, by more than they may be apart."""
    return None if _below(value, MOST_MS) is None or value < -CLOCKS_APART_MS else max(0.0, value)


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None


def _mean(values: Sequence[float | None]) -> float | None:
    total = _sum(values)
    return None if total is None else total / len(values)


def share(value: float | None, whole: float | None) -> float | None:
    """A share of a whole. What cannot be is not measured: two scrapes a moment apart may show a little more
    than all of it, nothing shows twice as much."""
    if value is None or whole is None or not isfinite(value) or not isfinite(whole) or whole <= 0:
        return None
    found = value / whole
    return min(1.0, found) if 0 <= found <= MOST_OF_A_WHOLE else None
