#!/usr/bin/python
"""Ansible module: a container image from an archive on the node, imported once per content."""

from __future__ import annotations

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = """
module: node_image
short_description: Imports an image archive into containerd, once per content
options:
  archive: {type: path, required: true, description: The archive on the node.}
  image: {type: str, required: true, description: The name it is to have.}
  key: {type: str, required: true, description: Changes with the archive's content.}
  program: {type: list, elements: str, default: [ctr], description: containerd's client.}
  stamps: {type: path, default: /var/lib/containerd/fogscale, description: Remembers what was imported.}
author: [fogscale]
"""


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "archive": {"type": "path", "required": True},
            "image": {"type": "str", "required": True},
            "key": {"type": "str", "required": True},
            "program": {"type": "list", "elements": "str", "default": ["ctr"]},
            "stamps": {"type": "path", "default": "/var/lib/containerd/fogscale"},
        },
        supports_check_mode=True,
    )
    given = module.params
    containerd = [*given["program"], "--namespace", "k8s.io"]
    stamp = Path(given["stamps"]) / given["key"]
    _, known, _ = module.run_command([*containerd, "images", "list", "--quiet"], check_rc=True)
    if stamp.exists() and given["image"] in known.splitlines():
        module.exit_json(changed=False)
    if not module.check_mode:
        module.run_command([*containerd, "images", "import", given["archive"]], check_rc=True)
        stamp.parent.mkdir(parents=True, exist_ok=True)
        stamp.touch()
    module.exit_json(changed=True)


if __name__ == "__main__":
    main()
