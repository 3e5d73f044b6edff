"""One import from raw files to a complete trace folder, and the facts about it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fogscale.errors import FogscaleError
from fogscale.files import write_whole
from workloads.importing.reasons import REASONS
from workloads.importing.report import write_report
from workloads.importing.sources import Source
from workloads.importing.spark_job import Imported, Say, check_conservation, write_rows
from workloads.importing.survey import WHOLE_MINUTE_CHANCE
from workloads.importing.trace import (
    FORMAT,
    MANIFEST,
    Pace,
    count_reasons,
    count_rows,
    draft,
    event_files,
    write_rate,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CLOCKS = {"taxi": "New York local time", "worldcup98": "GMT"}


def import_trace(
    spark: SparkSession, source: Source, kind: str, target: Path, fresh: bool, say: Say
) -> dict[str, Any]:
    """Writes the trace and returns its manifest."""
    with draft(target, fresh) as folder:
        imported = write_rows(spark, source, folder, say)
        kept, by_reason = count_rows(event_files(folder)), count_reasons(folder)
        check_conservation(imported.rows_in, kept, sum(by_reason.values()))
        if not kept:
            raise FogscaleError(_nothing_kept(source, imported.rows_in, by_reason))
        say("counting records per second")
        pace = write_rate(folder)
        manifest = _manifest(source, kind, target.name, imported, kept, by_reason, pace)
        write_whole(folder / MANIFEST, json.dumps(manifest, indent=2))
        say("writing the report")
        write_report(folder, manifest, pace, target)
    return manifest


def _nothing_kept(source: Source, rows_in: int, by_reason: dict[str, int]) -> str:
    names = ", ".join(path.name for path in source.paths[:3])
    if not rows_in:
        return f"there is no row in {names}: name files that hold some"
    reasons = ", ".join(f"{count} {reason}" for reason, count in by_reason.items())
    return f"none of the {rows_in} rows in {names} can be kept ({reasons}): check that they are whole"


def _manifest(
    source: Source,
    kind: str,
    name: str,
    imported: Imported,
    kept: int,
    by_reason: dict[str, int],
    pace: Pace,
) -> dict[str, Any]:
    start = datetime.fromtimestamp(pace.start_s or 0, UTC)
    quarantined = sum(by_reason.values())
    return {
        "format": FORMAT,
        "name": name,
        "kind": kind,
        "edition": source.edition,
        "title": source.title,
        "files": [{"name": path.name, "bytes": path.stat().st_size} for path in source.paths],
        "clock": _CLOCKS[kind],
        "start": (start if kind == "worldcup98" else start.replace(tzinfo=None)).isoformat(),
        "span_s": pace.span_s,
        "rows": {
            "in": imported.rows_in,
            "kept": kept,
            "quarantined": quarantined,
            "by_reason": {reason: by_reason[reason] for reason in REASONS if reason in by_reason},
        },
        "rate": {"mean_per_s": kept / pace.span_s, "peak_per_s": pace.peak_records},
        "whole_minutes": [
            {"vendor": vendor, "rows": rows, "whole": whole, "spread": vendor in imported.spread}
            for vendor, (whole, rows) in imported.rounded.items()
        ],
        "notes": _notes(imported, source.spread_by),
        "versions": {package: version(package) for package in ("fogscale", "pyspark", "pyarrow")},
    }


def _notes(imported: Imported, spread_by: str) -> list[str]:
    notes = []
    for vendor in sorted(imported.spread):
        whole, rows = imported.rounded[vendor]
        whose = f"of vendor {vendor}" if vendor else "of this edition, which names no vendor,"
        notes.append(
            f"{whole / rows:.0%} of the rows {whose} have only whole minutes as stamps (by chance:"
            f" {WHOLE_MINUTE_CHANCE:.1%} of single stamps), so a replay would burst at second :00: these"
            f" {whole:,} are spread within their minute, by a hash of each {spread_by}."
        )
    return notes
