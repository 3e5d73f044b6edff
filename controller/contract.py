"""The two seams of fogscale: what a policy is, and what a testbed is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType, TracebackType
from typing import ClassVar, NamedTuple, Protocol, Self

from numpy.random import Generator

from controller.model import Capabilities, Note, Observation, Plan, Sample, Topology
from fogscale.errors import FogscaleError


class ForgottenRunError(FogscaleError):
    """A run cannot go on: its testbed was built anew since, or ran something else."""


class Policy(Protocol):
    """An autoscaler. It may remember, but has no clock, no I/O and no randomness except its generator,
    so that replaying a journal through a fresh one rebuilds its memory exactly."""

    @property
    def needs(self) -> Capabilities: ...

    @property
    def period_s(self) -> float:
        """Seconds until the next decision; may change over time."""

    def start(self, topology: Topology, rng: Generator) -> None: ...

    def decide(self, observation: Observation) -> Plan | None: ...

    # A policy may also have `estimates: Mapping[str, float]`: the numbers its last decision rests on, such as
    # a filtered load or a predicted rate. They are journalled, so that reports and figures can show them.
    # Its class may list `variants: ClassVar[Mapping[str, Mapping[str, Any]]]`, parameters by name, which the
    # contract tests run besides the defaults; and say `learns = True` if it tries things out to learn,
    # which excuses it from leaving a steady job alone, and from nothing else.
    # It may have `save() -> Mapping` and `load(mapping)`, called after `start`: what it has learned, as plain
    # numbers and texts with a `version`. A run saves it beside its journal, another one may start from it.
    # It may have `notes: tuple[Note, ...]`: what it exchanged inside during its last decision, whether or not
    # a plan came of it (a plan may carry notes of its own). They are journalled and shown beside its plans.


class Step(NamedTuple):
    """One turn of the loop, as journalled."""

    observation: Observation
    plan: Plan | None
    waited_s: float
    samples: tuple[Sample, ...]  # what truly happened until this observation
    estimates: Mapping[str, float] = MappingProxyType({})
    notes: tuple[Note, ...] = ()  # of the policy, besides those of the plan


class Testbed(Protocol):
    """Where a job runs: simulated, emulated on one machine, or on Raspberry Pis."""

    __test__: ClassVar[bool] = False  # the name starts with "Test", but pytest has nothing to collect here

    @property
    def offers(self) -> Capabilities: ...

    @property
    def finished(self) -> bool:
        """True once nothing more will happen: everything is processed, or the time for it is up."""

    @property
    def drained(self) -> bool:
        """True once the workload has ended and everything buffered is processed."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

    def observe(self) -> Observation: ...

    def apply(self, plan: Plan) -> None:
        """Returns at once; the outcome shows in the receipts of later observations."""

    def wait(self, seconds: float) -> None:
        """Advances the simulated clock, or sleeps: so that loop.py is the same for all."""

    def samples(self) -> Iterator[Sample]:
        """The samples taken since the last call."""

    # A testbed may also have `findings: Mapping[str, Any]`: what it found out besides its samples, such as an
    # audit of all records. They stand at the end of the journal, so that reports can show them.
    # `happened() -> tuple[Note, ...]`: what happened to the run since the last call, such as a service that
    # was away; journalled beside the notes of the policy.
    # And `tell`, which the loop sets to its progress: called with the time reached and how things stand.

    def restore(self, steps: Sequence[Step]) -> None:
        """Brings the testbed to where the recorded steps left it (a crashed controller resumes)."""
