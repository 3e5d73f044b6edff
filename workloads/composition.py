"""Workloads made of others: how another one is named as a parameter, and how profiles are cut anew."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
from pydantic import BeforeValidator, Field

from fogscale.settings import Settings
from workloads.profile import RateProfile, fine_steps
from workloads.replay import ReplaySettings, replay_span_s
from workloads.workload import Workload

MOST_STEPS = 1_000_000  # of a profile that is cut anew; what is longer becomes coarser


class PartSettings(Settings):
    """Another workload, by name or path, with its parameters."""

    name: str
    parameters: dict[str, Any] = Field(default_factory=dict)


def _named(value: Any) -> Any:
    return value if isinstance(value, Mapping | PartSettings) else {"name": value}


Part = Annotated[PartSettings, BeforeValidator(_named)]


def load_part(part: PartSettings) -> Workload:
    from workloads import catalog  # which imports this file

    return catalog.load(part.name, **part.parameters)


def with_profiles(workload: Workload, change: Callable[[RateProfile], RateProfile]) -> Workload:
    """The workload with each of its profiles changed."""
    inputs = {operator: change(profile) for operator, profile in workload.inputs.items()}
    return replace(workload, profile=change(workload.profile), inputs=inputs)


def replay_factor(replay: ReplaySettings, copies: int) -> float:
    """Records that are sent for one of a part's trace, before copies."""
    return replay.scale * replay.copies / copies


def in_replay_time(
    name: str,
    source: str,
    parts: Sequence[tuple[float, tuple[RateProfile, ReplaySettings]]],
    span_s: float,
    copies: int,
) -> RateProfile:
    """Parts at their own pace, each from its begin on, as one profile in replay time; in steps as fine as the
    finest of them needs."""
    step_s = min(replay_span_s(profile, replay) / fine_steps(profile) for _, (profile, replay) in parts)
    steps = min(MOST_STEPS, max(1, round(span_s / step_s)))
    edges_s = np.linspace(0.0, span_s, steps + 1)
    counts = np.zeros(steps)
    for begin_s, (profile, replay) in parts:
        counts += profile.between((edges_s - begin_s) * replay.speed) * replay_factor(replay, copies)
    return RateProfile(name, source, counts, span_s / steps)


def moved(profile: RateProfile, by_s: float) -> RateProfile:
    """The profile from by_s later on, with nothing before; or, below 0, begun that far into it."""
    span_s = profile.span_s + by_s
    step_s = profile.span_s / fine_steps(profile)
    steps = min(MOST_STEPS, max(1, round(span_s / step_s)))
    edges_s = np.linspace(0.0, span_s, steps + 1) - by_s
    return replace(profile, counts=profile.between(edges_s), step_s=span_s / steps, smooth=False)
