"""testbed.json: what the playbooks built, for everything that comes after them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from controller.network import RttMatrix
from fog.network.matrix import HEADER, rtt_matrix
from fogscale.errors import FogscaleError


@dataclass(frozen=True)
class ManifestNode:
    name: str
    group: str
    address: str
    user: str
    key: str | None = None
    known_hosts: str | None = None
    cpus: float | None = None
    memory_mb: int | None = None
    port: int = 22  # of its sshd


@dataclass(frozen=True)
class Manifest:
    testbed: str
    emulated: bool
    backend: str
    nodes: tuple[ManifestNode, ...]
    rows_ms: Mapping[str, Any]
    rtt_max_ms: float
    services: Mapping[str, Mapping[str, Any]] = field(
        default_factory=dict
    )  # name → node, port, version (url, ca, …)

    @property
    def rtt_ms(self) -> RttMatrix:
        return self.matrix(self.rows_ms, self.rtt_max_ms)

    def matrix(self, rows: Any, most_ms: float) -> RttMatrix:
        """Checks another matrix for the same nodes."""
        names = [node.name for node in self.nodes]
        return rtt_matrix(rows, names, known=self.rows_ms[HEADER], most_ms=most_ms)

    @property
    def addresses(self) -> dict[str, str]:
        return {node.name: node.address for node in self.nodes}

    @property
    def fog_nodes(self) -> int:
        return sum(node.group == "fog" for node in self.nodes)


def read(folder: Path, testbed: str) -> Manifest:
    found = find(folder)
    if found is None:
        raise FogscaleError(f"the testbed '{testbed}' is not built: fogscale testbed up --testbed {testbed}")
    return found


def find(folder: Path) -> Manifest | None:
    try:
        values = json.loads((folder / "testbed.json").read_text())
    except FileNotFoundError:
        return None
    except PermissionError:
        raise FogscaleError(f"{folder} belongs to another user: run the same command with sudo") from None
    except (OSError, ValueError, RecursionError) as error:
        raise _damaged(folder, error) from None
    known = set(ManifestNode.__dataclass_fields__)
    try:
        return Manifest(
            values["testbed"],
            values["emulated"],
            values["backend"],
            tuple(
                ManifestNode(**{key: node[key] for key in node if key in known}) for node in values["nodes"]
            ),
            values["rtt_ms"],
            float(values["rtt_max_ms"]),
            values.get("services", {}),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _damaged(folder, error) from None


def _damaged(folder: Path, error: Exception) -> FogscaleError:
    return FogscaleError(
        f"{folder / 'testbed.json'} is damaged ({error!r:.100}): build the testbed again, or take it down"
    )
