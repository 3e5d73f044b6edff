"""Chains of runs, each of which starts from what the one before has learned: learning over many days.

The runs of a chain follow each other, so that a chain is the work of one core; chains are spread by Spark.
After each run, all rows of the chain and what it has learned are written into one file: who is interrupted
goes on with the next run, and a longer chain begins where a shorter one has ended.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import pandas as pd
from pyspark.sql import SparkSession

from analysis.kept_rows import KeptRows, keys_of
from analysis.shipping import ship_packages
from controller.experiment import Run
from controller.loop import Log
from controller.run import taught
from fogscale.errors import FogscaleError
from fogscale.files import write_whole

RUNS_AT_A_TIME = 10
"""So many runs of every chain come before the next ones of any: a chart of half the runs has all chains."""
SEEDS_APART = 1_000_000
"""Between a run and the next of its chain, so that no two runs of any chain meet the same chance."""


class Meter(Log, Protocol):
    """A log that tells in one row what it has seen."""

    def row(self) -> Mapping[str, float]: ...


def chained(
    spark: SparkSession, runs: Sequence[Run], length: int, meter: Callable[[Run], Meter], kept: Path
) -> pd.DataFrame:
    """One row for every run of every chain: the policy, the chain's seed, the number of the run (1, 2, …) and
    what the meter has seen in it. `runs` are the first ones; the files are in the folder `kept`."""
    ship_packages(spark)
    documents = [run.model_dump_json() for run in runs]
    paths = [kept.absolute() / f"{key}.json" for key in keys_of(documents)]
    rows: list[dict[str, Any]] = []
    with KeptRows(kept).alone():
        for reached in [*range(RUNS_AT_A_TIME, length, RUNS_AT_A_TIME), length]:
            tasks = [(document, path, reached) for document, path in zip(documents, paths, strict=True)]
            spread = spark.sparkContext.parallelize(tasks, len(tasks))
            rows = spread.flatMap(lambda task: gone_on(*task, meter)).collect()
    return pd.DataFrame(rows)


def gone_on(document: str, path: Path, length: int, meter: Callable[[Run], Meter]) -> list[dict[str, Any]]:
    """The rows of a chain of so many runs; those that its file has are not run again."""
    first = Run.model_validate_json(document)
    rows, learned = _so_far(path)
    while len(rows) < length:
        seed = first.seed + SEEDS_APART * len(rows)
        run = first.model_copy(update={"seed": seed, "learned": learned or first.learned})
        seen = meter(run)
        learned = taught(run, seen)
        rows.append({"policy": first.policy, "seed": first.seed, "run": len(rows) + 1, **seen.row()})
        write_whole(path, json.dumps({"rows": rows, "learned": learned}))
    return rows[:length]


def _so_far(path: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    try:
        document = json.loads(path.read_text())
        return list(document["rows"]), dict(document["learned"])
    except FileNotFoundError:
        return [], {}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FogscaleError(f"{path} is damaged: remove it, and the chain begins anew") from error
