"""report.html of a trace: one page that needs no other file."""

from __future__ import annotations

import io
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc
import pyarrow.parquet as pq
from jinja2 import Environment, PackageLoader
from markupsafe import Markup
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure

from fogscale.files import write_whole
from workloads.importing.reasons import REASONS
from workloads.importing.trace import MINUTE_S, Pace

POINTS = 600  # of the rate over time: as many as the figure can show
MOST_OVER_MEAN = 10
EXAMPLES = 3  # quarantined rows that are shown of each reason
LONGEST_EXAMPLE = 220
COLOUR, FAINT, BURST = "#17537d", "#b9cfdf", "#e39b57"


def write_report(folder: Path, manifest: dict[str, Any], pace: Pace, target: Path) -> None:
    """Into the draft's folder; the target is where the trace will be."""
    environment = Environment(loader=PackageLoader("workloads.importing", "."), autoescape=True)
    page = environment.get_template("report.html.j2").render(
        manifest=manifest,
        target=target,
        rows=manifest["rows"],
        reasons=REASONS,
        examples=quarantine_examples(folder, manifest),
        rate=_svg(draw_rate(folder, manifest)),
        seconds=_svg(draw_seconds(pace)) if manifest["notes"] else None,
    )
    write_whole(folder / "report.html", page)


def quarantine_examples(folder: Path, manifest: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """The first rows of each reason, with the name of their file."""
    wanted = {reason: min(EXAMPLES, count) for reason, count in manifest["rows"]["by_reason"].items()}
    found: dict[str, list[dict[str, Any]]] = {reason: [] for reason in wanted}
    for path in sorted((folder / "quarantine").glob("part-*.parquet")):
        for batch in pq.ParquetFile(path).iter_batches(columns=["reason", "file", "position", "raw"]):
            missing = {reason: wanted[reason] - len(found[reason]) for reason in wanted}
            for reason in filter(missing.get, missing):
                rows = batch.filter(pc.equal(batch.column("reason"), reason)).slice(0, missing[reason])
                for row in rows.to_pylist():
                    name = manifest["files"][row["file"]]["name"]
                    found[reason].append(row | {"file": name, "raw": _shortened(row["raw"] or "")})
            if not any(missing.values()):
                return found
    return found


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_EXAMPLE else f"{text[:LONGEST_EXAMPLE]}…"


def draw_rate(folder: Path, manifest: dict[str, Any]) -> Figure:
    """Records per second over the trace: the mean of each stretch, and its busiest second."""
    span_s = manifest["span_s"]
    window_s = max(1, -(-span_s // POINTS))
    windows = -(-span_s // window_s)
    total, busiest = np.zeros(windows), np.zeros(windows)
    for batch in pq.ParquetFile(folder / "rate.parquet").iter_batches():
        second, records = (batch.column(name).to_numpy() for name in ("second", "records"))
        window, first = np.unique(second // window_s, return_index=True)  # seconds ascend
        total[window] += np.add.reduceat(records, first)
        busiest[window] = np.maximum(busiest[window], np.maximum.reduceat(records, first))
    start = datetime.fromisoformat(manifest["start"])
    lengths_s = np.minimum(window_s, span_s - np.arange(windows) * window_s)
    times = [start + timedelta(seconds=int(n) * window_s) for n in range(windows)]
    figure = Figure(figsize=(9.6, 3.0), layout="constrained")
    axes = figure.add_subplot()
    mean = total / lengths_s
    if busiest.max() <= MOST_OVER_MEAN * mean.max():  # of a sparse trace, it would hide the mean
        axes.fill_between(times, busiest, color=FAINT, lw=0, step="post", label="busiest second")  # type: ignore[arg-type]
    label = f"mean of {_words(window_s)}"
    axes.step(times, mean, color=COLOUR, lw=1.2, where="post", label=label)  # type: ignore[arg-type]
    axes.set(ylabel="records/s", ylim=(0, None), xlim=(start, start + timedelta(seconds=span_s)))
    locator = AutoDateLocator(tz=start.tzinfo)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(_dates(locator, start.tzinfo))
    _plain(figure)
    return figure


def _dates(locator: AutoDateLocator, zone: tzinfo | None) -> ConciseDateFormatter:
    """Days with their month on each tick: a month set apart would be that of the last tick alone."""
    return ConciseDateFormatter(  # type: ignore[no-untyped-call]
        locator,
        tz=zone,
        formats=["%Y", "%b %Y", "%d %b", "%H:%M", "%H:%M", "%H:%M:%S"],
        zero_formats=["", "%b %Y", "%d %b", "%d %b", "%H:%M", "%H:%M:%S"],
        show_offset=False,
    )


def draw_seconds(pace: Pace) -> Figure:
    """Events by second of the minute, as they were stamped and as they are replayed."""
    figure = Figure(figsize=(9.6, 2.6), layout="constrained")
    axes = figure.add_subplot()
    second = np.arange(MINUTE_S)
    axes.bar(second, _percent(pace.as_stamped), color=BURST, width=0.9, label="as stamped")
    axes.plot(second, _percent(pace.by_second_of_minute), color=COLOUR, lw=1.6, label="after spreading")
    axes.set(xlabel="second of the minute", ylabel="% of events", xlim=(-1, MINUTE_S))
    _plain(figure)
    return figure


def _percent(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    return 100 * counts.astype(np.float64) / max(1.0, float(counts.sum()))


def _plain(figure: Figure) -> None:
    (axes,) = figure.axes
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e3e7ee")
    axes.set_axisbelow(True)
    axes.legend(frameon=False, fontsize=9, ncols=2, loc="lower right", bbox_to_anchor=(1.0, 1.0))


def _words(seconds: int) -> str:
    if seconds >= 3600:
        return f"{seconds / 3600:.3g} h"
    return f"{seconds / 60:.3g} min" if seconds >= 60 else f"{seconds} s"


def _svg(figure: Figure) -> Markup:
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    text = buffer.getvalue()
    return Markup(text[text.index("<svg") :])  # drawn by us, from numbers
