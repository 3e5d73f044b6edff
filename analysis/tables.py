"""A pandas frame as CSV (all digits), Markdown and LaTeX (as a reader wants it)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isinf, isnan
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fogscale.files import write_whole

_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "−": "$-$",
    "→": r"$\rightarrow$",
    "–": "--",
}
_MARKDOWN = {
    "\\": "\\\\",
    "|": "\\|",
    "*": "\\*",
    "_": "\\_",
    "`": "\\`",
    "<": "&lt;",
    ">": "&gt;",
    "\n": " ",
}


def write_tables(frame: pd.DataFrame, stem: Path, caption: str = "") -> tuple[Path, Path, Path]:
    """Writes stem.csv, stem.md and stem.tex; the index is left out."""
    paths = (
        stem.with_name(f"{stem.name}.csv"),
        stem.with_name(f"{stem.name}.md"),
        stem.with_name(f"{stem.name}.tex"),
    )
    texts = frame.to_csv(index=False), markdown(frame), latex(frame, caption)
    for path, text in zip(paths, texts, strict=True):
        write_whole(path, text)
    return paths


def markdown(frame: pd.DataFrame) -> str:
    """A pipe table, padded so that it reads as a table in the source too; numbers to the right."""
    numeric = _numeric_columns(frame)
    rows = [[_translated(cell, _MARKDOWN) for cell in row] for row in _cells(frame)]
    widths = [max(3, *(len(row[place]) for row in rows)) for place in range(len(frame.columns))]
    rule = [
        "-" * (width - 1) + ":" if right else "-" * width
        for width, right in zip(widths, numeric, strict=True)
    ]
    lines = [
        " | ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        )
        for row in [rows[0], rule, *rows[1:]]
    ]
    return "".join(f"| {line} |\n" for line in lines)


def latex(frame: pd.DataFrame, caption: str = "") -> str:
    """A booktabs table; it needs \\usepackage{booktabs}."""
    columns = "".join("r" if right else "l" for right in _numeric_columns(frame))
    header, *rows = [" & ".join(_translated(cell, _LATEX) for cell in row) + r" \\" for row in _cells(frame)]
    tabular = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", header, r"\midrule", *rows, r"\bottomrule"]
    lines = [r"\begin{table}", r"\centering", *tabular, r"\end{tabular}"]
    if caption:
        lines.append(rf"\caption{{{_translated(caption, _LATEX)}}}")
    return "\n".join([*lines, r"\end{table}", ""])


def text(value: Any) -> str:
    """A cell as a reader wants it: up to four significant digits, a dash for what is not known."""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real):
        return _number(float(value))
    return "–" if pd.isna(value) else str(value)


def _number(number: float) -> str:
    if isnan(number):
        return "–"
    if isinf(number):
        return "−∞" if number < 0 else "∞"
    if 0 < abs(number) < 0.001:
        return f"{number:.2g}".replace("-", "−")
    whole_digits = len(str(int(abs(number))))
    return f"{number:.{max(4 - whole_digits, 0)}f}".replace("-", "−")


def _cells(frame: pd.DataFrame) -> list[list[str]]:
    rows = frame.itertuples(index=False, name=None)
    return [[str(name) for name in frame.columns], *([text(value) for value in row] for row in rows)]


def _numeric_columns(frame: pd.DataFrame) -> Sequence[bool]:
    kinds = [frame.iloc[:, place].dtype for place in range(len(frame.columns))]
    return [pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind) for kind in kinds]


def _translated(cell: str, replacements: Mapping[str, str]) -> str:
    return cell.translate({ord(character): written for character, written in replacements.items()})
