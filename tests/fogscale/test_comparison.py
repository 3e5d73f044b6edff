"""The comparison on a terminal: whole at 80 columns, with two policies or with twenty."""

from __future__ import annotations

import io

import pandas as pd
import pytest
from rich.console import Console

from fogscale.comparison import comparison


def metrics(policies, seeds=3):
    return pd.DataFrame([
        {
            "policy": policy, "seed": seed, "accuracy_o": 1234.5 + place, "accuracy_u": 0.5 + place / 7,
            "timeshare_o": 49.0 + seed, "timeshare_u": 21.0 - seed, "excess_time": 0.042,
            "reconfigurations": 12_345 + seed, "cost": 1_000_000.0 + 100 * place + seed,
            "processed_ratio": 0.99, "processed_records": 1e6, "instance_time_s": 1e8 + seed,
            "response_mean_ms": 2e6 + place,
            "steady_violation_timeshare": 1.0, "violation_timeshare": 7.0 + seed,
        }
        for place, policy in enumerate(policies)
        for seed in range(1, seeds + 1)
    ])  # fmt: skip


def lines(frame, published=None, width=80):
    console = Console(width=width, file=io.StringIO(), color_system=None)
    console.print(comparison(frame, published or {}, width), highlight=False)
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize("count", [2, 4, 20])
@pytest.mark.parametrize("has_published", [False, True])
def test_nothing_is_cut_off_at_80_columns(count, has_published):
    names = [f"some_policy_with_a_name_{place:02}" for place in range(count)]
    frame = metrics(names)
    columns = ("accuracy_o", "cost", "reconfigurations", "response_mean_ms")
    published = {name: dict.fromkeys(columns, 98_765.0) for name in names} if has_published else {}
    shown = lines(frame, published)
    assert max(map(len, shown)) <= 80
    assert "…" not in "".join(shown)
    for place, name in enumerate(names):
        rows = [line for line in shown if name in line]
        assert any(f"{1234.5 + place:,.3f}" in row for row in rows), name  # Over-provisioning
        assert any(f"{1_000_002 + 100 * place:,.1f}" in row for row in rows), name  # Cost
        if has_published:
            assert any("98,765.000" in row for row in rows)
            assert any("98,765.0" in row.split() for row in rows)


def test_every_block_lists_the_best_first():
    shown = lines(metrics(["b_dear", "a_dearest", "z_cheap"]).replace({"cost": {1_000_201.0: 7.0}}))
    order = [line.split()[0] for line in shown if line.startswith(("b_dear", "a_dearest", "z_cheap"))]
    blocks = [order[at : at + 3] for at in range(1, len(order), 3)]  # the first is the headline
    assert len(blocks) >= 2
    assert all(block == ["z_cheap", "b_dear", "a_dearest"] for block in blocks)


def test_marks_and_the_rule_stand_beside_the_numbers():
    text = "\n".join(lines(metrics(["one", "two"])))
    assert "Rule: service first" in text
    assert "1,000,002.0 *" in text
    assert "* best   = not told apart" in text


def test_a_name_longer_than_its_column_goes_on_below():
    name = "a_policy_whose_name_is_longer_than_half_a_terminal_is_wide"
    shown = lines(metrics([name, "short"]))
    assert max(map(len, shown)) <= 80
    assert "…" not in "".join(shown)
    assert name[:30] in "\n".join(shown)
    assert name[30:] in "\n".join(shown)


def test_one_policy_is_a_list_of_metrics_with_printed_values():
    shown = lines(metrics(["gesscale"], seeds=1), {"gesscale": {"cost": 999.5}})
    assert any("Cost (replica-min)" in line and "1,000,001.0" in line and "999.5" in line for line in shown)
    assert not any("Over-provisioning" in line for line in shown)  # the paper does not measure it
