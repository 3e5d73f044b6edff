"""Gesscale's own tables, from metrics that can be checked by hand."""

import pandas as pd

from paper_figures.gesscale import table_3
from paper_figures.published import load as load_published
from paper_figures.published import paper_folder


def test_table_3_has_both_strengths_of_what_nobody_published_below_the_paper_s_row(tmp_path):
    published = load_published(paper_folder("gesscale"))
    rows = [
        dict.fromkeys(published.metrics, 10.0 * place + seed) | {"policy": policy, "variation": variation}
        for place, variation in enumerate(("", "cpu_mechanism_off", "no_buffers"))
        for policy in published.policies
        for seed in (1, 2, 3)
    ]
    pd.DataFrame(rows).to_parquet(tmp_path / "metrics.parquet")
    table = table_3.load(tmp_path)
    assert len(table) == 3 * len(published.policies)
    said, ours, without = table[table["Algorithm"] == "Gesscale"]["cost"]
    # three seeds, one apart: 4.303 / √3 on either side
    assert (said, ours.split(" ± "), without.split(" ± ")[0]) == ("999.5", ["2.0", "2.5"], "12.0")
