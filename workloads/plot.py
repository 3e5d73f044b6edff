"""A picture of a workload: what its trace counts, and what a replay of it offers to the job."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure

from workloads.profile import RateProfile
from workloads.replay import ReplaySettings, arrivals, offered_rate_per_s, replay_span_s
from workloads.workload import Workload

COUNTS_COLOUR = "#d5e0e8"
ARRIVALS_COLOUR = "#e39b57"
EXPECTED_COLOUR = "#17537d"
TEXT_COLOUR = "#555555"
LINE_POINTS = 1000  # of the expected rate: finer than the figure can show
EXAMPLE_SEED = 1
ARRIVALS_WINDOW_S = 10.0
SHORT_S = 600.0  # up to here, replay time is shown in seconds


def draw(workload: Workload) -> Figure:
    """The offered rate over replay time (below) and trace time (above).

    With one example of its arrivals, or with a line for each operator that the workload drives on its own.
    """
    profile, settings = workload.profile, workload.replay
    figure = Figure(figsize=(9.0, 4.4), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    unit, unit_s = _time_unit(profile, settings)
    if workload.inputs:
        for operator, driven in workload.inputs.items():
            _draw_expected(axes, driven, settings, unit_s, label=operator)
    else:
        _draw_counts(axes, profile, settings, unit_s)
        _draw_arrivals(axes, profile, settings, unit_s)
        _draw_expected(axes, profile, settings, unit_s, label="expected rate", color=EXPECTED_COLOUR)
    axes.set(
        xlabel=f"Replay time ({unit})",
        ylabel="Offered rate (records/s)",
        xlim=(0, replay_span_s(profile, settings) / unit_s),
        ylim=(0, None),
    )
    axes.spines[["right", "top"]].set_visible(False)
    axes.grid(axis="y", color="#eeeeee")
    axes.set_axisbelow(True)
    if profile.start is not None or settings.speed != 1:  # otherwise it is the time below
        _add_trace_time(axes, profile)
    figure.legend(loc="outside lower center", ncols=max(3, len(workload.inputs)), frameon=False, fontsize=9)
    title = f"{profile.name}\n{_replay_words(profile, settings)}\n{_shortened(profile.source)}"
    figure.suptitle(title, x=0.01, ha="left", size=10, linespacing=1.4, parse_math=False)
    return figure


def _time_unit(profile: RateProfile, settings: ReplaySettings) -> tuple[str, float]:
    return ("s", 1.0) if replay_span_s(profile, settings) <= SHORT_S else ("min", 60.0)


def _draw_counts(axes: Axes, profile: RateProfile, settings: ReplaySettings, unit_s: float) -> None:
    if len(profile.counts) > LINE_POINTS:
        return  # steps too fine to be seen beside the line
    rate_per_s = profile.counts / profile.step_s * (settings.speed * settings.copies * settings.scale)
    edges = np.linspace(0, replay_span_s(profile, settings) / unit_s, len(rate_per_s) + 1)
    label = f"counted per {_duration_words(profile.step_s)} of the trace"
    axes.stairs(rate_per_s, edges, fill=True, color=COUNTS_COLOUR, label=label)


def _draw_arrivals(axes: Axes, profile: RateProfile, settings: ReplaySettings, unit_s: float) -> None:
    window_s = min(ARRIVALS_WINDOW_S, replay_span_s(profile, settings) / 100)
    records = arrivals(profile, settings, window_s, np.random.default_rng(EXAMPLE_SEED))
    middle = (np.arange(len(records)) + 0.5) * window_s / unit_s
    label = f"arrivals with seed {EXAMPLE_SEED}, mean of {window_s:g} s"
    axes.plot(middle, records / window_s, color=ARRIVALS_COLOUR, lw=0.6, label=label)


def _draw_expected(
    axes: Axes,
    profile: RateProfile,
    settings: ReplaySettings,
    unit_s: float,
    label: str,
    color: str | None = None,
) -> None:
    step_s = replay_span_s(profile, settings) / LINE_POINTS
    rate_per_s = offered_rate_per_s(profile, settings, step_s)
    middle = (np.arange(len(rate_per_s)) + 0.5) * step_s / unit_s
    width = 1.8 if profile.smooth else 1.2  # counts replayed as they are jump, and a thick line would hide it
    axes.plot(middle, rate_per_s, color=color, lw=width, label=label)


def _add_trace_time(axes: Axes, profile: RateProfile) -> None:
    above = axes.twiny()
    above.spines["right"].set_visible(False)
    above.tick_params(labelsize=8, colors=TEXT_COLOUR)
    if profile.start is None:
        above.set(xlim=(0, profile.span_s / 3600))
        above.set_xlabel("Trace time (h)", size=8, color=TEXT_COLOUR)
        return
    start = datetime.fromisoformat(profile.start)
    above.set(xlim=(start, start + timedelta(seconds=profile.span_s)))
    locator = AutoDateLocator(tz=start.tzinfo)  # type: ignore[no-untyped-call]
    above.xaxis.set_major_locator(locator)
    formatter = ConciseDateFormatter(locator, tz=start.tzinfo, show_offset=False)  # type: ignore[no-untyped-call]
    above.xaxis.set_major_formatter(formatter)
    zone = f", {start.tzname()}" if start.tzinfo else ""
    above.set_xlabel(f"Trace time (from {start:%Y-%m-%d %H:%M}{zone})", size=8, color=TEXT_COLOUR)


def _replay_words(profile: RateProfile, settings: ReplaySettings) -> str:
    factor = settings.speed * settings.copies * settings.scale
    unit, unit_s = _time_unit(profile, settings)
    words = [f"{replay_span_s(profile, settings) / unit_s:.4g} {unit} at speed {settings.speed:g}"]
    if settings.copies > 1:
        words.append(f"{settings.copies} copies of each record")
    if settings.scale != 1:
        words.append(f"scale {settings.scale:.3g}")
    mean, peak = (_rate_words(rate * factor) for rate in (profile.mean_per_s, profile.peak_per_s))
    words.append(f"mean {mean} and peak {peak} records/s")
    return ", ".join(words)


def _rate_words(rate_per_s: float) -> str:
    return f"{rate_per_s:,.0f}" if rate_per_s >= 1000 else f"{rate_per_s:.3g}"


def _duration_words(seconds: float) -> str:
    for unit, unit_s in (("h", 3600), ("min", 60)):
        if seconds % unit_s == 0:
            return f"{seconds / unit_s:g} {unit}"
    return f"{seconds:g} s"


def _shortened(text: str, most: int = 120) -> str:
    """Long paths lose their middle: both the folder and the file name tell them apart."""
    return text if len(text) <= most else f"{text[: most // 2]}…{text[-(most // 2) :]}"
