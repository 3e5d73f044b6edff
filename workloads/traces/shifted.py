"""Another workload that begins later, or in its midst."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Annotated

from pydantic import BeforeValidator

from fogscale.errors import FogscaleError
from fogscale.settings import seconds_of
from workloads.composition import Part, load_part, moved, with_profiles
from workloads.excerpts import without_first
from workloads.profile import RateProfile
from workloads.workload import Workload, register


@register("shifted")
def shifted(of: Part, by_s: Annotated[float, BeforeValidator(seconds_of)]) -> Workload:
    """Another workload, begun later or, below 0, so far into its trace: of=taxi by_s=-6h."""
    workload = load_part(of)
    if workload.profile.span_s + by_s <= 0:
        raise FogscaleError(
            f"workload 'shifted': by_s={by_s:g} leaves nothing of the {workload.profile.span_s:g} s of"
            f" '{of.name}': shift it by less"
        )

    def change(profile: RateProfile) -> RateProfile:
        name, source = f"{profile.name} {by_s:+g} s", f"shifted by {by_s:g} s: {profile.source}"
        return replace(moved(profile, by_s), name=name, source=source, start=_earlier(profile.start, by_s))

    if workload.excerpts:
        lost = float(workload.profile.cumulative(-by_s)) / workload.profile.total_records
        workload = replace(workload, excerpts=without_first(workload.excerpts, lost))
    return with_profiles(workload, change)


def _earlier(start: str | None, by_s: float) -> str | None:
    """What begins later keeps its hours: the load before it is none, the clock before it is not."""
    if start is None:
        return None
    try:
        return (datetime.fromisoformat(start) - timedelta(seconds=by_s)).isoformat()
    except OverflowError as error:
        raise FogscaleError(
            f"workload 'shifted': by_s={by_s:g} leaves the calendar: shift it by less"
        ) from error
