"""What a task does on either side of the exchange by time.

Before it, judged rows are cut into blocks of one slice of time each. After it, all blocks of a slice become
one table, which is sorted, freed from duplicates and written: part-00003.parquet holds slice 3. The blocks
themselves wait in files of the trace's draft folder, where every task writes anyway; Spark only moves the
word of where they are. Moving them through the JVM took more time than parsing them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from workloads.importing.cleaning import filled, fingerprints, vendors, whole_minute
from workloads.importing.reasons import DUPLICATE, NUMBER_OF, Flags, in_words, is_damaged
from workloads.importing.rows import Rows
from workloads.importing.sources import Source
from workloads.importing.streams import Part
from workloads.importing.survey import MINUTE_S, SECOND_US, Slicing, Span

BLOCK_BYTES = 16 << 20  # of columns, before they are cut
ROW_GROUP_ROWS = 1 << 17  # read as a whole when the trace is replayed
DICTIONARY_BYTES = 1 << 23  # enough for the ids of a city's drivers
BLOCKS = "slice int, file int, position long, rows long, path string, start long, bytes long"
TALLIES = "what string, name string, rows long, whole long"
VENDOR, DUPLICATES = "vendor", "duplicates"  # of tallies
EXCHANGE = "exchange"  # the folder of blocks

_ARROW_BLOCKS = pa.schema(
    [("slice", pa.int32()), ("file", pa.int32()), ("position", pa.int64()), ("rows", pa.int64()),
     ("path", pa.string()), ("start", pa.int64()), ("bytes", pa.int64())]
)  # fmt: skip
_ARROW_TALLIES = pa.schema(
    [("what", pa.string()), ("name", pa.string()), ("rows", pa.int64()), ("whole", pa.int64())]
)

Batches = Iterator[pa.RecordBatch]
IntArray = npt.NDArray[np.int64]


class Block(NamedTuple):
    """Where some of a slice's rows are; position is that of the first row that was read with them."""

    slice: int
    file: int
    position: int
    rows: int
    path: str
    start: int
    bytes: int


class Verdicts(NamedTuple):
    """What the survey found, by which every row is judged."""

    spans: dict[int, Span]  # of each file
    rounded: frozenset[str]  # the vendors whose stamps are spread
    cut: Slicing


# Before the exchange


def counted(part: Part, source: Source) -> Batches:
    """Rows of a sample by vendor and minute."""
    tables = [rows.table for rows in source.read(part, source.sample_every)]
    if not tables:
        return
    table = source.timed(pa.concat_tables(tables).unify_dictionaries().combine_chunks(), frozenset())
    table = table.filter(pc.and_(pc.equal(table["reason"], 0), table[source.time].is_valid()))
    is_whole = whole_minute(table) if source.may_be_rounded else np.zeros(table.num_rows, np.bool_)
    minutes = pa.array(_event_s(table, source)[0] // MINUTE_S)
    vendor = vendors(table).cast(pa.string())
    cells = pa.table({"vendor": vendor, "minute": minutes, "whole": is_whole.astype(np.int64)})
    cells = cells.group_by(["vendor", "minute"]).aggregate([([], "count_all"), ("whole", "sum")])
    files = pa.repeat(pa.scalar(part.file, pa.int32()), cells.num_rows)
    columns = [cells[name] for name in ("vendor", "minute", "count_all", "whole_sum")]
    yield from pa.table([files, *columns], names=["file", "vendor", "minute", "rows", "whole"]).to_batches()


def blocks(part: Part, source: Source, verdicts: Verdicts, folder: str) -> Batches:
    """Writes judged rows, a block for each slice whenever enough of them have come together."""
    path = (
        Path(folder) / EXCHANGE / f"{part.file}-{part.start}-{uuid4().hex}.arrow"
    )  # a task may be tried twice
    places: list[Block] = []
    with pa.OSFile(str(path), "wb") as sink:
        for tables in _gathered(judged(rows, source, verdicts, part.file) for rows in source.read(part, 1)):
            places += _cut(tables, source, verdicts.cut, part.file, sink)
    yield pa.RecordBatch.from_pylist(
        [place._asdict() | {"path": str(path)} for place in places], _ARROW_BLOCKS
    )


def _gathered(tables: Iterator[pa.Table]) -> Iterator[list[pa.Table]]:
    gathered: list[pa.Table] = []
    gathered_bytes = 0
    for table in tables:
        gathered.append(table)
        gathered_bytes += table.nbytes
        if gathered_bytes >= BLOCK_BYTES:
            yield gathered
            gathered, gathered_bytes = [], 0
    if gathered:
        yield gathered


def judged(rows: Rows, source: Source, verdicts: Verdicts, file: int) -> pa.Table:
    """With when the event is, the reason not to keep a row, and the raw form of those that are not kept."""
    table = source.timed(rows.table, verdicts.rounded)
    reasons = source.reasons(table, verdicts.spans.get(file))
    dropped = np.flatnonzero(reasons)
    which = np.zeros(table.num_rows, np.int32)
    which[dropped] = np.arange(len(dropped))
    raw = pa.array(rows.raw(dropped), pa.string()).take(pa.array(which, mask=reasons == 0))
    return _with_reasons(table, reasons).append_column("raw", raw)


def _with_reasons(table: pa.Table, reasons: npt.NDArray[np.uint8]) -> pa.Table:
    return table.set_column(table.schema.get_field_index("reason"), "reason", pa.array(reasons))


def _event_s(table: pa.Table, source: Source) -> tuple[IntArray, Flags]:
    """Seconds since 1970 of each event, and where there is none."""
    times = table[source.time]
    numbers = filled(times.cast(pa.int64())).to_numpy()
    if pa.types.is_timestamp(times.type):
        numbers = numbers // SECOND_US
    return numbers, times.is_null().to_numpy()


def _cut(
    tables: list[pa.Table], source: Source, cut: Slicing, file: int, sink: pa.NativeFile
) -> Iterator[Block]:
    table = pa.concat_tables(tables).unify_dictionaries().combine_chunks()
    position = table["position"][0].as_py()
    number_of = _slices_of(table, source, cut)
    rows = np.bincount(number_of)
    if np.count_nonzero(rows) > 1:
        table = table.take(pa.array(np.argsort(number_of, kind="stable")))
    for number in np.flatnonzero(rows).tolist():
        start = sink.tell()
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table.slice(rows[:number].sum(), rows[number]))
        yield Block(number, file, position, int(rows[number]), "", start, sink.tell() - start)


