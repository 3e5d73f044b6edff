"""Another workload with all its rates multiplied."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import Field

from workloads.composition import Part, load_part, with_profiles
from workloads.profile import RateProfile
from workloads.workload import Workload, register


@register("scaled")
def scaled(of: Part, factor: Annotated[float, Field(gt=0)]) -> Workload:
    """Another workload with all its rates multiplied: of=taxi factor=0.5."""
    workload = load_part(of)

    def change(profile: RateProfile) -> RateProfile:
        name, source = f"{profile.name} × {factor:g}", f"{factor:g} times: {profile.source}"
        return replace(profile, name=name, source=source, counts=profile.counts * factor)

    return with_profiles(workload, change)
