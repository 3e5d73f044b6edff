"""Action `node_units`: systemd units of a node that run, are started anew or read their settings again. All
in one go and without a module, which would take half a second of every node's processor.

    units: those that start with the node
    parts: those that only run because a unit wants them
    state: started (unless they run), restarted or reloaded
    settings: what they read when they start; started anew if one of these files has changed since, as where a
        run was interrupted before its handlers
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


def question(names: list[str], files: list[str]) -> str:
    """A block about each unit, then one about the newest of the files."""
    units, paths = (" ".join(map(shlex.quote, each)) for each in (names, files))
    newest = f"stat --format=%Y -- {paths} 2>/dev/null | sort -n | tail -n 1" if files else "echo 0"
    return (
        "systemctl show --timestamp=unix "
        "--property=ActiveState,SubState,UnitFileState,NeedDaemonReload,StateChangeTimestamp "
        f'-- {units}; echo; echo "Newest=$({newest})"'
    )


def is_stale(seen: dict[str, str], newest_s: str) -> bool:
    """Whether a file has changed since the unit was started or read its settings again."""
    return int(newest_s or 0) > int(seen.get("StateChangeTimestamp", "").lstrip("@") or 0)


def order(verb: str, units: list[str], parts: list[str], wait: bool) -> str:
    names, enabled = (" ".join(map(shlex.quote, each)) for each in (units + parts, units))
    enable = f"systemctl enable --quiet -- {enabled} && " if units else ""
    block = "" if wait else " --no-block"
    # With sudo there is a terminal, which knows no standard error.
    work = f"systemctl daemon-reload && {enable}systemctl {verb}{block} -- {names}"
    return f"export SYSTEMD_COLORS=0; {{ {work}; }} 2>&1"


class ActionModule(ActionBase):
    _VALID_ARGS = frozenset(("units", "parts", "state", "wait", "settings"))

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        given = {"parts": [], "state": "started", "wait": True, "settings": [], **self._task.args}
        units, parts = list(given["units"]), list(given["parts"])
        if given["state"] not in VERBS:
            return {
                **result,
                "failed": True,
                "msg": f"state is {given['state']}: give one of {', '.join(VERBS)}",
            }
        verb = VERBS[given["state"]]
        if verb == "start":
            fine, stale = self._seen(units, parts, list(given["settings"]))
            if fine and not stale:
                return {**result, "changed": False}
            verb = "restart" if stale else verb
        if self._task.check_mode:
            return {**result, "changed": True}
        done = self._low_level_execute_command(order(verb, units, parts, given["wait"]))
        if done["rc"] != 0:
            words = " ".join(done["stdout"].split())
            return {**result, "failed": True, "msg": f"{', '.join(units + parts)}: {words}"}
        return {**result, "changed": True}

    def _seen(self, units: list[str], parts: list[str], files: list[str]) -> tuple[bool, bool]:
        """Whether all run as they should, and whether one runs with settings of before."""
        names = units + parts
        told = self._low_level_execute_command(question(names, files))["stdout"]
        *seen, files_seen = settings(told)
        if len(seen) != len(names):
            return False, False
        fine = all(is_fine(each, name in units) for each, name in zip(seen, names, strict=True))
        return fine, any(is_stale(each, files_seen.get("Newest", "")) for each in seen)
