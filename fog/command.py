"""`fogscale testbed`: builds, watches, changes and removes the real fog."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from fog import manifest as manifests
from fog.artifacts import store as artifact_store
from fog.checks.status import Status
from fog.checks.status import status as status_of
from fog.emulation.state import State
from fog.folders import TESTBEDS, cache_folder, checkout, state_folder
from fog.network.matrix import MOST_MS
from fog.network.ping import Measured
from fog.playbooks import Progress as Played
from fog.playbooks import Step, run
from fogscale.console import Json, err, out, print_json
from fogscale.documents import read_yaml
from fogscale.errors import FogscaleError, unknown, warn

testbed_app = typer.Typer(
    help="Build the fog on emulated nodes of this machine (local) or on Raspberry Pis (pi).",
    no_args_is_help=True,
)

Testbed = Annotated[str, typer.Option(help="Which inventory: local or pi.")]
FogNodes = Annotated[
    int | None,
    typer.Option(
        min=1, help="Fog nodes besides server and services node (local); default: as before, else 3."
    ),
]


@testbed_app.command()
def up(testbed: Testbed = "local", fog_nodes: FogNodes = None, as_json: Json = False) -> None:
    """Build the testbed; a second time it only finishes or repairs what is missing."""
    _known(testbed)
    if fog_nodes is not None and testbed == "pi":
        raise FogscaleError("--fog-nodes: Raspberry Pis are listed one by one in inventory/pi/hosts.yml")
    variables = {} if fog_nodes is None else {"fog_nodes": fog_nodes}
    built = _standing(testbed)
    if fog_nodes is None and built is not None and built.emulated:
        variables = {"fog_nodes": built.fog_nodes}
    _collect_first(testbed, variables)
    _report(run("site.yml", testbed, variables, _tell), "up", testbed, as_json)


def _collect_first(testbed: str, variables: dict[str, Any]) -> None:
    """What takes minutes is made where its progress can be seen; the machine is checked before, as always.
    Pis mostly fetch releases, and the playbook knows which."""
    if testbed == "pi":
        return
    shelf = artifact_store.store(checkout(), cache_folder())
    wanted = [artifact_store.ROOTFS, *artifact_store.buildable(shelf.catalogue)]
    if artifact_store.missing(shelf, wanted):
        run("playbooks/preflight.yml", testbed, variables, _tell)
        artifact_store.collect(shelf, wanted, _making)


def bring_up(testbed: str, fog_nodes: int, cpus: float, slots: int = 1) -> None:
    """For an experiment: builds the testbed if it is not up, and says so."""
    folder = state_folder(testbed)
    built = manifests.find(folder)
    if built is not None and (not built.emulated or State(folder).supervisor() is not None):
        return
    err.print(
        f"the testbed '{testbed}' is not up: building it, some 5 minutes (the first time half an hour) …",
        highlight=False,
    )
    variables: dict[str, Any] = {"fog_nodes": fog_nodes, "fog_cpus": cpus} if testbed == "local" else {}
    if slots > 1:
        variables["fog_slots"] = slots
    _collect_first(testbed, variables)
    run("site.yml", testbed, variables, _tell)


@testbed_app.command()
def down(testbed: Testbed = "local", as_json: Json = False) -> None:
    """Remove the testbed; nothing of it is left."""
    _known(testbed)
    _report(run("playbooks/teardown.yml", testbed, _as_built(testbed), _tell), "down", testbed, as_json)


@testbed_app.command()
def verify(testbed: Testbed = "local", as_json: Json = False) -> None:
    """See whether everything works: the playbooks try it on the nodes."""
    _known(testbed)
    manifests.read(state_folder(testbed), testbed)
    _report(run("playbooks/verify.yml", testbed, _as_built(testbed), _tell), "verified", testbed, as_json)


@testbed_app.command()
def network(
    file: Annotated[Path, typer.Option("--set", help="YAML file with fog_rtt_ms, as in the inventory.")],
    testbed: Testbed = "local",
    as_json: Json = False,
) -> None:
    """Change the round trips, also in mid-experiment; the next 'up' goes back to the inventory's."""
    _known(testbed)
    built = manifests.read(state_folder(testbed), testbed)
    wanted = read_matrix(file)
    built.matrix(wanted["fog_rtt_ms"], wanted.get("fog_rtt_max_ms", built.rtt_max_ms))
    _report(change_network(testbed, wanted), "changed", testbed, as_json)


def change_network(testbed: str, wanted: Mapping[str, Any]) -> Played:
    """`wanted`: fog_rtt_ms, and fog_rtt_max_ms where it differs."""
    return run("playbooks/network.yml", testbed, {**_as_built(testbed), **wanted}, _tell)


@testbed_app.command()
def status(testbed: Testbed = "local", as_json: Json = False) -> None:
    """Show nodes, measured round trips beside the wanted ones, services and versions."""
    _known(testbed)
    folder = state_folder(testbed)
    found = status_of(manifests.read(folder, testbed), folder)
    if as_json:
        print_json(found.document())
    else:
        show(found)
    if not found.healthy:
        raise SystemExit(1)


