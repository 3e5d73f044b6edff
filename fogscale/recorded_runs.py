"""The runs of a command, recorded: many simulated ones at once by Spark, others one after the other. A
policy's mistake ends its run and no other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from controller.containment import PolicyError
from controller.experiment import Run
from controller.run import carry_out, prepare
from fogscale.console import progress_bar, spark_session
from fogscale.errors import FogscaleError

FEW = 4  # runs that end one after the other before Spark has started


@dataclass(frozen=True)
class Recorded:
    runs: Sequence[Run]
    problems: Sequence[str | None]  # of each run, what its policy did wrong

    @property
    def done(self) -> list[Run]:
        return [run for run, problem in zip(self.runs, self.problems, strict=True) if problem is None]

    @property
    def failed(self) -> bool:
        return any(problem is not None for problem in self.problems)

    def tell_failures(self) -> None:
        """Once what the others did has been shown."""
        problems = [problem for problem in self.problems if problem is not None]
        if len(self.runs) == 1 and problems:
            raise FogscaleError(problems[0])
        if problems:
            raise FogscaleError(f"{len(problems)} of {len(self.runs)} runs failed; the first: {problems[0]}")


def record(runs: Sequence[Run], results: Path, fresh: bool, spark_follows: bool) -> Recorded:
    """All of them in their folders below `results`; what an earlier command left there goes on. Where Spark
    is needed afterwards anyway (`spark_follows`), starting it costs nothing."""
    runs = list({run.id: run for run in runs}.values())
    is_worth_it = len(runs) > (1 if spark_follows else FEW)
    problems = None
    if is_worth_it and all(run.testbed.many_at_once for run in runs):
        prepare(runs[0])  # what is wrong with all of them is said before Spark starts
        problems = _at_once(runs, results, fresh)
    if problems is None:
        problems = [_one(run, results, fresh, f"{n}/{len(runs)}") for n, run in enumerate(runs, start=1)]
    return Recorded(runs, problems)


def _at_once(runs: Sequence[Run], results: Path, fresh: bool) -> list[str | None] | None:
    """None where the workers of a cluster do not see the folder."""
    with spark_session(f"simulating {len(runs)} runs …") as spark:
        from analysis.recorded_campaign import record_campaign
        from analysis.spreading import is_shared

        if not is_shared(spark, results):
            return None
        return record_campaign(spark, [run.model_dump_json() for run in runs], results, fresh)


def _one(run: Run, results: Path, fresh: bool, place: str) -> str | None:
    prepared = prepare(run)
    with progress_bar(f"{run.policy}, seed {run.seed} ({place})", prepared.duration_s) as progress:
        try:
            carry_out(prepared, results, progress, fresh)
        except PolicyError as error:
            return str(error)
    return None
