"""One place for how figures look: size, font, and one colour per policy everywhere. Draws to files only."""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

from matplotlib import pyplot as plt  # the backend is chosen before anything loads another
from matplotlib.figure import Figure

from fogscale.files import write_whole

STYLE = Path(__file__).with_name("style.mplstyle")
COLUMN_WIDTH_IN = 3.5
PAGE_WIDTH_IN = 7.2

# Safe for colour-blind readers (Okabe and Ito; Tol), and visible on white and on black.
_OTHERS = ("#44AA99", "#AA4499", "#999933", "#56B4E9", "#CC6677", "#B8860B", "#8B7FD1", "#6B8E9F")
_SHADES = (1.0, 0.65, 1.4, 0.4)  # 32 colours before one comes twice
_INK = "#010203"  # stands for the page's text colour in SVG


class _PolicyColours(dict[str, str]):
    """Any other policy or alias gets a colour too, by its name: the same in every figure and on every
    machine, unless another name has it already; then the next that is free, also lighter and darker ones."""

    def __missing__(self, policy: str) -> str:
        first = int.from_bytes(hashlib.sha256(policy.encode()).digest()[:4], "big") % len(_OTHERS)
        hues = _OTHERS[first:] + _OTHERS[:first]
        wheel = [_shaded(hue, shade) for shade in _SHADES for hue in hues]
        given = set(self._given.values())
        self._given.setdefault(policy, next((colour for colour in wheel if colour not in given), wheel[0]))
        return self._given[policy]

    def __init__(self, **colours: str) -> None:
        super().__init__(**colours)
        self._given: dict[str, str] = {}


def _shaded(colour: str, shade: float) -> str:
    """Towards black below 1, towards white above."""
    parts = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    shaded = (part * shade if shade <= 1 else 255 - (255 - part) * (2 - shade) for part in parts)
    return "#" + "".join(f"{round(part):02X}" for part in shaded)


POLICY_COLOUR = _PolicyColours(
    static="#8C8C8C",
    ideal="#CC79A7",
    thr_nlunaware="#E69F00",
    thr_nlaware="#D55E00",
    mdl_nlunaware="#009E73",
    gesscale="#0072B2",
    reactive="#CC6677",
    proactive="#44AA99",
    pure="#B8860B",
    gw="#56B4E9",
    ekf="#AA4499",
)


@contextmanager
def styled(**settings: Any) -> Iterator[None]:
    """Everything drawn in the block looks like the project's figures."""
    with plt.style.context([STYLE, {key.replace("__", "."): value for key, value in settings.items()}]):
        yield


def _drawn(figure: Figure, kind: str, metadata: dict[str, Any]) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, metadata=metadata)
    return buffer.getvalue()


def save(figure: Figure, path_stem: Path) -> tuple[Path, Path]:
    """Writes the figure as PNG and PDF, the same bytes for the same figure, and closes it."""
    png, pdf = (path_stem.with_name(f"{path_stem.name}.{kind}") for kind in ("png", "pdf"))
    with styled():
        write_whole(png, _drawn(figure, "png", {"Software": None}))
        write_whole(pdf, _drawn(figure, "pdf", {"CreationDate": None, "Producer": None, "Creator": None}))
    plt.close(figure)
    return png, pdf


@contextmanager
def inked() -> Iterator[None]:
    """As styled, for a figure that takes the colour of the page's text: readable in light and in dark."""
    parts = (
        "text__color",
        "axes__labelcolor",
        "axes__edgecolor",
        "xtick__color",
        "ytick__color",
        "grid__color",
    )
    with styled(**dict.fromkeys(parts, _INK), svg__fonttype="none"):
        yield


def ink() -> str:
    """The colour to draw with inside inked()."""
    return _INK


def svg(figure: Figure) -> str:
    """The figure as an inline SVG element that fills the width it is given, and closes it."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    plt.close(figure)
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r' id="(?:figure|axes|patch|line2d|text|matplotlib|xtick|ytick|legend)[^"]*"', "", text)
    text = re.sub(r'<svg ([^>]*?)width="[^"]*"', r"<svg \1", text, count=1)
    text = re.sub(r'<svg ([^>]*?)height="[^"]*"', r"<svg \1", text, count=1)
    return text.replace(_INK, "currentColor")