@testbed_app.command()
def artifacts(
    names: Annotated[
        list[str] | None, typer.Argument(help="Which; by default all that can be built.")
    ] = None,
    architecture: Annotated[
        str | None, typer.Option(help="Of the nodes: amd64 or arm64; by default this machine's.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Collect what the local testbed is made of into the cache; only what is missing is built or fetched."""
    shelf = artifact_store.store(checkout(), cache_folder(), architecture)
    wanted = names or [artifact_store.ROOTFS, *artifact_store.buildable(shelf.catalogue)]
    folders, made = artifact_store.collect(shelf, wanted, _making)
    if as_json:
        print_json({"folders": {name: str(path) for name, path in folders.items()}, "made": made})
    else:
        out.print(f"{len(folders)} artifacts in {shelf.cache}, {len(made)} of them new", highlight=False)


@contextmanager
def _making(work: artifact_store.Work) -> Iterator[None]:
    """On a terminal: what is being made, for how long already, how far that is; a line when it is done."""
    if not err.is_terminal:
        yield
        return
    begun_s = time.monotonic()
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True) as bar:
        bar.add_task(str(work))
        yield
    seconds = time.monotonic() - begun_s
    err.print(f"  {work.name:<40} {'made':>12}  {seconds:6.1f} s", highlight=False, style="dim")


def read_matrix(file: Path) -> dict[str, Any]:
    try:
        values = read_yaml(file)
    except (OSError, FogscaleError) as error:
        raise FogscaleError(f"{file} cannot be read: {error}") from None
    if not isinstance(values, dict) or "fog_rtt_ms" not in values:
        raise FogscaleError(
            f"{file}: write 'fog_rtt_ms:' and below it the matrix, as in inventory/common/all.yml"
        )
    for key in values:
        if key not in ("fog_rtt_ms", "fog_rtt_max_ms"):
            raise FogscaleError(f"{file}: {unknown('key', str(key), ('fog_rtt_ms', 'fog_rtt_max_ms'))}")
    most_ms = values.get("fog_rtt_max_ms", MOST_MS)
    if isinstance(most_ms, bool) or not isinstance(most_ms, int | float):
        raise FogscaleError(f"{file}: fog_rtt_max_ms is '{most_ms}': write a number of milliseconds")
    return values


def _known(testbed: str) -> None:
    if testbed not in TESTBEDS:
        raise FogscaleError(unknown("testbed", testbed, TESTBEDS))


def _standing(testbed: str) -> manifests.Manifest | None:
    """What was built. A damaged testbed.json is as good as none: building again, or taking down, is the way
    out of it."""
    try:
        return manifests.find(state_folder(testbed))
    except manifests.DamagedError as error:
        warn(str(error))
        return None


def _as_built(testbed: str) -> dict[str, Any]:
    """What was given on the command line when it was built, and the round trips it has now."""
    built = _standing(testbed)
    if built is None:
        return {}
    nodes: dict[str, Any] = {}
    if built.emulated:
        nodes["fog_nodes"] = built.fog_nodes
        cpus = next((each.cpus for each in built.nodes if each.group == "fog"), None)
        nodes |= {"fog_cpus": cpus} if cpus else {}
    return {**nodes, "fog_rtt_ms": built.rows_ms, "fog_rtt_max_ms": built.rtt_max_ms}


def _tell(step: Step) -> None:
    if err.is_terminal:
        changed = f"{step.changed} changed" if step.changed else "as it was"
        err.print(f"  {step.name:<40} {changed:>12}  {step.seconds:6.1f} s", highlight=False, style="dim")


def _report(progress: Played, verb: str, testbed: str, as_json: bool) -> None:
    changed = sum(progress.changed.values())
    seconds = sum(step.seconds for step in progress.steps)
    if as_json:
        steps = [
            {"name": step.name, "changed": step.changed, "seconds": step.seconds} for step in progress.steps
        ]
        print_json({"testbed": testbed, "changed": progress.changed, "steps": steps})
    else:
        out.print(f"{testbed}: {verb} in {seconds:.1f} s, {changed} changes", highlight=False)


def show(found: Status) -> None:
    nodes = Table("node", "group", "address", "state", "CPUs", "memory", box=None, header_style="bold")
    for each in found.nodes:
        state = Text(each.problem, "red") if each.problem else _systemd_state(each.state)
        memory = "" if each.problem else f"{each.memory_mb} MB"
        cpus = "" if each.node.cpus is None else f"{each.node.cpus:g}"
        nodes.add_row(each.node.name, each.node.group, each.node.address, state, cpus, memory)
    out.print(nodes)
    out.print(f"\nround trips by {found.backend}: measured (wanted) in ms", highlight=False)
    out.print(_round_trips(found))
    if found.services:
        services = Table("service", "node", "port", "version", "", box=None, header_style="bold")
        for service in found.services:
            there = Text("listens") if service.listens else Text("silent", "red")
            services.add_row(service.name, service.node, str(service.port), service.version, there)
        out.print(services)
    out.print(
        "\n" + "\n".join(f"{name} {number}" for name, number in found.versions.items()), highlight=False
    )


def _systemd_state(word: str) -> Text:
    """Degraded: a unit failed, on a Raspberry Pi perhaps none of ours. Services are judged by their ports."""
    return Text(word, "" if word == "running" else "yellow")


def _round_trips(found: Status) -> Table:
    names = [each.node.name for each in found.nodes]
    by_pair = {(pair.source, pair.target): pair for pair in found.round_trips}
    table = Table("", *names[1:], box=None, header_style="bold")
    for row, a in enumerate(names[:-1]):
        cells = [
            Text() if column <= row else _cell(by_pair[a, b]) for column, b in enumerate(names) if column
        ]
        table.add_row(a, *cells)
    return table


def _cell(pair: Measured) -> Text:
    seen = "silent" if pair.measured_ms is None else f"{pair.measured_ms:.1f}"
    text = f"{seen} ({pair.wanted_ms:g})"
    return Text(text, "" if pair.holds else "red")
