"""Tables keep every digit in CSV, and read well in Markdown and LaTeX."""

from __future__ import annotations

from math import inf, nan

import pandas as pd
import pytest

from analysis.metrics.labels import measured
from analysis.tables import latex, markdown, text, write_tables

FRAME = pd.DataFrame({"policy": ["thr_nlaware", "a|b & 5 %"], "cost": [1193.75, nan], "done": [True, False]})


def test_markdown():
    assert markdown(FRAME) == (
        "| policy       | cost | done |\n"
        "| ------------ | ---: | ---- |\n"
        "| thr\\_nlaware | 1194 | yes  |\n"
        "| a\\|b & 5 %   |    – | no   |\n"
    )


def test_latex():
    assert latex(FRAME, caption="Cost_1") == "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            r"\begin{tabular}{lrl}",
            r"\toprule",
            r"policy & cost & done \\",
            r"\midrule",
            r"thr\_nlaware & 1194 & yes \\",
            r"a|b \& 5 \% & -- & no \\",
            r"\bottomrule",
            r"\end{tabular}",
            r"\caption{Cost\_1}",
            r"\end{table}",
            "",
        ]
    )


def test_latex_escapes_do_not_escape_each_other():
    frame = pd.DataFrame({"text": ["\\{}~^"]})
    assert r"\textbackslash{}\{\}\textasciitilde{}\textasciicircum{} \\" in latex(frame)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (12, "12"),
        (0.0, "0.000"),
        (0.16349, "0.163"),
        (51.11, "51.11"),
        (-1.5, "−1.500"),
        (123456.7, "123457"),
        (0.00012, "0.00012"),
        (nan, "–"),
        (None, "–"),
        (-inf, "−∞"),
        ("gesscale", "gesscale"),
    ],
)
def test_text(value, expected):
    assert text(value) == expected


def test_write_tables_keeps_all_digits_in_csv(tmp_path):
    paths = write_tables(FRAME, tmp_path / "deep" / "table.1")
    assert [path.name for path in paths] == ["table.1.csv", "table.1.md", "table.1.tex"]
    assert "1193.75" in paths[0].read_text()
    pd.testing.assert_frame_equal(pd.read_csv(paths[0]), FRAME)


def test_what_was_measured_is_shown_and_kinds_of_records_by_their_name():
    runs = pd.DataFrame({"cost": [1.0], "violations": [nan], "kind_time_s.query": [0.3], "seed": [1]})
    assert [(name, label.name) for name, label in measured(runs)] == [
        ("cost", "Cost"),
        ("kind_time_s.query", "Time of query records"),
    ]
