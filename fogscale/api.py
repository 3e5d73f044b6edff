"""What a script calls: load an experiment, run a policy in it, compare several."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from controller import experiment as experiments
from controller import journal as journals
from controller import run as runs
from controller.contract import Step
from controller.experiment import Experiment
from controller.model import Sample
from controller.recording import JOURNAL
from fogscale.errors import FogscaleError

if TYPE_CHECKING:
    import pandas as pd

Source = Experiment | str | Path
"""An experiment, its file, or the name of a paper."""


@dataclass(frozen=True)
class Finished:
    """A run that has ended."""

    facts: dict[str, Any]  # policy, workload, seed, duration_s, … and all settings
    steps: tuple[Step, ...]  # the turns of the loop: what the policy saw, and what it answered
    samples: tuple[Sample, ...]  # what truly happened, at a fixed interval
    folder: Path | None  # where it is recorded, if it is


def load_experiment(source: str | Path) -> Experiment:
    """An experiment from its YAML file, or of a paper by its name (gesscale, thesis, ekf, …)."""
    from paper_figures.published import papers

    named = {folder.name: folder / "experiment.yml" for folder in papers()}
    return experiments.load(named.get(str(source), Path(source)))


def run(
    experiment: Source,
    policy: str,
    seed: int = 1,
    workload: str | None = None,
    scenario: str | None = None,
    out: str | Path | None = None,
) -> Finished:
    """Runs one policy once. With `out`, it is recorded in a folder there, for reports and replays; if it was
    interrupted there, it goes on. `workload` and `scenario` as the experiment says if None."""
    [one] = _runs(experiment, [policy], [seed], workload, scenario)
    if out is None:
        log = _Memory()
        prepared = runs.followed(one, log)
        return Finished(prepared.header(), tuple(log.steps), tuple(log.samples), None)
    folder = Path(out) / one.folder
    runs.execute(one, Path(out))
    recorded = journals.read(folder / JOURNAL)
    assert recorded is not None  # it was written a moment ago
    return Finished(recorded.run, recorded.steps, tuple(recorded.samples), folder)


def compare(
    experiment: Source,
    policies: Sequence[str],
    seeds: int = 20,
    workload: str | None = None,
    scenario: str | None = None,
    out: str | Path | None = None,
) -> pd.DataFrame:
    """The metrics of every policy with every seed, one row per run; Spark runs them on all cores. With `out`,
    what was simulated is kept there, so that the same call goes on where it was interrupted."""
    from analysis.campaign import run_campaign
    from analysis.metrics import flattened, metrics_by_run
    from analysis.spark import session

    chosen = _runs(experiment, policies, range(1, seeds + 1), workload, scenario)
    if not all(one.testbed.many_at_once for one in chosen):
        raise FogscaleError("compare simulates: on another testbed, call run for one after the other")
    kept = None if out is None else Path(out) / "campaigns" / "compare"
    campaign = run_campaign(session(), [one.model_dump_json() for one in chosen], kept=kept)
    try:
        metrics: pd.DataFrame = flattened(metrics_by_run(campaign.samples, campaign.runs).toPandas())
    finally:
        campaign.release()
    return metrics.sort_values(["policy", "seed"], ignore_index=True)


def _runs(
    source: Source,
    policies: Sequence[str],
    seeds: Sequence[int],
    workload: str | None,
    scenario: str | None,
) -> list[experiments.Run]:
    experiment = source if isinstance(source, Experiment) else load_experiment(source)
    return experiments.runs_of(experiments.scenario_of(experiment, scenario), policies, seeds, workload)


@dataclass
class _Memory:
    """A log that keeps everything."""

    steps: list[Step] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    recorded: None = None

    def append(self, step: Step) -> None:
        self.steps.append(step)
        self.samples.extend(step.samples)

    def end(self, finished: bool, samples: Iterable[Sample], findings: Mapping[str, Any]) -> None:
        self.samples.extend(samples)
