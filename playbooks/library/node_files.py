#!/usr/bin/python
"""Ansible module: many small files of a node in one call; a call per file would take a second each."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = """
module: node_files
short_description: Writes many small files, and removes others, in one call
description: Files belong to root unless an owner is named; folders are made as needed.
options:
  files: {type: dict, required: true, description: 'Path to content, or to {content, mode, owner}.'}
  absent: {type: list, elements: path, default: [], description: Files that must not be there.}
author: [fogscale]
"""


def wanted(value: Any) -> tuple[bytes, int, str]:
    if isinstance(value, str):
        return value.encode(), 0o644, "root"
    return value["content"].encode(), int(str(value.get("mode", "0644")), 8), value.get("owner", "root")


def is_as_wanted(path: Path, content: bytes, mode: int, owner: str) -> bool:
    try:
        return path.read_bytes() == content and path.stat().st_mode & 0o7777 == mode and path.owner() == owner
    except (FileNotFoundError, KeyError):
        return False


def write(path: Path, content: bytes, mode: int, owner: str) -> None:
    """Whole or not at all, and never readable by others in between."""
    import shutil

    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.new")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
    if owner != "root":
        shutil.chown(draft, owner, owner)
    draft.chmod(mode)
    draft.replace(path)


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "files": {"type": "dict", "required": True},
            "absent": {"type": "list", "elements": "path", "default": []},
        },
        supports_check_mode=True,
    )
    changed = []
    for name, value in module.params["files"].items():
        content, mode, owner = wanted(value)
        if not is_as_wanted(Path(name), content, mode, owner):
            changed.append(name)
            if not module.check_mode:
                write(Path(name), content, mode, owner)
    for name in module.params["absent"]:
        if Path(name).exists():
            changed.append(name)
            if not module.check_mode:
                Path(name).unlink()
    module.exit_json(changed=bool(changed), paths=changed)


if __name__ == "__main__":
    main()
