"""The commands about the decentralized protocol: explore it, play schedules at random, replay one."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import active_children
from pathlib import Path
from time import process_time
from typing import Annotated, Any, NamedTuple

import typer

from controller.protocol import chart
from controller.protocol.explorer import Counterexample, Result, explore, shortest
from controller.protocol.faults import FAULTS, PRINTED, as_printed, with_fault
from controller.protocol.kept import Kept, Row
from controller.protocol.scenarios import ALL, FAILURES, FIVE, LARGE, SMALL, drawn
from controller.protocol.schedule import played_at_random
from controller.protocol.world import Scenario
from fogscale.console import Json, out, print_json
from fogscale.errors import FogscaleError, unknown
from fogscale.files import write_whole
from fogscale.signals import end_with_parent, ignore_endings

protocol_app = typer.Typer(
    help="The decentralized protocol: explored, played at random.", no_args_is_help=True
)

GROUPS = {"small": SMALL, "large": LARGE, "five": FIVE, "failures": FAILURES}
PART = 100  # schedules that a process plays before it reports
Processes = Annotated[int, typer.Option(min=1, help="How many scenarios or schedules at a time.")]
Svg = Annotated[
    Path | None,
    typer.Option(help="Write the chart of what is wrong into this SVG; of several, each into its own."),
]


@protocol_app.command("explore")
def explore_command(
    names: Annotated[
        list[str] | None, typer.Argument(help="Scenarios, or small, large, five, failures; default: small.")
    ] = None,
    fault: Annotated[
        str | None, typer.Option(help="Put this fault in, or 'all', one after the other.")
    ] = None,
    printed: Annotated[
        str | None, typer.Option(help="Use this printed reading of the paper, or 'all', one after the other.")
    ] = None,
    fifo: Annotated[bool, typer.Option(help="Channels keep their order.")] = True,
    symmetry: Annotated[bool, typer.Option(help="Interchangeable instances count once.")] = True,
    partial_order: Annotated[bool, typer.Option(help="Orders that make no difference count once.")] = True,
    max_s: Annotated[float, typer.Option(min=0.0, help="CPU time that a scenario may take.")] = 600.0,
    processes: Processes = 1,
    keep: Annotated[
        Path | None, typer.Option(help="Keep results in this file, and go on from what is in it.")
    ] = None,
    svg: Svg = None,
    as_json: Json = False,
) -> None:
    """Enumerate all interleavings of small pipelines; show the shortest way to anything wrong as a chart."""
    chosen = _chosen(names or ["small"], fault, printed, fifo)
    settings = {"symmetry": symmetry, "partial_order": partial_order, "fifo": fifo, "max_s": max_s}
    kept = Kept(keep, settings)
    before = [kept.rows[scenario.name] for scenario in chosen if scenario.name in kept.rows]
    todo = [scenario for scenario in chosen if scenario.name not in kept.rows]
    work = partial(explore, symmetry=symmetry, partial_order=partial_order, max_seconds=max_s)
    _print_rows(before, as_json)
    for result in _each(work, todo, processes):
        kept.add(_row(result))
        _print_rows([kept.rows[result.scenario.name]], as_json)
        if result.counterexample is not None:
            file = svg if svg is None or len(chosen) == 1 else _one_of_several(svg, result.scenario.name)
            _show(shortest(result.scenario) or result.counterexample, file, as_json)
    if as_json:
        print_json([kept.rows[scenario.name] for scenario in chosen])


@protocol_app.command("play")
def play(
    instances: Annotated[str, typer.Argument(help="Instances per operator, such as 7-7-7-7-7.")] = "3-3-3",
    schedules: Annotated[int, typer.Option(min=1, help="How many schedules to draw.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="The first one's seed; the next ones count up.")] = 0,
    processes: Processes = 1,
    svg: Svg = None,
    as_json: Json = False,
) -> None:
    """Play random schedules of random scenarios; one seed and --schedules 1 replays what was found."""
    sizes = _sizes(instances)
    events, cpu_s = 0, 0.0
    parts = [
        range(first, min(first + PART, seed + schedules)) for first in range(seed, seed + schedules, PART)
    ]
    for part in _each(partial(_played, sizes), parts, processes):
        events, cpu_s = events + part.events, cpu_s + part.cpu_s
        if part.found is not None:
            _show(part.found, svg, as_json)
            raise FogscaleError(f"seed {part.seed} breaks the protocol: {part.found.problems[0]}")
    row = {"schedules": schedules, "events": events, "seconds": round(cpu_s, 2)}
    if as_json:
        print_json(row)
    else:
        out.print(f"{schedules} schedules of {instances}, {events} events, {row['seconds']} s: nothing wrong")


class _Part(NamedTuple):
    """What came of some schedules; `seed` is that of the last one."""

    seed: int
    events: int
    cpu_s: float
    found: Counterexample | None


def _played(sizes: tuple[int, ...], seeds: Sequence[int]) -> _Part:
    began, events = process_time(), 0
    for number in seeds:
        scenario = drawn(sizes, number)
        played = played_at_random(scenario, number)
        events += len(played.actions)
        if played.problems:
            found = Counterexample(scenario, played.actions, played.problems)
            return _Part(number, events, process_time() - began, found)
    return _Part(seeds[-1], events, process_time() - began, None)


def _each(work: Callable[[Any], Any], items: Sequence[Any], processes: int) -> Iterator[Any]:
    """In order; with several processes, so many at a time."""
    if processes == 1 or len(items) == 1:
        yield from map(work, items)
        return
    pool = ProcessPoolExecutor(processes, initializer=_leave_endings_to_the_parent)
    try:
        yield from pool.map(work, items)
    except BaseException:  # Ctrl-C, or nobody wants the rest: what is under way may take minutes
        for child in active_children():
            child.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _leave_endings_to_the_parent() -> None:
    ignore_endings()
    end_with_parent(signal.SIGKILL)


def _sizes(instances: str) -> tuple[int, ...]:
    try:
        sizes = tuple(int(part) for part in instances.split("-"))
    except ValueError:
        sizes = ()
    if not sizes or min(sizes) < 1:
        raise FogscaleError(f"'{instances}' is no pipeline: write the instances per operator, such as 3-3-3")
    return sizes


def _chosen(names: list[str], fault: str | None, printed: str | None, fifo: bool) -> list[Scenario]:
    if fault is not None:
        known = _among("fault", fault, FAULTS)
        return [with_fault(name) for name in known]
    if printed is not None:
        known = _among("reading", printed, PRINTED)
        return [as_printed(name) for name in known]
    scenarios: list[Scenario] = []
    for name in names:
        if name not in ALL and name not in GROUPS:
            raise FogscaleError(unknown("scenario", name, [*GROUPS, *ALL]))
        scenarios += GROUPS[name].values() if name in GROUPS else [ALL[name]]
    return scenarios if fifo else [replace(scenario, fifo=False) for scenario in scenarios]


def _among(kind: str, name: str, known: dict[str, Any]) -> list[str]:
    if name != "all" and name not in known:
        raise FogscaleError(unknown(kind, name, ["all", *known]))
    return list(known) if name == "all" else [name]


def _row(result: Result) -> Row:
    found = result.counterexample
    return {
        "scenario": result.scenario.name,
        "instances": "-".join(map(str, result.scenario.instances)),
        "states": result.states,
        "transitions": result.transitions,
        "ends": len(result.quiet),
        "seconds": round(result.seconds, 2),
        "complete": result.complete and found is None,
        "problems": list(found.problems) if found else [],
    }


def _print_rows(rows: Sequence[Row], as_json: bool) -> None:
    if not as_json:
        for row in rows:
            out.print(_line(row), highlight=False, soft_wrap=True)


def _line(row: Row) -> str:
    verdict = (
        row["problems"][0] if row["problems"] else "holds" if row["complete"] else "holds so far: out of time"
    )
    return (
        f"{row['scenario']:<42}{row['instances']:>7}{row['states']:>10} states{row['transitions']:>10} events"
        f"{row['ends']:>5} ends{row['seconds']:>9.2f} s  {verdict}"
    )


def _one_of_several(svg: Path, name: str) -> Path:
    """A file for each scenario: chart-delete-x-delete-as-printed-all_at_once.svg."""
    return svg.with_stem("-".join([svg.stem, *re.findall(r"[\w+-]+", name)]))


def _show(found: Counterexample, svg: Path | None, as_json: bool) -> None:
    if not as_json:
        print(chart.as_text(*found))
    if svg is not None:
        write_whole(svg, chart.as_svg(*found), "choose another file")
