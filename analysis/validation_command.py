"""`fogscale validate`: is the simulation to be believed?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer
from rich.table import Table

from controller.calibration.profile import Profile, load_profile, profiles_in
from controller.calibration.validation import Pair, pairs_of, run_folders
from controller.campaign.records import records_in, unpacked
from fogscale.console import Json, Results, out, print_json
from fogscale.errors import FogscaleError


def validate(
    recorded: Annotated[
        list[Path] | None,
        typer.Argument(help="Folders of real runs, or of records of such; default: those kept here."),
    ] = None,
    profile: Annotated[
        list[Path] | None, typer.Option(help="Of the testbed; default: those kept here, by job.")
    ] = None,
    results: Results = Path("results"),
    as_json: Json = False,
) -> None:
    """Simulate real runs again as a profile says; show every figure real, simulated and the difference."""
    profiles = [load_profile(each) for each in profile] if profile else profiles_in()
    pairs, left_out = _pairs(recorded or kept_runs(), profiles)
    if not pairs:
        reasons = "; ".join(left_out[:3]) or "no run of a real testbed is there"
        raise FogscaleError(
            f"nothing to compare ({reasons}): name folders of real runs, and a --profile of them"
        )
    from analysis.validation_page import write_page

    page = results / "validation" / "index.html"
    write_page(pairs, left_out, page)
    rows = [row for pair in pairs for row in pair.rows()]
    if as_json:
        print_json({"page": str(page), "figures": rows, "left_out": left_out})
        return
    _show(pairs, left_out)
    out.print(f"page: {page}", highlight=False, soft_wrap=True)


def kept_runs() -> list[Path]:
    """What the project itself has recorded."""
    from importlib.resources import files

    return [Path(str(files("paper_figures.gesscale"))) / "measured"]


def _pairs(folders: Sequence[Path], profiles: Sequence[Profile]) -> tuple[list[Pair], list[str]]:
    pairs: list[Pair] = []
    left_out: list[str] = []
    for folder in folders:
        with TemporaryDirectory() as place:
            is_packed = folder.is_dir() and bool(records_in(folder))
            runs = list(unpacked(folder, Path(place))) if is_packed else list(run_folders(folder))
            found, missing = pairs_of(runs, profiles)
        pairs += found
        left_out += missing
    return pairs, left_out


def _show(pairs: Sequence[Pair], left_out: Sequence[str]) -> None:
    table = Table("run", "", "real", "simulated", "difference", "", box=None, header_style="bold")
    within = 0
    for pair in pairs:
        for place, row in enumerate(pair.rows()):
            name = pair.name if place == 0 else ""
            judged = "within" if row["within"] else "[red]off[/red]"
            within += row["within"]
            table.add_row(
                name, row["title"], f"{row['real']:.4g}", f"{row['simulated']:.4g}", row["off"], judged
            )
    out.print(table)
    out.print(f"{within} of {4 * len(pairs)} figures are within their bounds", highlight=False)
    for each in left_out:
        out.print(f"left out: {each}", highlight=False, soft_wrap=True)
