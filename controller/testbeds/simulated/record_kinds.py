"""Kinds of records: how many of each come too late, and how long they are in the job."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from controller.testbeds.simulated.flow import Floats
from controller.testbeds.simulated.response import Sojourn, share_above
from controller.testbeds.simulated.settings import Kind


class Times(NamedTuple):
    """How long the records that arrive in each step are in the job, whatever their kind."""

    total: Sojourn
    waited_s: Floats  # behind a backlog


class Boot(NamedTuple):
    """One of an operator's instances that does not serve yet: records that need its state wait for it."""

    left_s: Floats  # per step
    instances: int  # of the operator; records are spread evenly over them


def of_kinds(
    kinds: Iterable[Kind], arrived: Floats, times: Times | None, boots: Sequence[Boot]
) -> tuple[Floats, Floats]:
    """Per kind and step: late records, and the time of all its records together. Where nobody knows how long
    records will take, all are late and none is timed."""
    rows = [_of_kind(kind, arrived, times, boots) for kind in kinds]
    late, times_s = np.zeros((2, len(rows), len(arrived)))
    for row, (late_records, in_job_s) in enumerate(rows):
        late[row], times_s[row] = late_records, in_job_s
    return late, times_s


def _of_kind(
    kind: Kind, arrived: Floats, times: Times | None, boots: Sequence[Boot]
) -> tuple[Floats, Floats]:
    if times is None:
        return kind.share * arrived, np.zeros(len(arrived))
    mean_s = kind.least_s + kind.wait_ratio * times.waited_s + kind.time_ratio * times.total.mean_s
    limit_s = kind.deadline_s - kind.least_s - kind.wait_ratio * times.waited_s
    share_late = share_above(times.total, limit_s / kind.time_ratio)
    if kind.stateful:
        share_late, state_s = _waiting_for_state(boots, share_late, limit_s)
        mean_s = mean_s + state_s
    return kind.share * arrived * share_late, kind.share * arrived * mean_s


def _waiting_for_state(boots: Sequence[Boot], share_late: Floats, limit_s: Floats) -> tuple[Floats, Floats]:
    mean_s = np.zeros(len(share_late))
    late = share_late
    for boot in boots:
        mean_s += boot.left_s / boot.instances
        late = late + np.where(boot.left_s > limit_s, (1.0 - share_late) / boot.instances, 0.0)
    return late, mean_s
