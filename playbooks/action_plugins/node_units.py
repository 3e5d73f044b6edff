"""Action `node_units`: systemd units of a node that run, are started anew or read their settings again. All
in one go and without a module, which would take half a second of every node's processor.

    units: those that start with the node
    parts: those that only run because a unit wants them
    state: started (unless they run), restarted or reloaded
    wait: whether to wait until they are up
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

from ansible.plugins.action import ActionBase

RUNNING = ("active", "activating", "reloading")
DYING = ("auto-restart", "auto-restart-queued")  # systemd calls it activating while it waits to try again
VERBS = {"started": "start", "restarted": "restart", "reloaded": "reload-or-restart"}


def settings(told: str) -> Iterator[dict[str, str]]:
    """What `systemctl show` says of each unit, in the order asked for."""
    for block in told.replace("\r", "").strip().split("\n\n"):
        yield dict(line.split("=", 1) for line in block.splitlines() if "=" in line)


def is_fine(seen: dict[str, str], starts_with_node: bool) -> bool:
    enabled = seen.get("UnitFileState", "").startswith("enabled") or not starts_with_node
    runs = seen.get("ActiveState") in RUNNING and seen.get("SubState") not in DYING
    return enabled and runs and seen.get("NeedDaemonReload") == "no"


def order(verb: str, units: list[str], parts: list[str], wait: bool) -> str:
    names, enabled = (" ".join(map(shlex.quote, each)) for each in (units + parts, units))
    enable = f"systemctl enable --quiet -- {enabled} && " if units else ""
    block = "" if wait else " --no-block"
    # With sudo there is a terminal, which knows no standard error.
    work = f"systemctl daemon-reload && {enable}systemctl {verb}{block} -- {names}"
    return f"export SYSTEMD_COLORS=0; {{ {work}; }} 2>&1"


class ActionModule(ActionBase):
    _VALID_ARGS = frozenset(("units", "parts", "state", "wait"))

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        given = {"parts": [], "state": "started", "wait": True, **self._task.args}
        units, parts = list(given["units"]), list(given["parts"])
        if given["state"] not in VERBS:
            return {
                **result,
                "failed": True,
                "msg": f"state is {given['state']}: give one of {', '.join(VERBS)}",
            }
        if given["state"] == "started" and self._all_fine(units, parts):
            return {**result, "changed": False}
        if self._task.check_mode:
            return {**result, "changed": True}
        done = self._low_level_execute_command(order(VERBS[given["state"]], units, parts, given["wait"]))
        if done["rc"] != 0:
            words = " ".join(done["stdout"].split())
            return {**result, "failed": True, "msg": f"{', '.join(units + parts)}: {words}"}
        return {**result, "changed": True}

    def _all_fine(self, units: list[str], parts: list[str]) -> bool:
        names = " ".join(map(shlex.quote, units + parts))
        told = self._low_level_execute_command(
            f"systemctl show --property=ActiveState,SubState,UnitFileState,NeedDaemonReload -- {names}"
        )
        seen = list(settings(told["stdout"]))
        return len(seen) == len(units + parts) and all(
            is_fine(each, name in units) for each, name in zip(seen, units + parts, strict=True)
        )
