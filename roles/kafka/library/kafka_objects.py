#!/usr/bin/python
"""Ansible module: users, rights and topics of the fog's Kafka. Runs on the control machine."""

from __future__ import annotations

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = """
module: kafka_objects
short_description: Users, rights and topics of the fog's Kafka
description:
  - Waits until the broker answers, then makes what is missing; or, with I(verify), tries whether it works and
    changes nothing.
options:
  bootstrap: {type: str, required: true, description: Address and port of the broker.}
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
            "passwords": {"type": "dict", "required": True, "no_log": True},
            "topics": {"type": "list", "elements": "str", "required": True},
            "partitions": {"type": "int", "required": True},
            "state_folder": {"type": "str", "default": ""},
            "verify": {"type": "bool", "default": False},
        },
    )
    try:
        from controller.errors import FogscaleError
        from controller.testbeds.fog import broker
        from controller.testbeds.fog.namespaces import set_namespace
        from controller.testbeds.fog.state import State
    except ImportError as error:
        module.fail_json(
            msg=f"fogscale is not installed beside Ansible ({error}): 'make setup', then use .venv/bin"
        )
    given = module.params
    kafka = broker.Broker(given["bootstrap"], given["passwords"])
    try:
        if given["state_folder"]:
            set_namespace(State(Path(given["state_folder"])).network())
        if given["verify"]:
            found = broker.problems(kafka, given["topics"], given["partitions"])
            if found:
                module.fail_json(msg="\n".join(found), problems=found)
            module.exit_json(changed=False)
        changes = broker.ensure(kafka, given["topics"], given["partitions"])
    except FogscaleError as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=bool(changes), changes=changes)


if __name__ == "__main__":
    main()