def _slices_of(table: pa.Table, source: Source, cut: Slicing) -> npt.NDArray[Any]:
    """The slice of each row; those without a time go anywhere."""
    event_s, is_timeless = _event_s(table, source)
    bins = np.clip((event_s - cut.start_s) // cut.bin_s, 0, len(cut.slices) - 1)
    # Small numbers, since numpy sorts those without comparing.
    number_of = np.array(cut.slices, np.uint16 if cut.count <= 1 << 16 else np.int64)[bins]
    number_of[is_timeless] = table["position"].to_numpy()[is_timeless] % cut.count
    return number_of


# After the exchange


def written(batches: Batches, source: Source, folder: str) -> Batches:
    """Writes the one slice whose blocks come here."""
    found = sorted(Block(**row) for batch in batches for row in batch.to_pylist())
    if not found:
        return
    files = np.repeat(np.array([block.file for block in found], np.int32), [block.rows for block in found])
    table = pa.concat_tables(map(_read, found)).unify_dictionaries().combine_chunks()
    table = table.append_column("file", pa.array(files))
    tallies = _vendor_tallies(table, source)
    if source.drops_duplicates and (again := duplicates(table)).any():
        reasons = np.where(again, NUMBER_OF[DUPLICATE], table["reason"].to_numpy()).astype(np.uint8)
        table = _with_reasons(table, reasons)
        tallies.append((DUPLICATES, "", int(again.sum()), 0))
    _write(table, source, Path(folder), found[0].slice)
    columns = zip(*tallies, strict=True) if tallies else [[]] * 4
    yield pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, _ARROW_TALLIES, strict=True)],
        schema=_ARROW_TALLIES,
    )


def _read(block: Block) -> pa.Table:
    with pa.memory_map(block.path) as file:
        file.seek(block.start)
        return pa.ipc.open_stream(file.read_buffer(block.bytes)).read_all()


def _vendor_tallies(table: pa.Table, source: Source) -> list[tuple[str, str, int, int]]:
    if not source.may_be_rounded:
        return []
    is_sound = ~is_damaged(table["reason"].to_numpy())
    named = vendors(table)
    codes = named.indices.to_numpy()
    rows = np.bincount(codes[is_sound], minlength=len(named.dictionary))
    whole = np.bincount(codes[is_sound & whole_minute(table)], minlength=len(named.dictionary))
    counts = zip(named.dictionary.to_pylist(), rows.tolist(), whole.tolist(), strict=True)
    return [(VENDOR, name, count, full) for name, count, full in counts if count]


