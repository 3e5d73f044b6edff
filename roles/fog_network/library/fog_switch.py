#!/usr/bin/python
"""Ansible module: the round trips of the user-space switch between emulated nodes."""

from __future__ import annotations

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.fog import plain_errors

DOCUMENTATION = """
module: fog_switch
short_description: Sets the round trips of the user-space switch between emulated nodes
description: They apply at once, also in mid-experiment, and no frame overtakes another.
options:
  state_folder: {type: path, required: true, description: State folder of the emulated nodes.}
  nodes: {type: list, elements: str, required: true, description: Names of the nodes in use.}
  known_nodes: {type: list, elements: str, default: [], description: Further nodes the matrix may speak of.}
  rtt_ms: {type: dict, required: true, description: Round trips in ms, one row per node.}
  rtt_max_ms: {type: float, default: 300, description: The longest round trip allowed.}
author: [fogscale]
"""


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state_folder": {"type": "path", "required": True},
            "nodes": {"type": "list", "elements": "str", "required": True},
            "known_nodes": {"type": "list", "elements": "str", "default": []},
            "rtt_ms": {"type": "dict", "required": True},
            "rtt_max_ms": {"type": "float", "default": 300.0},
        },
        supports_check_mode=True,
    )
    with plain_errors(module):
        run(module)


def run(module: AnsibleModule) -> None:
    from fog.emulation.state import State
    from fog.network.latency import set_round_trips
    from fog.network.matrix import rtt_matrix

    given = module.params
    matrix = rtt_matrix(given["rtt_ms"], given["nodes"], given["known_nodes"], given["rtt_max_ms"])
    changed = set_round_trips(State(Path(given["state_folder"])), matrix, dry_run=module.check_mode)
    module.exit_json(changed=changed)


if __name__ == "__main__":
    main()
