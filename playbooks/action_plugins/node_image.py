"""Action `node_image`: a container image from an archive on the node, imported once per content.

    archive: the archive on the node
    image: the name it is to have
    key: changes with the archive's content
    ctr: the command that speaks to the node's containerd
    wait: false only begins; a later task that waits finds it done

A unit of the node does it: it goes on while other things are done, even when Ansible is interrupted.
"""

from __future__ import annotations

import shlex
from typing import Any

from ansible.plugins.action import ActionBase

STAMPS = "/var/lib/containerd/fogscale"  # a file per image remembers the key of what was imported
NAMESPACE = "--namespace k8s.io"
PATIENCE_S = 600


def stamp_of(image: str) -> str:
    return shlex.quote(f"{STAMPS}/{image.replace('/', '_')}")


def is_there(image: str, key: str, ctr: str) -> str:
    return (
        f'[ "$(cat {stamp_of(image)} 2>/dev/null)" = {shlex.quote(key)} ] && '
        f"{ctr} {NAMESPACE} images list --quiet | "
        f"grep --quiet --line-regexp --fixed-strings {shlex.quote(image)}"
    )


def is_under_way(unit: str) -> str:
    """Also where systemd has the order, but has not come to it: then the unit is still inactive."""
    return (
        f"systemctl show --property=ActiveState,Job {unit} | "
        "grep --quiet --extended-regexp '=activating$|^Job=[1-9]'"
    )


def begin(archive: str, image: str, key: str, unit: str, ctr: str) -> str:
    """Unless it was begun. containerd may just be starting."""
    work = (
        f"timeout 60 sh -c 'until {ctr} {NAMESPACE} version > /dev/null; do sleep 1; done' && "
        f"mkdir -p {STAMPS} && rm -f {stamp_of(image)} && "
        f"{ctr} {NAMESPACE} images import {shlex.quote(archive)} && "
        f"echo {shlex.quote(key)} > {stamp_of(image)}"
    )
    return (
        f"{is_under_way(unit)} || "
        f"systemd-run --quiet --collect --no-block --service-type=oneshot --unit={unit} "
        f"sh -c {shlex.quote(work)}"
    )


def until_done(unit: str) -> str:
    return f"for half_second in $(seq {2 * PATIENCE_S}); do {is_under_way(unit)} || break; sleep 0.5; done"


class ActionModule(ActionBase):
    _VALID_ARGS = frozenset(("archive", "image", "key", "ctr", "wait"))

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        given = {"ctr": "ctr", **self._task.args}
        look = is_there(given["image"], given["key"], given["ctr"])
        if self._low_level_execute_command(look)["rc"] == 0:
            return {**result, "changed": False}
        if self._task.check_mode:
            return {**result, "changed": True}
        unit = f"import-{given['key']}.service"
        steps = begin(given["archive"], given["image"], given["key"], unit, given["ctr"])
        if given.get("wait", True):
            steps = f"{{ {steps}; }} && {{ {until_done(unit)}; }} && {look}"
        if self._low_level_execute_command(steps)["rc"] != 0:
            told = self._low_level_execute_command(
                f"SYSTEMD_COLORS=0 journalctl --unit={unit} --lines=6 --output=cat"
            )
            words = " ".join(told["stdout"].split()) or "no reason given"
            return {**result, "failed": True, "msg": f"{given['archive']} was not imported: {words}"}
        return {**result, "changed": True}
