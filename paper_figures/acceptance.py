"""Which worlds make a published table plausible: rejection sampling, and how to judge what it keeps.

A world is a set of parameters; a run of it is one draw of the table. Worlds whose draws come nearest to the
published table are drawn from its posterior (approximate Bayesian computation): the better, the smaller the
distance that is still accepted. Distances are in units of the run-to-run spread, which is estimated from
neighbouring worlds, so that one run of each is enough.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

Floats = NDArray[np.float64]

FAR = 5.0  # spreads: what is farther away is not any worse; else the one hopeless value would decide alone
NEIGHBOURS = 5  # per coefficient of the plane that is fitted through them, and
FEWEST_NEIGHBOURS = 50  # so that a spread is known to a tenth
DRAWS = 2000  # tables, to judge the published one by
DRAW_SEED = 20130501  # the same every time


def fewest_worlds(parameters: int) -> int:
    """With fewer, no spread can be estimated."""
    return 2 * (parameters + 1)


def spread_by_neighbours(points: Floats, tables: Floats) -> Floats:
    """The run-to-run standard deviation of each value in each world: [world, value].

    Points are worlds in the unit cube, [world, parameter]. A plane is fitted through each world's neighbours,
    so that what a parameter changes evenly does not count as chance; what it changes otherwise does. NaN
    where too few of the neighbours have a value.
    """
    worlds, parameters = points.shape
    wanted = min(worlds, max(FEWEST_NEIGHBOURS, NEIGHBOURS * (parameters + 1)))
    nearest = np.asarray(KDTree(points).query(points, k=wanted)[1])
    spread = np.empty_like(tables)
    for world, around in enumerate(nearest):
        plane = np.column_stack([np.ones(wanted), points[around] - points[world]])
        spread[world] = _residual_deviation(plane, tables[around])
    return spread


def _residual_deviation(plane: Floats, values: Floats) -> Floats:
    """Of each column, over the rows in which it has a value."""
    whole = np.isfinite(values)
    if whole.all():
        return _deviation(plane, values)
    return np.array(
        [
            _deviation(plane[known], column[known, None])[0]
            for column, known in zip(values.T, whole.T, strict=True)
        ]
    )


def _deviation(plane: Floats, values: Floats) -> Floats:
    freedom = len(plane) - plane.shape[1]
    if freedom < 1:
        return np.full(values.shape[1], np.nan)
    fitted = np.linalg.lstsq(plane, values, rcond=None)[0]
    deviation: Floats = np.sqrt(((values - plane @ fitted) ** 2).sum(axis=0) / freedom)
    return deviation


def distances(tables: Floats, published: Floats, spread: Floats) -> Floats:
    """How far one run of each world is from the published table: the root of the mean square, in spreads. The
    published table itself is a draw, so a true world is about √2 away."""
    away = np.abs(tables - published) / spread
    away = np.minimum(np.where(np.isfinite(away), away, FAR), FAR)
    distance: Floats = np.sqrt((away**2).mean(axis=1))
    return distance


class Draw(NamedTuple):
    """The published table as a draw of one world."""

    p: float  # the share of the world's own tables that are at least as far from its mean
    away: Floats  # standard deviations between each value and the world's mean


def as_draw(runs: Floats, published: Floats, resolution: Floats, runs_per_value: int) -> Draw:
    """Judged by several runs of the world, [run, value]. Tables are drawn from a normal distribution with the
    mean and the covariance of the runs, so that values which move together count once. That the mean is an
    estimate too is taken into account. `resolution`: how well a value is known at best."""
    mean, residuals = runs.mean(axis=0), runs - runs.mean(axis=0)
    deviation = np.maximum(runs.std(axis=0, ddof=1), resolution)
    scale = np.sqrt(1 / runs_per_value + 1 / len(runs))
    away = (published - mean) / deviation
    weights = np.random.default_rng(DRAW_SEED).standard_normal((DRAWS, len(runs)))
    drawn = weights @ residuals / np.sqrt(len(runs) - 1) / deviation
    own = np.sqrt((drawn**2).mean(axis=1))
    seen = np.sqrt(np.mean((away / scale) ** 2))
    return Draw(float((own >= seen).mean()) if np.isfinite(seen) else 0.0, away)
