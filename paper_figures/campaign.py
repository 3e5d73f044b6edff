"""From the cases of a paper to metrics: everything is one Spark campaign, however many cases there are."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # the name all Spark code knows it by

from analysis.campaign import run_campaign
from analysis.demand import with_demand
from analysis.metrics import flattened, metrics_by_run
from analysis.schema import RUNS
from controller.experiment import Experiment, Run, runs_of, scenarios_of, varied
from fogscale.errors import FogscaleError, Interrupted
from paper_figures.published import Variation

BASE = ""  # the name of the variation that varies nothing
ABOUT = ("scenario", "variation", "set")  # what a run of a campaign is a case of
NOT_A_SETTING = "calibration."  # parameters with this prefix are inputs of the paper's calibration only


@dataclass(frozen=True)
class Case:
    """An experiment to run, and what it is a case of: a variation, and a set of drawn parameters."""

    experiment: Experiment
    policies: Sequence[str]
    seeds: Sequence[int]
    variation: str = BASE
    set: int = 0  # 0: the calibration itself, 1, 2, …: drawn parameters

    def runs(self) -> Iterator[Run]:
        """All policies in all scenarios they take part in."""
        for scenario, experiment in scenarios_of(self.experiment).items():
            about = {"scenario": scenario, "variation": self.variation, "set": self.set}
            policies = [policy for policy in self.policies if policy in experiment.policies]
            yield from runs_of(experiment, policies, self.seeds, variation=about)


def varied_experiment(
    folder: Path, experiment: Experiment, variation: Variation | None, drawn: Mapping[str, float]
) -> Experiment:
    """The experiment with drawn parameters, what follows from them, and a variation on top."""
    settings: dict[str, Any] = {
        path: value for path, value in drawn.items() if not path.startswith(NOT_A_SETTING)
    }
    settings |= variation.changes if variation else {}
    result = varied(experiment, settings) if settings else experiment
    options = variation.calibration if variation else {}
    if not drawn and not options:
        return result  # the calibration as the experiment states it
    calibration = paper_module(folder, "calibration")
    if calibration is None:
        if options:
            raise FogscaleError(f"{folder} has no calibration.py to work out {options}: write one")
        return result
    calibrated: Experiment = calibration.calibrated(result, drawn, **options)
    return calibrated


def paper_module(folder: Path, stem: str) -> ModuleType | None:
    """A file of a paper's folder as a module; the folder may lie anywhere."""
    path = folder / f"{stem}.py"
    if not path.exists():
        return None
    spec = importlib.util.spec_from_file_location(f"paper_figures.{folder.name}.{stem}", path)
    assert spec is not None
    assert spec.loader is not None  # the file exists and is Python
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their own module up there
    try:
        spec.loader.exec_module(module)
    except (Interrupted, KeyboardInterrupt):
        raise
    except (
        BaseException
    ) as error:  # a dropped file can fail in any way; the user needs to know which one it was
        del sys.modules[spec.name]
        reason = f"{type(error).__name__}: {error}".partition("\n")[0]
        raise FogscaleError(f"{path} cannot be imported ({reason}): fix or remove it") from error
    return module


@dataclass(frozen=True)
class Simulated:
    """The tables of a finished campaign."""

    runs: DataFrame
    samples: DataFrame

    def metrics(self) -> pd.DataFrame:
        """One row per run, with the variation and the set it belongs to."""
        return self._metrics(self.runs)

    def whole_metrics(self, variation: str) -> pd.DataFrame:
        """The runs of a variation with nothing left out of any metric."""
        runs = self.runs.where(F.get_json_object("variation", "$.variation") == variation)
        return self._metrics(runs.withColumn("metrics", F.lit(None).cast(RUNS["metrics"].dataType)))

    def _metrics(self, runs: DataFrame) -> pd.DataFrame:
        frame = flattened(metrics_by_run(self.samples, runs).toPandas())
        about = pd.DataFrame.from_records([json.loads(variation) for variation in frame.pop("variation")])
        for place, name in enumerate(ABOUT):
            frame.insert(place, name, about[name])
        return frame.sort_values([*ABOUT, "policy", "seed"], ignore_index=True)

    def series(self, variation: str, seed: int) -> pd.DataFrame:
        """What happened over time in the runs of a variation with one seed."""
        about = F.get_json_object("variation", "$.variation")
        runs = self.runs.where((about == variation) & (F.col("seed") == seed))
        scenario = F.get_json_object("variation", "$.scenario").alias("scenario")
        policies = F.broadcast(runs.select("run_id", "policy", scenario))
        samples = self.samples.join(policies.select("run_id"), on="run_id", how="left_semi")
        named = with_demand(samples, runs).join(policies, on="run_id", how="inner")
        columns = (
            "scenario", "policy", "time_s", "duration_s", "offered_records", "processed_records",
            "lag_records", "offered_rate_per_s", "demand", "supply", "job_supply", "standby",
            "reconfigurations", "response_mean_ms",
        )  # fmt: skip
        frame = named.select(*columns).toPandas()
        return frame.sort_values(["scenario", "policy", "time_s"], ignore_index=True)


@contextmanager
def simulated(
    spark: SparkSession, cases: Sequence[Case], kept: Path | None = None, fresh: bool = False
) -> Iterator[Simulated]:
    """Runs every case once. The rows stay in the folder `kept`, or without one until the block ends."""
    documents = [run.model_dump_json() for case in cases for run in case.runs()]
    campaign = run_campaign(spark, documents, kept=kept, fresh=fresh)
    try:
        yield Simulated(campaign.runs, campaign.samples)
    finally:
        campaign.release()
