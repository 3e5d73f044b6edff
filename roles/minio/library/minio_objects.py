#!/usr/bin/python
"""Ansible module: the bucket of the fog's MinIO and Flink's key to it. Runs on the control machine."""

from __future__ import annotations

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.fog import enter_network, exit_with_problems, plain_errors

DOCUMENTATION = """
module: minio_objects
short_description: The bucket of the fog's MinIO and a key that opens only that
description:
  - Waits until MinIO answers, then makes what is missing; or, with I(verify), tries whether it works and
    changes nothing.
options:
  endpoint: {type: str, required: true, description: Address and port of MinIO.}
  ca: {type: str, default: '', description: Certificate to trust; empty where MinIO speaks no TLS.}
  bucket: {type: str, required: true, description: The bucket.}
  root_access: {type: str, required: true, description: Name of its root.}
  root_secret: {type: str, required: true, description: Secret of its root.}
  flink_access: {type: str, required: true, description: Name of Flink's key.}
  flink_secret: {type: str, required: true, description: Secret of Flink's key.}
  state_folder: {type: str, default: '', description: Of emulated nodes, which have a network of their own.}
  verify: {type: bool, default: false, description: Only try what is there.}
author: [fogscale]
"""


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "endpoint": {"type": "str", "required": True},
            "ca": {"type": "str", "default": ""},
            "bucket": {"type": "str", "required": True},
            "root_access": {"type": "str", "required": True, "no_log": True},
            "root_secret": {"type": "str", "required": True, "no_log": True},
            "flink_access": {"type": "str", "required": True, "no_log": True},
            "flink_secret": {"type": "str", "required": True, "no_log": True},
            "state_folder": {"type": "str", "default": ""},
            "verify": {"type": "bool", "default": False},
        },
    )
    with plain_errors(module):
        run(module)


def run(module: AnsibleModule) -> None:
    from fog.services import objects

    given = module.params
    store = objects.ObjectStore(
        given["endpoint"],
        given["bucket"],
        objects.Key(given["root_access"], given["root_secret"]),
        objects.Key(given["flink_access"], given["flink_secret"]),
        given["ca"],
    )
    enter_network(given["state_folder"])
    if given["verify"]:
        exit_with_problems(module, objects.problems(store))
    changes = objects.ensure(store)
    module.exit_json(changed=bool(changes), changes=changes)


if __name__ == "__main__":
    main()
