"""Imports as the tests run them, and what came of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq

from workloads.importing.trace import event_files


def import_files(spark: Any, kind: str, files: list[Path], target: Path) -> dict[str, Any]:
    """The manifest of the trace that these files become."""
    from workloads.importing.editions import recognise
    from workloads.importing.importer import import_trace
    from workloads.importing.sources import taxi_source, worldcup_source

    source = worldcup_source(files) if kind == "worldcup98" else taxi_source(files, recognise(files))
    return import_trace(spark, source, kind, target, fresh=False, say=lambda _stage: None)


def events_of(folder: Path) -> pd.DataFrame:
    """All events in the order in which they stand."""
    return pd.concat([pq.read_table(file).to_pandas() for file in event_files(folder)], ignore_index=True)


def quarantine_of(folder: Path) -> pd.DataFrame:
    files = sorted((folder / "quarantine").glob("part-*.parquet"))
    rows = pd.concat([pq.read_table(file).to_pandas() for file in files], ignore_index=True)
    return rows.sort_values(["file", "position"], ignore_index=True)
