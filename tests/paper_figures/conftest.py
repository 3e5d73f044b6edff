"""A small made-up paper, and metrics small enough to judge by hand."""

from __future__ import annotations

import pandas as pd
import pytest

from paper_figures.published import Published


@pytest.fixture
def published() -> Published:
    """b costs half of a and reconfigures as often."""
    return Published.model_validate(
        {
            "title": "A paper",
            "reference": "Somebody, 2020",
            "labels": {"a": "A", "b": "B"},
            "metrics": ["cost", "reconfigurations"],
            "table": {"a": {"cost": 100, "reconfigurations": 7}, "b": {"cost": 50, "reconfigurations": 7}},
            "claims": [
                {
                    "text": "half the cost",
                    "published": 50,
                    "relative_reduction": {"metrics": ["cost"], "of": "b", "against": "a"},
                },
                {
                    "text": "processes more",
                    "relative_increase": {"metrics": ["processed_ratio"], "of": "b", "against": "a"},
                },
            ],
        }
    )


@pytest.fixture
def metrics() -> pd.DataFrame:
    """Ours: b costs 40 % less for certain; it reconfigures and processes about as much."""
    return pd.DataFrame(
        {
            "scenario": "",
            "policy": ["a"] * 4 + ["b"] * 4,
            "seed": [1, 2, 3, 4] * 2,
            "cost": [99.0, 101.0, 100.0, 100.0, 59.0, 61.0, 60.0, 60.0],
            "reconfigurations": [6, 8, 7, 7, 7, 8, 6, 7],
            "processed_ratio": [0.90, 0.92, 0.91, 0.91, 0.91, 0.92, 0.90, 0.91],
        }
    )
