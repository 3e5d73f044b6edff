"""The figures and tables of a paper: every file figure_*.py and table_*.py of its folder, in order of name.

A figure's file has load(tables) -> frame and draw(frame) -> Figure, a table's only load(tables) -> frame.
There, tables is the folder with metrics.parquet (one row per run), series.parquet (runs over time) and
orders.parquet. The first line of a file's docstring is the title, the rest the caption.
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
from paper_figures.campaign import paper_module


@dataclass(frozen=True)
class Part:
    """A figure or table as the page shows it; a figure has no frame."""

    stem: str
    title: str
    caption: str
    frame: pd.DataFrame | None = None


def figures(folder: Path, tables: Path, out: Path) -> list[Part]:
    """Draws every figure of a paper as PNG and PDF."""
    parts = []
    for module, part in _discovered(folder, "figure", ("load", "draw")):
        with styled():
            figure = module.draw(module.load(tables))
        save(figure, out / part.stem)
        parts.append(part)
    return parts


def tables_of(folder: Path, tables: Path, out: Path) -> list[Part]:
    """Writes every table of a paper as CSV, Markdown and LaTeX."""
    return [
        written(module.load(tables), part.stem, part.title, part.caption, out)
        for module, part in _discovered(folder, "table", ("load",))
    ]


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
