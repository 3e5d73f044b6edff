"""What every reader of raw files hands on, and every later step takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa


class Rows(NamedTuple):
    """Neighbouring rows of one file: typed columns with `position` and `reason` (the number of the damage, 0
    if there is none), and the way to their raw form, which is only made of those that are quarantined."""

    table: pa.Table
    raw: Callable[[npt.NDArray[np.int64]], list[str]]
