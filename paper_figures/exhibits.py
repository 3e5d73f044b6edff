"""The figures and tables of a paper: every file figure_*.py and table_*.py of its folder, in order of name.

A figure's file has load(tables) -> frame and draw(frame) -> Figure, a table's only load(tables) -> frame.
There, tables is the folder with metrics.parquet (one row per run), series.parquet (runs over time) and
orders.parquet, and where real runs were recorded measured.parquet and measured_series.parquet. One that loads
an empty frame is left out: one of runs that only a full build has, say. The first line of a file's docstring
is the title, the rest the caption.

What a figure needs besides is worked out before, by a file stage_<name>.py with compute() -> frame, which
becomes <name>.parquet among the tables.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pandas as pd

from analysis.plotting import save, styled
from analysis.tables import write_tables
from fogscale.errors import FogscaleError
from fogscale.files import write_whole
from paper_figures.campaign import paper_module


@dataclass(frozen=True)
class Part:
    """A figure or table as the page shows it; a figure has no frame."""

    stem: str
    title: str
    caption: str
    frame: pd.DataFrame | None = None

    @property
    def is_measured(self) -> bool:
        """Of runs on a real testbed: figure_measured_… and table_measured_… stand together on the page."""
        return "_measured" in self.stem


def work_out(folder: Path, tables: Path) -> None:
    """The tables of a paper that no run of its campaign gives."""
    for path in sorted(folder.glob("stage_*.py")):
        compute = getattr(paper_module(folder, path.stem), "compute", None)
        if compute is None:
            raise FogscaleError(f"{path} has no function compute(): add it")
        write_whole(tables / f"{path.stem.removeprefix('stage_')}.parquet", compute().to_parquet())


def figures(folder: Path, tables: Path, out: Path) -> list[Part]:
    """Draws every figure of a paper as PNG and PDF."""
    parts = []
    for module, part in _discovered(folder, "figure", ("load", "draw")):
        frame = module.load(tables)
        if not len(frame):  # of what was not measured
            _remove(out, part.stem)
            continue
        with styled():
            figure = module.draw(frame)
        save(figure, out / part.stem)
        parts.append(part)
    return parts


def tables_of(folder: Path, tables: Path, out: Path) -> list[Part]:
    """Writes every table of a paper as CSV, Markdown and LaTeX."""
    parts = []
    for module, part in _discovered(folder, "table", ("load",)):
        frame = module.load(tables)
        if len(frame):
            parts.append(written(frame, part.stem, part.title, part.caption, out))
        else:
            _remove(out, part.stem)
    return parts


def _remove(out: Path, stem: str) -> None:
    """What an earlier build made of it, which would no longer be true."""
    for path in out.glob(f"{stem}.*"):
        path.unlink()


def written(frame: pd.DataFrame, stem: str, title: str, caption: str, out: Path) -> Part:
    write_tables(frame, out / stem, caption=title)
    return Part(stem, title, caption, frame)


def _discovered(folder: Path, kind: str, functions: tuple[str, ...]) -> list[tuple[ModuleType, Part]]:
    found = []
    for path in sorted(folder.glob(f"{kind}_*.py")):
        module = paper_module(folder, path.stem)
        assert module is not None  # just listed
        for name in functions:
            if not callable(getattr(module, name, None)):
                raise FogscaleError(
                    f"{path} has no function {name}: a {kind} needs {' and '.join(functions)}"
                )
        title, _, caption = (inspect.getdoc(module) or path.stem).partition("\n")
        found.append((module, Part(path.stem, title.rstrip("."), " ".join(caption.split()))))
    return found
