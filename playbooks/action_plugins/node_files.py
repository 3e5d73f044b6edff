"""Action `node_files`: asks the node for sums, modes and owners, and runs the module only where one differs:
the question takes a fifth of the module's time."""

from __future__ import annotations

import base64
import hashlib
import os
import pwd
import shlex
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ansible.plugins.action import ActionBase


def whole(value: str | Mapping[str, Any], owner: str) -> dict[str, str]:
    """With what a file is unless something else is said; a plain text stands for its content alone."""
    given = {"content": value} if isinstance(value, str) else value
    return {"mode": "0644", "owner": owner, "validate": "", "base64": "", **given}


def data(file: Mapping[str, str]) -> bytes:
    return base64.b64decode(file["base64"]) if file["base64"] else file["content"].encode()


def question(files: Mapping[str, Any], absent: Sequence[str]) -> str:
    paths, unwanted = (" ".join(map(shlex.quote, names)) for names in (files, absent))
    return (
        f"stat --format='%a %U %n' -- {paths} 2>/dev/null; sha256sum -- {paths} 2>/dev/null </dev/null; "
        f'for path in {unwanted}; do [ ! -e "$path" ] || echo "unwanted $path"; done; true'
    )


def answer(files: Mapping[str, Mapping[str, str]]) -> set[str]:
    """The lines that a node prints where every file is as wanted."""
    sums = {f"{hashlib.sha256(data(file)).hexdigest()}  {path}" for path, file in files.items()}
    return sums | {f"{int(file['mode'], 8):o} {file['owner']} {path}" for path, file in files.items()}


def is_as_wanted(files: Mapping[str, Mapping[str, str]], lines: Collection[str]) -> bool:
    return answer(files) <= set(lines) and not any(line.startswith("unwanted ") for line in lines)


class ActionModule(ActionBase):
    _VALID_ARGS = frozenset(("files", "absent"))

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        # On the control machine nobody needs to be root.
        owner = pwd.getpwuid(os.geteuid()).pw_name if self._connection.transport == "local" else "root"
        files = {path: whole(value, owner) for path, value in self._task.args["files"].items()}
        absent = self._task.args.get("absent") or []
        told = self._low_level_execute_command(question(files, absent))
        if is_as_wanted(files, [line.rstrip() for line in told["stdout_lines"]]):
            return {**result, "changed": False, "paths": []}
        given = {"files": files, "absent": absent}
        return {**result, **self._execute_module("node_files", given, task_vars=task_vars)}
