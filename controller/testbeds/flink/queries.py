"""All PromQL. Every query asks for samples as they were scraped, with their own times: Prometheus' rate()
reads up to a fifth too low where a far node's scrape arrives after the window's end."""

from __future__ import annotations

RECORDS_IN = "flink_taskmanager_job_task_numRecordsIn"
RECORDS_OUT = "flink_taskmanager_job_task_numRecordsOut"
BYTES_OUT = "flink_taskmanager_job_task_numBytesOut"
BACK_PRESSURED_MS = "flink_taskmanager_job_task_accumulateBackPressuredTimeMs"
IDLE_MS = "flink_taskmanager_job_task_accumulateIdleTimeMs"
OFFSET = "flink_taskmanager_job_task_operator_KafkaSourceReader_topic_partition_currentOffset"
SOURCE_DELAY_MS = "flink_taskmanager_job_task_operator_currentEmitEventTimeLag"
LATENCY_MS = "flink_taskmanager_job_task_latency_operator_id_operator_subtask_index_latency"

PENDING = "flink_taskmanager_job_task_operator_pendingRecords"  # as a source last heard of its broker
JVM_CPU_NS = "flink_taskmanager_Status_JVM_CPU_Time"
JVM_HEAP = "flink_taskmanager_Status_JVM_Memory_Heap_Used"
JVM_HEAP_LIMIT = "flink_taskmanager_Status_JVM_Memory_Heap_Max"

END_OFFSET = "kafka_partition_end_offset"

# An emulated node's own cgroup, or a real node's kernel.
CGROUP_CPU_S = "fog_node_cpu_seconds_total"
CGROUP_CPUS = "fog_node_cpus"
CGROUP_MEMORY = "fog_node_memory_used_bytes"
CGROUP_MEMORY_LIMIT = "fog_node_memory_limit_bytes"
KERNEL_CPU_S = "node_cpu_seconds_total"
KERNEL_MEMORY_FREE = "node_memory_MemAvailable_bytes"
KERNEL_MEMORY = "node_memory_MemTotal_bytes"


def job_samples(job_id: str, window_s: float) -> str:
    """Counters and gauges of a job's tasks."""
    names = (RECORDS_IN, RECORDS_OUT, BACK_PRESSURED_MS, IDLE_MS, OFFSET, SOURCE_DELAY_MS, PENDING)
    return f"{_any(*names, job_id=job_id)}[{window_s:g}s]"


def sent_samples(job_id: str, window_s: float) -> str:
    """What tasks send to others, in records and bytes."""
    return f"{_any(RECORDS_OUT, BYTES_OUT, job_id=job_id)}[{window_s:g}s]"


def latency_samples(job_id: str, window_s: float) -> str:
    """How long marks take from the source to each operator, in the median."""
    return f'{LATENCY_MS}{{job_id="{job_id}", quantile="0.5"}}[{window_s:g}s]'


def node_samples(window_s: float) -> str:
    names = (CGROUP_CPU_S, CGROUP_CPUS, CGROUP_MEMORY, CGROUP_MEMORY_LIMIT, KERNEL_MEMORY_FREE, KERNEL_MEMORY)
    return f"{_any(*names)}[{window_s:g}s]"


def jvm_samples(window_s: float) -> str:
    """Of all TaskManagers that this Prometheus reads."""
    return f"{_any(JVM_CPU_NS, JVM_HEAP, JVM_HEAP_LIMIT)}[{window_s:g}s]"


def kernel_cpu_samples(window_s: float) -> str:
    """Idle seconds of every core: only real nodes tell them."""
    return f'{KERNEL_CPU_S}{{mode="idle"}}[{window_s:g}s]'


def topic_samples(topic: str, window_s: float) -> str:
    return f'{END_OFFSET}{{topic="{topic}"}}[{window_s:g}s]'


def _any(*names: str, **labels: str) -> str:
    wanted = "".join(f', {name}="{value}"' for name, value in labels.items())
    return f'{{__name__=~"{"|".join(names)}"{wanted}}}'
