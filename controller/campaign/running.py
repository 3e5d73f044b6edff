"""Runs of an experiment one after the other on its testbed. What is recorded is not run again; what was
interrupted goes on."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from controller.campaign.machine import watched_load
from controller.campaign.records import about, findings, has_record, is_over, keep
from controller.contract import ForgottenRunError
from controller.experiment import Run
from controller.loop import Progress
from controller.run import execute, prepare
from fog import manifest as manifests
from fog.emulation.cgroups import Group
from fog.emulation.state import State
from fog.folders import state_folder

Told = Callable[[Run, int], AbstractContextManager[Progress | None]]
"""Shows how far a run is; the number counts from 1."""


@dataclass(frozen=True)
class Kept:
    """One run of a campaign, and where its record lies."""

    run: Run
    record: Path
    was_there: bool  # before this campaign began
    audit: dict[str, Any]


def refuse_what_cannot_run(runs: Sequence[Run]) -> None:
    """A policy that the testbed does not offer enough is named before hours have passed."""
    for run in runs:
        prepare(run).ready()


def carry_out(runs: Sequence[Run], results: Path, records: Path, shown: Told) -> Iterator[Kept]:
    for number, run in enumerate(runs, start=1):
        was_there = has_record(records, run)
        if not was_there:
            _run_and_keep(run, results, records, shown, number)
        record = records / run.folder
        yield Kept(run, record, was_there, about(record).get("audit") or {})


def _run_and_keep(run: Run, results: Path, records: Path, shown: Told, number: int) -> None:
    told: dict[str, Any] = {}
    if not is_over(results / run.folder):
        begun = datetime.now(UTC)
        with watched_load(lambda: _own_processes(run)) as load, shown(run, number) as progress:
            _execute(run, results, progress)
        # Where a run was interrupted, this is of its last part; the journal names the gaps.
        told = {
            "begun": begun.isoformat(timespec="seconds"),
            "ended": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": {"system": f"{platform.system()} {platform.release()}", **load.as_dict()},
        }
    audit = findings(results / run.folder).get("audit") or {}
    keep(results / run.folder, records, run, {**told, "testbed": _testbed(run), "audit": audit})


def _execute(run: Run, results: Path, progress: Progress | None) -> None:
    try:
        execute(run, results, progress)
    except ForgottenRunError:  # the testbed was built anew, or ran something else, since it was interrupted
        execute(run, results, progress, fresh=True)


def _built(run: Run) -> tuple[str, manifests.Manifest | None]:
    """The testbed's name and manifest; none where it is not one that an inventory builds."""
    name = run.testbed.model_dump().get("name") or ""
    return name, manifests.find(state_folder(name)) if name else None


def _own_processes(run: Run) -> list[int]:
    """The controller and, on emulated nodes, what runs on those without a tight limit. Fog nodes are left
    out: their limit makes them wait, however idle the machine is."""
    name, built = _built(run)
    found = [os.getpid()]
    if built is not None and built.emulated:
        group = Group(State(state_folder(name)).group)
        for node in built.nodes:
            if node.group != "fog":
                found += [process for process in group.processes(node.name) if process > 0]
    return found


def _testbed(run: Run) -> dict[str, Any]:
    """What it was made of; empty where the testbed is none of those that an inventory builds."""
    name, built = _built(run)
    if built is None:
        return {}
    versions = {service: str(told.get("version", "")) for service, told in built.services.items()}
    return {"name": name, "emulated": built.emulated, "latency_by": built.backend, "versions": versions}
