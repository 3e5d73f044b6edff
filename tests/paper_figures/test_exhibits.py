"""Figures and tables are found by themselves, and every figure draws something from a small frame."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from analysis.plotting import styled
from fogscale.errors import FogscaleError
from paper_figures.campaign import paper_module
from paper_figures.exhibits import figures, tables_of
from paper_figures.published import paper_folder

FIGURE = '''"""Figure 1: a line.

Drawn from nothing.
"""
import pandas as pd
from matplotlib.figure import Figure

def load(tables):
    return pd.DataFrame({"x": [0, 1], "y": [0, 1]})

def draw(frame):
    figure = Figure()
    figure.subplots().plot(frame["x"], frame["y"])
    return figure
'''
TABLE = '''"""Table I: what was read."""
import pandas as pd

def load(tables):
    return pd.read_parquet(tables / "metrics.parquet")
'''


def small_run() -> pd.DataFrame:
    """Twenty minutes with a stop in the middle."""
    time_s = np.arange(0.0, 1210.0, 10.0)
    stopped = (time_s >= 600) & (time_s < 720)
    return pd.DataFrame(
        {
            "policy": "any",
            "time_s": time_s,
            "duration_s": 1200.0,
            "offered_records": (time_s * 100).astype(int),
            "processed_records": (np.cumsum(~stopped) * 1000).astype(int),
            "demand": 2,
            "supply": np.where(stopped, 0, 3),
        }
    )


def test_a_dropped_file_becomes_a_figure_with_title_and_caption(tmp_path):
    (tmp_path / "figure_01_line.py").write_text(FIGURE)
    (part,) = figures(tmp_path, tmp_path, tmp_path / "out")
    assert (part.title, part.caption) == ("Figure 1: a line", "Drawn from nothing.")
    assert (tmp_path / "out" / "figure_01_line.png").stat().st_size > 1000
    assert (tmp_path / "out" / "figure_01_line.pdf").exists()


def test_a_dropped_file_becomes_a_table_in_three_formats(tmp_path):
    (tmp_path / "table_1.py").write_text(TABLE)
    pd.DataFrame({"policy": ["a"], "cost": [1.5]}).to_parquet(tmp_path / "metrics.parquet")
    (part,) = tables_of(tmp_path, tmp_path, tmp_path / "out")
    assert part.frame.to_dict("records") == [{"policy": "a", "cost": 1.5}]
    assert {path.suffix for path in (tmp_path / "out").iterdir()} == {".csv", ".md", ".tex"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("def load(tables): ...", "has no function draw", id="half of a figure"),
        pytest.param("import nothing_of_that_name", "cannot be imported", id="a broken file"),
        pytest.param("import sys; sys.exit(0)", "cannot be imported", id="a file that exits"),
    ],
)
def test_a_file_that_is_no_figure_is_named(tmp_path, text, message):
    (tmp_path / "figure_01.py").write_text(text)
    with pytest.raises(FogscaleError, match=message):
        figures(tmp_path, tmp_path, tmp_path / "out")


def gesscale_figures() -> list:
    """Other papers' figures, and those of measured runs, need other frames; their own tests draw them."""
    folder = paper_folder("gesscale")
    return [pytest.param(path, id=path.stem) for path in sorted(folder.glob("figure_[0-9]*.py"))]


@pytest.mark.parametrize("path", gesscale_figures())
def test_every_figure_draws_something_and_names_its_axes(path: Path):
    module = paper_module(path.parent, path.stem)
    with styled():
        figure = module.draw(small_run())
    assert isinstance(figure, Figure)
    assert all(axes.has_data() for axes in figure.axes)
    assert figure.axes[-1].get_xlabel()
    assert all(axes.get_ylabel() for axes in figure.axes)


def test_figure_3_stops_for_120_seconds_after_the_load_exceeds_the_capacity():
    folder = paper_folder("gesscale")
    run = paper_module(folder, "figure_03_reconfiguration").load(folder)
    stopped = run.loc[run["supply"] == 0, "time_s"]
    assert 700 <= stopped.min() <= 850
    assert len(stopped) * 10 == 120
    assert run.loc[run["time_s"] > stopped.max(), "supply"].min() == 3
