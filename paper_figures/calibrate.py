"""What follows from a paper's facts, beside what its experiment states: `fogscale calibrate`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isclose
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from controller.experiment import Experiment
from controller.experiment import load as load_experiment
from fogscale.errors import FogscaleError
from fogscale.files import write_whole
from paper_figures.campaign import paper_module
from paper_figures.published import paper_folder

ROUNDING = 0.01  # relative: experiments state rounded numbers, and what is learnt under them differs a little


class Derived(NamedTuple):
    """A setting for which the facts give another value than the experiment states."""

    setting: str
    stated: Any
    derived: Any


def calibrate(paper: str, law: str | None = None) -> tuple[Experiment, list[Derived]]:
    """The experiment with everything worked out anew by the paper's calibration.py, and what that changes."""
    folder = paper_folder(paper)
    calibration = paper_module(folder, "calibration")
    if calibration is None:
        raise FogscaleError(f"{folder} has no calibration.py: its experiment states facts only")
    stated = load_experiment(folder / "experiment.yml")
    try:
        derived: Experiment = calibration.calibrated(stated, {}, **({"law": law} if law else {}))
    except (KeyError, ValueError) as error:
        raise FogscaleError(
            f"the calibration of {paper} knows no capacity law {law}: try power_latency, usl or table"
        ) from error
    return derived, list(changes(stated.model_dump(mode="json"), derived.model_dump(mode="json")))


def changes(stated: Any, derived: Any, path: str = "") -> Iterator[Derived]:
    """Setting by setting; numbers that differ by rounding alone are the same."""
    if isinstance(stated, Mapping) and isinstance(derived, Mapping):
        for key in dict.fromkeys([*stated, *derived]):
            yield from changes(stated.get(key), derived.get(key), f"{path}.{key}" if path else str(key))
    elif not _same(stated, derived):
        yield Derived(path, stated, derived)


def _same(stated: Any, derived: Any) -> bool:
    if isinstance(stated, list) and isinstance(derived, list):
        return len(stated) == len(derived) and all(map(_same, stated, derived))
    if isinstance(stated, Mapping) and isinstance(derived, Mapping):
        return not any(changes(stated, derived))
    if isinstance(stated, float | int) and isinstance(derived, float | int):
        return isclose(stated, derived, rel_tol=ROUNDING)
    return bool(stated == derived)


def write(experiment: Experiment, path: Path) -> None:
    """As an experiment file of its own; one that exists is not written over."""
    if path.exists():
        raise FogscaleError(f"{path} exists: give another name, or remove it")
    values = experiment.model_dump(mode="json", exclude_none=True)
    write_whole(path, yaml.safe_dump(values, sort_keys=False, allow_unicode=True), "choose another file")
