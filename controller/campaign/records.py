"""A run as it is kept for others: its journal compressed, and a manifest that says how it came about.

A folder of records is laid out like one of results (experiment=…/policy=…/workload=…/seed=…). Unpacked, it is
one: everything that reads results reads records, and needs no testbed."""

from __future__ import annotations

import lzma
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from controller.experiment import Run
from controller.journal import read
from controller.recording import JOURNAL, MANIFEST
from controller.run import run_of
from fogscale.documents import read_yaml
from fogscale.errors import FogscaleError
from fogscale.files import write_whole

PACKED = f"{JOURNAL}.xz"
LARGEST_BYTES = 300_000
LARGEST_UNPACKED_BYTES = 256 << 20  # as much as can be analysed
ABOUT = "recorded"  # the manifest's part on how the run came about
_ELSEWHERE = "choose another folder with --records"


def has_record(records: Path, run: Run) -> bool:
    """Whether this run is kept there; one of the same name with other settings is an error."""
    folder = records / run.folder
    if not (folder / PACKED).exists():
        return False
    if run_of(folder) != run:  # by value: what was not there to be set when it was recorded has its default
        raise FogscaleError(
            f"{folder} is a record of this run with other settings: move it away, or choose another folder"
            " with --records"
        )
    return True


def keep(folder: Path, records: Path, run: Run, about: Mapping[str, Any]) -> Path:
    """Packs a finished run; the journal comes last, so that a record without one was not finished."""
    place = records / run.folder
    packed = lzma.compress((folder / JOURNAL).read_bytes())  # higher presets need 60 MB more and save nothing
    if len(packed) > LARGEST_BYTES:
        raise FogscaleError(
            f"{folder / JOURNAL} takes {len(packed)} bytes even when compressed, more than a record may"
            f" ({LARGEST_BYTES}): take samples less often (testbed.sample_interval_s)"
        )
    manifest = {**_manifest(folder), ABOUT: dict(about)}
    text = yaml.safe_dump(manifest, sort_keys=False, allow_unicode=True)
    write_whole(place / MANIFEST, text, _ELSEWHERE)
    write_whole(place / PACKED, packed, _ELSEWHERE)
    return place


def records_in(records: Path) -> list[Path]:
    """The folders of all records, in order."""
    return sorted(path.parent for path in records.rglob(PACKED))


def unpacked(records: Path, results: Path) -> Iterator[Path]:
    """Lays every record out as the folder of a run."""
    for folder in records_in(records):
        place = results / folder.relative_to(records)
        write_whole(place / JOURNAL, _journal(folder / PACKED))
        write_whole(place / MANIFEST, (folder / MANIFEST).read_bytes())
        yield place


def _journal(packed: Path) -> bytes:
    """Unpacked, and no larger than a journal may be: a few kilobytes can stand for gigabytes."""
    if not packed.is_file() or packed.stat().st_size > LARGEST_BYTES:
        raise FogscaleError(f"{packed} is larger than a record may be ({LARGEST_BYTES} bytes): fetch it anew")
    unpacking = lzma.LZMADecompressor()
    try:
        content = unpacking.decompress(packed.read_bytes(), LARGEST_UNPACKED_BYTES)
    except (lzma.LZMAError, EOFError) as error:
        raise FogscaleError(f"{packed} is damaged ({error}): fetch it anew") from None
    if not unpacking.eof or unpacking.unused_data:
        raise FogscaleError(f"{packed} is damaged (torn, or too large): fetch it anew")
    return content


def about(folder: Path) -> dict[str, Any]:
    """How a record, or an unpacked one, came about."""
    return dict(_manifest(folder).get(ABOUT) or {})


def is_over(folder: Path) -> bool:
    """Whether the folder of results holds a run that went to its end."""
    recorded = read(folder / JOURNAL)
    return recorded is not None and recorded.ended


def findings(folder: Path) -> Mapping[str, Any]:
    recorded = read(folder / JOURNAL)
    return {} if recorded is None else recorded.findings


def _manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    try:
        found = read_yaml(path)
    except (OSError, FogscaleError) as error:
        raise FogscaleError(f"{path} cannot be read ({error}): run the experiment again") from None
    if not isinstance(found, dict) or "run" not in found:
        raise FogscaleError(f"{path} describes no run: run the experiment again")
    return found
