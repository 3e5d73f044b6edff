"""A real run and its simulation: the same load, the same policy, figure by figure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from controller.calibration.figures import BOUNDS, Figures, figures_of
from controller.calibration.profile import Profile, simulation_for
from controller.experiment import Run
from controller.journal import SampleLog, read
from controller.model import Sample
from controller.recording import JOURNAL, run_id
from controller.run import followed, prepare, run_of
from controller.testbeds.flink.settings import FlinkSettings
from fogscale.errors import FogscaleError
from workloads.jobs.catalog import find


@dataclass(frozen=True)
class Pair:
    """One run, on both."""

    run: Run
    profile: str
    operator: str
    duration_s: float
    real: tuple[Sample, ...]
    simulated: tuple[Sample, ...]

    @property
    def name(self) -> str:
        return run_id(self.run.named_by)

    @property
    def figures(self) -> tuple[Figures, Figures]:
        return (
            figures_of(self.real, self.operator, self.duration_s),
            figures_of(self.simulated, self.operator, self.duration_s),
        )

    def rows(self) -> list[dict[str, Any]]:
        """Per figure: real, simulated, the difference, and whether that is within the bound."""
        real, simulated = self.figures
        found = []
        for bound in BOUNDS:
            was, said = getattr(real, bound.name), getattr(simulated, bound.name)
            found.append(
                {
                    "experiment": self.run.experiment,
                    "policy": self.run.policy,
                    "workload": self.run.workload_name,
                    "seed": self.run.seed,
                    "profile": self.profile,
                    "figure": bound.name,
                    "title": bound.title,
                    "real": was,
                    "simulated": said,
                    "off": bound.off(was, said),
                    "within": bound.holds(was, said),
                }
            )
        return found


def pairs_of(folders: Sequence[Path], profiles: Sequence[Profile]) -> tuple[list[Pair], list[str]]:
    """Every real run in these folders that a profile is of; and why others were left out."""
    pairs, left_out = [], []
    for folder in folders:
        run = run_of(folder)
        if not isinstance(run.testbed, FlinkSettings):
            continue
        recorded = read(folder / JOURNAL)
        if recorded is None or not recorded.ended:
            left_out.append(f"{run.id}: it has not ended")
            continue
        profile = next((each for each in profiles if _is_of(each, run.testbed)), None)
        if profile is None:
            left_out.append(f"{run.id}: no profile of job '{run.testbed.job}' with its settings")
            continue
        pairs.append(_pair(run, profile, tuple(recorded.samples)))
    return pairs, left_out


def _is_of(profile: Profile, testbed: FlinkSettings) -> bool:
    """The same job with the same settings, be they said or usual."""
    usual = find(testbed.job).settings
    same = {**usual, **profile.job_settings} == {**usual, **testbed.job_settings}
    return profile.job == testbed.job and same


def _pair(run: Run, profile: Profile, real: tuple[Sample, ...]) -> Pair:
    if not real:
        raise FogscaleError(f"{run.id} holds no sample: run it again with --fresh")
    log = SampleLog()
    as_simulated = run.model_copy(update={"testbed": simulation_for(run.testbed, profile)})
    followed(as_simulated, log)
    return Pair(
        run,
        profile.name,
        run.measured_operator,
        prepare(as_simulated).duration_s,
        real,
        tuple(log.samples),
    )


def run_folders(top: Path) -> Iterator[Path]:
    """Those below a folder that hold a run."""
    for journal in sorted(top.rglob(JOURNAL)):
        yield journal.parent
