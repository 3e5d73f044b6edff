"""Grafana's dashboards from a short description: titles, units and queries; places and the rest follow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

DATASOURCE = {"type": "prometheus", "uid": "fog"}
COLUMNS, HEIGHT = 24, 8  # Grafana's grid; the height of a panel in it
SCHEMA_VERSION = 39


def dashboard(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """`wanted` has title, uid, refresh and panels: title, unit and queries, a legend → PromQL each."""
    return {
        "title": wanted["title"],
        "uid": wanted["uid"],
        "tags": ["fogscale"],
        "editable": False,
        "refresh": wanted["refresh"],
        "time": {"from": "now-15m", "to": "now"},
        "timezone": "browser",
        "schemaVersion": SCHEMA_VERSION,
        "panels": [_panel(number, panel) for number, panel in enumerate(wanted["panels"])],
    }


def _panel(number: int, wanted: Mapping[str, Any]) -> dict[str, Any]:
    width = COLUMNS // 2
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": wanted["title"],
        "description": wanted.get("description", ""),
        "datasource": DATASOURCE,
        "gridPos": {
            "x": number % 2 * width,
            "y": number // 2 * HEIGHT,
            "w": width,
            "h": HEIGHT,
        },
        "fieldConfig": {"defaults": {"unit": wanted["unit"], "min": 0}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "targets": [
            {
                "refId": chr(ord("A") + position),
                "datasource": DATASOURCE,
                "expr": query,
                "legendFormat": legend,
            }
            for position, (legend, query) in enumerate(wanted["queries"].items())
        ],
    }


def queries(wanted: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Panel and PromQL of each query."""
    for panel in wanted["panels"]:
        for query in panel["queries"].values():
            yield panel["title"], query
