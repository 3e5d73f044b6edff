#!/usr/bin/python
"""Ansible module: users, rights and topics of the fog's Kafka. Runs on the control machine."""

from __future__ import annotations

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.fog import enter_network, exit_with_problems, plain_errors

DOCUMENTATION = """
module: kafka_objects
short_description: Users, rights and topics of the fog's Kafka
description:
  - Waits until the broker answers, then makes what is missing; or, with I(verify), tries whether it works and
    changes nothing.
options:
  bootstrap: {type: str, required: true, description: Address and port of the broker.}
  ca: {type: str, default: '', description: Certificate to trust; empty where the broker speaks no TLS.}
  passwords: {type: dict, required: true, description: 'User to password: admin, flink and producer.'}
  topics: {type: list, elements: str, required: true, description: Topics that must exist.}
  partitions: {type: int, required: true, description: How many partitions each has at least.}
  state_folder: {type: str, default: '', description: Of emulated nodes, which have a network of their own.}
  verify: {type: bool, default: false, description: Only try what is there.}
author: [fogscale]
"""


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "bootstrap": {"type": "str", "required": True},
            "ca": {"type": "str", "default": ""},
            "passwords": {"type": "dict", "required": True, "no_log": True},
            "topics": {"type": "list", "elements": "str", "required": True},
            "partitions": {"type": "int", "required": True},
            "state_folder": {"type": "str", "default": ""},
            "verify": {"type": "bool", "default": False},
        },
    )
    with plain_errors(module):
        run(module)


def run(module: AnsibleModule) -> None:
    from fog.services import broker

    given = module.params
    kafka = broker.Broker(given["bootstrap"], given["passwords"], given["ca"])
    enter_network(given["state_folder"])
    if given["verify"]:
        exit_with_problems(module, broker.problems(kafka, given["topics"], given["partitions"]))
    changes = broker.ensure(kafka, given["topics"], given["partitions"])
    module.exit_json(changed=bool(changes), changes=changes)


if __name__ == "__main__":
    main()
