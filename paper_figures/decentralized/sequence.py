"""A run of the protocol as a message sequence chart, from the rows that measurements.py keeps of it."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from analysis.plotting import PAGE_WIDTH_IN
from paper_figures.decentralized.panels import LOAD_COLOUR, NODES_COLOUR

ROW_IN = 0.165
TEXT_FROM = 0.6  # columns to the right of the last lifeline
TEXT_COLUMNS = 4.5  # room for the words, in columns


def chart_of(tables: Path, name: str) -> pd.DataFrame:
    charts = pd.read_parquet(tables / "charts.parquet")
    return charts[charts["chart"] == name]


def sequence_chart(rows: pd.DataFrame) -> Figure:
    """Time runs down. An arrow begins in the row that sent the message; a dot is an agent's own doing."""
    events, problems = rows[rows["agent"] != ""], rows[rows["agent"] == ""]
    agents = _in_order(events)
    figure = Figure(figsize=(PAGE_WIDTH_IN, ROW_IN * (len(rows) + 2)))
    axis = figure.subplots()
    for place, agent in enumerate(agents):
        axis.vlines(place, 0.4, len(events) + 0.5, color="#9AA3AB", linewidth=0.6, zorder=0)
        axis.text(place, 0.2, agent, ha="center", va="bottom", fontsize=7)
    for row in events.itertuples():
        number = int(str(row.number))
        to = agents.index(str(row.agent))
        if row.sender:
            begin = (agents.index(str(row.sender)), row.sent_at)
            arrow = {"arrowstyle": "-|>", "color": LOAD_COLOUR, "linewidth": 0.9, "shrinkA": 0, "shrinkB": 0}
            axis.annotate("", (to, number), begin, arrowprops=arrow)
        else:
            axis.plot([to], [number], "o", markersize=3, color="#4A5157")
        words = f"{number}. {row.agent} {'gets ' if row.sender else ''}{row.text}"
        axis.text(len(agents) - 1 + TEXT_FROM, number, words, va="center", fontsize=6.5)
    for line, problem in enumerate(problems["text"], start=len(events) + 1):
        axis.text(-0.4, line, f"⇒ {problem}", va="center", fontsize=7, color=NODES_COLOUR)
    axis.set(xlim=(-0.5, len(agents) - 1 + TEXT_COLUMNS), ylim=(len(rows) + 0.8, -0.8))
    axis.set_axis_off()
    return figure


def _in_order(events: pd.DataFrame) -> list[str]:
    """The input first, then the operators down the pipeline."""
    agents = {str(agent) for agent in [*events["agent"], *events["sender"]] if agent}
    return sorted(agents, key=lambda agent: (agent != "input", agent))
