"""The monitor: what Prometheus knows of a job, in the words of an observation. All figures are of one moment
and of one window before it, between scrapes where need be, since services are scraped one after the other. A
figure is None until it is true: after a rescale, until a whole window lies behind it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite

from controller.model import InstanceMetrics, NodeMetrics, Operator, OperatorMetrics
from controller.testbeds.flink import queries
from controller.testbeds.flink.prometheus import Prometheus, Series, named

SCRAPE_S = 5.0
RANGE_SCRAPES = 4  # that are asked for beyond a window: figures may be some scrapes old
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
class Window:
    """Of which all figures are, by Prometheus' clock."""

    from_s: float
    to_s: float
    runs: bool  # the job did, as it does now, throughout
    flows: bool  # and so did its load


@dataclass(frozen=True)
class _Instance:
    """One subtask over the window."""

    index: int
    node: str
    rate_in_per_s: float | None
    rate_out_per_s: float | None
    back_pressure_ratio: float | None
    idle_ratio: float | None
    records_in: float | None  # up to the window's end
    records_out: float | None

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

    def _topic(self, range_s: float) -> tuple[Series, ...]:
        """What is known of what enters the job, and changes with time as its own figures do."""
        return ()

    def _entering(
        self,
        job: Sequence[Series],
        topic: Sequence[Series],
        instances: Mapping[str, Sequence[_Instance]],
        window: Window,
    ) -> tuple[float | None, float | None]:
        """What is offered to the job per second, and what waits: records, or None."""
        raise NotImplementedError

    def _node_series(self, range_s: float) -> tuple[Series, ...]:
        raise NotImplementedError

    def _node_metrics(self, series: Sequence[Series], window: Window) -> dict[str, NodeMetrics]:
        raise NotImplementedError

    def measure(self, running: Running) -> Measured:
        range_s = self._window_s + RANGE_SCRAPES * self._scrape_s
        job = self._prometheus.samples(queries.job_samples(running.job_id, range_s))
        nodes = self._node_series(range_s)
        topic = self._topic(range_s) if job else ()
        job, nodes, topic = self._alive(job, nodes, topic)
        subtasks = {name: self._subtasks(job, vertex) for name, vertex in running.vertices.items()}
        window = self._window(running, [*_counters(subtasks), *nodes, *topic])
        node_metrics = self._node_metrics(nodes, window)
        if not all(
            len(subtasks[name]) == len(running.placement.get(name, ())) > 0 for name in running.vertices
        ):
            return Measured(
                nodes=node_metrics, operators={each.name: OperatorMetrics() for each in self._operators}
            )
        instances = {
            name: [self._instance(index, series, window) for index, series in found]
            for name, found in subtasks.items()
        }
        offered_per_s, lag_records = self._entering(job, topic, instances, window)
        operators = self._operator_metrics(instances, node_metrics, offered_per_s)
        if self.chained:
            operators = {name: _in_a_chain(each) for name, each in operators.items()}
        return Measured(
            time_s=window.to_s,
            operators=operators,
            nodes=node_metrics,
            lag_records=lag_records,
            response_time_ms=None if self.chained else self._response_ms(job, running, range_s),
        )

    def _alive(self, *groups: Sequence[Series]) -> tuple[tuple[Series, ...], ...]:
        """Without series that are scraped no more."""
        newest_s = max((each.last_s for some in groups for each in some), default=0.0)
        oldest_s = newest_s - MISSED_SCRAPES * self._scrape_s
        return tuple(tuple(each for each in some if each.last_s > oldest_s) for some in groups)

    def _window(self, running: Running, series: Sequence[Series]) -> Window:
        """Up to the moment of which everything is known."""
        to_s = min((each.last_s for each in series), default=0.0)
        from_s = to_s - self._window_s
        flows = from_s >= running.load_since_s
        return Window(from_s, to_s, flows and from_s >= running.since_s, flows)

    def _subtasks(self, job: Sequence[Series], vertex: str) -> list[tuple[int, dict[str, Series]]]:
        """By index, of the newest attempt."""
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
        return [(int(index), series) for index, series in sorted(newest.items())]

    def _instance(self, index: int, series: Mapping[str, Series], window: Window) -> _Instance:
        def rate(name: str) -> float | None:
            is_known = name in series and window.runs
            return series[name].rate_per_s(window.from_s, window.to_s) if is_known else None

        def records(name: str) -> float | None:
            return _below(rate(name), MOST_PER_S)

        def ratio(name: str) -> float | None:
            return share(rate(name), 1000)  # milliseconds per second

        def total(name: str) -> float | None:
            return series[name].at(window.to_s) if name in series else 0.0

        return _Instance(
            index,
            self._node_of(series[queries.RECORDS_IN].labels),
            records(queries.RECORDS_IN),
            records(queries.RECORDS_OUT),
            ratio(queries.BACK_PRESSURED_MS),
            ratio(queries.IDLE_MS),
            total(queries.RECORDS_IN),
            total(queries.RECORDS_OUT),
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
        self._name = topic

    def _topic(self, range_s: float) -> tuple[Series, ...]:
        return self._prometheus.samples(queries.topic_samples(self._name, range_s))

    def _entering(
        self,
        job: Sequence[Series],
        topic: Sequence[Series],
        instances: Mapping[str, Sequence[_Instance]],
        window: Window,
    ) -> tuple[float | None, float | None]:
        rates = [_below(each.rate_per_s(window.from_s, window.to_s), MOST_PER_S) for each in topic]
        offsets = named(job, queries.OFFSET)
        lag = _lag(topic, self._base, offsets, instances, self._operators, window.to_s)
        return _sum(rates) if window.flows else None, lag

    def _node_series(self, range_s: float) -> tuple[Series, ...]:
        series = self._prometheus.samples(queries.node_samples(range_s))
        if not named(series, queries.CGROUP_CPU_S):
            series += self._prometheus.samples(queries.kernel_cpu_samples(range_s))
        return tuple(each for each in series if each.labels.get("node"))

    def _node_metrics(self, series: Sequence[Series], window: Window) -> dict[str, NodeMetrics]:
        cpus = {each.labels["node"]: each.last for each in named(series, queries.CGROUP_CPUS)}
        limits = {each.labels["node"]: each.last for each in named(series, queries.CGROUP_MEMORY_LIMIT)}
        cpu = {
            node: share(each.rate_per_s(window.from_s, window.to_s), _below(cpus.get(node), MOST_CORES))
            for each in named(series, queries.CGROUP_CPU_S)
            if (node := each.labels["node"])
        }
        memory = {
            node: share(each.last, _below(limits.get(node), MOST_BYTES))
            for each in named(series, queries.CGROUP_MEMORY)
            if (node := each.labels["node"])
        }
        if not cpu:
            cpu, memory = self._kernel_metrics(series, window)
        return {node: NodeMetrics(cpu.get(node), memory.get(node)) for node in sorted({*cpu, *memory})}

    def _kernel_metrics(
        self, series: Sequence[Series], window: Window
    ) -> tuple[dict[str, float | None], dict[str, float | None]]:
        """Of nodes whose kernel is their own."""
        idle: dict[str, list[float | None]] = defaultdict(list)
        for each in named(series, queries.KERNEL_CPU_S):
            spare = each.rate_per_s(window.from_s, window.to_s)
            idle[each.labels["node"]].append(_below(spare, MOST_OF_A_WHOLE))
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


def _counters(subtasks: Mapping[str, Sequence[tuple[int, Mapping[str, Series]]]]) -> Iterator[Series]:
    """One of each subtask; a TaskManager's figures are all scraped at once."""
    return (series[queries.RECORDS_IN] for found in subtasks.values() for _, series in found)


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
    time_s: float,
) -> float | None:
    """What Kafka has beyond what the sources passed on, and what is on its way to the last operators. None
    until every partition that holds records has an offset."""
    ends = _places(topic, time_s)
    at = _places([known for each in offsets if (known := _once_known(each)) is not None], time_s)
    used = {part: end for part, end in ends.items() if end > base.get(part, 0)}
    if not ends or len(ends) < len(topic) or not used.keys() <= at.keys():
        return None
    waiting = sum(max(0.0, end - at[part] - 1) for part, end in used.items())
    names = {name for operator in operators for name in operator.upstream}
    sources = [each for each in operators if not each.upstream]
    last = [each for each in operators if each.name not in names]
    if any(each.selectivity != 1 for each in operators):
        return waiting  # records on their way cannot be counted in those of the topic
    passed = _sum([each.records_out for source in sources for each in instances[source.name]])
    arrived = _sum([each.records_in for end in last for each in instances[end.name]])
    return None if passed is None or arrived is None else waiting + max(0.0, passed - arrived)


def _places(series: Sequence[Series], time_s: float) -> dict[str, float]:
    """Partition → offset, where there is one at that moment."""
    found = [(each.labels.get("partition", ""), each.at(time_s)) for each in series]
    return {part: place for part, place in found if place is not None and abs(place) <= MOST_RECORDS}


def _once_known(series: Series) -> Series | None:
    """Without the time before its first record, when a source's offset is below 0."""
    first = next((place for place, value in enumerate(series.values) if value >= 0), None)
    if first is None:
        return None
    return replace(series, times_s=series.times_s[first:], values=series.values[first:])


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
