"""testbed.json: what the playbooks built, for everything that comes after them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from controller.network import RttMatrix
from fog import values as checks
from fog.network.matrix import HEADER, rtt_matrix
from fogscale.documents import read_json
from fogscale.errors import FogscaleError


class DamagedError(FogscaleError):
    """What is there was not written by a playbook."""


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
    path = folder / "testbed.json"
    try:
        return _checked(read_json(path))
    except FileNotFoundError:
        return None
    except PermissionError:
        raise FogscaleError(f"{folder} belongs to another user: run the same command with sudo") from None
    except NotADirectoryError:
        raise FogscaleError(f"{folder} lies below a file: set FOGSCALE_STATE to a folder") from None
    except (OSError, FogscaleError, KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise DamagedError(
            f"{path} is damaged ({error!r:.100}): build the testbed again, or take it down"
        ) from None


def _checked(values: Any) -> Manifest:
    """Each value as what it is, since commands are made of them. Raises whatever comes of it where somebody
    has edited the file."""
    found = Manifest(
        str(values["testbed"]),
        _boolean(values["emulated"]),
        str(values["backend"]),
        tuple(_node(node) for node in values["nodes"]),
        _mapping(values["rtt_ms"]),
        float(values["rtt_max_ms"]),
        {str(name): _mapping(told) for name, told in values.get("services", {}).items()},
    )
    _ = found.rtt_ms  # raises where it is no matrix of these nodes
    return found


def _node(told: Mapping[str, Any]) -> ManifestNode:
    node = ManifestNode(**{key: told[key] for key in told if key in ManifestNode.__dataclass_fields__})
    checks.node_name(node.name)
    checks.address(node.address)
    checks.user_name(node.user)
    checks.port(node.port)
    for file in (node.key, node.known_hosts):
        if file is not None and not isinstance(file, str):
            raise TypeError(f"{file!r:.60} is no file")
    for number in (node.cpus, node.memory_mb):
        if number is not None and not checks.in_range(number, 0, checks.MOST_MEMORY_MB):
            raise ValueError(f"{number} CPUs or MB")
    return node


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{value!r:.60} is neither true nor false")
    return value


def _mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{value!r:.60} is no mapping")
    return value
