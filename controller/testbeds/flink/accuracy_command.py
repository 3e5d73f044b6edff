"""`fogscale accuracy`: how true the figures were that policies saw in a real run."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from fogscale.console import Json, out, print_json
from fogscale.errors import FogscaleError

if TYPE_CHECKING:
    from controller.testbeds.flink.accuracy import Accuracy


def accuracy(
    folder: Annotated[
        Path, typer.Argument(help="A real run's folder or its record, or any folder above several.")
    ],
    as_json: Json = False,
) -> None:
    """Hold what policies saw in real runs against the broker's offsets, the output's stamps and cgroups."""
    from controller.testbeds.flink.accuracy import accuracy as judged

    with TemporaryDirectory() as place:
        found = [each for run in _runs(folder, Path(place)) for each in _compared(run)]
    if not found:
        raise FogscaleError(f"{folder} holds no real run with metrics: name one of a testbed of kind flink")
    rows = judged(found)
    if as_json:
        print_json([asdict(row) for row in rows])
    else:
        out.print(_table(rows))


def _runs(folder: Path, place: Path) -> list[Path]:
    """Records are unpacked at that place."""
    from controller.campaign.records import unpacked
    from controller.recording import JOURNAL

    found = [*sorted(path.parent for path in folder.rglob(JOURNAL)), *unpacked(folder, place)]
    if not found:
        raise FogscaleError(f"{folder} holds no run: name a folder seed=…, or one above it")
    return found


def _compared(folder: Path) -> list[Any]:
    from controller.journal import read
    from controller.recording import JOURNAL
    from controller.run import run_of
    from controller.testbeds.flink.accuracy import compared
    from controller.testbeds.flink.node_cpu import compared_nodes
    from controller.testbeds.flink.settings import FlinkSettings

    run, recorded = run_of(folder), read(folder / JOURNAL)
    if recorded is None or not isinstance(run.testbed, FlinkSettings):
        return []
    window_s = run.testbed.metric_window_s
    cores = {node.name: node.cores for node in run.topology.nodes}
    return [
        *compared(recorded.steps, tuple(recorded.samples), run.measured_operator, window_s),
        *compared_nodes(recorded.steps, recorded.findings.get("node_cpu", {}), cores, window_s),
    ]


def _table(rows: list[Accuracy]) -> Table:
    table = Table("figure", "situation", box=None)
    for heading in ("seen", "None", "error", "within 3 %"):
        table.add_column(heading, justify="right")
    table.caption = "error: the median; None: figures that were not claimed"
    for row in rows:
        table.add_row(
            row.figure, row.situation, str(row.observations), str(row.unknown), _percent(row.median_error),
            _percent(row.within),
        )  # fmt: skip
    return table


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"
