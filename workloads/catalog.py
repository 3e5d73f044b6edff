"""Every workload by name: those that the files of workloads/traces/ declare, and any CSV by its path."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path
from types import ModuleType
from typing import Any

import workloads.traces
from fogscale.errors import FogscaleError, unknown
from workloads.traces.csv_profile import csv_workload
from workloads.workload import Definition, Workload


def definitions(package: ModuleType = workloads.traces) -> dict[str, Definition]:
    """The workloads that the modules of a package declare, by name in alphabetical order."""
    found: dict[str, Definition] = {}
    for module_info in pkgutil.iter_modules(package.__path__, prefix=f"{package.__name__}."):
        for value in vars(_import(module_info.name)).values():
            if not isinstance(value, Definition):
                continue
            # A module may import another's definition to build on it: that is the same object, not a clash.
            if found.setdefault(value.name, value) is not value:
                raise FogscaleError(
                    f"two files declare the workload '{value.name}' ({found[value.name].build.__module__} and"
                    f" {value.build.__module__}): rename one"
                )
    return dict(sorted(found.items()))


def load(name_or_path: str, /, **parameters: Any) -> Workload:
    """The workload of that name, or the profile in a CSV file."""
    if (Path(name_or_path) / "trace.json").is_file():
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
    known = definitions()
    if name_or_path not in known:
        message = unknown("workload", name_or_path, known)
        looks_like_a_file = "/" in name_or_path or "." in name_or_path
        own = "; a file of your own must end in .csv, a folder be made by `fogscale trace import`"
        raise FogscaleError(message + own if looks_like_a_file else message)
    return known[name_or_path].load(**parameters)


def _import(module: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except (
        Exception,
        SystemExit,
    ) as error:  # a dropped file can fail in any way; the user needs to know which one it was
        reason = f"{type(error).__name__}: {error}".partition("\n")[0]
        raise FogscaleError(
            f"the workload file {module} cannot be imported ({reason}): fix or remove it"
        ) from error
