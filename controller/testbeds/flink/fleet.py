"""The TaskManagers of the fog: one Deployment per node with 0 or 1 of them, so a plan is what runs. Those on
standby are up besides, and run nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from controller.testbeds.flink.http import UnreachableError
from controller.testbeds.flink.kubernetes import Cluster
from controller.testbeds.flink.rest import Flink
from fogscale.errors import FogscaleError

LOOK_EVERY_S = 0.25


class LateError(FogscaleError):
    """Something did not happen in time."""


def until(look: Callable[[], bool], patience_s: float, what: str) -> None:
    """Looks until it is so; a service that does not answer meanwhile may come back."""
    deadline_s = time.monotonic() + patience_s
    while True:
        try:
            if look():
                return
        except UnreachableError:
            pass
        if time.monotonic() > deadline_s:
            raise LateError(f"{what} took longer than {patience_s:.0f} s")
        time.sleep(LOOK_EVERY_S)


class Fleet:
    def __init__(self, cluster: Cluster, flink: Flink, nodes: Collection[str], patience_s: float) -> None:
        self._cluster, self._flink = cluster, flink
        self.nodes = tuple(nodes)
        self._patience_s = patience_s
        self.standby: frozenset[str] = frozenset()  # kept up, whatever else is wanted

    def asked_for(self) -> frozenset[str]:
        return frozenset(node for node in self.nodes if self._cluster.replicas(_deployment(node)))

    def registered(self) -> frozenset[str]:
        """Those that Flink knows."""
        return frozenset(each.id for each in self._flink.taskmanagers()) & frozenset(self.nodes)

    def change(self, wanted: Collection[str]) -> None:
        """Asks Kubernetes for exactly these and those on standby, and does not wait."""
        asked_for, up = self.asked_for(), self.standby.union(wanted)
        for node in self.nodes:
            if (node in up) != (node in asked_for):
                self._cluster.scale(_deployment(node), int(node in up))

    def wait_for(self, wanted: Collection[str]) -> None:
        """Until Flink knows all of these, and nobody else that is not on standby."""
        names = ", ".join(sorted(wanted)) or "none"
        until(
            lambda: self.registered() - self.standby.difference(wanted) == frozenset(wanted),
            self._patience_s,
            f"changing the TaskManagers to {names}",
        )

    def wait_for_all_of(self, wanted: Collection[str]) -> None:
        until(
            lambda: self.registered() >= frozenset(wanted),
            self._patience_s,
            f"starting TaskManagers on {', '.join(sorted(wanted))}",
        )


def _deployment(node: str) -> str:
    return f"flink-taskmanager-{node}"
