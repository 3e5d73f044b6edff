"""Reads catalog.yml: the jobs by name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import yaml
from pydantic import Field

from fogscale.errors import FogscaleError, unknown
from fogscale.settings import Settings

FILE = Path(__file__).with_name("catalog.yml")


class Operator(Settings):
    name: str  # also its uid
    vertex: str  # its name in Flink's REST API and metrics, unless operators are chained
    group: str  # its slot sharing group in the layout `split`
    upstream: list[str]
    most: int | None = None  # instances, where it cannot be replicated at will


class Job(Settings):
    entry_class: str
    records: str  # the format that it reads
    bound_by: str
    one_to_one: bool  # whether every record of the input is one of the output
    # Where it is not: operators of each of which all results together, with what was refused before, speak of
    # every record once.
    counted_by: list[str] = Field(default_factory=list)
    scaled: list[str]
    service: str | None = None  # of the testbed, which its argument `service` leads to
    operators: list[Operator]  # upstream first
    settings: dict[str, str | int] = Field(default_factory=dict)  # the job's own, with their usual values

    def vertex(self, operator: str) -> str:
        return next(each.vertex for each in self.operators if each.name == operator)


class Catalog(Settings):
    artifact: str  # of playbooks/vars/artifacts.yml, which builds the jar
    jar: str  # the file within that artifact's folder
    max_parallelism: int
    jobs: dict[str, Job]


@cache
def catalog() -> Catalog:
    return Catalog.model_validate(yaml.safe_load(FILE.read_text()))


def find(name: str) -> Job:
    jobs = catalog().jobs
    if name not in jobs:
        raise FogscaleError(unknown("job", name, jobs))
    return jobs[name]


def program_arguments(settings: Mapping[str, str | int | bool]) -> list[str]:
    """As an entry class reads them."""
    words: list[str] = []
    for name, value in settings.items():
        words += [f"--{name}", str(value).lower() if isinstance(value, bool) else str(value)]
    return words
