"""`fogscale figures`, `sensitivity`, `plausible` and `calibrate`: what is done with papers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from fogscale.console import Json, Results, out, print_json, progress_bar, spark_session
from fogscale.errors import FogscaleError

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
    full: Annotated[
        bool, typer.Option("--full", help="Also the variations and sweeps that take long (EKF: 30 minutes).")
    ] = False,
    as_json: Json = False,
) -> None:
    """Regenerate papers' tables and figures, published values beside ours."""
    from paper_figures.published import papers

    chosen = paper or [folder.name for folder in papers()]
    with spark_session(f"simulating {', '.join(chosen)} …") as spark:
        from paper_figures.build import build
        from paper_figures.front_page import write_front_page

        summaries = {name: build(name, results, spark, seeds, fresh, full) for name in chosen}
    front = write_front_page(results / "figures")
    if as_json:
        print_json({name: summary.model_dump() for name, summary in summaries.items()})
        return
    for name, summary in summaries.items():
        found = summary.orders
        out.print(f"{name}, {summary.seeds} seeds: {_orders(found)}", highlight=False)
        best = summary.ceiling
        if any(found.values()):
            out.print(
                f"  a perfect simulator would agree with {best.agree:.0f} "
                f"({best.low:.0f} to {best.high:.0f}), since the published table is one draw; "
                f"{summary.cells['near']} of {summary.cells['all']} published values are within two "
                f"standard deviations of ours",
                highlight=False,
            )
        for claim in summary.claims:
            out.print(f"  {claim.state:<18}{claim.text}; ours: {_measured(claim)}", highlight=False)
        out.print(f"page: {summary.page}", highlight=False, soft_wrap=True)
    out.print(f"all papers: {front}", highlight=False, soft_wrap=True)


def _orders(found: dict[str, int]) -> str:
    if not any(found.values()):
        return "no order of policies was published"
    return (
        f"of {sum(found.values())} published orders {found['agree']} agree, {found['disagree']} disagree, "
        f"{found['not_significant']} are not significant"
    )


def _measured(claim: JudgedClaim) -> str:
    if claim.ours is None:
        return "cannot be computed"
    if claim.low is None or claim.high is None:
        return f"{claim.text_of(claim.ours)}, unbounded"
    return f"{claim.text_of(claim.ours)} ({claim.text_of(claim.low)} to {claim.text_of(claim.high)})"


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


def plausible(
    paper: Annotated[str, typer.Option(help="Which paper's table.")] = "gesscale",
    sets: Annotated[int, typer.Option(min=2, help="How many parameter sets to draw.")] = 300,
    seeds: Annotated[int, typer.Option(min=3, help="How many seeds the nearest sets are judged with.")] = 20,
    keep: Annotated[int, typer.Option(min=2, help="How many sets to keep, at most a tenth.")] = 100,
    results: Results = Path("results"),
    fresh: Fresh = False,
    as_json: Json = False,
) -> None:
    """Find the parameters under which a paper's table is plausible, and what its claims are worth there."""
    with (
        spark_session(f"{sets} parameter sets of {paper} …") as spark,
        progress_bar(f"sets of {paper}", sets) as told,
    ):
        from paper_figures.plausible import plausible as find

        found = find(paper, results, spark, sets, seeds, keep, fresh, told)
    if as_json:
        print_json(found.model_dump())
        return
    out.print(found.text, highlight=False)
    for posterior in found.parameters:
        if posterior.moved:
            out.print(
                f"  {posterior.parameter}: {posterior.low:.3g} to {posterior.high:.3g} "
                f"(drawn from {posterior.prior_low:g} to {posterior.prior_high:g})",
                highlight=False,
            )
    for claim in found.claims:
        shares = ", ".join(f"{state} {share:.0%}" for state, share in claim.shares.items())
        out.print(f"  {claim.text}: {shares}", highlight=False)
    out.print(f"page: {found.page}", highlight=False, soft_wrap=True)


def calibrate(
    paper: Annotated[
        str | None,
        typer.Argument(help="A paper's name, or a folder with experiment.yml and calibration.py."),
    ] = None,
    law: Annotated[
        str | None, typer.Option(help="Paper: another capacity law, scaled to the same facts.")
    ] = None,
    testbed: Annotated[str | None, typer.Option(help="A real testbed to measure: local or pi.")] = None,
    file: Annotated[
        Path | None, typer.Option("--experiment", help="Whose job and nodes; default: the testbed's own.")
    ] = None,
    job_settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE,…", help="Of the job; each combination is measured."),
    ] = None,
    replicas: Annotated[str, typer.Option(help="How many to measure with.")] = "1,2,3,4,5",
    rtts_ms: Annotated[
        str, typer.Option("--rtt", help="Round trips between all nodes, in ms.")
    ] = "5,100,300",
    restarts: Annotated[int, typer.Option(min=0, help="How many rescales to measure.")] = 4,
    records: Annotated[
        int, typer.Option(min=1000, help="Of the backlog; more are sent if need be.")
    ] = 60_000,
    warm: Annotated[float, typer.Option(min=1, help="Seconds to get warm, at least.")] = 15.0,
    measure: Annotated[float, typer.Option(min=5, help="Seconds to count records for.")] = 30.0,
    results: Results = Path("results"),
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Measure everything again; earlier rows are set aside.")
    ] = False,
    write_to: Annotated[
        Path | None,
        typer.Option("--write", help="The experiment file, or the profile; default: beside the rows."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure a real testbed and write its profile; or work a paper's free parameters out from its facts."""
    if (paper is None) == (testbed is None):
        raise FogscaleError(
            "name a paper, or a testbed with --testbed: e.g. fogscale calibrate --testbed local"
        )
    if paper is not None:
        _calibrate_paper(paper, law, write_to, as_json)
        return
    from controller.calibration.command import Request, calibrate_testbed, grid_of

    grid = grid_of(replicas, rtts_ms, restarts, records, warm, measure)
    calibrate_testbed(
        Request(str(testbed), file, tuple(job_settings or ()), grid, results, fresh, write_to), as_json
    )


def _calibrate_paper(paper: str, law: str | None, write_to: Path | None, as_json: bool) -> None:
    """What the experiment states, beside what follows from the paper's facts."""
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
