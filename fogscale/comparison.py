"""Policies beside each other on a terminal: one row per policy, best first, as many blocks of columns as its
width asks for. Nothing is cut off, with two policies or with twenty."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from analysis.metrics.labels import Label, measured
from analysis.standing import RULE, Standing, headline, marks, standings

if TYPE_CHECKING:
    import pandas as pd

Published = Mapping[str, Mapping[str, float]]
"""Policy -> metric -> the value printed in a paper."""

GAP = 2  # blanks between columns
WIDEST_NAME = 30  # longer names of policies go on in a second line
LEGEND = "* best   = not told apart from the best (p ≥ 0.05, t-test of pairs by seed)"


@dataclass(frozen=True, slots=True)
class Column:
    header: str
    cells: Sequence[str]  # one per policy
    style: str = ""

    @property
    def width(self) -> int:
        return max(len(line) for line in [*self.header.split("\n"), *self.cells])


def comparison(metrics: pd.DataFrame, published: Published, width: int) -> RenderableType:
    """Runs of one experiment and workload; where a paper has printed values, only what it measures."""
    shown = [(name, label) for name, label in measured(metrics) if _is_shown(name, published)]
    if len(metrics["policy"].unique()) == 1:
        return _one_policy(metrics, shown, published)
    places = standings(metrics)
    blocks = list(_blocks([_metric(metrics, *each, places, published) for each in shown], places, width))
    summary = Text.assemble((f"{headline(metrics, places)}\n", "bold"), (RULE, "dim"))
    return Group(*_spaced([summary, _ranking(places), *blocks, Text(LEGEND, style="dim")]))


def _is_shown(name: str, published: Published) -> bool:
    in_the_paper = {metric for row in published.values() for metric in row}
    return not in_the_paper or name in in_the_paper or name == "processed_ratio"


def _one_policy(
    metrics: pd.DataFrame, shown: Sequence[tuple[str, Label]], published: Published
) -> RenderableType:
    policy = str(metrics["policy"].iloc[0])
    printed = published.get(policy, {})
    table = Table(box=None, header_style="bold", padding=(0, GAP, 0, 0))
    table.add_column("metric", no_wrap=True)
    table.add_column(policy, justify="right", overflow="fold")
    if printed:
        table.add_column("published", justify="right", style="dim", no_wrap=True)
    for name, label in shown:
        row = [f"{label.name} ({label.unit})" if label.unit else label.name]
        row.append(label.text(metrics[name].mean()))
        if printed:
            row.append(label.text(printed[name]) if name in printed else "")
        table.add_row(*row)
    return table


def _ranking(places: Sequence[Standing]) -> Table:
    table = Table(box=None, header_style="bold", padding=(0, GAP, 0, 0))
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("policy", overflow="fold", max_width=WIDEST_NAME)
    table.add_column("cost", justify="right", no_wrap=True)
    table.add_column("service", overflow="fold")
    for place, each in enumerate(places, start=1):
        cost = "–" if each.cost != each.cost else f"{each.cost:,.0f}"
        table.add_row(f"{place}.", each.policy, cost, each.service)
    return table


def _metric(
    metrics: pd.DataFrame, name: str, label: Label, places: Sequence[Standing], published: Published
) -> list[Column]:
    """A metric's column and, where a paper prints it, the printed values'."""
    means = metrics.groupby("policy")[name].mean()
    mark = marks(metrics, name, label.lower_is_better)
    texts = [f"{_text(label, means[each.policy])} {mark.get(each.policy, ''):1}" for each in places]
    printed = [published.get(each.policy, {}).get(name) for each in places]
    columns = [Column(_header(label, max(map(len, texts))), texts)]
    if any(value is not None for value in printed):
        cells = ["" if value is None else label.text(value) for value in printed]
        columns.append(Column("pub-\nlished", cells, style="dim"))
    return columns


def _text(label: Label, value: float) -> str:
    return "–" if value != value else label.text(value)


def _header(label: Label, width: int) -> str:
    """The name over as many lines as it takes; the unit has a line of its own."""
    pieces = re.findall(r"[^\s-]+-?", label.name)
    room = max(width, *map(len, pieces))
    lines = [""]
    for piece in pieces:
        glued = lines[-1] + ("" if not lines[-1] or lines[-1].endswith("-") else " ") + piece
        if len(glued) <= room:
            lines[-1] = glued
        else:
            lines.append(piece)
    return "\n".join([*lines, label.unit] if label.unit else lines)


def _blocks(metrics: Sequence[Sequence[Column]], places: Sequence[Standing], width: int) -> Iterator[Table]:
    """Tables no wider than the terminal; a metric stays together with its printed values."""
    name_width = min(WIDEST_NAME, max(len("policy"), *(len(each.policy) for each in places)))
    block: list[Column] = []
    used = name_width + GAP
    for columns in metrics:
        needed = sum(column.width + GAP for column in columns)
        if block and used + needed > width:
            yield _block(block, places)
            block, used = [], name_width + GAP
        block += columns
        used += needed
    if block:
        yield _block(block, places)


def _block(columns: Sequence[Column], places: Sequence[Standing]) -> Table:
    table = Table(box=None, header_style="bold", padding=(0, GAP, 0, 0))
    table.add_column("policy", overflow="fold", max_width=WIDEST_NAME, vertical="bottom")
    for column in columns:
        table.add_column(column.header, justify="right", style=column.style, no_wrap=True)
    for place, each in enumerate(places):
        table.add_row(each.policy, *(column.cells[place] for column in columns))
    return table


def _spaced(parts: Sequence[RenderableType]) -> Iterator[RenderableType]:
    for place, part in enumerate(parts):
        if place:
            yield Text("")
        yield part
