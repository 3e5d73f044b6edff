"""Results of explorations in a file, so that a long series goes on where it was stopped.

A row is good for the same code and the same settings only; rows of others are dropped, since nobody could
tell them apart in the file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

from fogscale.errors import FogscaleError
from fogscale.files import read_document, write_whole

Row = dict[str, Any]


def code_digest() -> str:
    """Of everything that an exploration can depend on."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return blake2b(b"".join(file.read_bytes() for file in files), digest_size=8).hexdigest()


def _sum(rows: object) -> str:
    return blake2b(json.dumps(rows).encode(), digest_size=8).hexdigest()


class Kept:
    """Rows by their scenario's name; without a file they are forgotten with the process."""

    def __init__(self, file: Path | None, settings: Mapping[str, Any]) -> None:
        self.file = file
        self.about = {"code": code_digest(), **settings}
        self.rows: dict[str, Row] = {}
        if file is not None and file.exists():
            self.rows = self._read(file)

    def _read(self, file: Path) -> dict[str, Row]:
        try:
            document = json.loads(read_document(file))
            rows = document["rows"]
            if document["sum"] != _sum(rows):
                raise ValueError("changed by hand")
            return {row["scenario"]: row for row in rows} if document["about"] == self.about else {}
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            raise FogscaleError(f"{file} is no file that --keep wrote: name another") from None

    def add(self, row: Row) -> None:
        self.rows[row["scenario"]] = row
        if self.file is not None:
            rows = list(self.rows.values())
            document = {"about": self.about, "sum": _sum(rows), "rows": rows}
            write_whole(self.file, json.dumps(document, indent=1) + "\n", "choose another file with --keep")
