"""What a run keeps beside the testbed, to go on after a crash or Ctrl-C: written whole or not at all."""

from __future__ import annotations

import json
import os
import threading
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from fogscale.errors import FogscaleError

FILE = "run.json"


@dataclass(frozen=True)
class Notes:
    """Of the run that uses the testbed now, or used it last."""

    run: str  # its name in the records' headers
    settings: str  # a digest: a run goes on only with the same
    input: dict[int, int]  # offsets of both topics when it began
    output: dict[int, int]
    job_id: str | None = None
    savepoint: str | None = None  # set while the job is stopped
    gaps: tuple[
        tuple[float, float], ...
    ] = ()  # when the controller was away: at which time of the run, how long
    seen_s: float | None = None  # when the controller was last known to live, by the clock
    ended: bool = False
    rescales: tuple[dict[str, Any], ...] = ()  # those that are done, for the report


class Notebook:
    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._writing = threading.Lock()  # the watch and a rescaling note what they know at any moment
        self.notes: Notes | None = self._read()

    def begin(self, notes: Notes) -> None:
        with self._writing:
            self._write(notes)

    def change(self, **values: Any) -> None:
        with self._writing:
            if self.notes is not None and any(
                getattr(self.notes, name) != value for name, value in values.items()
            ):
                self._write(replace(self.notes, **values))

    def _write(self, notes: Notes) -> None:
        new = self._path.with_suffix(".new")
        with new.open("w") as file:
            json.dump(asdict(notes), file)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self._path)
        self.notes = notes

    def _read(self) -> Notes | None:
        try:
            values = json.loads(self._path.read_text())
            for topic in ("input", "output"):
                values[topic] = {int(part): int(offset) for part, offset in values[topic].items()}
            values["rescales"] = tuple(values.get("rescales", ()))
            values["gaps"] = tuple((float(at_s), float(seconds)) for at_s, seconds in values["gaps"])
            return Notes(**values)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise FogscaleError(
                f"{self._path} is damaged ({error!r}): remove it and run with --fresh"
            ) from None
