#!/usr/bin/python
"""Ansible module: many small files of a node in one call; a call per file would take a second each."""

from __future__ import annotations

import base64
import os
import shutil
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = """
module: node_files
short_description: Writes many small files, and removes others, in one call
description: Files belong to root unless an owner is named; folders are made as needed.
options:
  files:
    type: dict
    required: true
    description: >-
      Path to content, or to {content, base64, mode, owner, validate}; base64 is the content of a file that is
      no text, validate a command that must accept the new file (%s) before it takes the place of the old one.
  absent: {type: list, elements: path, default: [], description: Files that must not be there.}
author: [fogscale]
"""


def data(wanted: dict[str, str]) -> bytes:
    return base64.b64decode(wanted["base64"]) if wanted["base64"] else wanted["content"].encode()


def is_as_wanted(path: Path, wanted: dict[str, str]) -> bool:
    try:
        return (
            path.read_bytes() == data(wanted)
            and path.stat().st_mode & 0o7777 == int(wanted["mode"], 8)
            and path.owner() == wanted["owner"]
        )
    except (FileNotFoundError, KeyError):
        return False


def write(module: AnsibleModule, path: Path, wanted: dict[str, str]) -> None:
    """Whole or not at all, and never readable by others in between."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.new")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data(wanted))
    if wanted["validate"]:
        refuse_unless_valid(module, path, draft, wanted["validate"])
    if draft.owner() != wanted["owner"]:
        shutil.chown(draft, wanted["owner"], wanted["owner"])
    draft.chmod(int(wanted["mode"], 8))
    draft.replace(path)


def refuse_unless_valid(module: AnsibleModule, path: Path, draft: Path, command: str) -> None:
    code, output, errors = module.run_command(command % draft)
    if code != 0:
        draft.unlink()
        words = (errors or output).strip()
        module.fail_json(msg=f"{path} stays as it was, since '{command % path}' says: {words}")


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "files": {"type": "dict", "required": True},
            "absent": {"type": "list", "elements": "path", "default": []},
        },
        supports_check_mode=True,
    )
    changed = []
    files: dict[str, dict[str, Any]] = module.params["files"]  # whole: the action of the same name saw to it
    for name, wanted in files.items():
        if not is_as_wanted(Path(name), wanted):
            changed.append(name)
            if not module.check_mode:
                write(module, Path(name), wanted)
    for name in module.params["absent"]:
        if Path(name).exists():
            changed.append(name)
            if not module.check_mode:
                Path(name).unlink()
    module.exit_json(changed=bool(changed), paths=changed)


if __name__ == "__main__":
    main()
