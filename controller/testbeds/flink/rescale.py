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
        self.fleet.change(self.nodes_of(placement))
        self.fleet.wait_for(self.nodes_of(placement))
        self.job.use(self.nodes_of(placement))
        self.job.start(self._counts(placement))
        if self.style == "elastic":
            self.job.require(self.job.program.instances(most))
        self.job.wait_until_it_runs(self._counts(placement))

    def rescale(
        self, before: Placement, wanted: Placement, standby: Collection[str] | None = None
    ) -> Outcome:
        """Never raises what leaves a job behind: if the new set cannot be had, the old one is back. A node on
        standby that is wanted now stays up throughout; `standby` are those afterwards (None: the others)."""
        nodes = self.nodes_of(wanted)
        afterwards = self.fleet.standby - nodes if standby is None else frozenset(standby)
        self.fleet.standby = (self.fleet.standby & nodes) | afterwards
        try:
            STYLES[self.style](self.job, self.fleet, nodes, self._counts(wanted))
            self.fleet.standby = afterwards
            return Outcome(True)
        except SavepointError as error:
            return Outcome(False, str(error))
        except FogscaleError as error:
            return Outcome(False, f"{error}; {self._back(before)}")

    def keep_on_standby(self, placement: Placement, standby: Collection[str]) -> None:
        """Beside a job that runs on as it does."""
        self.fleet.standby = frozenset(standby)
        self.fleet.change(self.nodes_of(placement))

    def nodes_of(self, placement: Placement) -> frozenset[str]:
        return frozenset(node for name in self.scaled for node in placement[name])

    def runs_as(self, placement: Placement) -> bool:
        """Whether the job runs on exactly these nodes."""
        found = self.job.placement(self.job.look())
        return all(sorted(found[name]) == sorted(placement[name]) for name in self.scaled)

    def _back(self, before: Placement) -> str:
        try:
            nodes, counts = self.nodes_of(before), self._counts(before)
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

    def _counts(self, placement: Placement) -> Counts:
        return self.job.program.instances({name: len(placement[name]) for name in self.scaled})
