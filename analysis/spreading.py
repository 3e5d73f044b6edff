"""Work spread over the cores of this machine, or of a cluster, by Spark: dealt out evenly, with a bar, and
with what fails named in one line."""

from __future__ import annotations

import json
import re
import sys
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import ceil
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from analysis.spark import is_local
from controller import policies
from controller.recording import NAMED_BY
from fogscale.errors import FogscaleError

RUNS_PER_TASK = 8  # a few seconds of work: long beside the cost of a task, short beside the campaign

_FAILED, _REFUSED = "fogscale run failed", "fogscale run refused"


def is_shared(spark: SparkSession, folder: Path) -> bool:
    """Whether the workers see the same folder: always on one machine; on a cluster, they are asked."""
    if is_local(spark.sparkContext.master or ""):
        return True
    folder.mkdir(parents=True, exist_ok=True)
    token = folder.absolute() / f".{uuid.uuid4()}.token"
    token.touch()
    try:
        asked = spark.sparkContext.parallelize(range(64), 64)
        return all(asked.map(lambda _: token.exists()).collect())
    finally:
        token.unlink()


def spread(spark: SparkSession, runs: Sequence[tuple[Any, ...]], schema: str) -> DataFrame:
    """Dealt out evenly to as many tasks as keep all cores busy to the end."""
    tasks = task_count(len(runs), spark.sparkContext.defaultParallelism)
    return spark.createDataFrame(list(runs), schema).coalesce(1).repartition(tasks)


def task_count(runs: int, cores: int) -> int:
    return min(runs, max(4 * cores, ceil(runs / RUNS_PER_TASK)))


# On the workers


def with_policies_of_script(work: Callable[..., Any]) -> Callable[..., Any]:
    """The work, with the policies that only this process knows: those of the script that is running."""
    known = policies.of_script()

    def work_with_them(*arguments: Any) -> Any:
        for name, policy in known.items():
            policies.register(name)(policy)
        return work(*arguments)

    return work_with_them


@contextmanager
def failing_by_name(position: int, document: str, in_own_words: bool = False) -> Iterator[None]:
    """What goes wrong in the block reaches the driver as one line with the name of the run; where the user
    can fix it, `in_own_words` gives that line as it is."""
    try:
        yield
    except Exception as error:
        if in_own_words and isinstance(error, FogscaleError):
            raise RuntimeError(f"{_REFUSED}[[{' '.join(str(error).split())}]]") from error
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise RuntimeError(f"{_FAILED}[[{label(position, document)}: {reason}]]") from error


def label(position: int, document: str) -> str:
    """What a run calls itself, as far as its document tells."""
    try:
        fields = json.loads(document)
    except ValueError:
        fields = {}
    names = []
    for key in NAMED_BY:
        value = fields.get(key) if isinstance(fields, Mapping) else None
        value = value.get("name") if isinstance(value, Mapping) else value
        if value is not None:
            names.append(f"{key}={value}")
    return f"run {position + 1} ({', '.join(names) or document[:80]})"


# On the driver


@contextmanager
def named_failures(rows: DataFrame) -> Iterator[None]:
    """A run that fails is named in one line, instead of Spark's account of the task that ran it."""
    try:
        yield
    except PySparkException as error:
        rows.unpersist()
        named = re.search(rf"({_FAILED}|{_REFUSED})\[\[(.*?)\]\]\n", f"{error}\n", re.DOTALL)
        if named is None:
            raise
        advice = "; repeat that run alone to see where it fails" if named[1] == _FAILED else ""
        raise FogscaleError(f"{named[2]}{advice}") from error
    except BaseException:
        rows.unpersist()
        raise


@contextmanager
def progress(spark: SparkSession, runs: int) -> Iterator[None]:
    """A bar on standard error while the block runs; nothing where standard error is no terminal."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    group = f"campaign-{uuid.uuid4()}"
    spark.sparkContext.setJobGroup(group, f"a campaign of {runs} runs")
    over = threading.Event()
    look = (TextColumn("Simulating"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*look, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=runs)

        def follow() -> None:
            while not over.wait(0.3):
                bar.update(task, completed=round(runs * _share_done(spark, group)))

        follower = threading.Thread(target=follow, daemon=True)
        follower.start()
        try:
            yield
        finally:
            over.set()
            follower.join()
            spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]


def _share_done(spark: SparkSession, group: str) -> float:
    """The share of finished tasks of the stage with the most tasks: the one that simulates."""
    tracker = spark.sparkContext.statusTracker()
    share, most = 0.0, 0
    for job in tracker.getJobIdsForGroup(group):
        info = tracker.getJobInfo(job)
        for stage_id in info.stageIds if info else []:
            stage = tracker.getStageInfo(stage_id)
            if stage and stage.numTasks > most:
                share, most = stage.numCompletedTasks / stage.numTasks, stage.numTasks
    return share
