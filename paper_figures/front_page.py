"""The front page of `make figures`: every paper that was built, what holds of it and what does not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fogscale.documents import read_json
from fogscale.files import write_whole
from paper_figures.page import rendered
from paper_figures.published import Published, papers
from paper_figures.published import load as load_published

SUMMARY = "summary.json"
STATES = ("holds", "in direction only", "does not hold")
SHORT = {"holds": "hold", "in direction only": "in direction", "does not hold": "do not"}


@dataclass(frozen=True)
class Row:
    """One paper; claims by their state."""

    name: str
    published: Published
    summary: Mapping[str, Any]

    @property
    def claims(self) -> dict[str, list[str]]:
        return {
            state: [claim["text"] for claim in self.summary["claims"] if claim["state"] == state]
            for state in STATES
        }

    @property
    def orders(self) -> int:
        return sum(self.summary["orders"].values())


def write_front_page(folder: Path) -> Path:
    """Of all papers with a summary in the folder, those of earlier builds included."""
    rows = list(_rows(folder))
    total = Counter(claim["state"] for row in rows for claim in row.summary["claims"])
    missing = sorted({path.name for path in papers()} - {row.name for row in rows})
    page = rendered("front.html.j2", rows=rows, total=total, states=STATES, short=SHORT, missing=missing)
    path = folder / "index.html"
    write_whole(path, page)
    return path


def _rows(folder: Path) -> Iterable[Row]:
    for source in papers():
        summary = folder / source.name / SUMMARY
        if summary.exists():
            yield Row(source.name, load_published(source), read_json(summary))
