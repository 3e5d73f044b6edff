"""`fogscale faults`: what can go wrong goes wrong, while an experiment runs, and nothing may be lost."""

from __future__ import annotations

import json
import time
from importlib.resources import files
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from controller.testbeds.flink.faults.catalogue import CATALOGUE, Fault
from fogscale.console import Json, Results, err, out, print_json
from fogscale.errors import FogscaleError, unknown
from fogscale.files import write_whole

if TYPE_CHECKING:
    from controller.testbeds.flink.faults.harness import Tried


def faults(
    rounds: Annotated[int, typer.Option(min=1, help="How often each happens; later in random order.")] = 1,
    only: Annotated[str | None, typer.Option(help="Some of them, separated by commas; default: all.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the random order.")] = 1,
    results: Results = Path("results"),
    as_json: Json = False,
) -> None:
    """Break a real testbed in twelve ways while an experiment runs on it, and judge what is left."""
    from controller.testbeds.flink.access import access_to
    from controller.testbeds.flink.faults.harness import begun
    from fog.command import bring_up

    order = in_order(chosen(only), rounds, seed)
    bring_up("local", fog_nodes=2, cpus=1.0)
    file = Path(str(files("controller.testbeds.flink.faults") / "experiment.yml"))
    folder = results / "faults" / time.strftime("%Y%m%d-%H%M%S")
    tried: list[Tried] = []
    with begun(access_to("local"), file, folder, _say) as site:
        for number, fault in enumerate(order, start=1):
            site.settle()
            _say(f"{number}/{len(order)} {fault.name}: {fault.does}")
            tried.append(site.tried(fault))
            write_whole(folder / "faults.json", json.dumps([each.as_dict() for each in tried], indent=1))
    if as_json:
        print_json([each.as_dict() for each in tried])
    else:
        out.print(table(tried))
        out.print(f"recorded {folder}", highlight=False, soft_wrap=True)
    failed = [each.fault for each in tried if not each.passed]
    if failed:
        raise FogscaleError(f"{len(failed)} of {len(tried)} were not survived: {', '.join(failed)}")


def chosen(only: str | None) -> tuple[Fault, ...]:
    if only is None:
        return CATALOGUE
    known = {fault.name: fault for fault in CATALOGUE}
    names = [name.strip() for name in only.split(",") if name.strip()]
    for name in names:
        if name not in known:
            raise FogscaleError(f"--only: {unknown('fault', name, known)}")
    return tuple(known[name] for name in names)


def in_order(some: tuple[Fault, ...], rounds: int, seed: int) -> list[Fault]:
    """All of them in the order of the catalogue, then as often as wanted in an order of their own."""
    random, order = Random(seed), list(some)
    for _ in range(rounds - 1):
        order += random.sample(some, len(some))
    return order


def table(tried: list[Tried]) -> Table:
    made = Table(
        "fault", "silent s", "well after s", "records", "lost", "doubled", "scale", "the journal tells"
    )
    for each in tried:
        made.add_row(
            each.fault,
            f"{each.silent_s:g}",
            "never" if each.well_after_s is None else f"{each.well_after_s:g}",
            str(each.records),
            str(each.lost),
            str(each.doubled),
            f"{len(each.runs_on)} of {len(each.asked_for)}",
            each.journal,
        )
    return made


def _say(words: str) -> None:
    if err.is_terminal:
        err.print(f"[dim]{words}[/dim]", highlight=False)
