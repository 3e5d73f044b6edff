"""Figure 3: throughput before, during and after a reconfiguration.

A small experiment of its own (reconfiguration.yml): the load exceeds what two replicas can do at 650 s,
Gesscale sees back pressure twice and restarts the job, nothing is processed for 120 s, and three replicas
then work off what Kafka has buffered. The paper's restart begins at 800 s; ours when two observations 60 s
apart have shown back pressure.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.plotting import PAGE_WIDTH_IN, POLICY_COLOUR
from controller.experiment import load as load_experiment
from controller.experiment import runs_of
from controller.run import simulate
from paper_figures.gesscale.panels import rates

HERE = Path(__file__).parent
WINDOW_S = 20.0
SEED = 1


def load(_tables: Path) -> pd.DataFrame:
    """Runs the engine here: one run of some minutes needs no campaign."""
    experiment = load_experiment(HERE / "reconfiguration.yml")
    trace = experiment.workload.model_copy(update={"name": str(HERE / experiment.workload.name)})
    (run,) = runs_of(experiment.model_copy(update={"workload": trace}), seeds=[SEED])
    header, samples = simulate(run.model_dump_json())
    frame = pd.DataFrame(
        {
            "time_s": [sample.time_s for sample in samples],
            "duration_s": header["duration_s"],
            "offered_records": [sample.offered_records for sample in samples],
            "processed_records": [sample.processed_records for sample in samples],
            "supply": [sample.replicas["map"] for sample in samples],
        }
    )
    return frame[frame["time_s"] <= frame["duration_s"]]


def draw(run: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(PAGE_WIDTH_IN, 2.5))
    axis = figure.subplots()
    for counter, label, colour in (
        ("offered_records", "workload", "#30363D"),
        ("processed_records", "throughput", POLICY_COLOUR["gesscale"]),
    ):
        minutes, rate_per_s = rates(run, counter, WINDOW_S)
        axis.plot(minutes * 60, rate_per_s, label=label, color=colour)
    _mark_stop(axis, run)
    axis.set(xlabel="Time (s)", ylabel="Records/s", ylim=(0, None), xlim=(0, run["duration_s"].iloc[0]))
    axis.legend(loc="upper left", ncols=2)
    return figure


def _mark_stop(axis: Axes, run: pd.DataFrame) -> None:
    stopped = run["supply"].to_numpy() == 0
    if not stopped.any():
        return
    begin_s = run["time_s"].iloc[int(np.argmax(stopped))]
    running_again = stopped.size - int(np.argmax(stopped[::-1]))
    end_s = run["time_s"].iloc[min(running_again, stopped.size - 1)]
    axis.axvspan(begin_s, end_s, color="#C4513A", alpha=0.12, linewidth=0)
    axis.annotate(
        f"stopped for {end_s - begin_s:.0f} s",
        ((begin_s + end_s) / 2, 0.5),
        xycoords=("data", "axes fraction"),
        ha="center",
        va="center",
        fontsize=7,
        rotation=90,
    )
