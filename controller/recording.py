"""What all who write or read a recorded run agree on: its format, name, folder, and the facts it starts with.

Each is written here once. Journals, Spark's tables and campaigns derive theirs from these, and from `Sample`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FORMAT_VERSION = 2  # since 2, every line ends with a running checksum
READ_VERSIONS = (1, 2)
CHAIN = ',"chain":'  # then the checksum and a brace: how every line of a journal ends
JOURNAL = "journal.jsonl"
LARGEST_JOURNAL_BYTES = 256 << 20  # that is read in one piece; a run of 288 minutes has two MiB
MANIFEST = "run.yml"
COMPARISONS = "compare"  # the folder of results that holds them
OLDER_NAMES = {"input_rate_per_s": "offered_rate_per_s"}
"""What was once recorded under another name, with the same meaning: older journals are still read."""
NAMED_BY = ("experiment", "policy", "workload", "seed")
"""The facts that name a run, in the order of its id and of its folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorFacts:
    """What demand for an operator follows from."""

    name: str
    capacity_per_s: tuple[float, ...]  # of 1, 2, ... replicas on the best nodes; empty where nobody knows
    n_min: int
    n_max: int | None
    # What is offered to it for one record that enters the job at an operator, by that operator's name.
    records_per_input: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricParameters:
    """Over which time metrics are taken, and what those that are means over time or over records leave out;
    sums and counts leave out nothing."""

    period_s: float = 0.0  # 0: the span of the workload; in a longer one, nothing is demanded after its end
    skip_first_s: float = 0.0  # of the run
    skip_after_reconfiguration_s: float = 0.0  # from when each begins


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """What analysis knows of a run besides its samples; the columns of the table of runs."""

    experiment: str
    policy: str
    workload: str
    seed: int
    duration_s: float  # T, the span of the workload
    operator: str  # the one that is scaled and measured
    capacity_per_s: tuple[float, ...]  # of 1, 2, ... replicas on the best nodes
    n_min: int
    n_max: int | None
    operators: tuple[OperatorFacts, ...] = ()  # all of the job; empty in older journals
    metrics: MetricParameters = MetricParameters()
    sla_response_s: float | None = (
        None  # mean response times above it violate the objective; None: there is none
    )
    sla_grace_s: float | None = (
        None  # how long after a reconfiguration a miss is no steady violation; None: 0
    )
    kind_shares: Mapping[str, float] = field(default_factory=dict)  # of all records, per kind with a deadline
    variation: Mapping[str, Any] = field(default_factory=dict)  # what a campaign varied


def run_id(facts: Mapping[str, Any]) -> str:
    """The name of a run; a campaign also repeats a run with other settings, so those count too."""
    name = "/".join(str(facts[key]) for key in NAMED_BY)
    variation = variation_text(facts)
    return name if variation == "{}" else f"{name}/{hashlib.sha256(variation.encode()).hexdigest()[:12]}"


def variation_text(facts: Mapping[str, Any]) -> str:
    return json.dumps(facts.get("variation") or {}, sort_keys=True)


def run_folder(facts: Mapping[str, Any]) -> Path:
    """Where a run lies below the folder of results."""
    return Path(*(f"{key}={facts[key]}" for key in NAMED_BY))
