#!/usr/bin/python
"""Ansible module: Flink's JobManager, asked with the controller's certificate, from the control machine."""

from __future__ import annotations

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.fog import enter_network, plain_errors

DOCUMENTATION = """
module: flink_jobmanager
short_description: Waits for a TaskManager, and sees that clients without the right certificate are refused
description: Changes nothing.
options:
  address: {type: str, required: true, description: Address of the JobManager's node.}
  port: {type: int, required: true, description: Port of its REST API.}
  ca: {type: path, required: true, description: Whom to trust.}
  certificate: {type: path, required: true, description: The controller's.}
  key: {type: path, required: true, description: Its key.}
  node: {type: str, required: true, description: Node on which a TaskManager must be.}
  patience_s: {type: float, default: 10, description: How long to wait for it.}
  state_folder: {type: str, default: '', description: Of emulated nodes, which have a network of their own.}
  verify: {type: bool, default: false, description: Also try without the right certificate.}
author: [fogscale]
"""


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "address": {"type": "str", "required": True},
            "port": {"type": "int", "required": True},
            "ca": {"type": "path", "required": True},
            "certificate": {"type": "path", "required": True},
            "key": {"type": "path", "required": True, "no_log": False},
            "node": {"type": "str", "required": True},
            "patience_s": {"type": "float", "default": 10.0},
            "state_folder": {"type": "str", "default": ""},
            "verify": {"type": "bool", "default": False},
        },
    )
    with plain_errors(module):
        run(module)


def run(module: AnsibleModule) -> None:
    from fog.services import jobmanager

    given = module.params
    flink = jobmanager.JobManager(
        given["address"], given["port"], Path(given["ca"]), Path(given["certificate"]), Path(given["key"])
    )
    enter_network(given["state_folder"])
    taskmanagers = jobmanager.wait(flink, given["node"], given["patience_s"])
    problems = jobmanager.open_doors(flink) if given["verify"] else []
    if problems:
        module.fail_json(msg="\n".join(problems))
    module.exit_json(changed=False, taskmanagers=taskmanagers)


if __name__ == "__main__":
    main()
