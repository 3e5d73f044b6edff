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
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from workloads.importing.cleaning import fingerprints, vendors, whole_minute
from workloads.importing.rows import DUPLICATE, Rows
from workloads.importing.sources import Source
from workloads.importing.streams import Part
from workloads.importing.survey import MINUTE_S, Slicing, Span

BLOCK_BYTES = 16 << 20  # of columns, before they are cut
ROW_GROUP_ROWS = 1 << 17  # read as a whole when the trace is replayed
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
    table = table.filter(pc.and_(table["damage"].is_null(), table[source.time].is_valid()))
    is_whole = whole_minute(table) if source.may_be_rounded else pa.repeat(False, table.num_rows)
    minutes = pa.array(_event_s(table, source)[0] // MINUTE_S)
    cells = pa.table({"vendor": vendors(table), "minute": minutes, "whole": is_whole.cast(pa.int64())})
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
    for table in tables:
        gathered.append(table)
        if sum(each.nbytes for each in gathered) >= BLOCK_BYTES:
            yield gathered
            gathered = []
    if gathered:
        yield gathered


def judged(rows: Rows, source: Source, verdicts: Verdicts, file: int) -> pa.Table:
    """With when the event is, the reason not to keep a row, and the raw form of those that are not kept."""
    table = source.timed(rows.table, verdicts.rounded)
    reason = source.reason(table, verdicts.spans.get(file))
    dropped = np.flatnonzero(reason.is_valid())
    if len(dropped):
        texts = np.full(table.num_rows, None, dtype=object)
        texts[dropped] = rows.raw(dropped)
        raw = pa.array(texts, pa.string())
    else:
        raw = pa.nulls(table.num_rows, pa.string())
    return table.append_column("reason", reason).append_column("raw", raw)


def _event_s(table: pa.Table, source: Source) -> tuple[IntArray, npt.NDArray[np.bool_]]:
    """Seconds since 1970 of each event, and where there is none."""
    times = table[source.time]
    if pa.types.is_timestamp(times.type):
        times = times.cast(pa.timestamp("s"), safe=False)
    numbers = pc.fill_null(times.cast(pa.int64()), 0).to_numpy()
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
    files = np.repeat([block.file for block in found], [block.rows for block in found])
    table = pa.concat_tables(map(_read, found)).unify_dictionaries().combine_chunks()
    table = table.append_column("file", pa.array(files.astype(np.int32)))
    tallies = _vendor_tallies(table, source)
    order = _order(table, source)
    if source.drops_duplicates and (again := duplicates(table)).any():
        reason = pc.if_else(pa.array(again), pa.scalar(DUPLICATE), table["reason"])
        table = table.set_column(table.schema.get_field_index("reason"), "reason", reason)
        tallies.append((DUPLICATES, "", int(again.sum()), 0))
    _write(table, order, source, Path(folder), found[0].slice)
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
    sound = table.filter(table["damage"].is_null())
    named = pa.table({"vendor": vendors(sound), "whole": whole_minute(sound).cast(pa.int64())})
    groups = named.group_by("vendor").aggregate([([], "count_all"), ("whole", "sum")])
    return [(VENDOR, row["vendor"], row["count_all"], row["whole_sum"] or 0) for row in groups.to_pylist()]


def _order(table: pa.Table, source: Source) -> IntArray | None:
    """By time, then as they stood in the files; None if they stand in order already."""
    times = pc.fill_null(table[source.time].cast(pa.int64()), 0).to_numpy()
    if (times[1:] >= times[:-1]).all():
        return None
    order: IntArray = np.argsort(times, kind="stable")
    return order


def duplicates(table: pa.Table) -> npt.NDArray[np.bool_]:
    """Which rows were there before. Equal rows have equal stamps, so they meet in the same slice.

    Only rows whose fingerprint is there twice are compared, in all their fields.
    """
    again = np.zeros(table.num_rows, np.bool_)
    prints = fingerprints(table)
    order = np.argsort(prints)
    is_same = np.diff(prints[order]) == 0
    candidates = np.unique(np.concatenate([order[1:][is_same], order[:-1][is_same]]))
    candidates = candidates[table["damage"].take(pa.array(candidates)).is_null().to_numpy()]
    if len(candidates):
        fields = table.drop_columns(["position", "file", "reason", "raw", "damage"])
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


def _write(table: pa.Table, order: IntArray | None, source: Source, folder: Path, number: int) -> None:
    is_kept = table["reason"].is_null().to_numpy()
    order = np.arange(table.num_rows) if order is None else order
    events, rest = order[is_kept[order]], order[~is_kept[order]]
    kept = (
        table
        if len(events) == table.num_rows and (np.diff(events) == 1).all()
        else table.take(pa.array(events))
    )
    if kept.num_rows:
        whys = {name: pa.nulls(kept.num_rows, table.schema.field(name).type) for name in _WHY}
        _write_file(_extended(source.events(kept), whys), folder / "events" / _name(number))
    dropped = table.take(pa.array(rest))
    for is_duplicate, name in ((False, "quarantine"), (True, "duplicates")):
        chosen = dropped.filter(pc.equal(pc.equal(dropped["reason"], DUPLICATE), is_duplicate))
        if chosen.num_rows:
            whys = {name: chosen[name] for name in _WHY}
            _write_file(_extended(source.events(chosen), whys), folder / name / _name(number))


_WHY = ("reason", "file", "position", "raw")  # what only quarantined rows have


def _extended(table: pa.Table, columns: dict[str, Any]) -> pa.Table:
    for name, column in columns.items():
        table = table.append_column(name, column)
    return table


def _name(number: int) -> str:
    return f"part-{number:05d}.parquet"


def _write_file(table: pa.Table, path: Path) -> None:
    """Complete or not at all, and the same if a task is tried again."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    texts = [field.name for field in table.schema if not _is_measure(field.type)]
    pq.write_table(
        table,
        draft,
        row_group_size=ROW_GROUP_ROWS,
        compression="lz4",
        use_dictionary=texts,
        write_statistics=["event_time"],  # what one would look for
    )
    draft.replace(path)


def _is_measure(type_: pa.DataType) -> bool:
    """Numbers that hardly repeat: a dictionary of them would be in vain."""
    return bool(pa.types.is_floating(type_) or pa.types.is_timestamp(type_))


# Duplicates


def quoted(part: Part, source: Source, folder: str) -> Batches:
    """Writes the duplicates of one part to the quarantine, now with their raw form."""
    found = pq.read_table(Path(folder) / "duplicates", filters=_within(part))
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