def _order(table: pa.Table, source: Source) -> IntArray | None:
    """By time, then as they stood in the files; None if they stand in order already."""
    times = filled(table[source.time].cast(pa.int64())).to_numpy()
    if (times[1:] >= times[:-1]).all():
        return None
    order: IntArray = np.argsort(times, kind="stable")
    return order


def duplicates(table: pa.Table) -> npt.NDArray[np.bool_]:
    """Which rows were there before. Equal rows have equal stamps, so they meet in the same slice.

    Only rows whose fingerprint is there twice are compared, in all their fields.
    """
    again = np.zeros(table.num_rows, np.bool_)
    is_twice = pd.Series(fingerprints(table)).duplicated(keep=False).to_numpy()
    candidates = np.flatnonzero(is_twice & ~is_damaged(table["reason"].to_numpy()))
    if len(candidates):
        fields = table.drop_columns(["position", "file", "reason", "raw"])
        some = _without_dictionaries(fields.take(pa.array(candidates)))
        names = some.schema.names
        first = some.append_column("row", pa.array(candidates)).group_by(names).aggregate([("row", "min")])
        again[candidates] = True
        again[first["row_min"].to_numpy()] = False
    return again


def _without_dictionaries(table: pa.Table) -> pa.Table:
    types = [
        field.type.value_type if pa.types.is_dictionary(field.type) else field.type for field in table.schema
    ]
    return table.cast(pa.schema(list(zip(table.schema.names, types, strict=True))))


def _write(table: pa.Table, source: Source, folder: Path, number: int) -> None:
    order = _order(table, source)
    reasons = table["reason"].to_numpy()
    if order is not None or reasons.any():
        order = np.arange(table.num_rows) if order is None else order
        kept = table.take(pa.array(order[reasons[order] == 0]))
        _write_dropped(table.take(pa.array(order[reasons[order] > 0])), source, folder, number)
    else:
        kept = table
    if kept.num_rows:
        _write_file(source.events(kept), folder / "events" / _name(number))


def _write_dropped(dropped: pa.Table, source: Source, folder: Path, number: int) -> None:
    """Duplicates wait in a folder of their own, until their raw form is looked up."""
    is_duplicate = pc.equal(dropped["reason"], NUMBER_OF[DUPLICATE])
    for chosen, name in (
        (dropped.filter(pc.invert(is_duplicate)), "quarantine"),
        (dropped.filter(is_duplicate), DUPLICATES),
    ):
        if chosen.num_rows:
            whys = {"reason": in_words(chosen["reason"].to_numpy())}
            whys |= {name: chosen[name] for name in ("file", "position", "raw")}
            _write_file(_extended(source.events(chosen), whys), folder / name / _name(number))


def _extended(table: pa.Table, columns: dict[str, Any]) -> pa.Table:
    for name, column in columns.items():
        table = table.append_column(name, column)
    return table


def _name(number: int) -> str:
    return f"part-{number:05d}.parquet"


def _write_file(table: pa.Table, path: Path) -> None:
    """Complete or not at all, and the same if a task is tried again."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    texts = [field.name for field in table.schema if not pa.types.is_primitive(field.type)]
    pq.write_table(
        table,
        draft,
        row_group_size=ROW_GROUP_ROWS,
        compression="lz4",
        use_dictionary=texts,  # numbers hardly repeat
        dictionary_pagesize_limit=DICTIONARY_BYTES,
        write_statistics=["event_time"],  # what one would look for
    )
    draft.replace(path)


# Duplicates


def quoted(part: Part, source: Source, folder: str) -> Batches:
    """Writes the duplicates of one part to the quarantine, now with their raw form."""
    found = pq.read_table(Path(folder) / DUPLICATES, filters=_within(part))
    if not found.num_rows:
        return
    found = found.sort_by("position")
    positions = found["position"].to_numpy()
    found = found.set_column(
        found.schema.get_field_index("raw"), "raw", pa.array(source.raw_at(part, positions), pa.string())
    )
    _write_file(found, Path(folder) / "quarantine" / f"part-again-{part.file:05d}-{part.start:015d}.parquet")
    yield pa.RecordBatch.from_arrays([pa.array([found.num_rows])], ["rows"])


def _within(part: Part) -> pc.Expression:
    is_theirs = pc.field("file") == part.file
    if part.is_gzip:
        return is_theirs
    return is_theirs & (pc.field("position") >= part.start) & (pc.field("position") < part.end)
