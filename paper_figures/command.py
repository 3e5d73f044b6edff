"""`fogscale figures`, `sensitivity` and `calibrate`: what is done with papers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from fogscale.console import Json, Results, out, print_json, spark_session

if TYPE_CHECKING:
    from paper_figures.claims import JudgedClaim


Fresh = Annotated[
    bool, typer.Option("--fresh", help="Simulate again what is kept in OUT/campaigns of an earlier one.")
]


def figures(
    paper: Annotated[list[str] | None, typer.Option(help="Which papers; default: all.")] = None,
    seeds: Annotated[int | None, typer.Option(min=2, help="Default: the experiment's.")] = None,
    results: Results = Path("results"),
    fresh: Fresh = False,
    as_json: Json = False,
) -> None:
    """Regenerate papers' tables and figures, published values beside ours."""
    from paper_figures.published import papers

    chosen = paper or [folder.name for folder in papers()]
    with spark_session(f"simulating {', '.join(chosen)} …") as spark:
        from paper_figures.build import build
        from paper_figures.front_page import write_front_page

        summaries = {name: build(name, results, spark, seeds, fresh) for name in chosen}
    front = write_front_page(results / "figures")
    if as_json:
        print_json({name: summary.model_dump() for name, summary in summaries.items()})
        return
    for name, summary in summaries.items():
        found = summary.orders
        out.print(
            f"{name}, {summary.seeds} seeds: of {sum(found.values())} published orders "
            f"{found['agree']} agree, {found['disagree']} disagree, {found['not_significant']} are not "
            f"significant",
            highlight=False,
        )
        best = summary.ceiling
        out.print(
            f"  a perfect simulator would agree with {best.agree:.0f} ({best.low:.0f} to {best.high:.0f}), "
            f"since the published table is one draw; {summary.cells['near']} of {summary.cells['all']} "
            f"published values are within two standard deviations of ours",
            highlight=False,
        )
        for claim in summary.claims:
            out.print(f"  {claim.state:<18}{claim.text}; ours: {_measured(claim)}", highlight=False)
        out.print(f"page: {summary.page}", highlight=False, soft_wrap=True)
    out.print(f"all papers: {front}", highlight=False, soft_wrap=True)


def _measured(claim: JudgedClaim) -> str:
    if claim.ours is None:
        return "cannot be computed"
    if claim.low is None or claim.high is None:
        return f"{claim.ours:.1f} %, unbounded"
    return f"{claim.ours:.1f} % ({claim.low:.1f} to {claim.high:.1f})"


def sensitivity(
    paper: Annotated[str, typer.Option(help="Which paper's ranking.")] = "gesscale",
    sets: Annotated[int, typer.Option(min=2, help="How many parameter sets to draw.")] = 200,
    seeds: Annotated[int, typer.Option(min=2, help="How many seeds each policy runs with.")] = 5,
    results: Results = Path("results"),
    fresh: Fresh = False,
    as_json: Json = False,
) -> None:
    """Repeat a paper's ranking over the plausible ranges of its assumed parameters (minutes)."""
    with spark_session(f"{sets} parameter sets of {paper} …") as spark:
        from paper_figures.sensitivity import sensitivity as repeat

        found = repeat(paper, results, spark, sets, seeds, fresh)
    if as_json:
        print_json(found.model_dump())
        return
    out.print(found.text, highlight=False)
    for row in found.agreement:
        out.print(
            f"  {row.title}: median {row.median:g} of {found.orders} "
            f"({row.lowest} to {row.highest}, {row.sets} sets)",
            highlight=False,
        )
    out.print(f"page: {found.page}", highlight=False, soft_wrap=True)


def calibrate(
    paper: Annotated[
        str, typer.Argument(help="A paper's name, or a folder with experiment.yml and calibration.py.")
    ],
    law: Annotated[str | None, typer.Option(help="Another capacity law, scaled to the same facts.")] = None,
    write_to: Annotated[Path | None, typer.Option("--write", help="Write it as an experiment file.")] = None,
    as_json: Json = False,
) -> None:
    """Work a paper's free parameters out from its facts anew; show what the experiment states beside it."""
    from paper_figures.calibrate import calibrate as worked_out
    from paper_figures.calibrate import write

    experiment, derived = worked_out(paper, law)
    if write_to is not None:
        write(experiment, write_to)
    if as_json:
        print_json([one._asdict() for one in derived])
        return
    if derived:
        table = Table(
            "setting", "stated", "derived", title=f"{paper}: what the facts give", title_justify="left"
        )
        for one in derived:
            table.add_row(one.setting, _short(one.stated), _short(one.derived))
        out.print(table)
    else:
        out.print(f"{paper}: experiment.yml states what follows from the facts, within rounding")
    if write_to is not None:
        out.print(f"written: {write_to}; run it with: fogscale run {write_to}", soft_wrap=True)


def _short(value: object) -> str:
    if isinstance(value, list) and len(value) > 4:
        return f"{_short(value[0])}, … ({len(value)} values)"
    return f"{value:.5g}" if isinstance(value, float) else json.dumps(value, ensure_ascii=False)
