"""Lines of a taxi file to typed columns, and the same columns from the TLC's Parquet files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache, partial
from hashlib import blake2b
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import csv

from workloads.importing.editions import COORDINATE, ID, KIND, NUMBER, STAMP, TEXT, WHOLE, Edition
from workloads.importing.lines import Lines, line_batches, lines_at
from workloads.importing.reasons import MALFORMED, NUMBER_OF
from workloads.importing.rows import Rows
from workloads.importing.streams import Part

_STAMP_CHARACTERS = 19
_STAMP_TYPE = pa.timestamp("us")
_FEW_TEXTS = pa.dictionary(pa.int32(), pa.string())
_TYPES = {
    WHOLE: pa.int64(), NUMBER: pa.float64(), COORDINATE: pa.float64(), STAMP: pa.string(), TEXT: _FEW_TEXTS,
    KIND: pa.string(), ID: pa.string(),
}  # fmt: skip

# What may stand in a field of each kind, and more: it only sorts out what is plainly wrong. Whether a line is
# sound is for the parser alone to say, so that it never depends on the lines around it.
_LOOKS = {
    WHOLE: r"[-+\w \t]+", NUMBER: r"[-+.\w \t]+", COORDINATE: r"[-+.\w \t]*",
    STAMP: r"[-+:.0-9TZ \t]{19,}", TEXT: r"[^,]*", KIND: "(?:START|END)", ID: "[^,]+",
}  # fmt: skip


def read_trips(part: Part, edition: Edition, has_header: bool, sample_every: int = 1) -> Iterator[Rows]:
    for lines in line_batches(part, sample_every):
        if has_header and lines.begin_the_file:
            lines = lines.without_first()
        if len(lines.ends):
            yield Rows(parsed(lines, edition), lines.texts)


def parsed(lines: Lines, edition: Edition) -> pa.Table:
    """A row for each line: the edition's columns, its position, and what is wrong if it has no columns."""
    count = len(lines.ends)
    table = None if lines.damage else _typed(lines.content, count, edition)
    if table is not None:
        damage = np.zeros(count, np.uint8)
    else:
        table, is_sound = _typed_where_sound(lines, edition)
        damage = np.where(is_sound, 0, NUMBER_OF[lines.damage or MALFORMED]).astype(np.uint8)
    if edition.rides:
        table = _rides(table)
    return table.append_column("position", pa.array(lines.positions)).append_column(
        "reason", pa.array(damage)
    )


def _typed(content: bytes, count: int, edition: Edition) -> pa.Table | None:
    """The columns of so many lines, or None if one of them does not have them."""
    # No field of any edition contains a comma, so quotes can go before the split.
    content = content.replace(b'"', b"")
    read, parse, convert = _csv_options(edition)
    try:
        table = csv.read_csv(pa.BufferReader(content), read, parse, convert)
        for name, kind in edition.columns.items():
            if kind == STAMP:
                table = _with_stamp(table, name)
    except pa.ArrowInvalid:
        return None
    is_sound = table.num_rows == count and all(
        _is_sound(table.column(name), kind) for name, kind in edition.columns.items()
    )
    return table if is_sound else None


@lru_cache(maxsize=8)
def _csv_options(edition: Edition) -> tuple[csv.ReadOptions, csv.ParseOptions, csv.ConvertOptions]:
    return (
        csv.ReadOptions(use_threads=False, column_names=list(edition.columns), block_size=1 << 26),
        csv.ParseOptions(quote_char=False, ignore_empty_lines=False),
        csv.ConvertOptions(
            column_types={name: _TYPES[kind] for name, kind in edition.columns.items()}, null_values=[""]
        ),
    )


def _with_stamp(table: pa.Table, name: str) -> pa.Table:
    """A date alone would be taken for its midnight."""
    text = table.column(name)
    if table.num_rows and pc.min(pc.binary_length(text)).as_py() < _STAMP_CHARACTERS:
        raise pa.ArrowInvalid("a stamp is too short")
    return table.set_column(table.schema.get_field_index(name), name, text.cast(_STAMP_TYPE))


