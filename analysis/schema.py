"""The tables of an analysis: what a column is called, and what it holds.

What the controller records is derived from the values that it records, so that a new field arrives here too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from pyspark.sql import DataFrame
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructType,
)

from controller.model import Note, OperatorMetrics, Placement, Plan, Receipt, Sample
from controller.recording import RunFacts
from fogscale.errors import FogscaleError

_SIMPLE: dict[Any, DataType] = {
    str: StringType(),
    float: DoubleType(),
    int: LongType(),
    bool: BooleanType(),
    Any: StringType(),  # JSON, as it stands in the journal
}


def columns_of(recorded: type[Any], leaving_out: tuple[str, ...] = ()) -> StructType:
    """A column for each field of a dataclass."""
    types = get_type_hints(recorded)
    columns = StructType()
    for known in fields(recorded):
        if known.name not in leaving_out:
            columns.add(known.name, column_type(types[known.name]))
    return columns


def column_type(kind: Any) -> DataType:
    """What Spark calls a type of Python; None is a null, which every column may hold."""
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        some = [part for part in parts if part is not NoneType]
        return column_type(some[0]) if len(some) == 1 else _SIMPLE[str]  # of any of them, its text
    if origin is Mapping:
        if parts[1] is Any:
            return _SIMPLE[Any]
        return MapType(column_type(parts[0]), column_type(parts[1]))
    if origin is tuple and parts[1:] == (...,):
        return ArrayType(column_type(parts[0]))
    if origin is Literal or (isinstance(kind, type) and issubclass(kind, Enum)):
        return _SIMPLE[str]
    return columns_of(kind)


def _table(first: Mapping[str, type[Any]], *more: StructType) -> StructType:
    table = StructType()
    for name, kind in first.items():
        table.add(name, column_type(kind))
    return StructType([*table.fields, *(field for columns in more for field in columns.fields)])


_RUN = {"run_id": str}

RUNS = _table(_RUN, columns_of(RunFacts))

SAMPLES = _table(
    {**_RUN, "sequence": int},  # the order of samples taken at the same instant
    columns_of(Sample),
)

DECISIONS = _table(
    {**_RUN, "time_s": float, "waited_s": float},
    columns_of(
        Plan, leaving_out=("notes",)
    ),  # what the policy asked for; null where it left things as they were
    _table({"running": Placement, "requested": Placement}),  # what it saw
    StructType().add(
        "operators", MapType(StringType(), columns_of(OperatorMetrics, leaving_out=("instances",)))
    ),
    _table({"lag_records": float}),
    _table({"estimates": Mapping[str, float]}),  # what the policy's decision rests on, in its own words
    _table({"notes": tuple[Note, ...]}),  # what it exchanged inside, those of the plan first
)

RECEIPTS = _table(
    _RUN,
    columns_of(Receipt, leaving_out=("plan",)),
    _table({"placement": Placement, "reason": str}),  # of the plan
)

FINDINGS = _table({**_RUN, "findings": Any})  # of a real testbed at the end of a run: audit, downtimes, gaps


def check(table: DataFrame, schema: StructType, name: str = "table") -> DataFrame:
    """The declared columns of a table, in order; an error names all that are missing or of another type."""
    found = {field.name: field.dataType.simpleString() for field in table.schema.fields}
    declared = {field.name: field.dataType.simpleString() for field in schema.fields}
    wrong = [
        f"{column} is {found[column]}, not {kind}" if column in found else f"{column} is missing"
        for column, kind in declared.items()
        if found.get(column) != kind
    ]
    if wrong:
        raise FogscaleError(f"the {name} does not fit its schema: {'; '.join(wrong)}")
    return table.select(*schema.names)
