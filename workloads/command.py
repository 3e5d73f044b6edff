"""The commands about workloads: what there is, what one of them offers, how it looks."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.padding import Padding
from rich.text import Text

from fogscale.console import Json, out, print_json
from fogscale.documents import yaml_of
from fogscale.errors import FogscaleError
from fogscale.files import write_whole
from workloads import catalog
from workloads.replay import peak_rate_per_s, replay_span_s
from workloads.workload import Definition, Workload

workloads_app = typer.Typer(help="Workloads: what they are, how fast they run, how they look.")

NAME_WIDTH = 22
INDENT = 4

Parameters = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A parameter of the workload, as YAML; may be repeated."),
]


@workloads_app.callback(invoke_without_command=True)
def list_workloads(context: typer.Context, as_json: Json = False) -> None:
    """List every workload with its source, span, mean and peak rate as replayed."""
    if context.invoked_subcommand is not None:
        return
    listed = [_listed(definition) for definition in catalog.definitions().values()]
    broken = [each for each in listed if each["broken"]]
    broken += [{"name": name, "broken": reason} for name, reason in catalog.broken().items()]
    rows = [each for each in listed if not each["broken"]]
    if as_json:
        print_json([*rows, *broken])
        return
    heading = f"{'workload':<{NAME_WIDTH}}{'span':>9}{'mean/s':>9}{'peak/s':>9}  records"
    out.print(Text(heading, style="bold"))
    for row in rows:
        out.print(_line(row))
        out.print(Padding(Text(row["source"] or row["summary"], style="dim"), (0, 0, 0, INDENT)))
    for row in broken:
        out.print(Text.assemble((row["name"], "bold"), (f"  broken: {row['broken']}", "red")), soft_wrap=True)


@workloads_app.command("show")
def show_workload(
    name: Annotated[str, typer.Argument(help="A workload's name, or the path of your own.")],
    settings: Parameters = None,
    plot: Annotated[Path | None, typer.Option(help="Draw it into this PNG or PDF.")] = None,
    as_json: Json = False,
) -> None:
    """Show one workload, with any parameters; --plot draws it."""
    workload = catalog.load(name, **parameters_of(settings or []))
    if plot is not None:
        _draw(workload, plot)
    row = facts(workload)
    definition = catalog.definitions().get(name)
    if definition is not None:
        row["parameters"] = _parameters(definition)
    if as_json:
        print_json(row)
        return
    for key, value in row.items():
        if value not in (None, [], {}):
            out.print(Text.assemble((f"{key}  ", "bold"), _text(value)))
    if plot is not None:
        out.print(f"drawn into {plot}", highlight=False, soft_wrap=True)


def parameters_of(settings: list[str]) -> dict[str, Any]:
    """The values of key=value pairs, read as YAML."""
    parameters: dict[str, Any] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key.strip():
            raise FogscaleError(f"--set {setting}: write a parameter, = and its value, e.g. peak_per_s=500")
        if key.strip() in parameters:
            raise FogscaleError(f"--set {setting}: '{key.strip()}' is set twice: keep one of them")
        parameters[key.strip()] = yaml_of(value, f"--set {setting}")
    return parameters


def facts(workload: Workload) -> dict[str, Any]:
    """What a workload offers as it is replayed, copies included."""
    profile, replay = workload.profile, workload.replay
    factor = replay.speed * replay.copies * replay.scale
    return {
        "name": workload.name,
        "source": profile.source,
        "start": profile.start,
        "span_s": replay_span_s(profile, replay),
        "records": profile.total_records * replay.copies * replay.scale,
        "mean_per_s": profile.mean_per_s * factor,
        "peak_per_s": peak_rate_per_s(profile, replay),
        "speed": replay.speed,
        "copies": replay.copies,
        "scale": replay.scale,
        "operators": list(workload.inputs),
        "record_format": workload.records,
    }


def _listed(definition: Definition) -> dict[str, Any]:
    """One row of the list: the facts of a workload, or what it needs before it has any."""
    known = {"summary": definition.summary, "needs": list(definition.needs), "broken": None}
    if definition.needs:
        return {"name": definition.name, "source": None, **known}
    try:
        return {**facts(definition.load()), **known}
    except FogscaleError as error:  # a file that somebody dropped: its own matter
        return {"name": definition.name, "broken": str(error)}


def _line(row: dict[str, Any]) -> Text:
    line = Text(f"{row['name']:<{NAME_WIDTH}}", style="bold")
    if row["needs"]:
        return line.append("  needs " + ", ".join(row["needs"]), style="not bold")
    numbers = f"{_span(row['span_s']):>9}{row['mean_per_s']:>9,.0f}{row['peak_per_s']:>9,.0f}"
    return line.append(f"{numbers}  {row['record_format']}", style="not bold")


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.6g}"
    if isinstance(value, list):
        return ", ".join(value)
    if isinstance(value, dict):
        return ", ".join(f"{name} = {_text(default)}" for name, default in value.items())
    return str(value)


def _span(seconds: float) -> str:
    return f"{seconds / 60:,.0f} min" if seconds >= 600 else f"{seconds:,.0f} s"


def _parameters(definition: Definition) -> dict[str, Any]:
    """Each with its default."""
    return {
        name: "needed" if parameter.default is parameter.empty else parameter.default
        for name, parameter in definition.parameters.items()
    }


def _draw(workload: Workload, plot: Path) -> None:
    from workloads.plot import draw

    drawn, advice = BytesIO(), "name a .png or .pdf you can write"
    try:
        draw(workload).savefig(drawn, format=plot.suffix.removeprefix(".") or "png")
    except ValueError as error:
        raise FogscaleError(f"cannot draw into {plot}: {error}; {advice}") from error
    write_whole(plot, drawn.getvalue(), advice)
