#!/usr/bin/python
"""Ansible module: what the testbed is made of, from the cache, built or fetched where it is missing."""

from __future__ import annotations

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.fog import plain_errors

DOCUMENTATION = """
module: fog_artifacts
short_description: Sees to it that artifacts are in the cache
description: Each lies in a folder named after its content, so only what is missing is built or fetched.
options:
  names: {type: list, elements: str, required: true, description: Which of playbooks/vars/artifacts.yml.}
  cache_folder: {type: path, required: true, description: Where they are kept.}
  architecture: {type: str, description: 'Of the nodes, amd64 or arm64; by default that of this machine.'}
author: [fogscale]
"""
RETURN = """
folders: {type: dict, returned: always, description: 'Name to folder, of those that were asked for.'}
made: {type: list, elements: str, returned: always, description: 'What was missing, parts first.'}
steps: {type: list, elements: dict, returned: always, description: 'The same, and how long each takes.'}
"""


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "names": {"type": "list", "elements": "str", "required": True},
            "cache_folder": {"type": "path", "required": True},
            "architecture": {"type": "str"},
        },
        supports_check_mode=True,
    )
    with plain_errors(module):
        run(module)


def run(module: AnsibleModule) -> None:
    from fog.artifacts.store import collect, missing, store
    from fog.folders import checkout

    given = module.params
    shelf = store(checkout(), Path(given["cache_folder"]), given["architecture"])
    todo = missing(shelf, given["names"])
    if module.check_mode:
        folders = {name: shelf.folder(name) for name in given["names"]}
        made = [work.name for work in todo]
    else:
        folders, made = collect(shelf, given["names"])
    module.exit_json(
        changed=bool(made),
        folders={name: str(folder) for name, folder in folders.items()},
        made=made,
        steps=[{"name": work.name, "text": str(work)} for work in todo],
    )


if __name__ == "__main__":
    main()
