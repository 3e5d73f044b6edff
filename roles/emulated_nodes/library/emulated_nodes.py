#!/usr/bin/python
"""Ansible module: emulated nodes of this machine, up or gone."""

from __future__ import annotations

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.fog import plain_errors

DOCUMENTATION = """
module: emulated_nodes
short_description: Brings emulated nodes of this machine up, or removes them
description:
  - Each node boots a systemd of its own in namespaces and cgroups of its own. One supervisor holds them
    all, and everything dies with it. A half-built state is finished.
options:
  state_folder: {type: path, required: true, description: Where everything of this testbed lies.}
  state: {type: str, choices: [present, absent], default: present, description: Up, or gone.}
  nodes: {type: list, elements: dict, default: [], description: 'name, address, cpus and memory_mb of each.'}
  rootfs: {type: path, description: What all nodes have in common.}
  network: {type: str, default: 10.77.0.0/24, description: Their private network.}
  fabric: {type: str, choices: [switch, bridge], default: switch, description: What joins them.}
  own_folders: {type: list, elements: str, default: [], description: Folders not on the overlay.}
  shared_folders: {type: dict, default: {}, description: Node's folder to the machine's.}
author: [fogscale]
"""


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state_folder": {"type": "path", "required": True},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "nodes": {"type": "list", "elements": "dict", "default": []},
            "rootfs": {"type": "path"},
            "network": {"type": "str", "default": "10.77.0.0/24"},
            "fabric": {"type": "str", "choices": ["switch", "bridge"], "default": "switch"},
            "own_folders": {"type": "list", "elements": "str", "default": []},
            "shared_folders": {"type": "dict", "default": {}},
        },
        required_if=[("state", "present", ("rootfs", "nodes"))],
    )
    with plain_errors(module):
        run(module)


def run(module: AnsibleModule) -> None:
    from fog.emulation.definition import Definition, EmulatedNode
    from fog.emulation.nodes import bring_up, take_down
    from fog.emulation.state import State

    given = module.params
    state = State(Path(given["state_folder"]))
    if given["state"] == "absent":
        module.exit_json(changed=take_down(state))
    nodes = tuple(
        EmulatedNode(str(node["name"]), str(node["address"]), float(node["cpus"]), int(node["memory_mb"]))
        for node in given["nodes"]
    )
    definition = Definition(
        nodes, given["rootfs"], given["network"], given["fabric"], tuple(given["own_folders"]),
        given["shared_folders"],
    )  # fmt: skip
    outcome = bring_up(definition, state)
    module.exit_json(
        changed=outcome.changed, started=outcome.started, stopped=outcome.stopped, limited=outcome.limited
    )


if __name__ == "__main__":
    main()