def _is_sound(values: pa.ChunkedArray, kind: str) -> bool:
    """Empty coordinates are no fault of the line but invalid ones."""
    if kind == ID:
        return not len(values) or pc.min(pc.binary_length(values)).as_py() > 0
    if kind == KIND:
        return bool(pc.all(pc.is_in(values, pa.array(["START", "END"]))).as_py())
    if kind == NUMBER:
        return not values.null_count and not pc.any(pc.is_nan(values)).as_py()
    return kind in (TEXT, COORDINATE) or not values.null_count


def _typed_where_sound(lines: Lines, edition: Edition) -> tuple[pa.Table, npt.NDArray[np.bool_]]:
    """Null in all columns where a line is malformed. Slower, and for the few chunks that hold such lines."""
    count = len(lines.ends)
    texts = np.array(lines.texts(range(count)), dtype=object)
    looks_sound = _pattern(edition)
    candidates = [] if lines.damage else [n for n, text in enumerate(texts) if looks_sound.fullmatch(text)]
    found = list(_sound_runs(texts, np.array(candidates, dtype=np.int64), edition))
    numbers = np.concatenate([run for run, _ in found] or [np.empty(0, np.int64)])
    table = pa.concat_tables([table for _, table in found] or [_empty(edition)]).unify_dictionaries()
    row_of, is_sound = np.zeros(count, np.int64), np.zeros(count, np.bool_)
    row_of[numbers], is_sound[numbers] = np.arange(len(numbers)), True
    return table.combine_chunks().take(pa.array(row_of, mask=~is_sound)), is_sound


@lru_cache(maxsize=8)
def _pattern(edition: Edition) -> re.Pattern[str]:
    return re.compile(",".join(f'"?{_LOOKS[kind]}"?' for kind in edition.columns.values()))


def _sound_runs(
    texts: npt.NDArray[np.object_], numbers: npt.NDArray[np.int64], edition: Edition
) -> Iterator[tuple[npt.NDArray[np.int64], pa.Table]]:
    """The tables of sound lines, found by halving whatever cannot be parsed as a whole."""
    if not len(numbers):
        return
    content = "".join(f"{text}\n" for text in texts[numbers]).encode()
    if (table := _typed(content, len(numbers), edition)) is not None:
        yield numbers, table
    elif len(numbers) > 1:
        for half in np.array_split(numbers, 2):
            yield from _sound_runs(texts, half, edition)


def _empty(edition: Edition) -> pa.Table:
    types = {name: _STAMP_TYPE if kind == STAMP else _TYPES[kind] for name, kind in edition.columns.items()}
    return pa.schema(list(types.items())).empty_table()


def _rides(typed: pa.Table) -> pa.Table:
    """A START knows when it began; an END carries its own stamp first and the ride's start second."""
    is_start = pc.equal(typed.column("kind"), "START")
    stamp, other = typed.column("stamp"), typed.column("other_stamp")
    return (
        typed.drop_columns(["kind", "stamp", "other_stamp"])
        .append_column("is_start", is_start)
        .append_column("pickup_time", pc.if_else(is_start, stamp, other))
        .append_column("dropoff_time", pc.if_else(is_start, pa.scalar(None, _STAMP_TYPE), stamp))
    )


# The TLC's Parquet files

TLC_BATCH_ROWS = 1 << 16
_TLC_STAMPS = ("_pickup_datetime", "_dropoff_datetime")  # after that, yellow and green cabs are alike
_TLC_COLUMNS = {
    "vendor": ("vendorid", pa.string()),
    "passengers": ("passenger_count", pa.int64()),
    "distance_miles": ("trip_distance", pa.float64()),
    "pickup_zone": ("pulocationid", pa.int64()),
    "dropoff_zone": ("dolocationid", pa.int64()),
    "payment_type": ("payment_type", pa.string()),
    "fare": ("fare_amount", pa.float64()),
    "tip": ("tip_amount", pa.float64()),
    "tolls": ("tolls_amount", pa.float64()),
    "total": ("total_amount", pa.float64()),
}


def tlc_parts(path: Path, file: int) -> list[Part]:
    """One for each row group, by its rows."""
    ends = _group_ends(pq.read_metadata(path))
    return [Part(file, str(path), start, end, False) for start, end in pairwise([0, *ends]) if start < end]


