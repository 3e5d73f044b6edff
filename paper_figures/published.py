"""What a paper states: its table, its claims in numbers, and which of our mechanisms are in doubt.

One YAML file per paper, validated, so that orders and claims are computed by code that knows no paper.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, combinations, pairwise, product
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, model_validator

from analysis.verdicts import Test
from fogscale.documents import read_yaml
from fogscale.errors import FogscaleError, unknown
from fogscale.settings import Settings, validated

Metric = str
Policy = str
Scenario = str
Table = dict[Policy, dict[Metric, float]]

ONLY = ""  # the scenario of an experiment that has no others


class Change(Settings):
    """How much less, or more, one policy has than another, by the sum of some metrics."""

    metrics: Annotated[tuple[Metric, ...], Field(min_length=1)]
    of: Policy
    against: Policy


class Limit(Settings):
    """What one policy has of a metric, against one limit, in the metric's own unit."""

    metric: Metric
    of: Policy
    above: float | None = None
    below: float | None = None

    @model_validator(mode="after")
    def _one_limit(self) -> Limit:
        if (self.above is None) == (self.below is None):
            raise ValueError("give exactly one of above and below")
        return self

    @property
    def value(self) -> float:
        value = self.above if self.above is not None else self.below
        assert value is not None  # validated above
        return value

    @property
    def sign(self) -> int:
        return 1 if self.above is not None else -1


class Measured(Settings):
    """A number of the paper's own statements.py, one per seed, and where it has to lie."""

    of: str
    unit: str = ""  # for the reader
    at_least: float | None = None
    at_most: float | None = None

    @model_validator(mode="after")
    def _bounded(self) -> Measured:
        if self.at_least is None and self.at_most is None:
            raise ValueError("give at_least, at_most or both: without them it could not fail")
        return self


class Claim(Settings):
    """A sentence of the paper that can be recomputed. Exactly one of the computations is given."""

    text: str
    where: str = ""
    scenario: Scenario | None = None  # None: over all scenarios together
    published: float | None = None  # %, of a limit or measured in its unit; None: the paper gives no number
    note: str = ""
    relative_reduction: Change | None = None
    relative_increase: Change | None = None
    limit: Limit | None = None
    measured: Measured | None = None

    @model_validator(mode="after")
    def _one_computation(self) -> Claim:
        given = (self.relative_reduction, self.relative_increase, self.limit, self.measured)
        if sum(each is not None for each in given) != 1:
            raise ValueError("give exactly one of relative_reduction, relative_increase, limit and measured")
        return self

    @property
    def about(self) -> tuple[Policy, ...]:
        """The policies that it compares."""
        if self.measured is not None:
            return ()
        return (self.limit.of,) if self.limit else (self.change.of, self.change.against)

    @property
    def change(self) -> Change:
        change = self.relative_reduction or self.relative_increase
        assert change is not None  # validated above
        return change

    @property
    def sign(self) -> int:
        """What turns an increase into what the claim counts."""
        return -1 if self.relative_reduction else 1


class Variation(Settings):
    """The same experiment with something changed: an erratum, a mechanism in doubt, another capacity law."""

    name: str
    title: str
    why: str
    changes: dict[str, Any] = Field(default_factory=dict)  # by dotted path
    calibration: dict[str, Any] = Field(default_factory=dict)  # arguments of the paper's calibration
    policies: tuple[Policy, ...] | None = None  # None: all of the published table
    seeds: Annotated[int, Field(ge=1)] | None = None  # the first so many; None: all
    repeated_over_sets: bool = True  # also part of the sensitivity study
    beside_posterior: bool = False  # also one of the points that `make plausible` shows beside the posterior
    only_full: bool = False  # takes long: run with --full alone


class Axis(Settings):
    """What a sweep varies: one value for all these settings at a time."""

    paths: Annotated[tuple[str, ...], Field(min_length=1)]  # dotted
    values: Annotated[tuple[float, ...], Field(min_length=1)]


class Sweep(Settings):
    """The experiment at every point of a grid. Its runs are in metrics.parquet, as variations that are called
    after the sweep and the point, `thresholds/0.4/0.8`, for a table of the paper to read."""

    name: Annotated[str, Field(pattern=r"^\w+$")]
    axes: Annotated[tuple[Axis, ...], Field(min_length=1)]
    ascending: bool = False  # only points whose values rise from each axis to the next
    changes: dict[str, Any] = Field(default_factory=dict)  # by dotted path, at every point
    seeds: Annotated[int, Field(ge=1)] = 1  # the first so many
    only_full: bool = False  # takes long: run with --full alone

    def points(self) -> Iterator[tuple[str, dict[str, Any]]]:
        for values in product(*(axis.values for axis in self.axes)):
            if self.ascending and any(b <= a for a, b in pairwise(values)):
                continue
            changes = {
                path: value for axis, value in zip(self.axes, values, strict=True) for path in axis.paths
            }
            yield "/".join([self.name, *(f"{value:g}" for value in values)]), self.changes | changes


class Doubt(Settings):
    """A mechanism in doubt: which orders it bears on, and a text whose numbers are filled in when built."""

    title: str
    metrics: tuple[Metric, ...] = ()
    policies: tuple[Policy, ...] = ()  # one of a pair has to be among these; none: any pair
    scenarios: tuple[Scenario, ...] = ()  # none: all of them
    variation: str | None = None  # the one without the mechanism: does it reproduce those orders?
    text: str  # a Jinja template; see paper_figures.doubts
    text_in_full: str = ""  # what follows it where variations of --full were run, too

    def covers(self, scenario: Scenario, metric: Metric, a: Policy, b: Policy) -> bool:
        return (
            metric in self.metrics
            and (not self.scenarios or scenario in self.scenarios)
            and (not self.policies or a in self.policies or b in self.policies)
        )


