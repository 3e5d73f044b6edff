#!/usr/bin/python
"""Ansible module: stops with one line per thing to change, before any host is touched."""

from __future__ import annotations

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.fog import exit_with_problems, plain_errors

DOCUMENTATION = """
module: fog_preflight
short_description: Checks inventory and machine before any host is touched
description:
  - Judges nodes, addresses, round trips and the backend of the network; for emulated nodes also this machine,
    for real ones whether they answer. Changes nothing.
options:
  emulated: {type: bool, required: true, description: Whether the nodes are emulated on this machine.}
  nodes: {type: list, elements: dict, required: true, description: 'name, address, port, user and interface.'}
  known_nodes: {type: list, elements: str, default: [], description: Further nodes the matrix may speak of.}
  rtt_ms: {type: raw, required: true, description: The matrix of round trips in ms.}
  rtt_max_ms: {type: float, default: 300, description: The longest round trip allowed.}
  backend: {type: str, required: true, description: How latency is made (netem or switch).}
  network: {type: str, default: 10.77.0.0/24, description: The network of emulated nodes.}
  cluster: {type: str, default: kubernetes_upstream, description: Either k3s or kubernetes_upstream.}
  artifacts: {type: list, elements: str, default: [], description: What the nodes run besides packages.}
  kafka: {type: str, default: '', description: 'Address and port of a Kafka that is given.'}
  state_folder: {type: path, required: true, description: Where the testbed keeps its things.}
  cache_folder: {type: path, required: true, description: Where what is built once is kept.}
author: [fogscale]
"""


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "emulated": {"type": "bool", "required": True},
            "nodes": {"type": "list", "elements": "dict", "required": True},
            "known_nodes": {"type": "list", "elements": "str", "default": []},
            "rtt_ms": {"type": "raw", "required": True},
            "rtt_max_ms": {"type": "float", "default": 300.0},
            "backend": {"type": "str", "required": True},
            "network": {"type": "str", "default": "10.77.0.0/24"},
            "cluster": {"type": "str", "default": "kubernetes_upstream"},
            "artifacts": {"type": "list", "elements": "str", "default": []},
            "kafka": {"type": "str", "default": ""},
            "state_folder": {"type": "path", "required": True},
            "cache_folder": {"type": "path", "required": True},
        },
        supports_check_mode=True,
    )
    with plain_errors(module):
        run(module)


def run(module: AnsibleModule) -> None:
    from fog.artifacts.store import store
    from fog.checks import preflight
    from fog.emulation.state import State
    from fog.folders import checkout

    given = module.params
    state_folder, cache_folder = given["state_folder"], given["cache_folder"]
    wanted = preflight.wanted_of(given, given["emulated"])
    problems = preflight.inventory_problems(wanted)
    if given["emulated"]:
        shelf = store(checkout(), Path(cache_folder))
        standing = preflight.standing(State(Path(state_folder)), shelf, given["artifacts"])
        written = [state_folder, *([] if standing.is_cached else [cache_folder])]
        machine = preflight.this_machine(written)
        problems += preflight.machine_problems(wanted, machine, standing)
    elif not problems:
        problems = preflight.reachability_problems(wanted.nodes, preflight.answers_ssh)
    exit_with_problems(module, problems)


if __name__ == "__main__":
    main()
