"""What the paper says of its run, as numbers of every seed; published.yml has the bounds.

The paper shows one draw of a random load that it does not publish. So what hangs on that draw is judged
as a relation, over 100 draws.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import t as student

from controller.protocol.decision import Rules
from paper_figures.claims import Statements

Ramp = tuple[str, float, str]  # shape, growth per step, which instances look when
RULES = Rules()
PER_NODE = RULES.capacity_per_step * RULES.target_ratio  # C·r
PERIOD_STEPS = 5
LONGEST_DELAY_STEPS = 20
FIGURE_6: Ramp = ("straight", 100.0, "apart")


def statements(tables: Path) -> Statements:
    steps = pd.read_parquet(tables / "steps.parquet")
    seeds = [rows for _, rows in steps[steps["way"] == "steps"].groupby("seed")]
    rounds, worked = (pd.read_parquet(tables / f"{name}.parquet") for name in ("rounds", "worked"))
    wrong = (rounds["counted"] - rounds["formula"]).abs()
    ramps = pd.read_parquet(tables / "ramps.parquet")
    return {
        "peak_nodes_ratio": [rows["nodes"].max() / (rows["load"].max() / PER_NODE) for rows in seeds],
        "delay_steps": [delay_steps(rows) for rows in seeds],
        "nodes_follow_load": [_correlation(rows["nodes"], rows["load"]) for rows in seeds],
        "op_follows_more": [
            _correlation(rows["op_nodes"], rows["op_load"]) - _correlation(rows["nodes"], rows["load"])
            for rows in seeds
        ],
        "accuracy": [float((rows["nodes"] / (rows["load"] / PER_NODE)).mean()) for rows in seeds],
        "highest_op_accuracy": [float((rows["op_nodes"] / needed(rows["op_load"])).max()) for rows in seeds],
        "lowest_op_throughput": [100 * float(op_throughput(rows).min()) for rows in seeds],
        "throughput": [100 * float(rows["processed"].sum() / rows["load"].sum()) for rows in seeds],
        "traffic_follows_changes": [_traffic(rows) for rows in seeds],
        "worked_accuracy": [5 / needed([643.0])[0]],
        "worked_shortage": [1 / needed([1104.0])[0]],
        "worked_throughput": [100 * RULES.capacity_per_step / 1104],
        "messages_30": worked["messages_30"].tolist(),
        "messages_168": worked["messages_168"].tolist(),
        "duplication_error": [float(wrong[rounds["kind"] == "duplication"].max())],
        "deletion_error": [float(wrong[rounds["kind"] == "deletion"].max())],
        "ramp_exponent": exponents(ramps, FIGURE_6, per_iteration)["exponent"].tolist(),
        "doubling_exponent": exponents(ramps, FIGURE_6, per_doubling)["exponent"].tolist(),
    }


def needed(load: Sequence[float] | pd.Series) -> NDArray[np.float64]:
    """The instances that §5.3 needs for a load in its examples: without the target ratio r, rounded up."""
    return np.maximum(1.0, np.ceil(np.asarray(load, dtype=float) / RULES.capacity_per_step))


def op_throughput(rows: pd.DataFrame) -> pd.Series:
    """§5.3: the share of an operator's load that its instances can process in the same step."""
    return (rows["op_nodes"] * RULES.capacity_per_step / rows["op_load"]).clip(upper=1.0)


def delay_steps(rows: pd.DataFrame) -> float:
    """How many steps the nodes are behind: the shift by which they fit load/(C·r) best."""
    nodes, ideal = rows["nodes"].to_numpy(), rows["load"].to_numpy() / PER_NODE
    squares = [
        float(np.mean((nodes[shift:] - ideal[: len(ideal) - shift]) ** 2))
        for shift in range(LONGEST_DELAY_STEPS)
    ]
    return float(np.argmin(squares))


def _correlation(a: pd.Series, b: pd.Series) -> float:
    return float(np.corrcoef(a, b)[0, 1])


def _traffic(rows: pd.DataFrame) -> float:
    """How far the messages of a period go with the instances that came and went in it, of one operator."""
    period = (rows["step"].to_numpy() - 1) // PERIOD_STEPS
    changes = rows["op_nodes"].diff().abs().fillna(0.0).groupby(period).sum()
    return _correlation(changes, rows["op_messages"].groupby(period).sum())


# Traffic on a ramp


def per_iteration(run: pd.DataFrame) -> pd.DataFrame:
    """Messages against nodes, in the iterations in which instances duplicate."""
    return run.loc[run["duplicates"], ["nodes", "messages"]]


def per_iteration_of_one(run: pd.DataFrame) -> pd.DataFrame:
    """The same of one operator: its own messages against its own nodes."""
    chosen = run.loc[run["op_duplicates"], ["op_nodes", "op_messages"]]
    return chosen.set_axis(["nodes", "messages"], axis="columns")


def per_doubling(run: pd.DataFrame) -> pd.DataFrame:
    """The messages that it takes to get from n nodes to twice as many, against n."""
    nodes, sent = run["nodes"].to_numpy(), run["messages"].cumsum().to_numpy()
    begins = np.flatnonzero(np.diff(nodes, prepend=0) > 0)
    rows = []
    for begin in begins[nodes[begins] * 2 <= nodes[-1]]:
        end = int(np.argmax(nodes >= 2 * nodes[begin]))
        rows.append({"nodes": nodes[begin], "messages": sent[end] - sent[begin]})
    return pd.DataFrame(rows, columns=["nodes", "messages"])


def of_ramp(ramps: pd.DataFrame, which: Ramp) -> pd.DataFrame:
    shape, growth, looks = which
    return ramps[(ramps["shape"] == shape) & (ramps["growth"] == growth) & (ramps["looks"] == looks)]


def exponents(
    ramps: pd.DataFrame, which: Ramp, points_of: Callable[[pd.DataFrame], pd.DataFrame]
) -> pd.DataFrame:
    """Of every seed the slope of log messages over log nodes."""
    chosen = of_ramp(ramps, which)
    rows = []
    for seed, run in chosen.groupby("seed"):
        points = points_of(run)
        points = points[points["messages"] > 0]
        if points["nodes"].nunique() > 2:
            slope = np.polyfit(np.log(points["nodes"]), np.log(points["messages"]), 1)[0]
            rows.append({"seed": seed, "exponent": float(slope)})
    return pd.DataFrame(rows, columns=["seed", "exponent"])


def interval(values: Sequence[float] | pd.Series, digits: int = 2) -> str:
    """The mean with its 95 % interval, as a table shows it."""
    series = pd.Series(values, dtype=float)
    if len(series) < 2:
        return f"{series.mean():.{digits}f}" if len(series) else "–"
    half = float(student.ppf(0.975, len(series) - 1)) * float(series.std()) / sqrt(len(series))
    return f"{series.mean():.{digits}f} ± {half:.{digits}f}"
