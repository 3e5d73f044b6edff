"""One look for all figures, the same bytes every time."""

from __future__ import annotations

import os
import subprocess
import sys

import matplotlib as mpl
from matplotlib import pyplot as plt

from analysis.plotting import POLICY_COLOUR, ink, inked, save, styled, svg

KNOWN = ("static", "ideal", "thr_nlunaware", "thr_nlaware", "mdl_nlunaware", "gesscale")


def test_known_policies_differ():
    assert len({POLICY_COLOUR[policy] for policy in KNOWN}) == len(KNOWN)


def test_any_policy_has_its_colour_in_every_process():
    code = "from analysis.plotting import POLICY_COLOUR; print(POLICY_COLOUR['mine'])"
    colours = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(colours) == 1
    assert POLICY_COLOUR["mine"].startswith("#")
    assert "mine" not in POLICY_COLOUR  # looking is not adding


def drawn():
    with styled():
        figure, axis = plt.subplots()
        axis.plot([0, 1], [0, 1], color=POLICY_COLOUR["gesscale"])
    return figure


def test_save_writes_the_same_png_and_pdf_twice(tmp_path):
    first, second = save(drawn(), tmp_path / "a" / "figure"), save(drawn(), tmp_path / "b" / "figure")
    assert [path.name for path in first] == ["figure.png", "figure.pdf"]
    assert [path.read_bytes()[:4] for path in first] == [b"\x89PNG", b"%PDF"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    assert not plt.get_fignums()


def test_style_stays_inside_the_block():
    before = mpl.rcParams["font.size"]
    with styled(font__size=23):
        assert mpl.rcParams["font.size"] == 23
    assert mpl.rcParams["font.size"] == before


def test_svg_takes_the_colour_and_width_of_the_page():
    with inked():
        figure, axis = plt.subplots()
        axis.plot([0, 1], color=ink())
        element = svg(figure)
    head = element[: element.index(">")]
    assert head.startswith("<svg")
    assert "viewBox" in head
    assert "width=" not in head
    assert "currentColor" in element
    assert ink() not in element
    assert "http://www.w3.org/2000/svg" in element
    assert "<metadata" not in element
