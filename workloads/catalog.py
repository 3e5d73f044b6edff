"""Every workload by name: those that the files of workloads/traces/ declare, and any CSV by its path."""

from __future__ import annotations

import importlib
import pkgutil
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import workloads.traces
from fogscale.errors import FogscaleError, unknown
from fogscale.plugins import why_broken
from workloads.traces.csv_profile import csv_workload
from workloads.workload import Definition, Workload


def definitions(package: ModuleType = workloads.traces) -> dict[str, Definition]:
    """The workloads that the modules of a package declare, by name in alphabetical order."""
    return _discovered(package)[0]


def broken(package: ModuleType = workloads.traces) -> dict[str, str]:
    """The files that cannot be used, by their stem, with the reason: that is no reason to stop the others."""
    return _discovered(package)[1]


def _discovered(package: ModuleType) -> tuple[dict[str, Definition], dict[str, str]]:
    found: dict[str, Definition] = {}
    failed: dict[str, str] = {}
    for module_info in pkgutil.iter_modules(package.__path__, prefix=f"{package.__name__}."):
        problem = why_broken(module_info.name, partial(_declare, module_info.name, found))
        if problem is not None:
            failed[module_info.name.rpartition(".")[2]] = problem
    return dict(sorted(found.items())), failed


def _declare(module: str, found: dict[str, Definition]) -> None:
    for value in vars(importlib.import_module(module)).values():
        # A module may import another's definition to build on it: that is the same object, not a clash.
        if isinstance(value, Definition) and found.setdefault(value.name, value) is not value:
            raise FogscaleError(
                f"two files declare the workload '{value.name}' ({found[value.name].build.__module__} and"
                f" {value.build.__module__}): rename one"
            )


def is_trace(path: str) -> bool:
    try:
        return (Path(path) / "trace.json").is_file()
    except (OSError, ValueError):  # a name that no file can have
        return False


def load(name_or_path: str, /, **parameters: Any) -> Workload:
    """The workload of that name, or the profile in a CSV file."""
    if is_trace(name_or_path):
        from workloads.importing.trace import trace_workload  # Arrow is heavy

        if parameters:
            raise FogscaleError(
                f"{name_or_path}: a trace takes no parameters, but got {', '.join(parameters)}"
            )
        return trace_workload(name_or_path)
    if name_or_path.lower().endswith(".csv"):
        if parameters:
            raise FogscaleError(f"{name_or_path}: a CSV takes no parameters, but got {', '.join(parameters)}")
        return csv_workload.load(path=name_or_path)
    known, failed = _discovered(workloads.traces)
    if name_or_path not in known:
        if name_or_path in failed:
            raise FogscaleError(f"workload '{name_or_path}' is broken: {failed[name_or_path]}")
        message = unknown("workload", name_or_path, known)
        looks_like_a_file = "/" in name_or_path or "." in name_or_path
        own = "; a file of your own must end in .csv, a folder be made by `fogscale trace import`"
        raise FogscaleError(message + own if looks_like_a_file else message)
    return known[name_or_path].load(**parameters)
