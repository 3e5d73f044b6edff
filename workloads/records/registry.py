"""Every record format by name."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

from fogscale.errors import FogscaleError, unknown
from workloads.records.click import Click
from workloads.records.debs_route import DebsRoute
from workloads.records.format import Records
from workloads.records.image import Image
from workloads.records.keyed import KeyedRecords
from workloads.records.taxi_ride import TaxiRide
from workloads.records.worldcup_request import WorldCupRequest

FORMATS: dict[str, type[KeyedRecords]] = {
    records.name: records for records in (Click, DebsRoute, Image, TaxiRide, WorldCupRequest)
}


def create(name: str, **parameters: Any) -> Records:
    """The format of that name, with its parameters; or the events of an imported trace, by its folder."""
    if (Path(name) / "trace.json").is_file():
        from workloads.importing.events import trace_records  # Arrow is heavy

        return trace_records(name)
    if name not in FORMATS:
        raise FogscaleError(unknown("record format", name, FORMATS))
    known = {field.name: field for field in fields(FORMATS[name])}  # type: ignore[arg-type]
    for parameter, value in parameters.items():
        if parameter not in known:
            raise FogscaleError(f"records {name}: {unknown('parameter', parameter, known)}")
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise FogscaleError(f"records {name}: {parameter} must be a number, not {value!r}")
    return FORMATS[name](**parameters)
