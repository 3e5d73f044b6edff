"""Testbeds: where a run takes place. One folder = one kind, and its file kind.py registers it.

A testbed, in ten lines (this is all of kind.py; MyTestbed keeps controller.contract.Testbed):

    class MySettings(TestbedSettings):          # what `testbed:` of an experiment may say
        kind: Literal["mine"] = "mine"
        url: str

    @register("mine")
    class Mine:
        "One sentence, which `fogscale testbeds` shows."
        settings = MySettings
        offers = frozenset({Capability.CPU, Capability.LAG})     # with any settings
        may_offer = frozenset({Capability.INSTANT_RESCALE})      # with some; the testbed itself knows

        def prepare(self, wanted: Assignment, settings: MySettings) -> Setup:
            return Setup(lambda: MyTestbed(wanted, settings), wanted.duration_s)

`prepare` checks and works out, but starts nothing and asks no network: the testbed does that when it is
entered (`with`), and takes it back when it is left. What is heavy to import belongs inside `prepare`. Another
package publishes a testbed through the entry point group `fogscale.testbeds` (name = "package.module", a
module that registers it), and holds it to the contract with `fogscale.testing.TestbedContract`.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Protocol, TypeVar, runtime_checkable

from pydantic import BeforeValidator, SerializeAsAny

from controller.contract import Testbed
from controller.model import Capabilities, Placement, Topology
from fogscale.errors import FogscaleError
from fogscale.plugins import Candidate, Registry
from fogscale.settings import Settings
from workloads.profile import RateProfile
from workloads.replay import ReplaySettings, replay_span_s
from workloads.workload import Workload


class TestbedSettings(Settings):
    """What `testbed:` of an experiment says; each kind has a subclass with its own settings."""

    __test__: ClassVar[bool] = False
    many_at_once: ClassVar[bool] = False  # runs share nothing, so that as many go on as there are cores

    kind: str


@dataclass(frozen=True)
class Assignment:
    """What a run asks of its testbed: this job, placed so at the start, under this load."""

    topology: Topology
    start: Placement
    nearest_start: Placement  # the same number of replicas on near nodes: what capacity is counted from
    measured_operator: str
    workload: Workload
    workload_name: str  # in the catalogue, or a file: with its parameters, what builds the workload elsewhere
    workload_parameters: Mapping[str, Any]
    inputs: Mapping[str, RateProfile]  # what enters the job, by the operator where it does
    replay: ReplaySettings  # how fast, how many copies, what share; resolved
    seed: int
    run: str = ""  # its name, policy included, by which a testbed that outlives it knows it again

    @property
    def duration_s(self) -> float:
        """How long records keep arriving."""
        return replay_span_s(self.workload.profile, self.replay)

    @property
    def scaled_operators(self) -> Iterator[str]:
        """Those whose capacity matters: they can be scaled, or are measured."""
        for operator in self.topology.operators:
            if operator.scalable or operator.name == self.measured_operator:
                yield operator.name


@dataclass(frozen=True)
class Setup:
    """All that a run needs of a testbed before it starts."""

    testbed: Callable[[], Testbed]  # a new one at every call; nothing happens until it is entered
    duration_s: float  # of the workload
    # What 1, 2, … replicas can do per scaled operator; an operator is left out where that is not known.
    capacity_per_s: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)  # for the start of the journal


class TestbedKind(Protocol):
    """What `register` takes. Its docstring is its description."""

    __test__: ClassVar[bool] = False

    @property
    def settings(self) -> type[TestbedSettings]: ...

    @property
    def offers(self) -> Capabilities:
        """With any settings."""

    @property
    def may_offer(self) -> Capabilities:
        """With some settings; what a testbed that was built offers is its own `offers`."""

    def prepare(self, wanted: Assignment, settings: Any) -> Setup:
        """Checks, works out what the run needs to know, and starts nothing."""


@runtime_checkable
class Built(Protocol):
    """A kind whose testbeds have to be built, and stay when a run has ended, keeps this besides."""

    @property
    def experiments(self) -> Mapping[str, Path]:
        """The experiment that belongs to each of its testbeds, by the testbed's name."""

    def bring_up(self, topology: Topology, settings: Any) -> None:
        """Builds what a run of this topology needs, unless it stands already."""


def _own() -> Iterator[Candidate]:
    """The folders here that have a kind.py."""
    for package in pkgutil.iter_modules(__path__, prefix=f"{__name__}."):
        module = f"{package.name}.kind"
        if package.ispkg and importlib.util.find_spec(module) is not None:
            name = package.name.rpartition(".")[2]
            yield Candidate(name, package.name, partial(importlib.import_module, module))


registry: Registry[TestbedKind] = Registry("testbed", "testbeds", "fogscale.testbeds", _own)
names, broken, kind_of = registry.names, registry.broken, registry.get
_Class = TypeVar("_Class", bound=type)


def register(name: str) -> Callable[[_Class], _Class]:
    """Makes the class below it the kind of testbed of that name."""

    def remember(kind_class: _Class) -> _Class:
        kind: TestbedKind = kind_class()
        if kind.settings.model_fields["kind"].default != name:
            raise FogscaleError(
                f"testbed '{name}': its settings need the field kind: Literal['{name}'] = '{name}'"
            )
        registry.add(name, kind, kind_class.__module__)
        return kind_class

    return remember


def _settings_of(value: Any) -> Any:
    """The settings class of the kind that is named, filled."""
    if not isinstance(value, Mapping):
        return value
    if "kind" not in value:
        raise ValueError(f"name its kind (known: {', '.join(names())})")
    try:
        kind = kind_of(str(value["kind"]))
    except FogscaleError as error:
        raise ValueError(str(error)) from error
    return kind.settings.model_validate(value)


AnyTestbed = Annotated[SerializeAsAny[TestbedSettings], BeforeValidator(_settings_of)]
"""A field that takes the settings of any kind of testbed: a tagged union on `kind`."""


def prepare(wanted: Assignment, settings: TestbedSettings) -> Setup:
    return kind_of(settings.kind).prepare(wanted, settings)


def bring_up(topology: Topology, settings: TestbedSettings) -> None:
    """Whatever has to stand before the first run; of most kinds, nothing."""
    kind = kind_of(settings.kind)
    if isinstance(kind, Built):
        kind.bring_up(topology, settings)


def has_to_be_built(settings: TestbedSettings) -> bool:
    return isinstance(kind_of(settings.kind), Built)


def built() -> dict[str, Path]:
    """The testbeds that have to be built, by name, with the experiment that belongs to each."""
    kinds = [kind for kind in map(kind_of, names()) if isinstance(kind, Built)]
    return {name: file for kind in kinds for name, file in kind.experiments.items()}


@dataclass(frozen=True)
class Description:
    name: str
    summary: str
    offers: tuple[str, ...]
    may_offer: tuple[str, ...]
    settings: tuple[str, ...]  # the keys besides `kind`


def describe(name: str) -> Description:
    kind = kind_of(name)
    return Description(
        name=name,
        summary=(inspect.getdoc(kind) or "").partition("\n\n")[0].replace("\n", " "),
        offers=tuple(sorted(kind.offers)),
        may_offer=tuple(sorted(kind.may_offer)),
        settings=tuple(key for key in kind.settings.model_fields if key != "kind"),
    )
