"""`fogscale calibrate --testbed`: measures, fits, and writes a profile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from rich.table import Table

from controller import testbeds
from controller.calibration.building import profile_of
from controller.calibration.measuring import Pace
from controller.calibration.profile import Profile, write_profile
from controller.calibration.session import Grid, Session, folder_of
from controller.experiment import Experiment, load, scenario_of
from controller.experiment import varied as with_changes
from controller.testbeds.flink.settings import FlinkSettings
from fogscale.console import Told, err, out, print_json, progress_bar
from fogscale.errors import FogscaleError, unknown


@dataclass(frozen=True)
class Request:
    """What the command line says."""

    testbed: str
    file: Path | None
    job_settings: tuple[str, ...]
    grid: Grid
    results: Path
    fresh: bool
    write_to: Path | None


def calibrate_testbed(request: Request, as_json: bool) -> None:
    """A profile for each combination of the job's settings."""
    variants = variants_of(request.job_settings)
    if request.write_to is not None and len(variants) > 1:
        raise FogscaleError("--write: several settings make several profiles: leave it out, or measure one")
    base = real_experiment(request.testbed, request.file)
    testbeds.bring_up(base.topology.build(), base.testbed)
    written = []
    for changes in variants:
        experiment = varied(base, changes)
        session = measured(experiment, request.grid, request.results, request.fresh)
        name = "-".join([session.settings.job, *(f"{key}{value}" for key, value in changes.items())])
        rows = session.rows
        profile = profile_of(experiment, session.operator, rows.points, rows.restarts, name)
        path = request.write_to or session.folder / "profile.yml"
        write_profile(profile, path)
        written.append((path, profile))
        if not as_json:
            show(profile, path)
    if as_json:
        print_json([{"profile": str(path), **told.model_dump(mode="json")} for path, told in written])


def real_experiment(testbed: str, file: Path | None) -> Experiment:
    built = testbeds.built()
    if testbed not in built:
        raise FogscaleError(unknown("testbed", testbed, built))
    experiment = scenario_of(load(file or built[testbed]), None)
    if experiment.testbed.kind != "flink":
        raise FogscaleError(f"experiment '{experiment.name}' is for the {experiment.testbed.kind} testbed: "
                            "name one whose testbed is of the kind flink")  # fmt: skip
    return with_changes(experiment, {"testbed.name": testbed})


def show(profile: Profile, path: Path) -> None:
    """How well each law says what was measured, and where the profile lies."""
    table = Table(
        "law", "fitted", "left out", "worst", "own round trips", title_justify="left",
        title=f"{profile.name}: {len(profile.points)} points, {len(profile.restarts)} restarts; mean errors",
    )  # fmt: skip
    for row in profile.fits:
        ratios = (row.error_ratio, row.left_out_ratio, row.worst_ratio, row.checked_ratio)
        table.add_row(str(row.law["law"]), *("–" if each is None else f"{each:.1%}" for each in ratios))
    out.print(table)
    silent = [each.silent_s for each in profile.restarts]
    if silent:
        out.print(f"a {profile.restarts[0].style} takes {min(silent):.1f} to {max(silent):.1f} s")
    out.print(f"profile: {path}", highlight=False, soft_wrap=True)


def variants_of(pairs: Sequence[str]) -> list[dict[str, str | int]]:
    """Every combination of `cost-us=20,2000`-like settings; without any, one that changes nothing."""
    choices: dict[str, list[str | int]] = {}
    for pair in pairs:
        key, equals, values = pair.partition("=")
        if not equals or not key.strip() or not values.strip():
            raise FogscaleError(
                f"--set {pair}: write a setting of the job and its values, e.g. cost-us=20,2000"
            )
        choices[key.strip()] = [_value(each.strip()) for each in values.split(",")]
    return [dict(zip(choices, each, strict=True)) for each in product(*choices.values())]


def _value(text: str) -> str | int:
    return int(text) if text.lstrip("-").isdecimal() else text


def numbers_of(text: str, option: str) -> tuple[float, ...]:
    try:
        return tuple(float(each) for each in text.split(",") if each.strip())
    except ValueError:
        raise FogscaleError(f"{option} {text}: write numbers with commas between them, e.g. 5,100") from None


def grid_of(
    replicas: str, rtts_ms: str, restarts: int, records: int, warm_s: float, measure_s: float
) -> Grid:
    counts = numbers_of(replicas, "--replicas")
    if any(each != int(each) for each in counts) or not counts:
        raise FogscaleError(f"--replicas {replicas}: write whole numbers, e.g. 1,2,3,5")
    pace = Pace(warm_s=warm_s, warm_limit_s=max(60.0, warm_s), measure_s=measure_s)
    return Grid(tuple(map(int, counts)), numbers_of(rtts_ms, "--rtt"), restarts, records, pace)


def measured(experiment: Experiment, grid: Grid, results: Path, fresh: bool) -> Session:
    """Everything that is not measured yet."""
    settings = experiment.testbed
    if not isinstance(settings, FlinkSettings):
        raise FogscaleError("only a real testbed is measured: name an experiment of the kind flink")
    folder = folder_of(results, settings, experiment.topology.build())
    if fresh:
        _set_aside(folder / "rows.jsonl")
    total = len(grid.points) + grid.restarts
    with progress_bar(f"calibrating {settings.job}", total) as bar:
        session = Session(experiment, grid, folder)
        session.tell = _teller(bar, session)
        session.measure()
    return session


def _teller(bar: Told | None, session: Session) -> Any:
    def tell(text: str) -> None:
        if bar is None:
            err.print(text, highlight=False)
        else:
            bar(float(len(session.rows.points) + len(session.rows.restarts)), text)

    return tell


def _set_aside(path: Path) -> None:
    if path.exists():
        number = 1
        while (aside := path.with_name(f"{path.name}.{number}")).exists():
            number += 1
        path.rename(aside)


def varied(experiment: Experiment, changes: Mapping[str, str | int]) -> Experiment:
    """With other settings of the job."""
    settings = experiment.testbed
    if not isinstance(settings, FlinkSettings):
        return experiment
    job_settings = {**settings.job_settings, **changes}
    return experiment.model_copy(
        update={"testbed": settings.model_copy(update={"job_settings": job_settings})}
    )
