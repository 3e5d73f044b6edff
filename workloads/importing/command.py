"""`fogscale trace import`: raw public files to a trace of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from fogscale.console import Json, err, if_interrupted, out, print_json, spark_session
from fogscale.errors import FogscaleError
from fogscale.files import opened

trace_app = typer.Typer(help="Traces of your own, from the public files of taxi trips and web requests.")
import_app = typer.Typer(help="Clean raw files and write a trace: events, rate per second, quality report.")
trace_app.add_typer(import_app, name="import")

Files = Annotated[list[Path], typer.Argument(help="Raw files, plain or gzipped.", show_default=False)]
Out = Annotated[Path, typer.Option("--out", help="Folder that holds the traces.")]
Name = Annotated[
    str | None, typer.Option("--name", help="The trace's name; default: that of the first file.")
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Replace a trace of the same name.")]
TRACES = Path("results") / "traces"


@import_app.command("taxi")
def import_taxi(
    files: Files, folder: Out = TRACES, name: Name = None, fresh: Fresh = False, as_json: Json = False
) -> None:
    """Import New York taxi trips: FOIL, Donovan & Work, DEBS 2015, TLC Parquet or Flink training rides."""
    _import("taxi", files, folder, name, fresh, as_json)


@import_app.command("worldcup98")
def import_worldcup98(
    files: Files, folder: Out = TRACES, name: Name = None, fresh: Fresh = False, as_json: Json = False
) -> None:
    """Import binary access logs of the 1998 World Cup web site (wc_day46_1.gz and the like)."""
    _import("worldcup98", files, folder, name, fresh, as_json)


def _import(kind: str, files: list[Path], folder: Path, name: str | None, fresh: bool, as_json: bool) -> None:
    from workloads.importing.trace import check_target

    check_files(files)
    target = folder / checked_name(name or default_name(files[0]))
    check_target(target, fresh)
    edition = None
    if kind == "taxi":
        from workloads.importing.editions import recognise

        edition = recognise(files)
        _say(f"recognised {edition.title}")
    else:
        from workloads.importing.worldcup98 import check_logs

        check_logs(files)
    anew = "a trace that is not complete is not kept: run the same command again"
    with if_interrupted(anew), spark_session("starting Spark …") as spark:
        from workloads.importing.importer import import_trace
        from workloads.importing.sources import taxi_source, worldcup_source

        source = worldcup_source(files) if edition is None else taxi_source(files, edition)
        manifest = import_trace(spark, source, kind, target, fresh, _say)
    if as_json:
        print_json({"trace": str(target), "report": str(target / "report.html"), **manifest})
    else:
        _show(manifest, target)


def _say(stage: str) -> None:
    if err.is_terminal:
        err.print(stage, highlight=False, style="dim")


def check_files(files: Sequence[Path]) -> None:
    for path in files:
        if path.is_dir():
            raise FogscaleError(f"{path} is a folder: name the files in it, e.g. {path}/*")
        try:
            with opened(path) as file:
                file.read(1)
        except OSError as error:
            raise FogscaleError(f"{path}: {error.strerror or error}: name a file you can read") from error
    resolved = [path.resolve() for path in files]
    for path in files:
        if resolved.count(path.resolve()) > 1:
            raise FogscaleError(f"{path} is named twice: name each file once")


def checked_name(name: str) -> str:
    if name in ("", ".", "..") or "/" in name or "\\" in name:
        raise FogscaleError(f"--name {name!r}: write a plain name; --out says in which folder")
    return name


def default_name(path: Path) -> str:
    """The first file's name without its endings."""
    return path.name.split(".")[0] or path.name


def _show(manifest: dict[str, Any], target: Path) -> None:
    rows = manifest["rows"]
    out.print(Text.assemble((manifest["name"], "bold"), f"  {manifest['title']}"))
    table = Table(box=None, header_style="bold", show_header=False)
    table.add_column()
    table.add_column(justify="right")
    table.add_row("rows in", f"{rows['in']:,}")
    table.add_row("kept", f"{rows['kept']:,}")
    table.add_row("quarantined", f"{rows['quarantined']:,}")
    for reason, count in rows["by_reason"].items():
        table.add_row(f"  {reason}", f"{count:,}", style="dim")
    out.print(table)
    rate = manifest["rate"]
    out.print(
        f"{manifest['start']} ({manifest['clock']}), {manifest['span_s'] / 3600:,.1f} h; mean"
        f" {rate['mean_per_s']:.3g} and peak {rate['peak_per_s']:.0f} records/s",
        highlight=False,
    )
    for note in manifest["notes"]:
        out.print(note, highlight=False)
    out.print(f"trace:  {target}", highlight=False, soft_wrap=True)
    out.print(f"report: {target / 'report.html'}", highlight=False, soft_wrap=True)
    out.print(f"use it: fogscale workloads show {target}", highlight=False, soft_wrap=True)
