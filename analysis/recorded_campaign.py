"""Many simulated runs at once, each recorded in its own folder exactly as if it had run alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from analysis.shipping import ship_packages
from analysis.spreading import failing_by_name, named_failures, progress, spread, with_policies_of_script

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Record = Callable[[str], str | None]
"""Records a run, given as a JSON document; returns what its policy did wrong, or None."""


def record_campaign(spark: SparkSession, runs: Sequence[str], results: Path, fresh: bool) -> list[str | None]:
    """Records each run (a JSON document) below the folder `results`, or goes on where it stopped.

    Returns for each run what its policy did wrong, or None: a policy's mistake ends its run and no other.
    Anything else that is wrong ends the campaign; what was recorded until then stays.
    """
    ship_packages(spark)
    record = with_policies_of_script(_recorder(results.absolute(), fresh))
    todo = spread(spark, list(enumerate(runs)), "position int, document string")
    outcomes = todo.mapInArrow(_recorded(record), "position int, problem string")
    with progress(spark, len(runs)), named_failures(outcomes):
        return [row.problem for row in sorted(outcomes.collect(), key=lambda row: row.position)]


# On the workers


def _recorder(results: Path, fresh: bool) -> Record:
    def record(document: str) -> str | None:
        from controller.containment import PolicyError
        from controller.experiment import Run
        from controller.run import execute

        try:
            execute(Run.model_validate_json(document), results, fresh=fresh)
        except PolicyError as error:
            return str(error)
        return None

    return record


def _recorded(record: Record) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def record_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                with failing_by_name(row["position"], row["document"], in_own_words=True):
                    problem = record(row["document"])
                columns = {"position": [row["position"]], "problem": [problem]}
                yield pa.RecordBatch.from_pydict(
                    columns, schema=pa.schema({"position": pa.int32(), "problem": pa.string()})
                )

    return record_batches
