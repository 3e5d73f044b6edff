"""fogscale: compares autoscalers for data stream processing in the fog.

    import fogscale as fs

    @fs.register("mine")
    @dataclass
    class Mine(fs.MemorylessPolicy): ...

    experiment = fs.load_experiment("gesscale")
    finished = fs.run(experiment, "mine", seed=1)
    metrics = fs.compare(experiment, ["mine", "gesscale"], seeds=20)

This package is the front door: what examples import, the command line, errors, settings. Behind it stand
`controller` (policies, the loop, testbeds), `workloads` (what is replayed), `analysis` (Spark),
`paper_figures` (the papers) and `fog` (the machinery behind the playbooks).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from controller.contract import Policy
    from controller.model import Capability, Observation, Plan
    from controller.placement import resize_plan
    from controller.policies import MemorylessPolicy, parameter, register
    from fogscale.api import Finished, compare, load_experiment, run
    from fogscale.errors import FogscaleError

__all__ = [
    "Capability",
    "Finished",
    "FogscaleError",
    "MemorylessPolicy",
    "Observation",
    "Plan",
    "Policy",
    "compare",
    "load_experiment",
    "parameter",
    "register",
    "resize_plan",
    "run",
]

# Where each of them lives. They are imported when they are asked for, since all of those import this package.
_HOME = {
    "Capability": "controller.model",
    "Finished": "fogscale.api",
    "FogscaleError": "fogscale.errors",
    "MemorylessPolicy": "controller.policies",
    "Observation": "controller.model",
    "Plan": "controller.model",
    "Policy": "controller.contract",
    "compare": "fogscale.api",
    "load_experiment": "fogscale.api",
    "parameter": "controller.policies",
    "register": "controller.policies",
    "resize_plan": "controller.placement",
    "run": "fogscale.api",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'fogscale' has no attribute '{name}'")
    found = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
