"""The page of `fogscale validate`: real and simulated curves over each other, and every figure judged."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from matplotlib import pyplot as plt

from analysis.plotting import PAGE_WIDTH_IN, inked, svg
from controller.calibration.validation import Pair
from controller.model import Sample
from fogscale.files import write_whole

REAL, SIMULATED = "#0072B2", "#D55E00"

STYLE = """body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
color: CanvasText; background: Canvas; color-scheme: light dark } table { border-collapse: collapse }
td, th { padding: .2rem .8rem .2rem 0; text-align: left } .num { text-align: right }
.off { font-weight: 700 }"""


def write_page(pairs: Sequence[Pair], left_out: Sequence[str], path: Path) -> None:
    parts = [_part(pair) for pair in pairs]
    within = [row["within"] for pair in pairs for row in pair.rows()]
    head = f"{sum(within)} of {len(within)} figures of {len(pairs)} runs are within their bounds."
    left = "".join(f"<li>{escape(each)}</li>" for each in left_out)
    missing = f"<h2>Left out</h2><ul>{left}</ul>" if left_out else ""
    write_whole(
        path,
        f"<!doctype html><html lang='en'><meta charset='utf-8'><title>Real and simulated</title>"
        f"<style>{STYLE}</style><h1>Real and simulated</h1><p>{head}</p>{''.join(parts)}{missing}</html>",
    )


def _part(pair: Pair) -> str:
    rows = "".join(
        f"<tr><td>{row['title']}</td><td class='num'>{row['real']:.4g}</td>"
        f"<td class='num'>{row['simulated']:.4g}</td>"
        f"<td class='num{'' if row['within'] else ' off'}'>{row['off']}</td>"
        f"<td>{'within' if row['within'] else 'off'}</td></tr>"
        for row in pair.rows()
    )
    return (
        f"<h2>{escape(pair.name)}</h2><p>profile: {escape(pair.profile)}</p>{_curves(pair)}"
        f"<table><tr><th></th><th>real</th><th>simulated</th><th>difference</th><th></th></tr>{rows}</table>"
    )


def _curves(pair: Pair) -> str:
    with inked():
        figure, (replicas, lag) = plt.subplots(
            2, 1, sharex=True, figsize=(PAGE_WIDTH_IN, 3.4), layout="constrained"
        )
        for samples, label, colour in ((pair.real, "real", REAL), (pair.simulated, "simulated", SIMULATED)):
            minutes = [each.time_s / 60 for each in samples]
            counts = [each.replicas.get(pair.operator, 0) for each in samples]
            replicas.step(minutes, counts, where="post", label=label, color=colour, alpha=0.8)
            lag.plot(minutes, _thousands(samples), label=label, color=colour, alpha=0.8)
        replicas.set(ylabel="replicas", ylim=(0, None))
        replicas.legend(ncols=2)
        lag.set(ylabel="lag (1000 records)", xlabel="time (min)", ylim=(0, None))
        return svg(figure)


def _thousands(samples: Sequence[Sample]) -> list[float]:
    return [each.lag_records / 1000 for each in samples]
