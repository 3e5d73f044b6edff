#!/usr/bin/python
"""Ansible module: the root file system of emulated nodes, from Debian's packages, once per definition."""

from __future__ import annotations

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.fog import plain_errors

DOCUMENTATION = """
module: emulated_rootfs
short_description: Builds the root file system of emulated nodes, unless it is in the cache
description: The folder is named after what it holds, so a changed list of packages makes a new one.
options:
  cache_folder: {type: path, required: true, description: Where it is kept.}
  suite: {type: str, required: true, description: Debian's release.}
  packages: {type: list, elements: str, required: true, description: What is installed.}
  disabled_units: {type: list, elements: str, default: [], description: Units that roles start.}
  mirror: {type: str, default: '', description: Debian mirror; empty for the default one.}
author: [fogscale]
"""


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "cache_folder": {"type": "path", "required": True},
            "suite": {"type": "str", "required": True},
            "packages": {"type": "list", "elements": "str", "required": True},
            "disabled_units": {"type": "list", "elements": "str", "default": []},
            "mirror": {"type": "str", "default": ""},
        },
        supports_check_mode=True,
    )
    with plain_errors(module):
        run(module)


def run(module: AnsibleModule) -> None:
    from fog.artifacts.rootfs import Recipe, ensure, packages_of

    given = module.params
    recipe = Recipe(
        given["suite"], packages_of(given["packages"]), tuple(given["disabled_units"]), given["mirror"]
    )
    if module.check_mode:
        folder = recipe.folder(Path(given["cache_folder"]))
        module.exit_json(changed=not folder.is_dir(), folder=str(folder))
    folder, built = ensure(recipe, Path(given["cache_folder"]))
    module.exit_json(changed=built, folder=str(folder))


if __name__ == "__main__":
    main()
