"""The metrics of very many runs, and nothing else of them: simulated a few sets at a time, each kept at once.

A campaign keeps every sample of its runs, which is too much for ten thousand sets of parameters. Here rows of
metrics are kept, one file for a few sets, so that an interrupted computation goes on, and a larger one begins
with what a smaller one has found.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow as pa
from pyspark.sql import SparkSession

from analysis.kept_rows import KeptRows, code_version, keys_of
from controller.experiment import Experiment
from paper_figures.campaign import ABOUT, BASE, Case, simulated, varied_experiment
from paper_figures.published import Variation

RUNS_AT_ONCE = 400  # a minute or two of work: what an interruption costs at most
ANALYSES = ("analysis/metrics", "analysis/demand.py")  # what metrics follow from, besides the runs
IDENTITY = (*ABOUT, "policy", "seed")

Told = Callable[[int], None]
"""Called with the number of sets that are done."""


@dataclass(frozen=True)
class World:
    """A set of drawn parameters, or a variation of the experiment as it is stated."""

    number: int  # 0: as the experiment states it
    drawn: Mapping[str, float]
    variation: Variation | None = None


@dataclass(frozen=True)
class Study:
    """What is simulated of every world, and where its metrics are kept."""

    source: Path
    experiment: Experiment
    policies: Sequence[str]
    metrics: Sequence[str]
    kept: KeptRows

    def rows(
        self, spark: SparkSession, worlds: Sequence[World], seeds: Sequence[int], told: Told | None = None
    ) -> pd.DataFrame:
        """One row per run: scenario, variation, set, policy, seed and the metrics."""
        per_world = len(self.policies) * len(seeds) * max(1, len(self.experiment.scenarios))
        at_once = max(1, RUNS_AT_ONCE // per_world)
        frames = []
        for first in range(0, len(worlds), at_once):
            frames.append(self._some(spark, worlds[first : first + at_once], seeds))
            if told is not None:
                told(first + len(worlds[first : first + at_once]))
        return pd.concat(frames, ignore_index=True)

    def _some(self, spark: SparkSession, worlds: Sequence[World], seeds: Sequence[int]) -> pd.DataFrame:
        key = self._key(worlds, seeds)
        if self.kept.missing([key]):
            cases = [self._case(world, seeds) for world in worlds]
            with simulated(spark, cases) as campaign:
                found = campaign.metrics()[[*IDENTITY, *self.metrics]]
            self.kept.write(key, pa.RecordBatch.from_pandas(found, preserve_index=False))
        return pd.read_parquet(self.kept.path(key))

    def _case(self, world: World, seeds: Sequence[int]) -> Case:
        changed = varied_experiment(self.source, self.experiment, world.variation, world.drawn)
        name = world.variation.name if world.variation else BASE
        return Case(changed, self.policies, seeds, name, world.number)

    def _key(self, worlds: Sequence[World], seeds: Sequence[int]) -> str:
        """Of everything that decides what is in the file. How settings follow from drawn parameters shows in
        the first world's runs; to work all of them out takes long."""
        runs = [run.model_dump_json() for run in self._case(worlds[0], seeds).runs()]
        drawn = json.dumps([[world.number, dict(world.drawn), _name(world)] for world in worlds])
        parts = (code_version(ANALYSES), ",".join(self.metrics), *keys_of(runs), drawn)
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


def _name(world: World) -> str:
    return world.variation.model_dump_json() if world.variation else ""


def worlds_of(drawn: Sequence[Mapping[str, float]]) -> Iterator[World]:
    """Numbered from 1 on, as the sets of the sensitivity study are."""
    return (World(number, values) for number, values in enumerate(drawn, start=1))