def _group_ends(metadata: pq.FileMetaData) -> list[int]:
    groups = range(metadata.num_row_groups)
    return list(accumulate(metadata.row_group(group).num_rows for group in groups))


def read_tlc(part: Part, sample_every: int = 1) -> Iterator[Rows]:
    """Months differ in types and capitals: each is brought to one form.

    With `sample_every` above 1, the rows of one batch in so many, and of them only what a survey looks at.
    """
    file = pq.ParquetFile(part.path)
    group, position = _group_ends(file.metadata).index(part.end), part.start  # empty groups come after it
    columns = [name for name in file.schema_arrow.names if sample_every == 1 or _is_surveyed(name.lower())]
    for number, batch in enumerate(file.iter_batches(TLC_BATCH_ROWS, row_groups=[group], columns=columns)):
        if number % sample_every == 0:
            yield Rows(_tlc_rows(batch, position), partial(_as_json, batch))
        position += batch.num_rows


def _is_surveyed(name: str) -> bool:
    return name.endswith(_TLC_STAMPS) or name in ("vendorid", "trip_distance")


def _tlc_rows(batch: pa.RecordBatch, position: int) -> pa.Table:
    names = {name.lower(): name for name in batch.schema.names}
    cab = "tpep" if "tpep_pickup_datetime" in names else "lpep"
    columns = {
        f"{end}_time": batch.column(names[f"{cab}_{end}_datetime"]).cast(_STAMP_TYPE, safe=False)
        for end in ("pickup", "dropoff")
    }
    for name, (source, to) in _TLC_COLUMNS.items():
        there = batch.column(names[source]) if source in names else pa.nulls(batch.num_rows)
        columns[name] = there.cast(to, safe=False)
    columns["vendor"] = columns["vendor"].dictionary_encode()
    columns["payment_type"] = columns["payment_type"].dictionary_encode()
    is_whole = pc.and_(columns["pickup_time"].is_valid(), columns["dropoff_time"].is_valid())
    is_whole = pc.and_(is_whole, columns["distance_miles"].is_valid())
    columns["others"] = _others(batch)
    columns["position"] = pa.array(np.arange(position, position + batch.num_rows))
    columns["reason"] = pc.if_else(is_whole, pa.scalar(0, pa.uint8()), NUMBER_OF[MALFORMED]).cast(pa.uint8())
    return pa.table(columns)


def _others(batch: pa.RecordBatch) -> pa.Array:
    """One hash of all the columns that a trace leaves out: by them, too, a row differs from its duplicate.

    A column that a month does not have is the same as an empty one.
    """
    known = {source for source, _ in _TLC_COLUMNS.values()}
    total = np.zeros(batch.num_rows, np.uint64)
    for field, column in zip(batch.schema, batch.columns, strict=True):
        name = field.name.lower()
        if name in known or name.endswith(_TLC_STAMPS):
            continue
        values = column.dictionary_encode()
        hashes = [_hash(name, value) for value in values.dictionary.to_pylist()]
        indices = pc.fill_null(values.indices, len(hashes)).to_numpy()
        total += np.array([*hashes, 0], np.uint64)[indices]
    return pa.array(total)


def _hash(name: str, value: Any) -> int:
    """The same for 1 and 1.0, which are written now so, now so."""
    written = f"{name}={float(value) if isinstance(value, int) else value}"
    return int.from_bytes(blake2b(written.encode(), digest_size=8).digest())


def _as_json(batch: pa.RecordBatch, numbers: npt.NDArray[np.int64]) -> list[str]:
    rows = batch.take(pa.array(numbers, pa.int64())).to_pylist()
    return [json.dumps({name: value for name, value in row.items() if value is not None}, default=str)
            for row in rows]  # fmt: skip


# Rows once more, by their place


def trips_at(part: Part, positions: npt.NDArray[np.int64], is_tlc: bool) -> list[str]:
    """These rows as they stand in the file, in the order of the file."""
    if not is_tlc:
        return list(lines_at(part, positions))
    found: list[str] = []
    for rows in read_tlc(part):
        found += rows.raw(np.flatnonzero(np.isin(rows.table["position"], positions)))
    return found
