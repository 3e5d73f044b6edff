"""Which rows of imported traces the records of a workload are, however the trace was cut, thinned or joined.

Rows stand in the order of time, so the share of the records that is sent by a moment is the share of the rows
that happened until then: a thinned replay sends every n-th row, a multiplied one each row several times.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Some neighbouring rows of a trace."""

    folder: str
    share: float  # of the workload's records; those of all excerpts are 1 together
    first_row: float
    rows: float


def without_first(excerpts: Sequence[Excerpt], lost: float) -> tuple[Excerpt, ...]:
    """What is left where so large a share of all records is cut off at the start."""
    left, begin = [], 0.0
    for excerpt in excerpts:
        gone = min(max((lost - begin) / excerpt.share, 0.0), 1.0)
        begin += excerpt.share
        if gone < 1.0:
            left.append(
                replace(
                    excerpt,
                    share=excerpt.share * (1 - gone) / (1 - lost),
                    first_row=excerpt.first_row + gone * excerpt.rows,
                    rows=excerpt.rows * (1 - gone),
                )
            )
    return tuple(left)


def one_after_the_other(parts: Iterable[tuple[Sequence[Excerpt], float]]) -> tuple[Excerpt, ...]:
    """The excerpts of several workloads that are joined, each with the records that it offers."""
    parts = list(parts)
    total = sum(records for _, records in parts)
    return tuple(
        replace(excerpt, share=excerpt.share * records / total)
        for excerpts, records in parts
        for excerpt in excerpts
        if records > 0
    )
