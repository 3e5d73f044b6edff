"""docs/reference.md: every key of an experiment file, from the models that check it.

`python -m fogscale.reference > docs/reference.md` writes it anew. What a key means is the comment beside it
in the model, so there is one place to keep true.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from textwrap import dedent
from typing import Any

from pydantic.fields import FieldInfo

from controller.experiment import (
    Experiment,
    MetricsSettings,
    Parameter,
    PolicySettings,
    Scenario,
    WorkloadSettings,
)
from controller.testbeds.flink.settings import FlinkSettings
from controller.testbeds.simulated.capacity import InFlight, Linear, PowerLatency, Table, UniversalScalability
from controller.testbeds.simulated.faults import (
    FailedSavepoint,
    LostMetrics,
    NodeLoss,
    SlowNetwork,
    Straggler,
)
from controller.testbeds.simulated.settings import (
    BackPressureReadings,
    Checkpoints,
    CpuGauge,
    Kind,
    Memory,
    Noise,
    Reconfiguration,
    Simulation,
)
from controller.topology import NodeSettings, OperatorSettings, RttSettings, TopologySettings
from fogscale.settings import Settings

MODELS: dict[str, tuple[type[Settings], ...]] = {
    "The experiment": (Experiment,),
    "topology": (TopologySettings,),
    "topology.nodes": (NodeSettings,),
    "topology.operators": (OperatorSettings,),
    "topology.rtt_ms": (RttSettings,),
    "workload": (WorkloadSettings,),
    "metrics": (MetricsSettings,),
    "policies.*": (PolicySettings,),
    "scenarios.*": (Scenario,),
    "parameters": (Parameter,),
    "testbed, kind simulated": (Simulation,),
    "testbed.capacity.*": (PowerLatency, Linear, UniversalScalability, Table, InFlight),
    "testbed.reconfiguration": (Reconfiguration,),
    "testbed.checkpoints": (Checkpoints,),
    "testbed.noise": (Noise,),
    "testbed.cpu_gauge": (CpuGauge,),
    "testbed.back_pressure_readings": (BackPressureReadings,),
    "testbed.memory.*": (Memory,),
    "testbed.kinds.*": (Kind,),
    "testbed.faults": (NodeLoss, Straggler, SlowNetwork, LostMetrics, FailedSavepoint),
    "testbed, kind flink": (FlinkSettings,),
}
# How a name ends tells its unit, everywhere in the project.
UNITS = {
    "_per_s_per_ms": "1/s per ms",
    "_per_s": "1/s",
    "_ms": "ms",
    "_s": "s",
    "_mb": "MB",
    "_ratio": "0–1",
    "_factor": "×",
}
HEAD = """# Reference: the keys of an experiment file

Made by `python -m fogscale.reference` from the models that check such a file; [the guide](guide.md) explains
how they act together. Durations are seconds, or texts such as `2 min`.
"""


def reference() -> str:
    sections = [f"## {place}\n\n{''.join(_tables(models))}" for place, models in MODELS.items()]
    return "\n".join([HEAD, *sections])


def _tables(models: tuple[type[Settings], ...]) -> Iterator[str]:
    for place, model in enumerate(models):
        about = inspect.cleandoc(model.__dict__.get("__doc__") or "")
        gap = "\n" if place else ""
        yield gap + (f"{' '.join(about.split())}\n\n" if about else "")
        yield "| key | type | default | unit | meaning |\n| --- | --- | --- | --- | --- |\n"
        meanings = meanings_of(model)
        for name, field in model.model_fields.items():
            cells = f"`{name}`", _type(model, name), _default(field), unit_of(name), meanings.get(name, "")
            yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


def meanings_of(model: type) -> dict[str, str]:
    """Field -> the comment beside or above it, in the class that declares it."""
    found: dict[str, str] = {}
    for owner in reversed(model.__mro__):
        if issubclass(owner, Settings) and owner is not Settings:
            found |= _comments(dedent(inspect.getsource(owner)))
    return found


def _comments(source: str) -> dict[str, str]:
    lines = source.splitlines()
    (declared,) = ast.parse(source).body
    assert isinstance(declared, ast.ClassDef)
    found = {}
    for node in declared.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            beside = lines[(node.end_lineno or node.lineno) - 1].encode()[node.end_col_offset :].decode()
            text = beside.strip().removeprefix("#").strip() or _above(lines, node.lineno - 1)
            if text:
                found[node.target.id] = text[0].upper() + text[1:] if text[0].isascii() else text
    return found


def _above(lines: list[str], place: int) -> str:
    first = place
    while lines[first - 1].strip().startswith("#"):
        first -= 1
    return " ".join(line.strip().removeprefix("#").strip() for line in lines[first:place])


def _type(model: type[Settings], name: str) -> str:
    """As JSON Schema sees it, in words."""
    schema = model.model_json_schema()
    return f"`{_words(schema['properties'][name])}`"


def _words(schema: dict[str, Any]) -> str:
    if "enum" in schema or "const" in schema:
        return " | ".join(map(str, schema.get("enum", [schema.get("const")])))
    if "$ref" in schema:
        return "mapping"
    for several in ("anyOf", "oneOf"):
        if several in schema:
            kinds = dict.fromkeys(_words(each) for each in schema[several])
            return " | ".join("none" if kind == "null" else kind for kind in kinds)
    if schema.get("type") == "array":
        inner = schema.get("items") or (schema.get("prefixItems") or [{}])[0]
        return f"list of {_words(inner)}"
    if schema.get("type") == "object":
        return "mapping"
    kinds_of = {"string": "text", "integer": "whole number", "boolean": "true | false"}
    kind = str(schema.get("type", "any"))
    return kinds_of.get(kind, kind)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "*required*"
    value = field.get_default(call_default_factory=True)
    if isinstance(value, Settings):
        return "its defaults"
    if value is None or value in ((), {}, ""):
        return "none"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{re.sub(r'[()]', '', str(value))}`"


def unit_of(name: str) -> str:
    return next((unit for ending, unit in UNITS.items() if name.endswith(ending)), "")


if __name__ == "__main__":
    print(reference(), end="")
