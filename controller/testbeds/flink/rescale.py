"""One way to rescale, by any style: to the nodes that a plan names, or back to those that ran before."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from controller.model import Placement
from controller.testbeds.flink.fleet import Fleet
from controller.testbeds.flink.job import Counts, RunningJob, SavepointError
from controller.testbeds.flink.settings import Style
from controller.testbeds.flink.styles import elastic, in_place, restart
from fogscale.errors import FogscaleError

STYLES: Mapping[str, Callable[[RunningJob, Fleet, Collection[str], Counts], None]] = {
    "restart": restart.rescale,
    "in_place": in_place.rescale,
    "elastic": elastic.rescale,
}


@dataclass(frozen=True)
class Outcome:
    done: bool
    message: str = ""


@dataclass(frozen=True)
class Rescaler:
    job: RunningJob
    fleet: Fleet
    style: Style
    scaled: Sequence[str]  # the operators that follow the load

    def begin(self, placement: Placement, most: Mapping[str, int]) -> None:
        """Starts the job, from its savepoint if it has one."""
        self.fleet.change(self._nodes(placement))
        self.fleet.wait_for(self._nodes(placement))
        self.job.use(self._nodes(placement))
        self.job.start(self._counts(placement))
        if self.style == "elastic":
            self.job.require(self.job.program.instances(most))
        self.job.wait_until_it_runs(self._counts(placement))

    def rescale(self, before: Placement, wanted: Placement) -> Outcome:
        """Never raises what leaves a job behind: if the new set cannot be had, the old one is back."""
        try:
            STYLES[self.style](self.job, self.fleet, self._nodes(wanted), self._counts(wanted))
            return Outcome(True)
        except SavepointError as error:
            return Outcome(False, str(error))
        except FogscaleError as error:
            return Outcome(False, f"{error}; {self._back(before)}")

    def runs_as(self, placement: Placement) -> bool:
        """Whether the job runs on exactly these nodes."""
        found = self.job.placement(self.job.look())
        return all(sorted(found[name]) == sorted(placement[name]) for name in self.scaled)

    def _back(self, before: Placement) -> str:
        try:
            nodes, counts = self._nodes(before), self._counts(before)
            if self.job.is_lost:
                self.job.give_up()
            if self.job.id is None:
                self.fleet.change(nodes)
                self.fleet.wait_for(nodes)
                self.job.use(nodes)
                self.job.start(counts)
            else:
                STYLES[self.style](self.job, self.fleet, nodes, counts)
            self.job.wait_until_it_runs(counts)
            return "the job runs as it did before"
        except FogscaleError as error:
            return f"and it could not be brought back ({error})"

    def _nodes(self, placement: Placement) -> frozenset[str]:
        return frozenset(node for name in self.scaled for node in placement[name])

    def _counts(self, placement: Placement) -> Counts:
        return self.job.program.instances({name: len(placement[name]) for name in self.scaled})
