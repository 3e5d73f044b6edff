#!/usr/bin/python
"""Ansible module: certificates of the testbed's services, on the machine that controls it."""

from __future__ import annotations

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.fog import plain_errors

DOCUMENTATION = """
module: fog_certificates
short_description: Makes an authority and certificates, where they are missing or run out within a month
options:
  folder: {type: path, required: true, description: Where they are kept, mode 0600.}
  certificates:
    type: list
    elements: dict
    required: true
    description: 'name, user, hosts and client (whether it opens doors of others, true by default) of each.'
  keystores: {type: list, elements: str, default: [], description: Names of those that Java is to read.}
  truststore: {type: bool, default: false, description: Whether Java is also to know whom to trust.}
  password: {type: str, default: '', description: Of the keystores.}
author: [fogscale]
"""


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "folder": {"type": "path", "required": True},
            "certificates": {"type": "list", "elements": "dict", "required": True},
            "keystores": {"type": "list", "elements": "str", "default": [], "no_log": False},
            "truststore": {"type": "bool", "default": False},
            "password": {"type": "str", "default": "", "no_log": True},
        },
    )
    with plain_errors(module):
        run(module)


def run(module: AnsibleModule) -> None:
    from fog.services.pki import Certificate, ensure, ensure_keystore, ensure_truststore

    given = module.params
    folder = Path(given["folder"])
    wanted = [
        Certificate(
            each["name"], each["user"], "", tuple(each.get("hosts", ())), bool(each.get("client", True))
        )
        for each in given["certificates"]
    ]
    made = ensure(folder, wanted, tokens=False)
    made += [f"{name}.p12" for name in given["keystores"] if ensure_keystore(folder, name, given["password"])]
    if given["truststore"] and ensure_truststore(folder):
        made.append("ca.p12")
    module.exit_json(changed=bool(made), made=made)


if __name__ == "__main__":
    main()
