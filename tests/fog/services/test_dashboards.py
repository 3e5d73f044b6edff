"""A dashboard from its short description, by hand."""

from __future__ import annotations

from fog.services.dashboards import dashboard, queries

WANTED = {
    "title": "Fog",
    "uid": "fog",
    "refresh": "5s",
    "panels": [
        {"title": "CPU", "unit": "percentunit", "queries": {"{{node}}": "node:cpu_ratio"}},
        {"title": "Lag", "unit": "short", "queries": {"job": "job:lag_records", "topic": "topic:records"}},
        {"title": "Up", "unit": "none", "queries": {"{{job}}": "up"}},
    ],
}


def test_panels_stand_two_in_a_row() -> None:
    places = [panel["gridPos"] for panel in dashboard(WANTED)["panels"]]
    assert [(place["x"], place["y"]) for place in places] == [(0, 0), (12, 0), (0, 8)]


def test_every_query_becomes_a_target_with_its_legend() -> None:
    lag = dashboard(WANTED)["panels"][1]
    assert [(each["refId"], each["legendFormat"], each["expr"]) for each in lag["targets"]] == [
        ("A", "job", "job:lag_records"),
        ("B", "topic", "topic:records"),
    ]


def test_queries_are_listed_with_their_panels() -> None:
    assert list(queries(WANTED)) == [
        ("CPU", "node:cpu_ratio"),
        ("Lag", "job:lag_records"),
        ("Lag", "topic:records"),
        ("Up", "up"),
    ]