class Uninformative(Settings):
    """A published order that says nothing, by the paper's own numbers."""

    scenario: Scenario
    metric: Metric
    why: str


class Order(NamedTuple):
    scenario: Scenario
    metric: Metric
    a: Policy
    b: Policy
    published_a: float
    published_b: float


class Published(Settings):
    title: str
    reference: str
    url: str = ""
    labels: dict[Policy, str]
    metrics: Annotated[tuple[Metric, ...], Field(min_length=1)]
    tables: dict[Scenario, Table]  # `table` alone where the experiment has no scenarios
    table_caption: str = ""
    # What a reader has to know before any number: a template as the text of a doubt, which may also use
    # agree.base, agree.<variation> and orders: how many orders agree, of how many.
    remark: str = ""
    # In one sentence each that an outsider understands: what is reproduced, what is not, and why not.
    reproduced: str = ""
    not_reproduced: str = ""
    why_not: str = ""
    # How the point that the experiment states came about: from facts alone, or after looks at its ranking.
    point: Literal["blind", "fitted"] = "fitted"
    runs_per_value: Annotated[int, Field(ge=1)] = 1  # of which a published value is the mean
    test: Test = "paired"  # of two policies; another one only where the paper itself used it
    uninformative: tuple[Uninformative, ...] = ()
    claims: tuple[Claim, ...] = ()
    variations: tuple[Variation, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    sweeps: tuple[Sweep, ...] = ()

    @model_validator(mode="after")
    def _consistent(self) -> Published:
        for scenario, table in self.tables.items():
            for policy, row in table.items():
                if policy not in self.labels:
                    raise ValueError(f"labels: nothing is given for policy '{policy}'; add it")
                given = self.metrics if scenario == ONLY else dict.fromkeys(chain(*table.values()))
                for metric in given:
                    if metric not in self.metrics:
                        raise ValueError(f"tables.{scenario}: {unknown('metric', metric, self.metrics)}")
                    if metric not in row:
                        raise ValueError(f"table {scenario}, {policy}: metric '{metric}' is missing; add it")
        for claim in self.claims:
            if claim.scenario is not None and claim.scenario not in self.tables:
                raise ValueError(f"claim '{claim.text}': {unknown('scenario', claim.scenario, self.tables)}")
            for policy in claim.about:
                if policy not in self.policies:
                    raise ValueError(f"claim '{claim.text}': {unknown('policy', policy, self.policies)}")
        known = [variation.name for variation in self.variations if variation.policies is None]
        for doubt in self.doubts:
            if doubt.variation is not None and doubt.variation not in known:
                raise ValueError(f"doubt '{doubt.title}': {unknown('variation', doubt.variation, known)}")
        return self

    @model_validator(mode="before")
    @classmethod
    def _one_table_is_the_only_one(cls, values: Any) -> Any:
        if isinstance(values, dict) and "table" in values and "tables" not in values:
            return {name: value for name, value in values.items() if name != "table"} | {
                "tables": {ONLY: values["table"]}
            }
        return values

    @property
    def in_short(self) -> Published:
        """Without what takes long."""
        return self.model_copy(
            update={
                "variations": tuple(each for each in self.variations if not each.only_full),
                "sweeps": tuple(each for each in self.sweeps if not each.only_full),
                "doubts": tuple(each.model_copy(update={"text_in_full": ""}) for each in self.doubts),
            }
        )

    @property
    def table(self) -> Table:
        """Of the only scenario."""
        return self.tables[ONLY]

    @property
    def policies(self) -> tuple[Policy, ...]:
        return tuple(dict.fromkeys(policy for table in self.tables.values() for policy in table))

    @property
    def pairs(self) -> tuple[tuple[Policy, Policy], ...]:
        return tuple(combinations(self.policies, 2))

    def orders(self) -> Iterator[Order]:
        """Everything the tables say about who is lower than whom."""
        for scenario, table in self.tables.items():
            for metric in self.metrics:
                for a, b in combinations(table, 2):
                    if metric in table[a] and metric in table[b]:
                        yield Order(scenario, metric, a, b, table[a][metric], table[b][metric])

    def label(self, policy: Policy) -> str:
        return self.labels.get(policy, policy)


def load(folder: Path) -> Published:
    """published.yml of a paper's folder, with variations.yml, doubts.yml and sweeps.yml where it has them."""
    values = _read(folder / "published.yml")
    for key in ("variations", "doubts", "sweeps"):
        path = folder / f"{key}.yml"
        if path.exists():
            values[key] = _read(path)
    return validated(Published, values, str(folder / "published.yml"))


def _read(path: Path) -> Any:
    try:
        return read_yaml(path)
    except OSError as error:
        raise FogscaleError(f"cannot read {path}: {error.strerror}") from error


def papers(folder: Path = Path(__file__).parent) -> Iterator[Path]:
    """The folders that hold a paper: an experiment and what was published of it."""
    for path in sorted(folder.iterdir()):
        if (path / "experiment.yml").exists() and (path / "published.yml").exists():
            yield path


def paper_folder(name: str) -> Path:
    """A paper by its name, or by the path of a folder anywhere."""
    known = {path.name: path for path in papers()}
    if name in known:
        return known[name]
    if (Path(name) / "published.yml").exists():
        return Path(name)
    raise FogscaleError(unknown("paper", name, known))
